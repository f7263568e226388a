"""The requests of the curves: exact ones over d_k or keys, measured points, and other rules at the cursor."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....core.parameters import Parameters
from ...compute.measure import Measure
from ...compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Progress, Request, Work
from .grids import landmarks_of, placed

if TYPE_CHECKING:
    from ....core.lab.results import Point
    from ....core.theory.prediction import PredictedColumn, Prediction

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
