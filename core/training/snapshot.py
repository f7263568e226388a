"""The course of a race as plain values, so that it can be sent to a process without NumPy and drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .settings import Race, RaceResult

if TYPE_CHECKING:
    from .race import LearningCurves

_MOST = 240  # points of a curve
_BARS = 6  # points with a standard error, once the race is complete


class Quantity(NamedTuple):
    """What a curve shows."""

    name: str
    label: str
    help: str


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("loss", "loss, nats", "The cross-entropy of the output; guessing has ln 8 = 2.08."),
    Quantity("recalled", "recalled", "The share of queries whose likeliest label is theirs."),
    Quantity("entropy", "entropy / ln n", "Of the attention: 1 if it is uniform, 0 if it is one-hot."),
    Quantity("gradient", "‖∂L/∂(W_q, W_k)‖", "The norm of the gradient of the loss for W_q and W_k."),
)


class CurvePoint(NamedTuple):
    """One step of the runs under one rule."""

    step: float
    middle: float  # the median over seeds; of the runs that did not diverge if most of them did not
    stderr: float | None  # of the mean over seeds, at a few points


@dataclass(frozen=True)
class RaceSnapshot:
    """A race so far."""

    race: Race
    done: int  # steps
    curves: Mapping[str, Sequence[Sequence[CurvePoint]]]  # by quantity, for each rule
    results: tuple[RaceResult, ...]
    used: tuple[tuple[float, ...], ...] | None = None  # what rows, trained with, recall if used with columns

    @property
    def complete(self) -> bool:
        """Whether all steps are done."""
        return self.done == self.race.steps


def snapshot(curves: LearningCurves) -> RaceSnapshot:
    """Return a race so far as plain values."""
    import numpy as np

    from .race import results

    done = curves.done
    ends = np.linspace(0, curves.race.steps - 1, _BARS + 1)[1:].round().astype(int)  # wherever the race is now
    bars = {*ends[ends < done].tolist()}
    places = np.unique([*np.linspace(0, done - 1, min(done, _MOST - _BARS)).round().astype(int), *bars])
    found: dict[str, list[list[CurvePoint]]] = {}
    for quantity in QUANTITIES:
        values = getattr(curves, quantity.name)[:, :, places]
        with np.errstate(invalid="ignore", over="ignore"):  # of runs that diverged
            middle = np.median(np.where(np.isfinite(values), values, np.inf), axis=1)
            spread = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else None
        found[quantity.name] = [
            [
                CurvePoint(
                    float(place + 1),
                    float(middle[rule, at]),
                    _finite(spread[rule, at]) if spread is not None and place in bars else None,
                )
                for at, place in enumerate(places.tolist())
                if np.isfinite(middle[rule, at])
            ]
            for rule in range(len(curves.race.rules))
        ]
    used = None if curves.used is None else tuple(tuple(map(float, row)) for row in curves.used.mean(axis=2))
    return RaceSnapshot(curves.race, done, found, tuple(results(curves)), used)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
