"""The requests of the map of the Sweep pane: statistics over d_k and numbers of keys, exact and measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from ....core.against import fault_of_settings
from ....core.errors import ParameterError
from ....core.parameters import Parameters
from ...compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Progress, Request, Work

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
