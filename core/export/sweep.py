"""The points of a sweep, as many as there are, each with its theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..parameters import FIELD, FIELDS, Parameters, Value
from ..statistics.catalogue import STATISTIC, STATISTICS
from ..statistics.measurement import Column, Estimate
from .columns import COLUMN, cell, column_json
from .formats import Say, csv_text, existing, json_text, markdown_page, version
from .words import notable_words, parameter_word

if TYPE_CHECKING:
    from ..lab.prediction import Prediction
    from ..lab.sweep import Point, Target

Axis: TypeAlias = tuple[str, Sequence[Value]]  # a parameter's name and its values

_SWEEP = "attn-tui/sweep-1"
# What a table shows of each point unless it is told: what tells frozen attention from soft, and what only this
# second axis changes.
_SHOWN = ("entropy", "max_weight", "dead_rows", "logit_std", "one_hot_rows")
_SHOWN_OF = {
    "precision": ("weight_error", "score_overflow", "naive_exp_overflow"),
    "d_v": ("grad_q_median", "grad_q_rms", "grad_q_top1_share"),
}
COLUMNS = ("unscaled", "theory", "scaled", "theory")  # what a table says of each statistic


@dataclass(frozen=True, eq=False)
class Sweep:
    """What was asked of a sweep, and the points that it came to."""

    parameters: Parameters  # whatever their d_k, and their value of the second axis
    d_ks: Sequence[int]
    points: Sequence[tuple[Point, Prediction]]
    command: str  # that gives the same points again
    vary: Axis | None = None  # the second axis
    target: Target | None = None
    statistics: Sequence[str] = ()  # those asked for; none are those that a format shows unless it is told

    @property
    def asked(self) -> int:
        """How many points there are when it is complete."""
        return len(self.d_ks) * (len(self.vary[1]) if self.vary else 1)

    @property
    def complete(self) -> bool:
        """Whether nothing cut it short."""
        return len(self.points) == self.asked

    @property
    def shown(self) -> Sequence[str]:
        """The statistics that a table shows."""
        return self.statistics or _SHOWN_OF.get(self.vary[0] if self.vary else "", _SHOWN)

    @property
    def written(self) -> Sequence[str]:
        """The statistics that JSON and CSV hold: unless others were asked for, those that nested draws give."""
        return self.statistics or [s.name for s in STATISTICS if not s.optional or s.name in self.shown]

    @property
    def fixed(self) -> Mapping[str, Value]:
        """The parameters that are the same at every point; a target makes `batch` the draws of one batch."""
        swept = {"d_k"} | ({self.vary[0]} if self.vary else set[str]())
        return {field.name: getattr(self.parameters, field.name) for field in FIELDS if field.name not in swept}


def sweep_json(sweep: Sweep) -> str:
    """All points as one JSON object, with everything that makes them again."""
    vary, target = sweep.vary, sweep.target
    names = sweep.written
    return json_text(
        {
            "schema": _SWEEP,
            "version": version(),
            "command": sweep.command,
            "parameters": sweep.fixed,
            "d_k": [*sweep.d_ks],
            "vary": None if vary is None else {"name": vary[0], "values": [*vary[1]]},
            "target": None
            if target is None
            else {"statistic": target.statistic, "stderr": target.stderr, "most_draws": target.most_draws},
            "complete": sweep.complete,
            "points": [
                {
                    "d_k": point.parameters.d_k,
                    **({} if vary is None else {vary[0]: getattr(point.parameters, vary[0])}),
                    "draws": point.measurement.draws,
                    "reached": None if target is None else point.reached,
                    "columns": [
                        column_json(_only(column, names))
                        | {"theory": {name: existing(exact.values[name]) for name in names}}
                        for column, exact in zip(point.measurement.columns, prediction.columns, strict=True)
                    ],
                }
                for point, prediction in sweep.points
            ],
        }
    )


def sweep_csv(sweep: Sweep) -> str:
    """A line for each value, as in a report's, and whether its point is as precise as was asked.

    `batch` is the number of draws that were taken.
    """
    names = sweep.written
    asked = [field.name for field in FIELDS if field.name not in ("scale", "multiplier")]
    lines: list[list[Any]] = []
    for point, prediction in sweep.points:
        reached = None if sweep.target is None else point.reached
        place = [getattr(point.parameters, name) for name in asked]
        for column, exact in zip(point.measurement.columns, prediction.columns, strict=True):
            for name in names:
                numbers = [existing(number) for number in (*column.measured[name], exact.values[name])]
                lines.append([*place, column.rule, column.multiplier, name, *numbers, reached])
    return csv_text([*asked, *COLUMN, "theory", "reached"], lines)


def sweep_markdown(sweep: Sweep, say: Say = str) -> str:
    """What all points have in common, and a line for each."""
    statistics = [STATISTIC[name] for name in sweep.shown]
    header = [*place_titles(sweep), *(f"{s.label}, {c}" for s in statistics for c in COLUMNS)]
    lines: list[list[str]] = []
    for point, prediction in sweep.points:
        cells = place_words(sweep, point)
        for statistic in statistics:
            for column, exact in zip(point.measurement.columns, prediction.columns, strict=True):
                cells.append(cell(column.measured[statistic.name], statistic))
                cells.append(cell(Estimate(exact.values[statistic.name], None), statistic))
        lines.append(cells)
    return markdown_page(fixed_words(sweep), header, lines, remarks(sweep), sweep.command, say)


def fixed_words(sweep: Sweep, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """`keys 128`, `queries 64`, …: what all points have in common, of these names or other than usual."""
    return notable_words(sweep.parameters, sweep.fixed, always)


def place_titles(sweep: Sweep) -> list[str]:
    """What `place_words` are: `d_k`, and the second axis before it; the draws where points differ in them."""
    varied = [] if sweep.vary is None else [FIELD[sweep.vary[0]].label]
    return [*varied, "d_k", *(["draws"] if sweep.target else [])]


def place_words(sweep: Sweep, point: Point) -> list[str]:
    """Which point this is; its draws are marked where they are too few for the target."""
    p = point.parameters
    varied = [] if sweep.vary is None else [parameter_word(FIELD[sweep.vary[0]], p)]
    draws = f"{point.measurement.draws}{'' if point.reached else ' *'}"
    return [*varied, str(p.d_k), *([draws] if sweep.target else [])]


def remarks(sweep: Sweep) -> list[str]:
    """What the points do not say by themselves: whether some are missing, or less precise than was asked."""
    said: list[str] = []
    if not sweep.complete:
        said.append(f"Interrupted: {len(sweep.points)} of {sweep.asked} points.")
    short = sum(not point.reached for point, _ in sweep.points)
    if sweep.target and short:
        word = STATISTIC[sweep.target.statistic].label
        said.append(
            f"* {short} of {len(sweep.points)} points: after {sweep.target.most_draws} draws the standard error of "
            f"{word} is still above {sweep.target.stderr:g}."
        )
    return said


def _only(column: Column, names: Sequence[str]) -> Column:
    """The column without what was not asked for."""
    return Column(column.rule, column.multiplier, {name: column.measured[name] for name in names}, column.histograms)
