"""The requests of the Sweep pane: exact curves over d_k, and measured points."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....core.model_widths import landmarks
from ....core.parameters import Parameters
from ...compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Request, Work

if TYPE_CHECKING:
    from ....core.lab.results import Point, Step
    from ....core.theory.prediction import PredictedColumn, Prediction
    from ....core.work.sweeps import Predicted

_CURVE_STEPS = 120  # of an exact curve


@dataclass(frozen=True)
class PredictOver(Request):
    """Predict statistics over the range of a grid of d_k. Answered by Curves."""

    parameters: Parameters  # their d_k is ignored
    d_ks: tuple[int, ...]

    def work(self, cache: Cache) -> Work:
        from ....core.theory.predict import predict

        exact: dict[int, Sequence[PredictedColumn]] = {}
        for d_k in _smooth(self.d_ks):
            exact[d_k] = predict(replace(self.parameters, d_k=d_k)).columns
            yield None
        yield Curves(exact)


@dataclass(frozen=True)
class MeasureOver(Request):
    """Measure statistics over a grid of d_k. Answered by Points, in ascending order of d_k."""

    parameters: Parameters  # their d_k is ignored
    d_ks: tuple[int, ...]
    known: int = 0  # points that the pane already has; a sweep stopped there continues

    def work(self, cache: Cache) -> Work:
        sweeps: dict[tuple[Parameters, tuple[int, ...]], _Sweep] = cache.by_kind.setdefault(MeasureOver, {})
        key = self.parameters, self.d_ks
        if all(parameters != self.parameters for parameters, _ in sweeps):
            sweeps.clear()
        if key not in sweeps or sweeps[key].sent != self.known:
            sweeps[key] = _Sweep(*key)
        try:
            for step in sweeps[key].work:  # noqa: UP028  `yield from` would close the sweep when it is stopped
                yield step
        except Exception:
            sweeps.pop(key, None)  # it cannot continue
            raise


@dataclass(frozen=True, eq=False)
class Curves:
    """The exact values of each column, by d_k."""

    exact: Mapping[int, Sequence[PredictedColumn]]


@dataclass(frozen=True, eq=False)
class SweptPoint:
    """A measurement at one d_k, its theory, and the deviations in standard errors."""

    point: Point
    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]


@dataclass(frozen=True, eq=False)
class Points:
    """More points, by d_k, and the part of the work that is done, 0 to 1."""

    points: Mapping[int, SweptPoint]
    fraction: float


class _Sweep:
    """A sweep that can be stopped and continued."""

    def __init__(self, parameters: Parameters, d_ks: tuple[int, ...]) -> None:
        from ....core.work.sweeps import stream, sweep_plan

        self.sent = 0  # points
        self.work = self._work(stream(sweep_plan(parameters, d_ks)))

    def _work(self, steps: Iterator[Step[tuple[Predicted, ...]]]) -> Work:
        last_sent, found = time.monotonic(), dict[int, SweptPoint]()
        for step in steps:
            found |= {point.parameters.d_k: _with_deviations(point, exact) for point, exact in step.found}
            now = time.monotonic()
            if step.fraction == 1 or now - last_sent > (BATCH_INTERVAL if found else PROGRESS_INTERVAL):
                last_sent = now
                self.sent += len(found)
                yield Points(found, step.fraction)
                found = {}
            else:
                yield None


def _with_deviations(point: Point, prediction: Prediction) -> SweptPoint:
    from ....core.theory.deviations import deviations

    return SweptPoint(point, prediction, deviations(point.measurement, prediction))


def _smooth(d_ks: Sequence[int]) -> list[int]:
    """Return d_k in nearly constant ratios from the first to the last of the grid, and its landmarks."""
    low, high = d_ks[0], d_ks[-1]
    even = {round(low * (high / low) ** (step / _CURVE_STEPS)) for step in range(_CURVE_STEPS + 1)}
    return sorted(even | {*landmarks(d_ks)})
