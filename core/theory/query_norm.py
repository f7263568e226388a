"""The exact law of a query's length |q|, as quadrature nodes and weights.

Given a query with normal components, its scores with normal keys are independent and normal with a standard deviation
proportional to |q|; every expectation at finite d_k is therefore an average over |q|. The density of w = ln |q| is
analytic and decays doubly exponentially to the right and exponentially to the left, so the trapezoidal rule in w is
exact to rounding, even for functions of |q| like a logarithm or a step, for which Gauss–Laguerre nodes fail at small
d_k.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..arrays import FloatArray


@lru_cache(maxsize=64)
def norm_nodes(d: int, offset: float) -> tuple[FloatArray, FloatArray]:
    """Return lengths of a vector of d independent N(offset, 1) components, and their probabilities, which sum to 1.

    The length has a noncentral chi law: its density is ∝ r^(d−1) e^(−(r² + m²)/2) times the mean of e^(r m cos θ)
    over directions, where m = √d·|offset| is the length of the mean vector.
    """
    mean = math.sqrt(d) * abs(offset)
    typical = math.hypot(math.sqrt(d), mean)
    # P(|r − typical| > 9) < 1e-17; and P(r < ε) < e^(−33) where ε^d is that small.
    low = max(math.log(max(typical - 9, 1e-300)), 0.5 * math.log(d) - 1 - 33 / d)
    high = math.log(typical + 9)
    step = min(0.12, 0.35 / typical)
    w = low + step * np.arange(math.ceil((high - low) / step) + 1)
    r = np.exp(w)
    log_density = d * w - (r - mean) ** 2 / 2
    if mean > 0:
        log_density += _log_mean_over_directions(d, r * mean)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    return r, weights


def _log_mean_over_directions(d: int, x: FloatArray) -> FloatArray:
    """Return ln E e^(x (cos θ − 1)) over directions in d dimensions, up to a constant; x > 0 of shape (points,).

    With cos θ = tanh τ the density of directions is sech^(d−1) τ dτ.
    """
    if d == 1:
        return np.log1p(np.exp(-2 * x))
    # The integrand's peak, where x sech²τ = (d − 1) tanh τ; its width is between 1/√(2(d − 1)) and 1/√(d − 1), and
    # far from it the integrand decays at least like e^(−(d − 1)|τ|).
    cosine = 2 * x / (d - 1 + np.sqrt((d - 1.0) ** 2 + 4 * x * x))
    peak = 0.5 * np.log((1 + cosine) ** 2 * x / ((d - 1) * cosine))
    root = math.sqrt(d - 1)
    reach, step = 9 / root + 38 / root**2, min(0.2, 0.3 / root)
    tau = peak[:, None] + step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    log_cosh = np.abs(tau) + np.log1p(np.exp(-2 * np.abs(tau)))
    exponent = -2 * x[:, None] / (np.exp(2 * tau) + 1) - (d - 1) * log_cosh
    top = exponent.max(axis=1)
    return top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
