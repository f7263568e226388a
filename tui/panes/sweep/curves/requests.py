"""The requests of the curves: exact ones over d_k or keys, measured points, and other rules at the cursor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .....core.parameters import Parameters
from ....compute.measure import Measure
from ....compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Progress, Request, Work
from ..grids import landmarks_of, placed

if TYPE_CHECKING:
    from .....core.lab.results import Point, Step
    from .....core.theory.prediction import PredictedColumn, Prediction
    from .....core.work.sweeps import Predicted

_CURVE_STEPS = 120  # of an exact curve over d_k


@dataclass(frozen=True)
class PredictOver(Request):
    """Predict statistics over the range of a grid of d_k or of keys. Answered by Curves."""

    parameters: Parameters  # their value of what is swept is ignored
    values: tuple[int, ...]
    over: str = "d_k"  # or n_keys

    def work(self, cache: Cache) -> Work:
        from .....core.theory.predict import predict

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
        sweeps: dict[MeasureOver, _Sweep] = cache.by_kind.setdefault(MeasureOver, {})
        key = replace(self, known=0)
        if all(each.parameters != self.parameters for each in sweeps):
            sweeps.clear()
        if key not in sweeps or sweeps[key].sent != self.known:
            sweeps[key] = _Sweep(key)
        try:
            for step in sweeps[key].work:  # noqa: UP028  `yield from` would close the sweep when it is stopped
                yield step
        except Exception:
            sweeps.pop(key, None)  # it cannot continue
            raise


@dataclass(frozen=True)
class MeasureOthers(Request):
    """Measure other settings at the cursor, one after another. Answered by an Answer for each."""

    each: tuple[Parameters, ...]

    def work(self, cache: Cache) -> Work:
        for parameters in self.each:
            for answer in Measure(parameters).work(cache):
                yield None if isinstance(answer, Progress) else answer


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


class _Sweep:
    """A sweep that can be stopped and continued."""

    def __init__(self, asked: MeasureOver) -> None:
        from .....core.work.sweeps import stream, sweep_plan

        p = asked.parameters
        self.sent = 0  # points
        self.over = asked.over
        d_ks, n_keys = (asked.values, ()) if asked.over == "d_k" else ((p.d_k,), asked.values)
        vary = ("scale", (p.scale, *asked.rules)) if asked.rules else None
        self.work = self._work(stream(sweep_plan(p, d_ks, vary=vary, n_keys=n_keys)))

    def _work(self, steps: Iterator[Step[tuple[Predicted, ...]]]) -> Work:
        last_sent, found = time.monotonic(), dict[tuple[str, int], SweptPoint]()
        for step in steps:
            for point, exact in step.found:
                p = point.parameters
                found[p.scale, getattr(p, self.over)] = _with_deviations(point, exact)
            now = time.monotonic()
            if step.fraction == 1 or now - last_sent > (BATCH_INTERVAL if found else PROGRESS_INTERVAL):
                last_sent = now
                self.sent += len(found)
                yield Points(found, step.fraction)
                found = {}
            else:
                yield None


def _with_deviations(point: Point, prediction: Prediction) -> SweptPoint:
    from .....core.theory.deviations import deviations

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
