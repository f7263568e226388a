"""What theory says, in plain numbers: it can be shown where neither theory nor NumPy is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..interpolation import interpolated
from ..parameters import Parameters


@dataclass(frozen=True)
class PredictedColumn:
    """Everything predicted at one multiplier."""

    rule: str
    multiplier: float
    values: Mapping[str, float | None]  # by the names of STATISTICS; None where no exact value is known
    freezing: Freezing | None  # None where the spread of the logits is not known


@dataclass(frozen=True)
class Freezing:
    """Where softmax freezes: the logit standard deviation at which a few keys come to hold all the weight."""

    threshold: float  # s_c = √(2 ln n) of the random-energy model (Derrida 1981)
    logit_std: float  # within a row, the part that softmax sees
    d_k: int | None  # the width from which on the rule is at or above the threshold; None if it never is


@dataclass(frozen=True, eq=False)
class ScoreCurve:
    """The exact law of an unscaled score, to draw it over a histogram."""

    x: Sequence[float]  # increasing
    below: Sequence[float]  # the share of scores below each x

    def onto(self, edges: Iterable[float]) -> list[float]:
        """The share of scores between given increasing edges; one less than edges."""
        return [above - below for below, above in pairwise(interpolated(edges, self.x, self.below))]


@dataclass(frozen=True)
class Prediction:
    """Theory for the same question as a Measurement."""

    parameters: Parameters
    columns: tuple[PredictedColumn, ...]  # unscaled first, then the chosen rule


@dataclass(frozen=True, eq=False)
class Theory:
    """What is exactly known of a measurement, and how far it is from that."""

    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]  # of each column, in standard errors
    curve: ScoreCurve | None
