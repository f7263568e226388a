"""Weightings: what makes attention weights of logits, softmax and what replaces or extends it.

Each function takes logits (…, n) and the hidden keys (…, n), and returns the weights with the Frobenius norm of their
Jacobian J = ∂p/∂z of each row, from the exact derivative. Everything is computed in float64.

- softmax, with or without a sink: J = diag(p) − p pᵀ
- sigmoid of z + b: J = diag(p(1 − p))
- α-entmax: p = max((α − 1)z − τ, 0)^{1/(α − 1)} with τ such that Σp = 1; J = diag(s) − s sᵀ/Σs, where s = p^{2 − α}
  on the keys with weight and 0 elsewhere. α = 2 is sparsemax.
- differential: A₁ − λA₂, each a softmax of its own logits; J is with respect to both: ‖J‖² = ‖J₁‖² + λ²‖J₂‖²

Forgetting attention is softmax of logits with a bias, and QK-Clip softmax of logits with a factor, which training
takes as a constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from .softmax import softmax

_ROUNDING = 1e-13  # of a difference of logits: a key at the threshold has weight 0


@dataclass(frozen=True, eq=False)
class Weighted:
    """Attention weights of rows, 0 where hidden, and ‖∂p/∂z‖_F of each row; both are float64."""

    weights: FloatArray  # (…, n)
    jacobian_norm: FloatArray  # (…,)


def softmax_weighting(logits: FloatArray, hidden: BoolArray | None = None, sink: float | None = None) -> Weighted:
    """Return the softmax of logits, to which `sink` adds a logit that belongs to no key."""
    p = softmax(logits.astype(np.float64), hidden, sink)
    squares = p * p
    # Σᵢ pᵢ²((1 − pᵢ)² + Σp² − pᵢ²): no term is negative.
    others = squares.sum(axis=-1, keepdims=True) - squares
    norm_squared = np.vecdot(squares, np.square(1 - p) + np.maximum(others, 0))
    return Weighted(p, np.sqrt(norm_squared))


def sigmoid_weighting(logits: FloatArray, hidden: BoolArray | None = None, bias: float = 0.0) -> Weighted:
    """Return σ(logits + bias), each key by itself; the weights of a row need not sum to 1."""
    z = logits.astype(np.float64) + bias
    small = np.exp(-np.abs(z))  # at most 1
    p = np.where(z >= 0, 1, small) / (1 + small)
    slopes = small / np.square(1 + small)
    if hidden is not None:
        p, slopes = (np.where(hidden, 0, each) for each in (p, slopes))
    return Weighted(p, np.sqrt(np.vecdot(slopes, slopes)))


def entmax_15(logits: FloatArray, hidden: BoolArray | None = None) -> Weighted:
    """Return 1.5-entmax, exact by sorting (Peters et al. 2019, arXiv 1905.05702, algorithm 2)."""
    z = _below_largest(logits, hidden, 0.5)
    ordered, sums, count = _ordered(z)
    mean = sums / count
    spread = np.maximum(_sums(ordered * ordered) - sums * mean, 0)
    threshold = mean - np.sqrt(np.maximum((1 - spread) / count, 0))
    root = z - _last_in_support(threshold, threshold <= ordered)
    root[root < _ROUNDING] = 0
    p = _unhidden(root * root, hidden)
    return Weighted(p, _entmax_norm(np.sqrt(p)))


def sparsemax(logits: FloatArray, hidden: BoolArray | None = None) -> Weighted:
    """Return the point of the simplex nearest to z (Martins & Astudillo 2016, arXiv 1602.02068, algorithm 1)."""
    z = _below_largest(logits, hidden, 1.0)
    ordered, sums, count = _ordered(z)
    threshold = (sums - 1) / count
    p = _unhidden(np.maximum(z - _last_in_support(threshold, threshold < ordered), 0), hidden)
    return Weighted(p, _entmax_norm((p > 0).astype(np.float64)))


def differential(first: FloatArray, second: FloatArray, hidden: BoolArray | None, factor: float) -> Weighted:
    """Return softmax(first) − factor·softmax(second); weights may be negative, and sum to 1 − factor."""
    plus, minus = softmax_weighting(first, hidden), softmax_weighting(second, hidden)
    norm = np.hypot(plus.jacobian_norm, factor * minus.jacobian_norm)
    return Weighted(plus.weights - factor * minus.weights, norm)


def differential_factor(layer: int) -> float:
    """Return λ_init of a layer, counted from 0: 0.8 − 0.6 e^{−0.3·layer} (Ye et al. 2024, arXiv 2410.05258)."""
    return 0.8 - 0.6 * math.exp(-0.3 * layer)


def forgetting_bias(log_gates: FloatArray, queries: npt.NDArray[np.intp]) -> FloatArray:
    """Return Σ log f over the positions after a key up to a query: (m, n), for causal attention.

    `log_gates` (n,) holds log f of each position, `queries` (m,) the positions of queries (Lin et al. 2025,
    arXiv 2503.02130). Keys after the query get 0.
    """
    summed = np.cumsum(log_gates, dtype=np.float64)
    last = np.minimum(queries, len(summed) - 1)
    return np.minimum(summed[last][:, np.newaxis] - summed, 0)


def clip_factor(largest: float, limit: float) -> float:
    """Return min(1, limit/largest), by which QK-Clip multiplies the logits of a head whose largest one is given."""
    return limit / largest if largest > limit else 1.0


def _below_largest(logits: FloatArray, hidden: BoolArray | None, factor: float) -> FloatArray:
    """Return factor·(logits − the row's largest visible one), hidden keys at −2.

    Entries of −1 and less have no weight, so all below −2 are put there: their sums keep their precision.
    """
    z = logits.astype(np.float64)
    if hidden is not None:
        z[np.broadcast_to(hidden, z.shape)] = -np.inf
    largest = z.max(axis=-1, keepdims=True)
    largest[np.isneginf(largest)] = 0
    return np.maximum(factor * (z - largest), -2)


def _ordered(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the entries of each row in falling order, the sums of the first k, and k (n,)."""
    ordered = np.flip(np.sort(z, axis=-1), axis=-1)
    return ordered, _sums(ordered), np.arange(1, z.shape[-1] + 1, dtype=np.float64)


def _sums(z: FloatArray) -> FloatArray:
    """Return the sum of each entry of a row and those before it."""
    return np.cumsum(z, axis=-1, dtype=np.float64)


def _last_in_support(threshold: FloatArray, inside: BoolArray) -> FloatArray:
    """Return the threshold (…, 1) of the largest support, of which `inside` marks the keys in falling order."""
    size = np.maximum(np.count_nonzero(inside, axis=-1, keepdims=True), 1)
    return np.take_along_axis(threshold, size - 1, axis=-1)


def _unhidden(weights: FloatArray, hidden: BoolArray | None) -> FloatArray:
    return weights if hidden is None else np.where(hidden, 0, weights)


def _entmax_norm(s: FloatArray) -> FloatArray:
    """Return ‖diag(s) − s sᵀ/Σs‖_F of each row: √(Σs² − 2Σs³/Σs + (Σs²)²/(Σs)²)."""
    total = s.sum(axis=-1)
    total[total == 0] = 1
    squares = s * s
    square = squares.sum(axis=-1)
    return np.sqrt(np.maximum(square - 2 * np.vecdot(squares, s) / total + np.square(square / total), 0))
