"""Softmax of a handful of scores, step by step: every number on the way, for people to look at.

With x = c·s/T + shift: e_i = exp(x_i − max x), p_i = e_i/Σe, and the Jacobian J_ij = ∂p_i/∂x_j = p_i(δ_ij − p_j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from .handful import Handful
from .precision import round_to
from .softmax import softmax


@dataclass(frozen=True, eq=False)
class Naive:
    """Softmax with nothing subtracted: exponentials are numbers of a format, and are summed in its accumulator."""

    powers: FloatArray  # (n,) exp x as the format has it: perhaps ∞, or 0
    overflow: int  # how many of them are beyond the format's largest number
    weights: FloatArray | None  # (n,) None where powers over their sum are not numbers
    error: float | None  # ½ Σ|p − p̂|, of weights that are


@dataclass(frozen=True, eq=False)
class Steps:
    """What softmax makes of n scores under one multiplier; arrays are float64."""

    multiplier: float
    logits: FloatArray  # (n,)
    powers: FloatArray  # (n,) exp of the logit less the largest one: at most 1
    weights: FloatArray  # (n,)
    complement: FloatArray  # (n,) p(1 − p), the diagonal of the Jacobian
    jacobian: FloatArray  # (n, n)
    entropy: float  # nats
    max_weight: float
    sum_squared_weights: float
    jacobian_norm: float
    moved: float  # the most that the shift moves a weight: rounding, since softmax does not see it
    naive: Naive

    @property
    def entropy_fraction(self) -> float:
        """The entropy as a share of ln n."""
        return self.entropy / math.log(len(self.weights))

    @property
    def effective_keys(self) -> float:
        """The number of equal weights that have this entropy."""
        return math.exp(self.entropy)


def steps(handful: Handful, multiplier: float, number_format: str) -> Steps:
    """Every step from scores to weights and their Jacobian under one multiplier.

    All of it is float64's, apart from `naive`, which is the format's. No 1 − p is computed as a difference, so that
    entropy and Jacobian of a one-hot row keep their precision.
    """
    before = np.array(handful.scores) * multiplier / handful.temperature
    logits = before + handful.shift
    weights = softmax(logits)
    others = (1 - np.eye(len(weights))) @ weights  # 1 − p
    jacobian = -np.outer(weights, weights)
    np.fill_diagonal(jacobian, weights * others)
    below = logits - logits.max()
    powers = np.exp(below)
    rest = np.delete(powers, powers.argmax()).sum()  # ln Σe = ln(1 + rest)
    return Steps(
        multiplier=multiplier,
        logits=logits,
        powers=powers,
        weights=weights,
        complement=weights * others,
        jacobian=jacobian,
        entropy=float(np.log1p(rest) - weights @ below),
        max_weight=float(weights.max()),
        sum_squared_weights=float(weights @ weights),
        jacobian_norm=math.hypot(*jacobian.ravel()),  # squares of what is tiny would be 0
        moved=float(np.abs(weights - softmax(before)).max()),
        naive=_naive(logits, weights, number_format),
    )


def _naive(logits: FloatArray, weights: FloatArray, number_format: str) -> Naive:
    """The same weights by exponentials with nothing subtracted."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        powers, overflow = round_to(np.exp(logits), number_format)
        total = powers.sum(dtype=powers.dtype)
    beyond = int(np.count_nonzero(overflow))
    if not 0 < total < np.inf:
        return Naive(powers, beyond, None, None)
    found = powers / total
    return Naive(powers, beyond, found, float(np.abs(found - weights).sum() / 2))
