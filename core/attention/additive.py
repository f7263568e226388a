"""Additive attention, vᵀ tanh(W₁q + W₂k + b) (Bahdanau et al. 2014, arXiv 1409.0473), computed block by block.

Every query–key pair has h hidden units, so together they are h times as large as the scores. They are never all in
memory: each block is computed, and computed again if a gradient needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray

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
    found = np.zeros((*x.shape[:-1], w.shape[1]), np.result_type(x, w))
    for first in range(0, len(w), step):
        found += x[..., first : first + step] @ w[first : first + step].astype(found.dtype)
    return found


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
    largest = max(np.abs(each).max(initial=0) for each in (a, b))
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
