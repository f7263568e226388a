"""Columns of statistics, shared by several results: in JSON, as lines of CSV and as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..against import words
from ..message import in_sense
from ..scales import scale_rule
from ..statistics.catalogue import STATISTICS, Statistic
from ..statistics.column_names import is_unscaled
from ..statistics.measurement import Column, Estimate
from ..theory.prediction import status_given
from .formats import NONE, Say, digits, escaped, existing, marked_table

if TYPE_CHECKING:
    from ..theory.prediction import Freezing, PredictedColumn
    from .listing.listing import CellType

OF_ALL_COLUMNS = ("scale", "multiplier", "against")  # parameters that are not cells of a CSV line: COLUMN says them
# CSV headers for one value of a column, whose status is repeated
COLUMN_TYPES: Mapping[str, CellType] = {
    "scale": "string", "multiplier": "number", "status": "string", "statistic": "string", "value": "number",
    "stderr": "number",
}  # fmt: skip
COLUMN = tuple(COLUMN_TYPES)
# CSV headers for its exact value, and in JSON, the arithmetic of theory: exact, whatever the number format.
THEORY_TYPES: Mapping[str, CellType] = {"theory": "number", "theory_arithmetic": "string"}
THEORY = tuple(THEORY_TYPES)
THEORY_ARITHMETIC = "exact"


def column_json(column: Column) -> dict[str, Any]:
    """Return the scale, the parameters that other columns do not share, and the measured values."""
    scale = scale_json(column.rule, column.multiplier)
    return {
        **({"apart": dict(column.apart)} if column.apart else {}),
        "scale": scale if column.multipliers is None else scale | {"range": [*column.multipliers]},
        "measured": {name: estimate_json(estimate) for name, estimate in column.measured.items()},
    }


def scale_json(rule: str, multiplier: float) -> dict[str, Any]:
    """Return a rule's name, formula and multiplier; that of a number is the number, the scale in a file has none."""
    formulas = {"file": None, "custom": f"{multiplier:.10g}"}
    formula = formulas[rule] if rule in formulas else scale_rule(rule).formula
    return {"rule": rule, "formula": formula, "multiplier": multiplier}


def freezing_json(freezing: Freezing | None) -> dict[str, Any] | None:
    """Return where softmax freezes: `frozen_at` holds the first and the last d_k of each interval."""
    if freezing is None:
        return None
    return {
        "threshold": freezing.threshold,
        "std": freezing.std,
        "ratio": freezing.ratio,
        "frozen_at": [[*interval] for interval in freezing.frozen_at],
    }


def estimate_json(estimate: Estimate) -> dict[str, float | None]:
    """Return a value and its standard error; if only a lower bound of it is known, None and the bound."""
    value, stderr = existing_pair(estimate)
    found = {"value": value, "stderr": stderr}
    return found | {"stderr_at_least": existing(estimate.stderr)} if estimate.is_rough else found


def existing_pair(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return a value and its standard error, None where they do not exist or only a bound is known."""
    return existing(estimate.value), None if estimate.is_rough else existing(estimate.stderr)


def values(column: Column) -> Iterator[list[Any]]:
    """Yield the last cells of a CSV line for each value: the statistic, the value and its standard error."""
    for name, estimate in column.measured.items():
        yield [name, *existing_pair(estimate)]


def statistics_table(
    columns: Sequence[Column], say: Say, theory: Sequence[PredictedColumn] = (), title: str = "theory"
) -> str:
    """Return a table of each column's status and statistics, with any exact values beside them, under `title`."""
    titles = [[_title(column), title] if theory else [_title(column)] for column in columns]
    header = ["", *(title for pair in titles for title in pair)]
    freezing = [column.freezing for column in theory] or [None] * len(columns)
    words = [status_given(known, column.measured) for known, column in zip(freezing, columns, strict=True)]
    lines = [_line_of_words("status", words, bool(theory), say)]
    if any(freezing):
        places = [None if known is None else known.words()[0] for known in freezing]
        lines.append(_line_of_words(in_sense("freezing", "ratio"), places, bool(theory), say))
    group = ""
    for statistic in STATISTICS:
        if statistic.omissible and all(column.measured[statistic.name].value is None for column in columns):
            continue
        if statistic.group != group:
            group = statistic.group
            lines.append([f"**{group}**"] + [""] * (len(header) - 1))
        cells = [statistic.label]
        for index, column in enumerate(columns):
            cells.append(cell(column.measured[statistic.name], statistic))
            if theory:
                cells.append(cell(Estimate(theory[index].values[statistic.name], None), statistic))
        lines.append([escaped(text, say) for text in cells])
    return marked_table([escaped(text, say) for text in header], lines)


def _line_of_words(label: str, words: Sequence[str | None], theory: bool, say: Say) -> list[str]:
    """Return a line with a word for each column, and nothing beside it under `theory`."""
    cells = [cell for word in words for cell in ([word or NONE, ""] if theory else [word or NONE])]
    return [escaped(text, say) for text in (label, *cells)]


def _title(column: Column) -> str:
    """Return `unscaled × 1`, `scaled × 0.125 (1/√d_k), bfloat16` or `the file's × 0.1768`."""
    word = "the file's" if column.rule == "file" else "unscaled" if is_unscaled(column) else "scaled"
    title = f"{word} × {multiplier_cell(column)}"
    named = column.rule not in ("none", "file", "custom")
    title = f"{title} ({scale_rule(column.rule).label})" if named else title
    return f"{title}, {words(column.apart)}" if words(column.apart) else title


def multiplier_cell(column: Column) -> str:
    """Return the multiplier, or `0.1 to 0.25` if rows differ."""
    return digits(column.multiplier) if column.multipliers is None else " to ".join(map(digits, column.multipliers))


def statistic_name(statistic: Statistic) -> str:
    """Return the header for `short_cell`s of a statistic."""
    return f"{statistic.label}, %" if statistic.unit == "share" else statistic.label


def cell(estimate: Estimate, statistic: Statistic) -> str:
    """Return a value as `4.371 ± 0.002`, or `± ≥ 0.002` if its error may be larger; shares in per cent.

    A share of nothing is `none`: draws without an event say nothing of the standard error.
    """
    value, stderr = existing(estimate.value), existing(estimate.stderr)
    if value is None:
        return NONE
    if statistic.unit == "share" and value == 0 and not stderr:
        return "none"
    factor, unit = (100, " %") if statistic.unit == "share" else (1, "")
    deviation = "" if stderr is None else f" ±{' ≥' if estimate.is_rough else ''} {factor * stderr:.2g}"
    return f"{digits(factor * value)}{deviation}{unit}"


def short_cell(estimate: Estimate, statistic: Statistic) -> str:
    """Return the value without its standard error and its unit, which is in the header."""
    value = existing(estimate.value)
    return NONE if value is None else digits((100 if statistic.unit == "share" else 1) * value)
