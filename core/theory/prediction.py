"""The results of theory as plain values; this module does not need NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..parameters import Parameters
from ..statistics.interpolation import interpolated


@dataclass(frozen=True)
class PredictedColumn:
    """The predictions at one multiplier."""

    rule: str
    multiplier: float
    values: Mapping[str, float | None]  # by the names of STATISTICS; None if no exact value is known
    freezing: Freezing | None  # None if the standard deviation of the logits is not known


@dataclass(frozen=True)
class Freezing:
    """The point at which softmax freezes, so that a few keys hold all the weight of a row."""

    threshold: float  # the logit standard deviation √(2 ln n) of the random-energy model (Derrida 1981)
    logit_std: float  # within a row, the part that affects softmax
    d_k: int | None  # the width from which on `logit_std` is at least the threshold; None if it never is


@dataclass(frozen=True, eq=False)
class ScoreCurve:
    """The exact law of an unscaled score, for drawing over a histogram."""

    x: Sequence[float]  # increasing
    below: Sequence[float]  # the share of scores below each x

    def onto(self, edges: Iterable[float]) -> list[float]:
        """Return the shares of scores between increasing edges, one fewer than edges."""
        return [above - below for below, above in pairwise(interpolated(edges, self.x, self.below))]


@dataclass(frozen=True)
class Prediction:
    """The predictions for some parameters, to compare with their Measurement."""

    parameters: Parameters
    columns: tuple[PredictedColumn, ...]  # unscaled first, then the chosen rule


@dataclass(frozen=True, eq=False)
class Theory:
    """A prediction, and the deviations of a measurement from it."""

    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]  # of each column, in standard errors
    curve: ScoreCurve | None
