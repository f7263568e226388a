"""The standard deviation of soft-capped logits within a row, exactly, for normal queries and keys.

Given a query, scores with keys of mean 0 are N(0, (σ_k|q|)²), so logits cap·tanh(x/cap) have mean 0 and variance
cap²·E tanh²(s z) with z ~ N(0, 1) and s = c σ_k |q| / cap; |q| has the law of `query_norm`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from .query_norm import norm_nodes

_STEP = 0.25  # of the trapezoidal rule: the poles of tanh² and sech² leave an error of e^(−39)
_LEAST, _MOST, _POINTS = math.log(1e-4), math.log(1e4), 1 << 13  # of ln s in the table


def is_capped_normal(p: Parameters) -> bool:
    """Return whether logits are soft-capped scores of this law; their rule must not normalise q and k."""
    return (
        p.softcap > 0
        and p.mechanism == "dot_product"
        and p.components == "normal"
        and p.mean_k == 0
        and p.correlation == 0
    )


def capped_deviation(p: Parameters, d_k: int, multiplier: float) -> float:
    """Return the root of the mean variance within a row of soft-capped logits; the d_k of `p` is ignored."""
    if p.std_q == 0:
        norms, weights = np.array([math.sqrt(d_k) * abs(p.mean_q)]), np.ones(1)
    else:
        norms, weights = _nodes(d_k, p.mean_q / p.std_q)
        norms = p.std_q * norms
    spread = multiplier * p.std_k * norms / p.softcap
    return p.softcap * math.sqrt(float(weights @ _mean_square_of_tanh(spread)))


def _mean_square_of_tanh(spread: FloatArray) -> FloatArray:
    """Return E tanh²(s z), by interpolation of its logarithm over ln s; the error is below 1e-6 of it."""
    with np.errstate(divide="ignore"):
        at = np.log(spread)
    found = np.exp(np.interp(at, *_table()))
    small, large = at < _LEAST, at > _MOST
    found[small] = spread[small] ** 2
    found[large] = 1 - math.sqrt(2 / math.pi) / spread[large]
    return found


@lru_cache(maxsize=256)  # the widths that are looked at are the same for every rule
def _nodes(d_k: int, offset: float) -> tuple[FloatArray, FloatArray]:
    return norm_nodes.__wrapped__(d_k, offset)


@lru_cache(maxsize=1)
def _table() -> tuple[FloatArray, FloatArray]:
    """Return even steps of ln s, and ln E tanh²(s z) there.

    Up to s = 1 by the trapezoidal rule in z, beyond as 1 − E sech²(y) in y = s z.
    """
    steps = np.linspace(_LEAST, _MOST, _POINTS)
    s = np.exp(steps)[:, np.newaxis]
    z = np.arange(-9, 9 + _STEP, _STEP)
    y = np.arange(-20, 20 + _STEP, _STEP)
    small, large = s[s[:, 0] <= 1], s[s[:, 0] > 1]
    near = np.tanh(small * z) ** 2 @ np.exp(-z * z / 2)
    far = large[:, 0] * math.sqrt(2 * math.pi) - _STEP * (np.exp(-((y / large) ** 2) / 2) @ np.cosh(y) ** -2)
    scale = np.concatenate([np.full(len(small), _STEP), 1 / large[:, 0]])
    return steps, np.log(np.concatenate([near, far]) * scale / math.sqrt(2 * math.pi))
