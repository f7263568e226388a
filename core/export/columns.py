"""A column of statistics, as every result has some: in JSON, as lines of CSV and as a table of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..attention.scales import SCALE_RULES
from ..statistics.catalogue import STATISTICS, Statistic
from ..statistics.measurement import Column, Estimate
from .formats import NONE, Say, digits, escaped, existing, marked_table

COLUMN = ("scale", "multiplier", "statistic", "value", "stderr")  # what a line of CSV says of a value


def column_json(column: Column) -> dict[str, Any]:
    """The scale and what was measured under it."""
    return {
        "scale": {"rule": column.rule, "multiplier": column.multiplier},
        "measured": {name: estimate_json(estimate) for name, estimate in column.measured.items()},
    }


def estimate_json(estimate: Estimate) -> dict[str, float | None]:
    """A value and its standard error."""
    return {"value": existing(estimate.value), "stderr": existing(estimate.stderr)}


def values(column: Column) -> Iterator[list[Any]]:
    """The end of a line of CSV for each value: the statistic, the value and its standard error."""
    for name, estimate in column.measured.items():
        yield [name, existing(estimate.value), existing(estimate.stderr)]


def statistics_table(columns: Sequence[Column], say: Say, theory: Sequence[Mapping[str, float | None]] = ()) -> str:
    """The statistics of each column, with its exact values in a column of their own where there is theory."""
    titles = [[_title(column), "theory"] if theory else [_title(column)] for column in columns]
    header = ["", *(title for pair in titles for title in pair)]
    lines: list[list[str]] = []
    group = ""
    for statistic in STATISTICS:
        if statistic.optional and all(column.measured[statistic.name].value is None for column in columns):
            continue
        if statistic.group != group:
            group = statistic.group
            lines.append([f"**{group}**"] + [""] * (len(header) - 1))
        cells = [statistic.label]
        for index, column in enumerate(columns):
            cells.append(cell(column.measured[statistic.name], statistic))
            if theory:
                cells.append(cell(Estimate(theory[index][statistic.name], None), statistic))
        lines.append([escaped(text, say) for text in cells])
    return marked_table([escaped(text, say) for text in header], lines)


def _title(column: Column) -> str:
    """`unscaled × 1`, `scaled × 0.125 (1/√d_k)`, `the file's × 0.1768`."""
    word = {"none": "unscaled", "file": "the file's"}.get(column.rule, "scaled")
    title = f"{word} × {digits(column.multiplier)}"
    named = column.rule not in ("none", "file", "custom")
    return f"{title} ({SCALE_RULES[column.rule].label})" if named else title


def statistic_name(statistic: Statistic) -> str:
    """What a header calls a statistic whose cells are `short_cell`s."""
    return f"{statistic.label}, %" if statistic.unit == "share" else statistic.label


def cell(estimate: Estimate, statistic: Statistic) -> str:
    """`4.371 ± 0.002`, and shares in per cent."""
    value, stderr = existing(estimate.value), existing(estimate.stderr)
    if value is None:
        return NONE
    factor, unit = (100, " %") if statistic.unit == "share" else (1, "")
    deviation = "" if stderr is None else f" ± {factor * stderr:.2g}"
    return f"{digits(factor * value)}{deviation}{unit}"


def short_cell(estimate: Estimate, statistic: Statistic) -> str:
    """The value alone; its unit stands in the header."""
    value = existing(estimate.value)
    return NONE if value is None else digits((100 if statistic.unit == "share" else 1) * value)
