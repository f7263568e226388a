"""What a run wrote since the last look, or all of it: lines of a file, or heads of the files of a folder."""

from __future__ import annotations

import codecs
import math
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias, TypeVar

from ..captures.capture import Layer
from ..captures.files import CaptureError, NotFiniteError
from ..captures.head import CaptureFile
from ..captures.heads import measure_head
from ..captures.reader import open_capture
from ..captures.rules import file_rule
from ..captures.settings import ScoreProcessing
from ..errors import InputError
from ..files import FileError, open_file
from ..message import message, plain
from .limits import LIMIT, MAX_LOGIT
from .peaks import peaks_of
from .snapshot import RunSnapshot, snapshot
from .step import LONGEST, SCHEMA, Heads, Peaks, WatchStep, grid, parse_line

_STATISTICS = ("entropy_fraction", "saturation", "one_hot_rows", "first_key_weight")


def measured(path: Path, number: int) -> WatchStep:
    """Measure all heads of a capture under the scale it tells, else 1/√d_k; raise CaptureError if it is none.

    The step is that of the capture's metadata, else `number`. A head that cannot be measured has NaN, and a note; one
    whose queries or keys are not finite has infinite logits. The largest |logit| is that before a soft-cap, which no
    limit above the cap would ever see passed.
    """
    capture = open_capture(path)
    rows: dict[str, list[list[float]]] = {name: [] for name in (MAX_LOGIT, *_STATISTICS)}
    notes: list[str] = []
    for layer in capture.layers:
        heads = [_head(capture, layer, head, notes) for head in range(layer.heads)]
        for name, table in rows.items():
            table.append([head[name] for head in heads])
    scales = {layer.scale for layer in capture.layers}
    return WatchStep(
        step=number if capture.step is None else capture.step,
        time=path.stat().st_mtime,
        layers=tuple(plain(layer.index) for layer in capture.layers),
        values={name: grid(table) for name, table in rows.items()},
        heads=tuple(layer.heads for layer in capture.layers),
        scale=scales.pop() if len(scales) == 1 else None,
        scaled=True,
        file=str(path),
        notes=tuple(notes),
    )


def _head(capture: CaptureFile, layer: Layer, head: int, notes: list[str]) -> dict[str, float]:
    rule = file_rule(layer)
    raw = replace(rule, computed=ScoreProcessing(softcap=0))
    try:
        columns = measure_head(capture, layer, head, [rule, raw] if layer.softcap else [rule], ()).columns
    except NotFiniteError:
        return {MAX_LOGIT: math.inf, **dict.fromkeys(_STATISTICS, math.nan)}
    except CaptureError as error:
        notes.append(str(error))
        return dict.fromkeys((MAX_LOGIT, *_STATISTICS), math.nan)
    first, last = ({name: _value(each.value) for name, each in columns[at].measured.items()} for at in (0, -1))
    return {
        MAX_LOGIT: max(-last["logit_min"], last["logit_max"]),
        **{name: first[name] for name in _STATISTICS},
    }


def _value(value: float | None) -> float:
    return math.nan if value is None else value


KEPT = 1024  # steps at most


def added(
    history: tuple[WatchStep, ...], steps: Iterable[WatchStep], since: int | None = None, limit: float = LIMIT
) -> tuple[WatchStep, ...]:
    """Return the history with these steps in their places; one that comes again replaces the earlier one.

    If the run was started over, the steps of the history from step `since` on are dropped first. Beyond KEPT steps,
    every second one of the older half is dropped, again and again; first and last stay. The step after a dropped one
    keeps its peaks; all those of a history are of one limit.
    """
    earlier = [step for step in history if since is None or step.step < since]
    for step in steps:
        place = bisect_left(earlier, step.step, key=_number)
        if place < len(earlier) and earlier[place].step == step.step:
            earlier[place] = replace(step, dropped=earlier[place].dropped)
        else:
            earlier.insert(place, step)
        if len(earlier) > KEPT:
            half = len(earlier) // 2
            for at in range(1, half, 2):
                earlier[at + 1] = replace(earlier[at + 1], dropped=_peaks_before(earlier[at], earlier[at + 1], limit))
            earlier[:half] = earlier[:half:2]
    return tuple(earlier)


def _peaks_before(dropped: WatchStep, after: WatchStep, limit: float) -> Mapping[Heads, Peaks]:
    """Return the peaks of all steps dropped before a step, once the step before it is dropped, too."""
    return peaks_of((dropped, replace(after, values={})), limit)


def _number(step: WatchStep) -> int:
    return step.step


_AT_ONCE = 8 << 20  # bytes of lines in one look
_FILES_LISTED = 32  # files that are read before the folder is listed again
_NEWEST = 32  # captures of a folder that are measured for one look at a run
_HALF_WRITTEN = 10.0  # seconds after which a file that cannot be read is damaged
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_STEP = re.compile(rb'(?<!\\)"step"\s*:\s*(\d{1,16})')
_LOGITS = re.compile(rb'"max_logit"\s*:\s*\[([^"{}]*)')
_UNSCALED = re.compile(rb'"scaled"\s*:\s*false')
_NUMBER = re.compile(r"(\d{1,15})(?!.*\d)")
_ENDINGS = (".safetensors", ".npz")
_NOTES = 20


T = TypeVar("T")
_Line: TypeAlias = tuple[int, bytes]  # its number and text
_Found: TypeAlias = tuple[str, int, int]  # a file of a folder: name, time and size


@dataclass(frozen=True)
class Cursor:
    """How far a run was read."""

    offset: int = 0  # of the file of lines
    lines: int = 0
    last: int = -1  # the largest step of these lines
    identity: tuple[int, int] | None = None  # of the file of lines: device and inode
    files: frozenset[_Found] = frozenset()  # of the folder: those read, and those to read next
    next_files: tuple[_Found, ...] = ()
    half: frozenset[_Found] = frozenset()  # those that could not be read so soon after they were written
    over: bool = False  # whether the run was started over, and no step was read since


START = Cursor()


@dataclass(frozen=True, eq=False)
class News:
    """What a look found."""

    steps: tuple[WatchStep, ...]
    cursor: Cursor
    more: bool = False  # whether there is more to read at once
    notes: tuple[str, ...] = ()  # what could not be used, and whatever else happened
    waiting: str = ""  # why there is nothing to read yet
    fraction: float | None = None  # of the file of lines that is read
    since: int | None = None  # the run was started over: from this step on, earlier ones are those of another run


def poll(
    path: Path, cursor: Cursor = START, wanted: Collection[int] = (), limit: float = LIMIT, newest: int = KEPT
) -> News:
    """Read what is new of a run, a little at a time.

    Steps in `wanted` are read in any case: of a file of lines also every one with a head over the limit, of a folder
    with no more than the `newest` captures.

    `path` is a folder of captures, one a step, or a file of attn-tui/watch-1 lines; it may not exist yet. Raise
    InputError if it is something else. Files and lines that are half written are read once they are whole.
    """
    try:
        if path.is_dir():
            return _folder(path, cursor, wanted, newest)
        if path.is_file() and path.suffix not in _ENDINGS:
            return _lines(path, cursor, wanted, limit)
        if path.exists():
            raise InputError(
                "{path}: must be a folder of captures or a file of {schema} lines", path=path, schema=SCHEMA
            )
    except FileNotFoundError:
        pass
    except FileError as error:
        return News((), cursor, waiting=str(error))
    except OSError as error:
        return News((), cursor, waiting=f"{path}: {error.strerror or error}")
    return News((), cursor, waiting=message("{path} does not exist yet", path=path))


def _lines(path: Path, cursor: Cursor, wanted: Collection[int], limit: float) -> News:
    """Read whole lines from where the last look ended; from the start if the file was replaced or shortened."""
    notes: list[str] = []
    with open_file(path) as file:
        status = path.stat()
        identity = (status.st_dev, status.st_ino)
        if cursor.identity not in (None, identity) or status.st_size < cursor.offset:
            notes.append(message("{name} was replaced or shortened: read from its start", name=plain(path.name)))
            cursor = Cursor(over=True)
        file.seek(cursor.offset)
        data = file.read(_AT_ONCE)
        while b"\n" not in data and len(data) < LONGEST and (rest := file.read(_AT_ONCE)):
            data += rest
    if not cursor.offset and data.startswith(_MARKS):
        raise InputError("{path}: begins with the byte order mark of UTF-16; must be UTF-8", path=path)
    whole, newline, _ = data.rpartition(b"\n")
    if not newline and len(data) >= LONGEST:
        raise InputError(
            "{path}: line {lines} is longer than {longest} MiB",
            path=path,
            lines=cursor.lines + 1,
            longest=LONGEST >> 20,
        )
    lines = [*enumerate(whole.split(b"\n") if newline else (), cursor.lines + 1)]
    chosen = _chosen(lines, cursor.last, wanted, limit)
    steps, faults = _parsed(chosen, path)
    if faults and len(chosen) < len(lines):
        steps, faults = _parsed(lines, path)
    notes += faults
    number = cursor.lines + len(lines)
    last = max([cursor.last, *(step.step for step in steps)])
    offset = cursor.offset + (len(whole) + 1 if newline else 0)
    more = offset < status.st_size and bool(newline)
    waiting = "" if number else message("{path} has no whole line yet", path=path)
    since = min((step.step for step in steps), default=None) if cursor.over else None
    over = cursor.over and not steps
    fraction = offset / max(status.st_size, 1)
    return News(
        tuple(steps), Cursor(offset, number, last, identity, over=over), more, _few(notes), waiting, fraction, since
    )


def _chosen(lines: list[_Line], last: int, wanted: Collection[int], limit: float) -> list[_Line]:
    """Return the lines to read: all, or of more than a history keeps, all in order after step `last`, only some.

    Steps in `wanted` are among them, and every line that may have a logit over the limit. To read a line takes a
    hundred times as long as to find its step, and several times as long as to find its largest logit.
    """
    if len(lines) <= KEPT:
        return lines
    steps = [int(found[1]) if (found := _STEP.search(line)) else -1 for _, line in lines]
    if any(step >= after for step, after in pairwise([last, *steps])):  # of lines of one step, the last one counts
        return lines
    some = {*_some(range(len(lines)))}
    return [
        line for at, line in enumerate(lines) if at in some or steps[at] in wanted or _may_be_over(line[1], limit)
    ]


def _may_be_over(line: bytes, limit: float) -> bool:
    """Return whether a line may have a logit over the limit; False only if all its logits are finite and below."""
    match = _LOGITS.search(line)
    if match is None:
        return b"max_logit" in line or b"\\" in line
    if b"N" in match[1] or _UNSCALED.search(line):  # NaN
        return True
    numbers = match[1].translate(None, b"[] \t\r").replace(b"null", b"0").rstrip(b",")
    try:
        return max(map(float, numbers.split(b","))) > limit
    except ValueError:
        return True


def _some(items: Sequence[T]) -> tuple[T, ...]:
    """Return as many items as a history keeps: all of the newest, and an even choice of the older ones."""
    older, newest = items[: -KEPT // 2], items[-KEPT // 2 :]
    return (*older[:: -(-len(older) // (KEPT // 2))], *newest) if len(items) > KEPT else tuple(items)


def _parsed(lines: list[_Line], path: Path) -> tuple[list[WatchStep], list[str]]:
    """Return the steps in lines, and what is wrong with the others; skip blank ones."""
    steps: list[WatchStep] = []
    faults: list[str] = []
    for number, line in lines:
        if line.strip():
            try:
                steps.append(parse_line(line))
            except InputError as error:
                name = plain(path.name)
                faults.append(message("{name} line {number}: {error}", name=name, number=number, error=error))
    return steps, faults


def _folder(path: Path, cursor: Cursor, wanted: Collection[int], newest: int) -> News:
    """Measure the newest file that is new or changed; one that is gone is forgotten.

    The folder is listed once for _FILES_LISTED files: it may have thousands.
    """
    notes: list[str] = []
    if not cursor.next_files:
        cursor, left_out = _listed(path, cursor, wanted, newest)
        if left_out:
            notes.append(
                message(
                    "{name}: {left_out} other captures are not measured, so a peak in them is not known",
                    name=plain(path.name),
                    left_out=left_out,
                )
            )
    if not cursor.next_files:
        none = message("{path} has no {what} yet", path=path, what="whole capture" if cursor.half else "captures")
        return News((), cursor, waiting="" if cursor.files - cursor.half else none)
    (name, *signature), rest = cursor.next_files[0], cursor.next_files[1:]  # of the signature: time and size
    number = _order(name)[0]
    cursor = replace(cursor, next_files=rest)
    try:
        step = measured(path / name, number)
    except (InputError, OSError) as error:
        if _signature(path / name) != tuple(signature):  # it is read again, or gone
            return News((), cursor, True, tuple(notes))
        if _is_young(signature[0]):
            return News((), replace(cursor, half=cursor.half | {(name, *signature)}), True, tuple(notes))
        return News((), cursor, True, (*notes, str(error)))
    since = None
    if cursor.over:
        names = (_order(each)[0] for each, *_ in cursor.files)
        since = min(names) if step.step == number else step.step
    return News((step,), replace(cursor, over=False), True, tuple(notes), since=since)


def _listed(path: Path, cursor: Cursor, wanted: Collection[int], newest: int) -> tuple[Cursor, int]:
    """Return the cursor with the newest files that are new or changed, and how many others are never measured.

    The run is started over if all files are new or changed. Of more files than a history keeps, all of the newest
    are read and an even choice of the older ones. Of fewer that are asked for, the `newest`, and those in `wanted`.
    """
    now: dict[str, _Found] = {}
    for entry in path.iterdir():
        if (
            entry.suffix in _ENDINGS
            and not entry.name.startswith(".")
            and (signature := _signature(entry)) is not None
        ):
            now[entry.name] = (entry.name, *signature)
    half = frozenset(found for found in cursor.half.intersection(now.values()) if _is_young(found[1]))
    files = cursor.files.intersection(now.values()) - (cursor.half - half)
    over = cursor.over or bool(cursor.files and not files)
    new = sorted((found for found in now.values() if found not in files), key=lambda found: _order(found[0]))
    some = _some(new) if newest >= KEPT else _asked(new, wanted, newest)
    files = files.union(set(new).difference(some))
    following = some[: -_FILES_LISTED - 1 : -1]
    return Cursor(files=files.union(following), next_files=following, half=half, over=over), len(new) - len(some)


def _asked(new: Sequence[_Found], wanted: Collection[int], newest: int) -> tuple[_Found, ...]:
    """Return the newest files, and those of the steps in `wanted`, or the last ones before these."""
    numbers = [_order(found[0])[0] for found in new]
    places = {max(bisect_right(numbers, step) - 1, 0) for step in wanted}
    return tuple(found for at, found in enumerate(new) if at >= len(new) - newest or at in places)


def _is_young(modified: int) -> bool:
    """Return whether a file was modified, by this machine's clock, so few seconds ago that it may be half written."""
    return 0 <= time.time() - modified / 1e9 < _HALF_WRITTEN


def _signature(path: Path) -> tuple[int, int] | None:
    """Return the time and size of a file; None if it was rotated away."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _order(name: str) -> tuple[int, str]:
    """Return the step in a file's name, its last number, and the name."""
    match = _NUMBER.search(name)
    return int(match[1]) if match else 0, name


def _few(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= _NOTES:
        return tuple(notes)
    return (*notes[:_NOTES], message("and {count} more like these", count=len(notes) - _NOTES))


def read_run(
    run: Path, limit: float = LIMIT, at: int | None = None, baseline: int | None = None
) -> Iterator[tuple[float, tuple[str | RunSnapshot, ...]]]:
    """Read the newest step of a run, or step `at`, or the last one before it, beside another if `baseline` is one.

    Of a folder, only the _NEWEST captures are measured, and these two. Yield the finished fraction with notes, once a
    step is read, and last the step. Raise InputError if there is no such step.
    """
    wanted = [step for step in (at, baseline) if step is not None]
    files, fraction = 0, 0.0
    history: tuple[WatchStep, ...] = ()
    cursor, more, waiting = START, True, ""
    beside: WatchStep | None = None
    notes: list[str] = []
    while more:
        news = poll(run, cursor, wanted, limit, _NEWEST)
        cursor, more, waiting = news.cursor, news.more, news.waiting
        history = added(history, news.steps, limit=limit)
        beside = next((step for step in news.steps if step.step == baseline), beside)
        notes += [*news.notes, *(note for step in news.steps for note in step.notes)]
        left = len(cursor.next_files)
        files = max(files, left + 1)
        fraction = max(fraction, 1 - left / files) if news.fraction is None else news.fraction
        yield fraction, tuple(notes) if history else ()
        notes = [] if history else notes
    shown = snapshot(history, limit, at, beside)
    if shown is None:
        if notes:
            raise InputError("{run}: no step could be read; {note}", run=run, note=notes[0])
        raise InputError(waiting or message("{run}: no step could be read", run=run))
    least, last = shown.steps[0], shown.steps[-1]
    absent = at if at is not None and not least <= at <= last else baseline if beside is None else None
    if absent is not None:
        raise InputError(
            "{run} has no step {step}; its steps are {first} to {last}", run=run, step=absent, first=least, last=last
        )
    yield 1.0, (shown,)
