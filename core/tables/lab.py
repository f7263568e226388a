"""Measurements of the lab with their theory: a report, and the points of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..against import parameter_word, settings
from ..message import message
from ..parameters import FIELD, FIELDS, ROUNDED, Parameters, Value, context_note
from ..statistics.catalogue import STATISTIC, STATISTICS
from ..statistics.measurement import Column, Estimate, Measurement, column_names
from .formats import digits
from .statistics import (
    COLUMN,
    OF_ALL_COLUMNS,
    THEORY,
    THEORY_ARITHMETIC,
    cell,
    column_entry,
    column_rows,
    notable_words,
    parameter_words,
    saturation_entry,
    statistics_grid,
    theory_title,
)
from .table import Block, Table, TextGrid, page_of, parameter_types

if TYPE_CHECKING:
    from ..lab.results import SweepPoint, Target
    from ..theory.prediction import PredictedColumn, Prediction

Axis: TypeAlias = tuple[str, Sequence[Value]]  # a parameter's name and its values
Side: TypeAlias = "tuple[Parameters, Column, PredictedColumn]"  # a column's parameters, measurement and theory

_ASKED = [field.name for field in FIELDS if field.name not in OF_ALL_COLUMNS]
# The statistics in a table by default: those that tell saturated attention from soft, or those that this second axis
# changes.
_SHOWN = ("entropy", "max_weight", "dead_rows", "logit_std", "one_hot_rows")
_SHOWN_OF = {
    "precision": ("weight_error", "weight_lost", "nan_rows"),
    "arithmetic": ("weight_error", "weight_lost", "nan_rows"),
    "d_v": ("grad_q_median", "grad_q_rms", "grad_q_top1_share"),
}
_OF_ROUNDING = ("weight_lost", "nan_rows")  # of all rows in a rounded format, of a sample in others


def _sides(measurement: Measurement[Parameters], prediction: Prediction) -> list[Side]:
    return [*zip(settings(measurement.subject), measurement.columns, prediction.columns, strict=True)]


def _rows(side: Side, names: Sequence[str] | None = None) -> Iterator[list[Any]]:
    """Yield a line of CSV for each statistic, with its column's parameters, so that files can be joined."""
    p, column, exact = side
    return column_rows([getattr(p, name) for name in _ASKED], column_entry(column, exact, names))


def _asked(p: Parameters) -> dict[str, Any]:
    return {
        "parameters": {field.name: getattr(p, field.name) for field in FIELDS},
        **({"notes": [note]} if (note := context_note(p)) else {}),
        "theory_arithmetic": THEORY_ARITHMETIC,
    }


def prediction_table(prediction: Prediction) -> Table[Any]:
    """Return the exact values of both columns, as a report has them beside what is measured."""
    p = prediction.parameters

    def rows(side: tuple[Parameters, PredictedColumn]) -> Iterator[list[Any]]:
        place = [getattr(side[0], name) for name in _ASKED]
        yield from ([*place, name, value] for name, value in side[1].values.items())

    def page() -> list[Block]:
        values = [column.values for column in prediction.columns]
        names = [name for name in values[0] if any(each[name] is not None for each in values)]
        lines = [[STATISTIC[name].label, *(digits(each[name]) for each in values)] for name in names]
        return [f"Parameters: {', '.join(parameter_words(p))}", TextGrid(["", "A", "B"], lines)]

    return Table(
        "prediction-1", _asked(p), "columns", [*zip(settings(p), prediction.columns, strict=True)],
        lambda side: [{"theory": side[1].values, "saturation": saturation_entry(side[1].saturation)}],
        {**parameter_types(_ASKED), "statistic": str, "theory": float}, rows, page,
    )  # fmt: skip


def report_table(measurement: Measurement[Parameters], prediction: Prediction) -> Table[Side]:
    """Return a measurement with its theory."""
    p = measurement.subject

    def page() -> list[Block]:
        title = theory_title(settings(p))
        words = ", ".join(parameter_words(p))
        return [f"Parameters: {words}", statistics_grid(measurement.columns, prediction.columns, title)]

    columns = {**parameter_types(_ASKED), **COLUMN, **THEORY}
    return Table(
        "report-2", _asked(p), "columns", _sides(measurement, prediction), lambda side: [column_entry(*side[1:])],
        columns, _rows, page,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep: the request and the points measured so far."""

    parameters: Parameters  # their values of what is swept are ignored
    d_ks: Sequence[int]
    points: Sequence[tuple[SweepPoint, Prediction]] = field(repr=False)
    vary: Axis | None = None  # the second axis
    target: Target | None = None
    statistics: Sequence[str] = ()  # the requested ones; empty means the format's default
    n_keys: Sequence[int] = ()  # the numbers of keys, if they are swept too

    @property
    def asked(self) -> int:
        """The number of points of the complete sweep."""
        return len(self.d_ks) * max(len(self.n_keys), 1) * (len(self.vary[1]) if self.vary else 1)

    @property
    def complete(self) -> bool:
        """Whether all points are there."""
        return len(self.points) == self.asked

    @property
    def shown(self) -> Sequence[str]:
        """The statistics in a table."""
        return self.statistics or _SHOWN_OF.get(self.vary[0] if self.vary else "", _SHOWN)

    @property
    def written(self) -> Sequence[str]:
        """The statistics in JSON and CSV: by default those of nested draws, those in a table, and of rounded rows."""
        rounded = any(setting.precision in ROUNDED for setting in settings(self.parameters))
        optional = {*self.shown, *(_OF_ROUNDING if rounded else ())}
        return self.statistics or [s.name for s in STATISTICS if not s.optional or s.name in optional]

    @property
    def names(self) -> Sequence[str]:
        """The short names of both columns; A and B if they change from point to point."""
        each = {tuple(column_names(point.measurement.columns)) for point, _ in self.points}
        return next(iter(each)) if len(each) == 1 else ("A", "B")

    @property
    def fixed(self) -> Mapping[str, Value]:
        """The parameters that are the same at every point; with a target, `batch` is the draws of one batch."""
        swept = {"d_k", *(["n_keys"] if self.n_keys else []), *([self.vary[0]] if self.vary else [])}
        return {field.name: getattr(self.parameters, field.name) for field in FIELDS if field.name not in swept}


def sweep_table(
    sweep: SweepResult, command: str, points: Iterable[tuple[SweepPoint, Prediction]] | None = None
) -> Table[Any]:
    """Return the points of a sweep, or these as they come, with everything needed to reproduce them.

    In CSV, `batch` is the number of draws of the point.
    """
    vary, target, measured = sweep.vary, sweep.target, sweep.points if points is None else points
    head = {
        "command": command,
        "parameters": sweep.fixed,
        "d_k": sweep.d_ks,
        "n_keys": sweep.n_keys or None,
        "vary": None if vary is None else {"name": vary[0], "values": vary[1]},
        "target": None
        if target is None
        else {"statistic": target.statistic, "stderr": target.stderr, "most_draws": target.most_draws},
        "theory_arithmetic": THEORY_ARITHMETIC,
    }

    def element(found: tuple[SweepPoint, Prediction]) -> dict[str, Any]:
        point, prediction = found
        p = point.parameters
        return {
            "d_k": p.d_k,
            **({"n_keys": p.n_keys} if sweep.n_keys else {}),
            **({} if vary is None else {vary[0]: getattr(p, vary[0])}),
            "draws": point.measurement.draws,
            "reached": None if target is None else point.reached,
            "columns": [column_entry(*side[1:], sweep.written) for side in _sides(point.measurement, prediction)],
        }

    def rows(found: tuple[SweepPoint, Prediction]) -> Iterator[list[Any]]:
        point, prediction = found
        reached = None if target is None else point.reached
        for side in _sides(point.measurement, prediction):
            yield from ([*row, reached] for row in _rows(side, sweep.written))

    def page() -> list[Block]:
        result = replace(sweep, points=[*measured])
        return page_of(fixed_words(result), _grid(result), remarks(result), command)

    return Table(
        "sweep-2", head, "points", measured, lambda each: [element(each)],
        {**parameter_types(_ASKED), **COLUMN, **THEORY, "reached": bool}, rows, page, asked=sweep.asked,
    )  # fmt: skip


def _grid(sweep: SweepResult) -> TextGrid:
    """Return a table with a line for each point."""
    statistics = [STATISTIC[name] for name in sweep.shown]
    theory = theory_title(setting for point, _ in sweep.points for setting in settings(point.parameters))
    titles = [title for name in sweep.names for title in (name, theory)]
    lines: list[list[str]] = []
    for point, prediction in sweep.points:
        lines.append(place_words(sweep, point))
        for statistic in statistics:
            for _, column, exact in _sides(point.measurement, prediction):
                numbers = column.measured[statistic.name], Estimate(exact.values[statistic.name], None)
                lines[-1] += [cell(each, statistic) for each in numbers]
    return TextGrid([*place_titles(sweep), *(f"{s.label}, {title}" for s in statistics for title in titles)], lines)


def fixed_words(sweep: SweepResult, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `keys 128`, …: the parameters that all points share, if in `always` or not at their default."""
    p, (name, values) = sweep.parameters, sweep.vary or ("seed", [sweep.parameters.seed])
    each = [p.with_value(name, value) for value in values]
    words = [notable_words(at, sweep.fixed, always) for at in each]
    return max(words, key=len)  # at some values of the second axis, more parameters have an effect


def place_titles(sweep: SweepResult) -> list[str]:
    """Return the headers of `place_words`: the second axis, the keys, `d_k` and, with a target, the draws."""
    varied = [] if sweep.vary is None else [FIELD[sweep.vary[0]].label]
    varied += [FIELD["n_keys"].label] if sweep.n_keys else []
    return [*varied, "d_k", *([message("draws")] if sweep.target else [])]


def place_words(sweep: SweepResult, point: SweepPoint) -> list[str]:
    """Return the cells that identify a point; its draws are marked with * if it missed the target."""
    p = point.parameters
    varied = [] if sweep.vary is None else [parameter_word(FIELD[sweep.vary[0]], p)]
    varied += [str(p.n_keys)] if sweep.n_keys else []
    draws = f"{point.measurement.draws}{'' if point.reached else ' *'}"
    return [*varied, str(p.d_k), *([draws] if sweep.target else [])]


def remarks(sweep: SweepResult) -> list[str]:
    """Return sentences on points that are missing, or less precise than requested."""
    sentences: list[str] = []
    if not sweep.complete:
        sentences.append(
            message("Interrupted: {count} of {asked} points.", count=len(sweep.points), asked=sweep.asked)
        )
    missed = sum(not point.reached for point, _ in sweep.points)
    if sweep.target and missed:
        word = STATISTIC[sweep.target.statistic].label
        sentences.append(
            message(
                "* {missed} of {points} points: after {draws} draws the standard error of {statistic} is still above "
                "{target:g}.",
                missed=missed,
                points=len(sweep.points),
                draws=sweep.target.most_draws,
                statistic=word,
                target=sweep.target.stderr,
            )
        )
    return sentences
