"""Export measurements of the heads of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Measurement
from ..statistics.status import status
from .columns import COLUMN, column_json, multiplier_cell, short_cell, statistic_name, statistics_table, values
from .formats import NONE, Say, csv_text, escaped, json_text, markdown_table, version

if TYPE_CHECKING:
    from ..captures.capture import Capture, HeadSubject

HeadMeasurement: TypeAlias = "Measurement[HeadSubject]"

_INSPECT = "attn-tui/inspect-1"


def inspect_json(
    capture: Capture, heads: Sequence[HeadMeasurement], because: Sequence[tuple[str, ...]] | None = None
) -> str:
    """Return one JSON object with an entry for each head and scale; `because` has the reasons of each head."""
    return json_text(
        {
            "schema": _INSPECT,
            "version": version(),
            "file": {
                "path": str(capture.path),
                "model": capture.model,
                "source": capture.source,
                "licence": capture.licence,
                "notes": list(capture.notes),
                "unused": list(capture.unused),
            },
            "heads": [
                {
                    "layer": head.subject.layer.index,
                    "layer_name": head.subject.layer.name,
                    "head": head.subject.head,
                    "d_k": head.subject.layer.d_k,
                    **column_json(column),
                    "status": status(column.measured),
                    **({} if because is None else {"because": list(because[number])}),
                }
                for number, head in enumerate(heads)
                for column in head.columns
            ],
        }
    )


def inspect_csv(heads: Sequence[HeadMeasurement]) -> str:
    """Return a line for each value. The layer's name is included, because two layers may have the same number."""
    lines: list[list[Any]] = []
    for head in heads:
        layer = head.subject.layer
        for column in head.columns:
            place = [layer.index, layer.name, head.subject.head, layer.d_k, column.rule, column.multiplier]
            place = [*place, status(column.measured)]
            lines += [[*place, *value] for value in values(column)]
    return csv_text(["layer", "layer_name", "head", "d_k", *COLUMN], lines)


def head_markdown(capture: Capture, head: HeadMeasurement, say: Say = str) -> str:
    """Return a title and a table for one head."""
    layer = head.subject.layer
    title = f"{layer.place}, head {head.subject.head}, d_k {layer.d_k}"
    return f"{_file_line(capture, say)}: {title}\n\n{statistics_table(head.columns, say)}"


def heads_markdown(
    capture: Capture,
    heads: Sequence[HeadMeasurement],
    shown: Sequence[str],
    say: Say = str,
    because: Sequence[tuple[str, ...]] | None = None,
) -> str:
    """Return a table with a line for each head: the statistics named in `shown`, its status, and `because`."""
    statistics = [STATISTIC[name] for name in shown]
    files = any(head.subject.layer.file for head in heads)
    header = [
        *(["file"] if files else []),
        "layer",
        "head",
        "d_k",
        "multiplier",
        *(statistic_name(statistic) for statistic in statistics),
        "status",
        *([] if because is None else ["because"]),
    ]
    lines: list[list[str]] = []
    for number, head in enumerate(heads):
        layer = head.subject.layer
        for column in head.columns:
            cells = [short_cell(column.measured[statistic.name], statistic) for statistic in statistics]
            numbers = [str(layer.index), str(head.subject.head), str(layer.d_k), multiplier_cell(column)]
            numbers = [layer.file, *numbers] if files else numbers
            lines.append([*numbers, *cells, status(column.measured) or NONE])
            if because is not None:
                lines[-1].append("; ".join(because[number]))
    return f"{_file_line(capture, say)}\n\n{markdown_table(header, lines, say)}"


def _file_line(capture: Capture, say: Say) -> str:
    parts = (str(capture.path), capture.model, capture.licence)
    return escaped(" · ".join(part for part in parts if part), say)
