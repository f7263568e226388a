"""Export the points of a sweep, each with its theory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..against import settings
from ..message import message
from ..parameters import FIELD, FIELDS, ROUNDED, Parameters, Value
from ..statistics.catalogue import STATISTIC, STATISTICS
from ..statistics.column_names import column_names
from ..statistics.measurement import Column, Estimate
from ..theory.prediction import status_given
from .columns import (
    COLUMN_TYPES,
    OF_ALL_COLUMNS,
    THEORY_ARITHMETIC,
    THEORY_TYPES,
    cell,
    column_json,
    existing_pair,
    freezing_json,
)
from .formats import Say, existing, markdown_page, version
from .listing.listing import Listing, field_types, whole
from .words import notable_words, parameter_word, theory_title

if TYPE_CHECKING:
    from ..lab.results import Point, Target
    from ..theory.prediction import Prediction

Axis: TypeAlias = tuple[str, Sequence[Value]]  # a parameter's name and its values

_SWEEP = "attn-tui/sweep-1"
# The statistics in a table by default: those that tell frozen attention from soft, or those that this second axis
# changes.
_SHOWN = ("entropy", "max_weight", "dead_rows", "logit_std", "one_hot_rows")
_SHOWN_OF = {
    "precision": ("weight_error", "weight_lost", "nan_rows"),
    "arithmetic": ("weight_error", "weight_lost", "nan_rows"),
    "d_v": ("grad_q_median", "grad_q_rms", "grad_q_top1_share"),
}
_OF_ROUNDING = ("weight_lost", "nan_rows")  # of all rows in a rounded format, of a sample in others


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep: the request and the points measured so far."""

    parameters: Parameters  # their values of what is swept are ignored
    d_ks: Sequence[int]
    points: Sequence[tuple[Point, Prediction]]
    command: str  # reproduces the points
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
        rounded = any(each.precision in ROUNDED for each in settings(self.parameters))
        more = {*self.shown, *(_OF_ROUNDING if rounded else ())}
        return self.statistics or [s.name for s in STATISTICS if not s.optional or s.name in more]

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


def sweep_listing(sweep: SweepResult) -> Listing[tuple[Point, Prediction]]:
    """Return how the points of a sweep are written as they come; those of `sweep` are ignored."""
    names = [field.name for field in FIELDS if field.name not in OF_ALL_COLUMNS]
    return Listing(
        _header(sweep),
        "points",
        sweep.asked,
        lambda each: [_point_json(sweep, *each)],
        {**field_types(names), **COLUMN_TYPES, **THEORY_TYPES, "reached": "boolean"},
        lambda each: _point_lines(sweep, names, *each),
    )


def sweep_json(sweep: SweepResult) -> str:
    """Return all points as one JSON object, with everything needed to reproduce them."""
    return whole(sweep_listing(sweep), "json", sweep.points)


def sweep_csv(sweep: SweepResult) -> str:
    """Return a line for each value, as in a report, with whether its point reaches the target.

    `batch` is the number of draws of the point.
    """
    return whole(sweep_listing(sweep), "csv", sweep.points)


def _header(sweep: SweepResult) -> dict[str, Any]:
    """Return what JSON says before the points."""
    vary, target = sweep.vary, sweep.target
    return {
        "schema": _SWEEP,
        "version": version(),
        "command": sweep.command,
        "parameters": sweep.fixed,
        "d_k": [*sweep.d_ks],
        "n_keys": [*sweep.n_keys] or None,
        "vary": None if vary is None else {"name": vary[0], "values": [*vary[1]]},
        "target": None
        if target is None
        else {"statistic": target.statistic, "stderr": target.stderr, "most_draws": target.most_draws},
        "theory_arithmetic": THEORY_ARITHMETIC,
    }


def _point_json(sweep: SweepResult, point: Point, prediction: Prediction) -> dict[str, Any]:
    vary, names = sweep.vary, sweep.written
    return {
        "d_k": point.parameters.d_k,
        **({"n_keys": point.parameters.n_keys} if sweep.n_keys else {}),
        **({} if vary is None else {vary[0]: getattr(point.parameters, vary[0])}),
        "draws": point.measurement.draws,
        "reached": None if sweep.target is None else point.reached,
        "columns": [
            column_json(_only(column, names))
            | {
                "theory": {name: existing(exact.values[name]) for name in names},
                "freezing": freezing_json(exact.freezing),
                "status": status_given(exact.freezing, column.measured),
            }
            for column, exact in zip(point.measurement.columns, prediction.columns, strict=True)
        ],
    }


def _point_lines(
    sweep: SweepResult, asked: Sequence[str], point: Point, prediction: Prediction
) -> Iterator[list[Any]]:
    """Yield the lines of CSV of a point; `asked` are the parameters in them."""
    reached = None if sweep.target is None else point.reached
    sides = settings(point.parameters)
    for p, column, exact in zip(sides, point.measurement.columns, prediction.columns, strict=True):
        place = [getattr(p, name) for name in asked]
        status = status_given(exact.freezing, column.measured)
        for name in sweep.written:
            numbers = [*existing_pair(column.measured[name]), existing(exact.values[name])]
            yield [*place, column.rule, column.multiplier, status, name, *numbers, THEORY_ARITHMETIC, reached]


def sweep_markdown(sweep: SweepResult, say: Say = str) -> str:
    """Return a page with a line for each point."""
    statistics = [STATISTIC[name] for name in sweep.shown]
    theory = theory_title(each for point, _ in sweep.points for each in settings(point.parameters))
    names = sweep.names
    columns = (names[0], theory, names[1], theory)
    header = [*place_titles(sweep), *(f"{s.label}, {c}" for s in statistics for c in columns)]
    lines: list[list[str]] = []
    for point, prediction in sweep.points:
        cells = place_words(sweep, point)
        for statistic in statistics:
            for column, exact in zip(point.measurement.columns, prediction.columns, strict=True):
                cells.append(cell(column.measured[statistic.name], statistic))
                cells.append(cell(Estimate(exact.values[statistic.name], None), statistic))
        lines.append(cells)
    return markdown_page(fixed_words(sweep), header, lines, remarks(sweep), sweep.command, say)


def fixed_words(sweep: SweepResult, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `keys 128`, …: the parameters that all points share, if in `always` or not at their default."""
    p, (name, values) = sweep.parameters, sweep.vary or ("seed", [sweep.parameters.seed])
    each = [p.with_value(name, value) for value in values]
    found = [notable_words(at, sweep.fixed, always) for at in each]
    return max(found, key=len)  # at some values of the second axis, more parameters have an effect


def place_titles(sweep: SweepResult) -> list[str]:
    """Return the headers of `place_words`: the second axis, the keys, `d_k` and, with a target, the draws."""
    varied = [] if sweep.vary is None else [FIELD[sweep.vary[0]].label]
    varied += [FIELD["n_keys"].label] if sweep.n_keys else []
    return [*varied, "d_k", *([message("draws")] if sweep.target else [])]


def place_words(sweep: SweepResult, point: Point) -> list[str]:
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


def _only(column: Column, names: Sequence[str]) -> Column:
    """Return the column with only these statistics."""
    return replace(column, measured={name: column.measured[name] for name in names})
