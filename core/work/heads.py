"""Heads of captures: cut into parts, which a worker reads from the file itself."""

from __future__ import annotations

import hashlib
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from ..captures.capture import CaptureContents, HeadContext, HeadSubject, Layer, Meaning
from ..captures.files import CaptureError, Identity, opened
from ..captures.head import CaptureFile
from ..captures.heads import file_rule, stream_head
from ..captures.reader import open_capture
from ..captures.rules import rule_of
from ..captures.settings import HeadSetting
from ..diagnosis import check, replay, verdict
from ..diagnosis.comparing import compare
from ..diagnosis.comparing.results import HeadComparison, HeadPair
from ..diagnosis.configuration import Configuration, expecting
from ..diagnosis.heads.ranking import HeadFacts, known
from ..diagnosis.heads.rows import rough_statistics
from ..diagnosis.reading import file_configuration
from ..errors import InputError
from ..message import plain
from ..statistics.measurement import HISTOGRAMS, Estimate, Measurement
from .engine_names import ExecutorError
from .part import Part, PartExecutor, Steps

T = TypeVar("T")
Place: TypeAlias = tuple[int, int]  # the position of a layer in its file, and a head

_LEAST = 0.25  # seconds of a part
# Seconds for a score that is looked at, for a number of q and k, and for a head.
_SCORE, _NUMBER, _HEAD = 15e-9, 5e-9, 3e-3
# The bytes at the beginning of a file, and the blocks and their bytes, that tell whether it is the same.
_BEGINNING, _BLOCKS, _BLOCK = 1 << 20, 64, 1 << 16
_KEPT = 4  # captures that a thread keeps open


@dataclass(frozen=True)
class Source:
    """A capture as every worker opens it; `identity` tells whether it is the same there, `exact` by its bytes."""

    path: str
    axes: str | None
    mask_true: Meaning | None
    identity: str
    exact: bool = False
    tensor: str | None = None


def source_of(
    capture: CaptureContents,
    path: Path,
    axes: str | None = None,
    mask_true: Meaning | None = None,
    tensor: str | None = None,
    exact: bool = False,
) -> Source:
    """Return how to open a capture again that `open_capture` opened with these arguments; raise CaptureError.

    `exact` reads a little of the files. Else a file of this machine is the same if its time is. This thread uses the
    capture as it is.
    """
    try:
        source = Source(os.path.abspath(path), axes, mask_true, _identity(capture, exact), exact, tensor)
    except OSError as error:  # it has been removed since
        raise CaptureError("{path}: {why}", path=plain(path), why=error.strerror) from None
    if isinstance(capture, CaptureFile):
        _keep(source, capture)
    return source


def _identity(capture: CaptureContents, exact: bool) -> str:
    """Return a digest of names and sizes of the files of a capture, and of some bytes, or else their times."""
    found = hashlib.sha256()
    for path in capture.files:
        with opened(path) as (_, file):
            content = _digest(path, file) if exact else str(file.modified)
            found.update(os.fsencode(path.name) + f" {file.size} {content}\n".encode())
    return found.hexdigest()


@lru_cache(_KEPT * 16)
def _digest(path: Path, file: Identity) -> str:
    """Return a digest of a file's beginning, which says what it holds, and of blocks up to its end.

    A process reads a small part of a file: not all workers can read all of it only to see that it is the same.
    """
    found = hashlib.sha256()
    with opened(path, file) as (stream, _):
        found.update(stream.read(_BEGINNING))
        for number in range(_BLOCKS if file.size > _BEGINNING else 0):
            stream.seek(max(_BEGINNING, (file.size - _BLOCK) * (number + 1) // _BLOCKS))
            found.update(stream.read(_BLOCK))
    return found.hexdigest()


def check_files(sources: Sequence[Source], engine: PartExecutor) -> None:
    """Raise EngineError, which names file and machine, if a worker does not see the files that this process sees.

    Workers that cannot be asked before say so when they open a file.
    """
    if engine.everywhere is None:
        return
    for worker, fault in engine.everywhere(unlike, sources).items():
        if fault:
            raise ExecutorError("executor {name}: {fault} ({worker})", name=engine.name, fault=fault, worker=worker)


def unlike(sources: Sequence[Source]) -> str:
    """Return which of the files is another one in this process, or not readable; empty if none is."""
    for source in sources:
        try:
            _opened(source)
        except ExecutorError as error:
            return str(error)
    return ""


_own = threading.local()  # what a capture has decompressed is not shared between threads


def _opened(source: Source) -> CaptureFile:
    """Return the capture, opened once in each thread; raise EngineError if another file has its name here."""
    kept = _kept()
    if source not in kept:
        try:
            capture = open_capture(source.path, source.axes, source.mask_true, source.tensor)
            same = _identity(capture, source.exact) == source.identity
        except (InputError, OSError) as error:
            raise ExecutorError(
                "{path}: not readable on worker {node}: {error}",
                path=plain(source.path),
                node=platform.node(),
                error=error,
            ) from None
        if not same:
            raise ExecutorError(
                "{path}: worker {node} sees another file of this name", path=plain(source.path), node=platform.node()
            )
        _keep(source, capture)
    return kept[source]


def _kept() -> dict[Source, CaptureFile]:
    """Return the captures that this thread keeps open, the oldest first."""
    return _own.__dict__.setdefault("captures", {})


def _keep(source: Source, capture: CaptureFile) -> None:
    kept = _kept()
    if source not in kept and len(kept) == _KEPT:
        kept.pop(next(iter(kept)))
    kept[source] = capture


def parts(
    work: Callable[..., Iterator[tuple[float, Any]]],
    sources: Sequence[Source],
    items: Iterable[tuple[T, Layer]],
    arguments: tuple[Any, ...] = (),
) -> Iterator[Part[Any]]:
    """Yield parts of `work`, which is called with the captures, an item and the arguments; items come with a layer.

    Several items whose scores are few make one part. The result of an item that cannot be read is an InputError.
    """
    some: list[T] = []
    seconds = 0.0
    for item, layer in items:
        some.append(item)
        seconds += _seconds(work, layer)
        if seconds >= _LEAST:
            yield Part(each_of, (work, tuple(sources), tuple(some), arguments), seconds, len(some))
            some, seconds = [], 0.0
    if some:
        yield Part(each_of, (work, tuple(sources), tuple(some), arguments), seconds, len(some))


def _seconds(work: Callable[..., Any], layer: Layer) -> float:
    """Return how long the work on a head takes, estimated: by what it reads, and by the scores that it looks at."""
    numbers = layer.batch * (layer.queries + layer.keys) * layer.d_k
    scores = layer.batch * layer.queries * layer.keys
    if work in (diagnose, compare_pair, explain):  # these look at some rows
        scores = min(scores, 1 << 19)
    return _HEAD + _NUMBER * numbers + _SCORE * scores


def each_of(
    work: Callable[..., Iterator[tuple[float, T | None]]],
    sources: Sequence[Source],
    items: Sequence[Any],
    arguments: tuple[Any, ...],
) -> Steps[T | InputError]:
    """Do the work on each item; its result comes with its last step."""
    captures = [_opened(source) for source in sources]
    for number, item in enumerate(items):
        try:
            for fraction, result in work(*captures, item, *arguments):
                yield (number + fraction) / len(items), () if result is None else (result,)
        except InputError as error:
            yield (number + 1) / len(items), (error,)


def with_layer(result: T, layer: Layer) -> T:
    """Return the result for a head with the layer as this process has it: a worker knows no name of its file."""
    if isinstance(result, Measurement):
        measurement = cast("Measurement[HeadSubject]", result)
        return cast(T, replace(measurement, subject=replace(measurement.subject, layer=layer)))
    if isinstance(result, tuple):
        return cast(T, (layer, *cast("tuple[Any, ...]", result)[1:]))
    assert isinstance(result, check.HeadFigures | replay.Replay)
    return replace(result, layer=layer)


def measure(
    capture: CaptureFile, place: Place, settings: Sequence[HeadSetting], context: HeadContext
) -> Iterator[tuple[float, Measurement[HeadSubject] | None]]:
    """Measure a head under each setting; histograms are only shown of two beside each other."""
    layer, histograms = capture.layers[place[0]], HISTOGRAMS if len(settings) > 1 else ()
    return stream_head(
        capture, layer, place[1], [rule_of(setting, layer, context) for setting in settings], histograms
    )


class HeadSurvey(NamedTuple):
    """What a survey found of a head."""

    place: Place
    measured: Mapping[str, Estimate] | None  # at the file's scale; None if the head cannot be read
    exact: bool  # whether that is of all rows
    known: HeadFacts | None  # None if it was not asked for


def survey(
    capture: CaptureFile, place: Place, own: Configuration | None, exact: bool, explain: bool
) -> Iterator[tuple[float, HeadSurvey | None]]:
    """Measure a head at the file's scale, all rows or a few, and with `explain` find what its reasons come from.

    `own` is the configuration in the file.
    """
    layer, head = capture.layers[place[0]], place[1]
    found: Mapping[str, Estimate] | None = None
    try:
        if exact:
            for fraction, measurement in stream_head(capture, layer, head, [file_rule(layer)], ()):
                found = None if measurement is None else measurement.columns[0].measured
                yield fraction / 2, None
        else:
            found = rough_statistics(capture, layer, head)
            yield 0.5, None
    except InputError:
        found = None
    yield 1.0, HeadSurvey(place, found, exact, known(capture, layer, head, own) if explain else None)


def explain(capture: CaptureFile, place: Place) -> Iterator[tuple[float, tuple[Layer, int, HeadFacts]]]:
    """Find what the reasons of a head come from."""
    layer, head = capture.layers[place[0]], place[1]
    yield 1.0, (layer, head, known(capture, layer, head, file_configuration(capture)))


def check_figures(
    capture: CaptureFile, place: Place, given: Configuration | None, expect: str | None = None
) -> Iterator[tuple[float, check.HeadFigures | None]]:
    """Return what a check says of a head; `expect` is the rule or formula that the user expects."""
    own = file_configuration(capture)
    return check.measure(capture, capture.layers[place[0]], place[1], own, expecting(expect, given, own))


def replay_rules(
    capture: CaptureFile, place: Place, context: HeadContext, formulas: Sequence[str]
) -> Iterator[tuple[float, replay.Replay]]:
    """Replay every rule and these formulas on a head."""
    yield 1.0, replay.replay(capture, capture.layers[place[0]], place[1], context, formulas=formulas)


def diagnose(
    capture: CaptureFile, place: Place, given: Configuration | None, expect: str | None = None
) -> Iterator[tuple[float, tuple[Layer, int, verdict.Verdict]]]:
    """Return the verdict on a head; `expect` is the rule or formula that the user expects."""
    layer, head, own = capture.layers[place[0]], place[1], file_configuration(capture)
    yield 1.0, (layer, head, verdict.diagnose_head(capture, layer, head, own, expecting(expect, given, own)))


def compare_pair(reference: CaptureFile, test: CaptureFile, pair: HeadPair) -> Iterator[tuple[float, HeadComparison]]:
    """Compare two heads."""
    yield 1.0, compare.compare_heads(reference, test, pair)
