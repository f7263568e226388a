"""The heads of captures: their statistics, and what every scale rule would have done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..against import words
from ..captures.settings import ScoreProcessing
from ..diagnosis.heads.reasons import head_word, severity
from ..diagnosis.heads.summary import count_words
from ..errors import InputError
from ..message import counted, joined, message
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Column, Measurement
from .formats import NONE, digits
from .statistics import (
    COLUMN,
    column_entry,
    column_rows,
    multiplier_cell,
    short_cell,
    statistic_name,
    statistics_grid,
)
from .table import (
    Block,
    Cell,
    Heading,
    HeadMark,
    Picture,
    Pictures,
    Table,
    TextGrid,
    Tone,
    VerdictMap,
    columns_of,
    entry,
    grid,
    parameter_types,
    row,
    text_cell,
)

if TYPE_CHECKING:
    from ..captures.capture import CaptureContents, HeadSubject, Layer
    from ..diagnosis.heads.reasons import HeadReasons
    from ..diagnosis.results import AttentionCells, Replay, RuleReplay

HeadMeasurement: TypeAlias = "Measurement[HeadSubject]"
Inspected: TypeAlias = "tuple[HeadMeasurement, HeadReasons | None]"  # with the reasons for its status, if asked for

# Statistics in which real heads differ from random draws and from each other.
SHOWN = (
    "logit_std",
    "logit_variance_within_row",
    "saturation",
    "row_mean_share",
    "entropy_fraction",
    "max_weight",
    "one_hot_rows",
    "dead_rows",
    "first_key_weight",
)
_PLACE = {"file": str, "layer": int, "layer_name": str, "head": int}


def files_entry(captures: Sequence[CaptureContents], *names: str) -> dict[str, Any]:
    """Return `file`, with its path, its model and these attributes, or `files` and those of several."""
    files = [
        {"path": str(capture.path), "model": capture.model, **{name: getattr(capture, name) for name in names}}
        for capture in captures
    ]
    return {"file": files[0]} if len(files) == 1 else {"files": files}


def files_words(captures: Sequence[CaptureContents], names: Callable[[CaptureContents], str]) -> list[str]:
    """Return the words of a title: the file, or how many; the model and the licence, if all have the same."""
    words = [names(captures[0]) if len(captures) == 1 else message("{count} files", count=len(captures))]
    for said in ({capture.model for capture in captures}, {capture.licence for capture in captures}):
        words += [text for text in said if text and len(said) == 1]
    return words


def _place(layer: Layer, head: int) -> list[Any]:
    """Return the values of _PLACE. The layer's name is in it, because two layers may have the same number."""
    return [str(layer.path), layer.index, layer.name, head]


def apart_of(settings: Iterable[ScoreProcessing]) -> tuple[str, ...]:
    """Return which of precision, arithmetic and softcap are not as in the file, or exact, in one of these."""
    return tuple(dict.fromkeys(name for setting in settings for name in setting.apart))


def inspect_table(
    captures: Sequence[CaptureContents],
    heads: Iterable[Inspected],
    asked: int,
    apart: Sequence[str] = (),
    whole: bool = False,
) -> Table[Inspected]:
    """Return `asked` heads and scales of these captures, as they come, with reasons if they have some.

    `apart` are parameters with a column in CSV, because a setting has its own. A page shows a `whole` head at length.
    """

    def elements(inspected: Inspected) -> Iterator[dict[str, Any]]:
        """Yield an entry for each scale of a head."""
        head, explained = inspected
        layer = head.subject.layer
        place = dict(zip(_PLACE, _place(layer, head.subject.head), strict=True))
        because = {} if explained is None else {"because": explained.because}
        for column in head.columns:
            yield {**place, "d_k": layer.d_k, **column_entry(column), **because}

    def rows(inspected: Inspected) -> Iterator[list[Any]]:
        head, _ = inspected
        layer = head.subject.layer
        usual = {"precision": ScoreProcessing().precision, "softcap": layer.softcap or 0.0}
        for column in head.columns:
            settings = [column.apart.get(name, usual.get(name)) for name in apart]
            yield from column_rows([*_place(layer, head.subject.head), layer.d_k, *settings], column_entry(column))

    def page() -> list[Block]:
        found = [*heads]
        title = files_words(captures, lambda capture: str(capture.path))
        subject, columns = found[0][0].subject, found[0][0].columns
        if whole:
            place = f"{subject.layer.place}, head {subject.head}, d_k {subject.layer.d_k}"
            return [Heading(f"{' · '.join(title)}: {place}"), _pictures(captures, found), statistics_grid(columns)]
        return [
            Heading(" · ".join(filter(None, [*title, words(columns[0].apart)]))),
            _status_counts(found),
            VerdictMap([_mark(head) for head in found]),
            _pictures(captures, found),
            _heads_grid(found),
        ]

    return Table(
        "inspect-2", files_entry(captures, "source", "licence", "notes", "unused"), "heads", heads, elements,
        {**_PLACE, "d_k": int, **parameter_types(apart), **COLUMN}, rows, page, asked=asked,
    )  # fmt: skip


def _word(inspected: Inspected, column: Column | None = None) -> str:
    """Return the status of a head at a scale, or at its last one; what the evidence says of it comes first."""
    head, explained = inspected
    measured = (column or head.columns[-1]).measured
    return head_word(measured, None if explained is None else explained.verdict) or NONE


def _status_counts(heads: Sequence[Inspected]) -> str:
    """Return `72 heads: 60 healthy, 12 saturated`."""
    counts = [count_words(word, count) for word, count in Counter(map(_word, heads)).most_common()]
    number = counted("{number} head", "{number} heads", len(heads))
    return message("{heads}: {counts}", heads=number, counts=joined(counts, ", "))


_SIGNS = {"uniform": "u", "saturating": "s", "saturated": "S", "sink": "k", "one-hot": "1", "NaN": "N"}  # on a map


def _mark(inspected: Inspected) -> HeadMark:
    head, explained = inspected
    word = _word(inspected)
    tone: Tone = "right" if word == "healthy" else "wrong" if word in ("wrong", "NaN") else "undecided"
    says = () if explained is None else explained.because
    return HeadMark(head.subject.layer, head.subject.head, tone, word, joined(says, "; "), _SIGNS.get(word, ""))


_CELLS = 40  # of a picture, down and across: enough to see diagonals, columns and corners
_PICTURED = 6  # heads


def head_picture(
    captures: Sequence[CaptureContents], layer: Layer, head: int, why: str, scales: Sequence[tuple[str, float | None]]
) -> Picture:
    """Return the attention of a head on its first text, under each of these multipliers; None is the file's own."""
    from ..captures.head import CaptureFile
    from ..captures.rules import file_rule, named_rule
    from ..diagnosis.heads.attention import attention_matrix

    [capture] = (
        captures if len(captures) == 1 else [candidate for candidate in captures if candidate.path == layer.path][:1]
    )
    assert isinstance(capture, CaptureFile), "only a file with its numbers is drawn"
    matrices: list[tuple[str, AttentionCells | str]] = []
    for caption, multiplier in scales:
        try:
            rule = file_rule(layer) if multiplier is None else named_rule("custom", layer, multiplier)
            every = ((0, layer.queries), (0, layer.keys), _CELLS, _CELLS)
            cells = (each for each in attention_matrix(capture, layer, head, rule, 0, *every) if each is not None)
            matrices.append((caption, next(cells, "")))
        except InputError as error:
            matrices.append((caption, str(error)))
    return Picture(joined([layer.place_of(head), *([why] if why else [])], " · "), matrices)


def _pictures(captures: Sequence[CaptureContents], heads: Sequence[Inspected]) -> Pictures:
    """Return pictures of the first of these heads that are worst, at their scales."""

    def draw() -> Iterator[Picture]:
        order = sorted(heads, key=lambda each: severity(each[0].columns[-1].measured, each[1] and each[1].verdict))
        for head, explained in order[:_PICTURED]:
            scales = [
                (message("as the file says"), None) if column.rule == "file"
                else (message("× {multiplier}", multiplier=digits(column.multiplier)), column.multiplier)
                for column in head.columns
            ]  # fmt: skip
            why = _word((head, explained)) if len(scales) == 1 else ""
            yield head_picture(captures, head.subject.layer, head.subject.head, why, scales)

    return Pictures(draw)


Line: TypeAlias = "tuple[HeadMeasurement, HeadReasons | None, Column]"  # of a list: a head, its reasons, a scale


def _heads_grid(heads: Sequence[Inspected]) -> TextGrid:
    """Return a line for each head and scale: its statistics, its status, and any reasons."""

    def statistic(name: str) -> Cell[Line]:
        statistic = STATISTIC[name]
        return text_cell(statistic_name(statistic), lambda line: short_cell(line[2].measured[name], statistic))

    files = any(head.subject.layer.file for head, _ in heads)
    cells: list[Cell[Line]] = [
        text_cell("file" if files else "", lambda line: line[0].subject.layer.file),
        text_cell("layer", lambda line: str(line[0].subject.layer.index)),
        text_cell("head", lambda line: str(line[0].subject.head)),
        text_cell("d_k", lambda line: str(line[0].subject.layer.d_k)),
        text_cell("multiplier", lambda line: multiplier_cell(line[2])),
        *map(statistic, SHOWN),
        text_cell("status", lambda line: _word(line[:2], line[2])),
        text_cell(
            "" if heads[0][1] is None else "because", lambda line: "; ".join(line[1].because if line[1] else ())
        ),
    ]
    return grid(cells, [(*each, column) for each in heads for column in each[0].columns])


_REPLAYED: Sequence[Cell[RuleReplay]] = (
    Cell("rules", list, label=message("rule"), words=lambda rule: " = ".join(rule.rules)),
    Cell("multiplier", float, label=message("multiplier")),
    Cell("divergence", float, label="KL"),
    Cell("entropy", float, label=message("entropy")),
    Cell("entropy_change", float, label=message("change"), words=lambda rule: f"{rule.entropy_change:+.3f}"),
    Cell("one_hot_rows", float, label=message("one-hot %"), words=lambda rule: f"{100 * rule.one_hot_rows:.1f}"),
    Cell("saturation", float, label=message("saturation")),
)


def replay_table(captures: Sequence[CaptureContents], heads: Iterable[Replay], asked: int) -> Table[Replay]:
    """Return `asked` heads under every rule, as they come; CSV has a line for each rule of a head."""

    def element(replay: Replay) -> dict[str, Any]:
        return {
            **dict(zip(_PLACE, _place(replay.layer, replay.head), strict=True)),
            "replayed": [entry(_REPLAYED, rule) for rule in replay.replayed],
            "left_out": replay.left_out,
            "remedied_by": None if replay.remedy is None else replay.remedy.rules[0],
        }

    def rows(replay: Replay) -> Iterator[list[Any]]:
        for found in replay.replayed:
            for rule in found.rules:
                yield [*_place(replay.layer, replay.head), rule, *row(_REPLAYED[1:], found)]

    return Table(
        "replay-2", files_entry(captures), "heads", heads, lambda each: [element(each)],
        {**_PLACE, "rule": str, **columns_of(_REPLAYED[1:])}, rows,
        lambda: (block for name, own in by_file([*heads]) for block in (name, replay_grid(own)) if block),
        asked=asked,
    )  # fmt: skip


def replay_grid(heads: Sequence[Replay]) -> TextGrid:
    """Return a line for each rule: of one head, or the means over several."""
    if len(heads) == 1:
        return grid(_REPLAYED, heads[0].replayed)
    from ..diagnosis.replay import average

    return TextGrid(
        [message("rule"), message("mean KL"), message("entropy change"), message("one-hot %")],
        [
            [name, digits(divergence), f"{change:+.3f}", f"{100 * one_hot:.1f}"]
            for name, divergence, change, one_hot in average(heads)
        ],
    )


def by_file(heads: Sequence[Replay]) -> list[tuple[str, list[Replay]]]:
    """Return the heads of each file after its name, which is empty if there is one."""
    names = list(dict.fromkeys(head.layer.file for head in heads))
    return [(name if len(names) > 1 else "", [head for head in heads if head.layer.file == name]) for name in names]


def replay_remarks(heads: Sequence[Replay]) -> list[str]:
    """Return a line for each saturated head that some rule makes healthy, and one on the rules that are left out."""
    remarks: list[str] = [
        message(
            "{layer} head {head} is saturated; {rule} (× {multiplier}) is the nearest rule that makes it healthy, "
            "KL {divergence} nats",
            layer=head.layer.place,
            head=head.head,
            rule=found.rules[0],
            multiplier=digits(found.multiplier),
            divergence=digits(found.divergence),
        )
        for head in heads
        if (found := head.remedy) is not None
    ]
    left_out = ", ".join(dict.fromkeys(name for head in heads for name in head.left_out))
    if left_out:
        remarks.append(message("left out, because they need what the file does not say: {rules}", rules=left_out))
    return remarks
