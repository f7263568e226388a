"""Export measurements of the heads of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..against import words
from ..captures.settings import Computed
from ..diagnosis.heads.reasons import head_word
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Measurement
from ..statistics.status import status
from .columns import COLUMN_TYPES, column_json, multiplier_cell, short_cell, statistic_name, statistics_table, values
from .formats import NONE, Say, escaped, markdown_table, version
from .listing.files import files_json, files_words
from .listing.listing import Listing, field_types, whole

if TYPE_CHECKING:
    from ..captures.capture import Capture, HeadSubject
    from ..diagnosis.heads.reasons import Explained

HeadMeasurement: TypeAlias = "Measurement[HeadSubject]"
Inspected: TypeAlias = "tuple[HeadMeasurement, Explained | None]"  # with the reasons for its status, if asked for

_INSPECT = "attn-tui/inspect-1"


def apart_of(settings: Iterable[Computed]) -> tuple[str, ...]:
    """Return which of precision, arithmetic and softcap are not as in the file, or exact, in one of these."""
    return tuple(dict.fromkeys(name for each in settings for name in each.apart))


def inspect_listing(captures: Sequence[Capture], asked: int, apart: Sequence[str] = ()) -> Listing[Inspected]:
    """Return how `asked` heads and scales of these captures are written, with reasons if they have some.

    `apart` are parameters with a column in CSV, because a setting has its own.
    """
    return Listing(
        {"schema": _INSPECT, "version": version(), **files_json(captures, "source", "licence", "notes", "unused")},
        "heads",
        asked,
        lambda each: [*_entries(*each)],
        {
            "file": "string", "layer": "integer", "layer_name": "string", "head": "integer", "d_k": "integer",
            **field_types(apart), **COLUMN_TYPES,
        },
        lambda each: _lines(each[0], apart),
    )  # fmt: skip


def _entries(head: HeadMeasurement, explained: Explained | None) -> Iterator[dict[str, Any]]:
    """Yield an entry for each scale of a head."""
    layer = head.subject.layer
    for column in head.columns:
        yield {
            "file": layer.path,
            "layer": layer.index,
            "layer_name": layer.name,
            "head": head.subject.head,
            "d_k": layer.d_k,
            **column_json(column),
            "status": status(column.measured),
            **({} if explained is None else {"because": list(explained.because)}),
        }


def _lines(head: HeadMeasurement, apart: Sequence[str]) -> Iterator[list[Any]]:
    """Yield a line for each value. The layer's name is in it, because two layers may have the same number."""
    layer = head.subject.layer
    usual = {"precision": Computed().precision, "softcap": layer.softcap or 0.0}
    for column in head.columns:
        own = [column.apart.get(name, usual.get(name)) for name in apart]
        place = [layer.path, layer.index, layer.name, head.subject.head, layer.d_k]
        place += [*own, column.rule, column.multiplier]
        for value in values(column):
            yield [*place, status(column.measured), *value]


def inspect_json(capture: Capture, heads: Sequence[HeadMeasurement]) -> str:
    """Return one JSON object with an entry for each head and scale."""
    listing = inspect_listing([capture], sum(len(head.columns) for head in heads))
    return whole(listing, "json", ((head, None) for head in heads))


def inspect_csv(heads: Sequence[HeadMeasurement]) -> str:
    """Return a line for each value."""
    apart = dict.fromkeys(name for head in heads for column in head.columns for name in column.apart)
    return whole(inspect_listing([], 0, [*apart]), "csv", ((head, None) for head in heads))


def head_markdown(capture: Capture, head: HeadMeasurement, say: Say = str) -> str:
    """Return a title and a table for one head."""
    layer = head.subject.layer
    title = f"{layer.place}, head {head.subject.head}, d_k {layer.d_k}"
    return f"{_file_line([capture], say)}: {title}\n\n{statistics_table(head.columns, say)}"


def heads_markdown(
    captures: Sequence[Capture],
    heads: Sequence[Inspected],
    shown: Sequence[str],
    say: Say = str,
) -> str:
    """Return a table with a line for each head: the statistics named in `shown`, its status, and any reasons."""
    statistics = [STATISTIC[name] for name in shown]
    files = any(head.subject.layer.file for head, _ in heads)
    header = [
        *(["file"] if files else []),
        "layer",
        "head",
        "d_k",
        "multiplier",
        *(statistic_name(statistic) for statistic in statistics),
        "status",
        *([] if heads[0][1] is None else ["because"]),
    ]
    lines: list[list[str]] = []
    for head, explained in heads:
        verdict = None if explained is None else explained.verdict
        layer = head.subject.layer
        for column in head.columns:
            cells = [short_cell(column.measured[statistic.name], statistic) for statistic in statistics]
            numbers = [str(layer.index), str(head.subject.head), str(layer.d_k), multiplier_cell(column)]
            numbers = [layer.file, *numbers] if files else numbers
            lines.append([*numbers, *cells, head_word(column.measured, verdict) or NONE])
            if explained is not None:
                lines[-1].append("; ".join(explained.because))
    computed = escaped(words(heads[0][0].columns[0].apart), say)
    title = " · ".join(filter(None, [_file_line(captures, say), computed]))
    return f"{title}\n\n{markdown_table(header, lines, say)}"


def _file_line(captures: Sequence[Capture], say: Say) -> str:
    return escaped(" · ".join(files_words(captures, lambda capture: str(capture.path))), say)
