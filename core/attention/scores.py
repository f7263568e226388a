"""Mechanisms: how a query and a key become a score.

dot_product q·k · additive vᵀ tanh(W₁q + W₂k + b) · cosine q·k/(‖q‖‖k‖) · bilinear qᵀWk (Luong et al. 2015, arXiv
1508.04025, "general"). Scale, soft-cap and mask are applied to scores later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..parameters import MechanismName
from .normalise import normalised

# Numbers in a block, which fits into a core's second-level cache.
BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class AdditiveWeights:
    """The learned weights of additive attention with h hidden units."""

    w_q: FloatArray  # (d_q, h): W₁q is q @ w_q for a row vector q
    w_k: FloatArray  # (d_k, h)
    bias: FloatArray  # (h,)
    v: FloatArray  # (h,)


def additive_scores(q: FloatArray, k: FloatArray, weights: AdditiveWeights) -> FloatArray:
    """Return the scores (…, m, n) of q (…, m, d_q) and k (…, n, d_k)."""
    a, b = _pre_activations(q, k, weights)
    scores = np.empty((len(a), a.shape[1], b.shape[1]), np.result_type(a, weights.v))
    for head, rows, keys, units in _hidden_units(a, b):
        scores[head, rows, keys] = units @ weights.v
    return scores.reshape(*q.shape[:-1], k.shape[-2])


def additive_query_gradients(
    d_scores: FloatArray, q: FloatArray, k: FloatArray, weights: AdditiveWeights
) -> FloatArray:
    """Return ∂L/∂q (…, m, d_q) from ∂L/∂scores (…, m, n)."""
    a, b = _pre_activations(q, k, weights)
    d_scores = d_scores.reshape(len(a), a.shape[1], b.shape[1])
    d_a = np.zeros_like(a)
    for head, rows, keys, units in _hidden_units(a, b):
        np.multiply(units, units, out=units)
        slopes = np.subtract(1, units, out=units)
        d_a[head, rows] += np.matmul(d_scores[head, rows, np.newaxis, keys], slopes)[:, 0]
    return (d_a * weights.v @ weights.w_q.T).reshape(q.shape)


def product(x: FloatArray, w: FloatArray) -> FloatArray:
    """Return x @ w; if x is wider than w, some rows of w at a time, because all of them may fill gigabytes."""
    if x.dtype == w.dtype:
        return x @ w
    step = max(BLOCK // max(w.shape[1], 1), 1)
    product = np.zeros((*x.shape[:-1], w.shape[1]), np.result_type(x, w))
    for first in range(0, len(w), step):
        product += x[..., first : first + step] @ w[first : first + step].astype(product.dtype)
    return product


def _pre_activations(q: FloatArray, k: FloatArray, weights: AdditiveWeights) -> tuple[FloatArray, FloatArray]:
    """Return W₁q + b (heads, m, h) and W₂k (heads, n, h), with all leading axes merged."""
    a, b = product(q, weights.w_q) + weights.bias, product(k, weights.w_k)
    return a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])


def _hidden_units(a: FloatArray, b: FloatArray) -> Iterator[tuple[int, slice, slice, FloatArray]]:
    """Yield blocks of tanh(a + b), (rows, keys, h), with their location; all blocks share the same memory.

    tanh(a + b) = 1 − 2/(1 + e^{2a} e^{2b}) needs one exponential for each a and each b instead of a tanh for every
    unit. It is as accurate as rounding near 1 allows. If a or b overflows the exponential, tanh is used.
    """
    (heads, m, h), n = a.shape, b.shape[1]
    keys_step = min(n, max(1, BLOCK // h))
    rows_step = min(m, max(1, BLOCK // (h * keys_step)))
    dtype = np.result_type(a, b)
    memory = np.empty(rows_step * keys_step * h, dtype)
    largest = max(np.abs(x).max(initial=0) for x in (a, b))
    factored = largest < math.log(np.finfo(dtype).max) / 2
    if factored:
        a, b = np.exp(2 * a), np.exp(2 * b)
    for head in range(heads):
        for row in range(0, m, rows_step):
            for key in range(0, n, keys_step):
                rows, keys = slice(row, min(row + rows_step, m)), slice(key, min(key + keys_step, n))
                shape = (rows.stop - row, keys.stop - key, h)
                units = memory[: math.prod(shape)].reshape(shape)
                one, other = a[head, rows, np.newaxis], b[head, np.newaxis, keys]
                if factored:
                    with np.errstate(over="ignore", under="ignore"):  # 2/∞ = 0 is correct
                        np.multiply(one, other, out=units)
                    units += 1
                    np.divide(-2, units, out=units)
                    units += 1
                else:
                    np.tanh(np.add(one, other, out=units), out=units)
                yield head, rows, keys, units


@dataclass(frozen=True, eq=False)
class BilinearWeights:
    """The learned weights of bilinear attention."""

    w: FloatArray  # (d_q, d_k)


Weights: TypeAlias = AdditiveWeights | BilinearWeights | None  # None: the mechanism has none


def draw_weights(
    mechanism: MechanismName,
    d_k: int,
    rng: np.random.Generator,
    gain: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
) -> Weights:
    """Draw weights as initialised before training; additive attention has d_k hidden units.

    Entries of a matrix are normal with variance 1/(number of inputs), which for a square matrix is Glorot and
    Bengio's: inputs with mean 0 and variance 1 have outputs with mean 0 and variance 1. The gain multiplies the score
    of either mechanism. With queries and keys of such components, gain 1 means

    - bilinear: Wᵀq is as long as q on average, so a score has variance d_k like the dot product's, and the same
      scale rules apply;
    - additive: v ~ N(0, 1/d_k), so a score has variance E tanh²(N(0, 2)) ≈ 0.52 at every width, of which 0.28 lies
      within a row: v contains a factor 1/√d_k. Gain √d_k makes v ~ N(0, 1), whose scores grow like an unscaled dot
      product's. The bias is 0;
    - dot_product and cosine have no weights for a gain to act on.

    Weights are nested: with an equal rng, those at one d_k are, up to their factor, a corner of those at a larger
    one, so curves over d_k are smooth.
    """
    if mechanism == "bilinear":
        return BilinearWeights(_corner(rng, d_k, gain / math.sqrt(d_k), dtype))
    if mechanism == "additive":
        for_q, for_k, for_v = rng.spawn(3)
        w_q, w_k = (_corner(weights, d_k, 1 / math.sqrt(d_k), dtype) for weights in (for_q, for_k))
        v = for_v.standard_normal(d_k) * (gain / math.sqrt(d_k))
        return AdditiveWeights(w_q, w_k, np.zeros(d_k, dtype), v.astype(dtype))
    return None


def score_bound(mechanism: MechanismName, weights: Weights = None) -> float:
    """Return the upper bound of |score| for any queries and keys; infinity if there is none.

    Additive: ‖v‖₁, on average gain·√(2d_k/π) for weights from `draw_weights`; not 1, although each tanh lies in [−1,
    1].
    """
    if isinstance(weights, AdditiveWeights):
        return float(np.abs(weights.v).sum(dtype=np.float64))
    return 1.0 if mechanism == "cosine" else math.inf


def scores(
    q: FloatArray, k: FloatArray, mechanism: MechanismName = "dot_product", weights: Weights = None
) -> FloatArray:
    """Return the scores (…, m, n) of queries q (…, m, d) and keys k (…, n, d); `weights` are the mechanism's."""
    if isinstance(weights, AdditiveWeights):
        return additive_scores(q, k, weights)
    if isinstance(weights, BilinearWeights):
        return product(q, weights.w) @ k.mT
    if mechanism == "cosine":
        return normalised(q, "l2") @ normalised(k, "l2").mT
    return q @ k.mT


def _corner(rng: np.random.Generator, size: int, factor: float, dtype: npt.DTypeLike) -> FloatArray:
    """Return a square of normal entries times a factor; with an equal rng, a larger one contains it in its corner."""
    square = np.empty((size, size), dtype)
    for i in range(size):  # shell i consists of the entries of column i above the diagonal, then of row i up to it
        shell = rng.standard_normal(2 * i + 1) * factor
        square[:i, i], square[i, : i + 1] = shell[:i], shell[i:]
    return square
