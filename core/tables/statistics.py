"""Columns of statistics, shared by several results: in JSON, as lines of CSV and as a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..against import parameter_word, words
from ..field import Field, differing
from ..message import message
from ..parameters import (
    FIELD,
    FIELDS,
    NO_MODEL,
    ROUNDED,
    UNSCALED,
    Parameters,
    context_note,
    usual_of,
)
from ..scales import scale_rule
from ..statistics.catalogue import STATISTIC, STATISTICS, Statistic
from ..statistics.measurement import Column, Estimate, is_unscaled
from ..theory.prediction import status_given
from .formats import NONE, digits, existing, pair
from .table import Bold, Cell, TextGrid

if TYPE_CHECKING:
    from ..theory.prediction import PredictedColumn, Saturation

T = TypeVar("T")

OF_ALL_COLUMNS = ("scale", "multiplier", "against")  # parameters that are not cells of a CSV line: COLUMN says them
# The columns of CSV for one value of a column of statistics, whose status is repeated.
COLUMN = {"scale": str, "multiplier": float, "status": str, "statistic": str, "value": float, "stderr": float}
# Those for its exact value, and in JSON, the arithmetic of theory: exact, whatever the number format.
THEORY = {"theory": float, "theory_arithmetic": str}
THEORY_ARITHMETIC = "exact"


def column_entry(
    column: Column, exact: PredictedColumn | None = None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return a column's scale, the parameters that others do not share, its statistics, and their exact values."""
    scale = scale_entry(column.rule, column.multiplier)
    measured = column.measured if names is None else {name: column.measured[name] for name in names}
    saturation = None if exact is None else exact.saturation
    theory = {} if exact is None else {
        "theory": {name: exact.values[name] for name in measured},
        "saturation": saturation_entry(saturation),
    }  # fmt: skip
    return {
        **({"apart": column.apart} if column.apart else {}),
        "scale": scale if column.multipliers is None else scale | {"range": column.multipliers},
        "measured": measured,
        **theory,
        "status": status_given(saturation, column.measured),
    }


def column_rows(place: Sequence[Any], entry: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield a line of CSV for each statistic in the entry of a column, beginning with the values of `place`."""
    scale = entry["scale"]
    for name, estimate in entry["measured"].items():
        exact = [entry["theory"][name], THEORY_ARITHMETIC] if "theory" in entry else []
        yield [*place, scale["rule"], scale["multiplier"], entry["status"], name, *pair(estimate), *exact]


def scale_entry(rule: str, multiplier: float) -> dict[str, Any]:
    """Return a rule's name, formula and multiplier; that of a number is the number, the scale in a file has none."""
    formulas = {"file": None, "custom": f"{multiplier:.10g}"}
    formula = formulas[rule] if rule in formulas else scale_rule(rule).formula
    return {"rule": rule, "formula": formula, "multiplier": multiplier}


def saturation_entry(saturation: Saturation | None) -> dict[str, Any] | None:
    """Return where softmax saturates: `saturated_at` holds the first and the last d_k of each interval."""
    if saturation is None:
        return None
    return {name: getattr(saturation, name) for name in ("threshold", "std", "ratio", "saturated_at")}


def statistics_grid(
    columns: Sequence[Column], theory: Sequence[PredictedColumn] = (), title: str = "theory"
) -> TextGrid:
    """Return a table of each column's status and statistics, with any exact values beside them, under `title`."""

    def line(label: str, words: Iterable[str | None]) -> list[str]:
        return [label, *(cell for word in words for cell in ([word or NONE, ""] if theory else [word or NONE]))]

    saturation = [column.saturation for column in theory] or [None] * len(columns)
    lines = [line("status", map(status_given, saturation, (column.measured for column in columns)))]
    if any(saturation):
        places = [None if known is None else known.words()[0] for known in saturation]
        lines.append(line(message("saturation"), places))
    group = ""
    for statistic in STATISTICS:
        name = statistic.name
        if statistic.omissible and all(column.measured[name].value is None for column in columns):
            continue
        if statistic.group != group:
            group = statistic.group
            lines.append([Bold(group), *[""] * (len(lines[0]) - 1)])
        cells = [statistic.label]
        for index, column in enumerate(columns):
            cells.append(cell(column.measured[name], statistic))
            cells += [cell(Estimate(theory[index].values[name], None), statistic)] if theory else []
        lines.append(cells)
    titles = [each for column in columns for each in (_title(column), *([title] if theory else []))]
    return TextGrid(["", *titles], lines)


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


def estimate_cell(name: str, of: Callable[[T, str], Estimate]) -> Cell[T]:
    """Return the cell of what `of` finds of a statistic."""
    statistic = STATISTIC[name]
    return Cell(
        name, Estimate, lambda each: of(each, name), statistic.label,
        lambda each: cell(of(each, name), statistic),
    )  # fmt: skip


def short_cell(estimate: Estimate, statistic: Statistic) -> str:
    """Return the value without its standard error and its unit, which is in the header."""
    value = existing(estimate.value)
    return NONE if value is None else digits((100 if statistic.unit == "share" else 1) * value)


def parameter_words(parameters: Parameters, fields: Sequence[Field] = FIELDS) -> list[str]:
    """Return `d_k 64`, `keys 128`, … for the given fields that have an effect, and the note on a model's context."""
    absent = {"against": UNSCALED, "model": NO_MODEL}  # not worth a word
    shown = [f for f in fields if f.applies(parameters) and getattr(parameters, f.name) != absent.get(f.name)]
    words: list[str] = [
        message("{parameter} {value}", parameter=field.label, value=parameter_word(field, parameters))
        for field in shown
    ]
    note = context_note(parameters) if FIELD["n_keys"] in shown else ""
    return [*words, note] if note else words


def notable_words(parameters: Parameters, names: Iterable[str], always: Collection[str]) -> list[str]:
    """Return the same for named fields that are in `always`, not at their default or not as the model sets them."""
    changed = differing(FIELDS, parameters, Parameters()) | differing(FIELDS, parameters, usual_of(parameters))
    return parameter_words(parameters, [FIELD[name] for name in names if name in always or name in changed])


def theory_title(settings: Iterable[Parameters]) -> str:
    """Return the title of exact values; beside measurements in a rounded format it names the arithmetic."""
    rounded = any(p.precision in ROUNDED for p in settings)
    return message("theory (exact arithmetic)") if rounded else message("theory")
