"""The requests of the Sweep pane: exact and measured statistics over d_k or keys, over both, and at the cursor."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from ....core.against import fault_of_settings
from ....core.errors import ParameterError
from ....core.parameters import Parameters
from ...compute.measure import Measure
from ...compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Progress, Request, Work
from .question import landmarks_of, placed

if TYPE_CHECKING:
    from ....core.lab.results import Point
    from ....core.theory.prediction import PredictedColumn, Prediction


D_KS = tuple(2**power for power in range(13))
N_KEYS = tuple(2**power for power in range(1, 14))
DRAWS, ROWS = 4, 32  # measured at most: a cell of a map needs no more
_LEARNED = 512  # the widest d_k measured for mechanisms with learned weights, which grow like d_k²

Place: TypeAlias = tuple[int, int]  # d_k and the number of keys
MeasuredCell: TypeAlias = "tuple[Point, Prediction]"  # the measurement at a place, and its theory


@dataclass(frozen=True)
class PredictMap(Request):
    """Predict both columns at every place of the map. Answered by ExactCells, a row at a time."""

    parameters: Parameters  # their d_k and keys are ignored

    def work(self, cache: Cache) -> Work:
        from ....core.theory.predict import predict

        for n in N_KEYS:
            found: dict[Place, Sequence[PredictedColumn]] = {}
            for d_k in D_KS:
                try:
                    found[d_k, n] = predict(replace(self.parameters, d_k=d_k, n_keys=n)).columns
                except ParameterError:  # no multiplier there
                    found[d_k, n] = ()
                yield None
            yield ExactCells(found)


@dataclass(frozen=True)
class MeasureMap(Request):
    """Measure both columns at every place of the map. Answered by MeasuredCells, in rising order of keys."""

    parameters: Parameters  # their d_k and keys are ignored

    @property
    def measured(self) -> Parameters:
        """The parameters with the draws and rows that are measured."""
        p = self.parameters
        return replace(p, batch=min(p.batch, DRAWS), n_queries=min(p.n_queries, ROWS))

    @property
    def d_ks(self) -> tuple[int, ...]:
        """The values of d_k that are measured: those with multipliers."""
        p, most = self.measured, _LEARNED if self.parameters.mechanism in ("additive", "bilinear") else D_KS[-1]
        return tuple(
            d_k
            for d_k in D_KS
            if d_k <= most and not any(fault_of_settings(replace(p, d_k=d_k, n_keys=n)) for n in N_KEYS)
        )

    def work(self, cache: Cache) -> Work:
        from ....core.work.sweeps import fold, parts, plan_seconds, sweep_plan

        p, d_ks = self.measured, self.d_ks
        last_sent, found = time.monotonic(), dict[Place, MeasuredCell]()
        plan = sweep_plan(p, d_ks, n_keys=N_KEYS, histograms=()) if d_ks else None
        running = cache.workers.begin(parts(plan) if plan else ())
        for step in fold(plan, running.steps(), plan_seconds(plan)) if plan else ():
            found |= {(point.parameters.d_k, point.parameters.n_keys): (point, exact) for point, exact in step.found}
            now = time.monotonic()
            if now - last_sent > (BATCH_INTERVAL if found else PROGRESS_INTERVAL):
                last_sent = now
                yield Progress(step.fraction, running.pace)
                yield MeasuredCells(found, min(step.fraction, 0.999))
                found = {}
            else:
                yield None
        yield MeasuredCells(found, 1.0)


@dataclass(frozen=True, eq=False)
class ExactCells:
    """The exact values of both columns at some places; none where a rule has no multiplier."""

    cells: Mapping[Place, Sequence[PredictedColumn]]


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """The measurements at some places, and the part of the work that is done, 0 to 1."""

    cells: Mapping[Place, MeasuredCell]
    fraction: float


_CURVE_STEPS = 120  # of an exact curve over d_k


@dataclass(frozen=True)
class PredictOver(Request):
    """Predict statistics over the range of a grid of d_k or of keys. Answered by Curves."""

    parameters: Parameters  # their value of what is swept is ignored
    values: tuple[int, ...]
    over: str = "d_k"  # or n_keys

    def work(self, cache: Cache) -> Work:
        from ....core.theory.predict import predict

        exact: dict[int, Sequence[PredictedColumn]] = {}
        for value in _smooth(self.values, self.over):
            exact[value] = predict(placed(self.parameters, self.over, value)).columns
            yield None
        yield Curves(exact)


@dataclass(frozen=True)
class MeasureOver(Request):
    """Measure statistics over a grid of d_k or of keys. Answered by Points, in ascending order."""

    parameters: Parameters  # their value of what is swept is ignored
    values: tuple[int, ...]
    known: int = 0  # points that the pane already has; a sweep stopped there continues
    over: str = "d_k"  # or n_keys
    rules: tuple[str, ...] = ()  # scale rules that are measured too, besides that of the parameters

    def work(self, cache: Cache) -> Work:
        from ....core.work.part import Kept
        from ....core.work.sweeps import fold, parts, plan_seconds, sweep_plan

        p, key = self.parameters, replace(self, known=0)
        kept: dict[MeasureOver, Kept] = cache.by_kind.setdefault(MeasureOver, {})
        if all(each.parameters != p for each in kept):
            kept.clear()
        d_ks, n_keys = (self.values, ()) if self.over == "d_k" else ((p.d_k,), self.values)
        vary = ("scale", (p.scale, *self.rules)) if self.rules else None
        plan = sweep_plan(p, d_ks, vary=vary, n_keys=n_keys)
        running = cache.workers.begin(parts(plan), kept.setdefault(key, Kept()))
        last_sent, found, passed = time.monotonic(), dict[tuple[str, int], SweptPoint](), 0
        for step in fold(plan, running.steps(), plan_seconds(plan)):
            for point, exact in step.found:
                passed += 1
                if passed > self.known:
                    at = point.parameters
                    found[at.scale, getattr(at, self.over)] = _with_deviations(point, exact)
            now = time.monotonic()
            if step.fraction == 1 or now - last_sent > (BATCH_INTERVAL if found else PROGRESS_INTERVAL):
                last_sent = now
                yield Progress(step.fraction, running.pace)
                yield Points(found, step.fraction)
                found = {}
            else:
                yield None


@dataclass(frozen=True)
class MeasureOthers(Request):
    """Measure other settings at the cursor, one after another. Answered by an Answer for each."""

    each: tuple[Parameters, ...]

    def work(self, cache: Cache) -> Work:
        for parameters in self.each:
            yield (yield from Measure(parameters).work(cache))


@dataclass(frozen=True, eq=False)
class Curves:
    """The exact values of each column, by what is swept."""

    exact: Mapping[int, Sequence[PredictedColumn]]


@dataclass(frozen=True, eq=False)
class SweptPoint:
    """A measurement at one place, its theory, and the deviations in standard errors."""

    point: Point
    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]


@dataclass(frozen=True, eq=False)
class Points:
    """More points, by their scale rule and what is swept, and the part of the work that is done, 0 to 1."""

    points: Mapping[tuple[str, int], SweptPoint]
    fraction: float


def _with_deviations(point: Point, prediction: Prediction) -> SweptPoint:
    from ....core.theory.predict import deviations

    return SweptPoint(point, prediction, deviations(point.measurement, prediction))


def _smooth(values: Sequence[int], over: str) -> Sequence[int]:
    """Return d_k in nearly constant ratios from the first to the last of the grid, and its landmarks.

    Of keys, return the grid: the exact values of each other number of keys would take a second.
    """
    if over == "n_keys":
        return values
    low, high = values[0], values[-1]
    even = {round(low * (high / low) ** (step / _CURVE_STEPS)) for step in range(_CURVE_STEPS + 1)}
    return sorted(even | {*landmarks_of(over, values)})
