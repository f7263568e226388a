"""‖∂L/∂q‖ of many rows at once, at little more than the cost of one matrix product per multiplier.

For L = Σ G∘O, A = G Vᵀ and the weights p of a row, ∂L/∂z = p∘(A − Σ p A). On a one-hot row this cancels: the entry of
the largest weight is a small difference of two values near A there, a. So only the other keys contribute, at full
precision. Their exponentials E are relative to the second largest logit if those relative to the largest would lose
precision. With s = exp(second − largest), t = exp(sink − largest), Z = 1 + s Σ' E + t and
μ = (Σ' E A − a (Σ' E + t/s))/Z, ∂L/∂z = (s/Z)·E∘(A − a − s·μ) and, at the largest, −(s/Z)·μ.

Rows are those of `softmax.shift_rows`, the rows of all heads and draws stacked; float32 or float64.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..parameters import MechanismName
from ..scales import Normalise
from .normalise import normalised, normalised_backward
from .scores import AdditiveWeights, BilinearWeights, Weights, additive_query_gradients
from .softmax import FLOOR, HIGHEST_SINK, ShiftedRows

Chosen: TypeAlias = slice | npt.NDArray[np.intp]  # indices of rows

# The others' exponentials relative to the largest are precise enough if their sum is this many times the sum of all
# keys at the floor of `logits_below`.
_ABOVE_FLOOR = 1e4


class Upstream(NamedTuple):
    """∂L/∂p of some rows, G Vᵀ; it does not depend on the multiplier, so all columns share it."""

    product: FloatArray  # (rows, n)
    at_largest: FloatArray  # (rows,) its value at the key with the largest score


class LogitGradients(NamedTuple):
    """∂L/∂z of some rows as factor·entries, so that entries do not underflow when the gradient is tiny."""

    entries: FloatArray  # (rows, n); 0 where hidden
    factor: FloatArray  # (rows,) float64

    @property
    def norms(self) -> FloatArray:
        """‖∂L/∂z‖ (rows,) in float64."""
        return np.sqrt(np.vecdot(self.entries, self.entries).astype(np.float64)) * self.factor


def upstream(g: FloatArray, v: FloatArray, shifted: ShiftedRows, out: FloatArray | None = None) -> Upstream:
    """Return the Upstream of rows from g (…, m, d_v) and values v (…, n, d_v).

    `out` (rows, n) is memory to use.
    """
    product = np.matmul(g, v.mT, out=None if out is None else out.reshape(*g.shape[:-1], v.shape[-2]))
    product = product.reshape(shifted.below.shape)
    return Upstream(product, product[np.arange(len(product)), shifted.argmax])


def logit_gradients(
    shifted: ShiftedRows,
    multiplier: float,
    upstream: Upstream,
    sink: FloatArray | None = None,
    exponentials: tuple[FloatArray, FloatArray] | None = None,
    out: FloatArray | None = None,
) -> LogitGradients:
    """Return ∂L/∂z of the rows of softmax(multiplier · scores).

    `sink` (rows,) is the sink logit minus the largest logit of each row, as in `row_statistics`. `exponentials` are
    the scratch array (rows, n) of `row_sums`, which is overwritten, and its r₁ (rows,); unless they lack precision,
    they save an exponential. `out` (rows, n) is memory for the result. A soft-cap is not included: multiply the
    entries by its slopes 1 − (z/cap)².
    """
    if exponentials is None:
        powers, reference = _exponentials_of_others(shifted, multiplier, sink, slice(None))
        others = _row_sums(powers)
    else:
        powers, others = exponentials[0], exponentials[1].astype(np.float64)
        reference = np.zeros(len(powers))
        # Of at least two visible keys, all but the largest are near the floor.
        floor = _ABOVE_FLOOR * np.exp(FLOOR[powers.dtype]) * powers.shape[1]
        poor = np.flatnonzero((others < floor) & (shifted.visible > 1))
        if poor.size:
            powers[poor], reference[poor] = _exponentials_of_others(shifted, multiplier, sink, poor)
            others[poor] = _row_sums(powers[poor])
    lift = np.exp(reference)
    if sink is not None:
        others = others + np.exp(np.minimum(sink, HIGHEST_SINK, dtype=np.float64) - reference)  # t/s
    total = 1 + lift * others
    mean = (np.vecdot(powers, upstream.product) - others * upstream.at_largest) / total
    along = (upstream.at_largest + lift * mean).astype(powers.dtype)
    entries = np.subtract(upstream.product, along[:, np.newaxis], out=out)
    np.multiply(powers, entries, out=entries)
    entries[np.arange(len(entries)), shifted.argmax] = np.where(shifted.visible > 0, -mean, 0)
    return LogitGradients(entries, lift / total)


def weight_gradients(weights: FloatArray, upstream: Upstream, missing: FloatArray) -> LogitGradients:
    """Return ∂L/∂z = p∘(A − Σ p A) of rows with weights p (rows, n), which need not sum to 1.

    `missing` (rows,) is 1 − Σp: the sink's share and what rounding lost.
    """
    entries = upstream.product - upstream.at_largest[:, np.newaxis]
    along = np.vecdot(weights, entries).astype(np.float64) - missing * upstream.at_largest
    entries -= along.astype(weights.dtype)[:, np.newaxis]
    entries *= weights
    largest = np.abs(entries).max(axis=1)
    largest[largest == 0] = 1
    entries /= largest[:, np.newaxis]
    return LogitGradients(entries, largest.astype(np.float64))


def query_gradient_norms(
    gradients: LogitGradients,
    multiplier: FloatArray | float,
    k: FloatArray,
    q: FloatArray | None = None,
    mechanism: MechanismName = "dot_product",
    weights: Weights = None,
    normalise: Normalise = "none",
    gain: float = 1.0,
) -> FloatArray:
    """Return ‖∂L/∂q‖ (rows,) in float64, for scores = multiplier · mechanism(gain · normalised(q), k).

    k (…, n, d) are the normalised keys with their gain, q (…, m, d) the queries before normalisation, needed by all
    but the plain dot product. `multiplier` may have one value per row. Without normalisation there is no gain.
    """
    entries = gradients.entries.reshape(*k.shape[:-2], -1, k.shape[-2])
    if q is None:
        d_q = entries @ k
    else:
        factor = q.dtype.type(1.0 if normalise == "none" else gain)
        d_q = _query_gradients(entries, factor * normalised(q, normalise), k, mechanism, weights)
        d_q = normalised_backward(factor * d_q, q, normalise)
    d_q = d_q.reshape(len(gradients.factor), -1)
    return np.sqrt(np.vecdot(d_q, d_q).astype(np.float64)) * gradients.factor * multiplier


def _query_gradients(
    d_scores: FloatArray, q: FloatArray, k: FloatArray, mechanism: MechanismName, weights: Weights
) -> FloatArray:
    """Return ∂L/∂q (…, m, d) from ∂L/∂scores (…, m, n), q (…, m, d) and k (…, n, d)."""
    if isinstance(weights, AdditiveWeights):
        return additive_query_gradients(d_scores, q, k, weights)
    if isinstance(weights, BilinearWeights):
        return d_scores @ (k @ weights.w.T)
    if mechanism == "cosine":
        return normalised_backward(d_scores @ normalised(k, "l2"), q, "l2")
    return d_scores @ k


def _row_sums(powers: FloatArray) -> FloatArray:
    return powers @ np.ones(powers.shape[1], powers.dtype)


def _exponentials_of_others(
    shifted: ShiftedRows, multiplier: float, sink: FloatArray | None, chosen: Chosen
) -> tuple[FloatArray, FloatArray]:
    """Return exponentials of all logits but the largest, relative to the largest of these and the sink.

    They have shape (chosen rows, n). Also return that reference minus the row's largest logit: (chosen rows,)
    float64, at most 0.
    """
    below = shifted.below[chosen].copy()
    hidden = None if shifted.hidden is None else shifted.hidden[chosen]
    largest, number = (np.arange(len(below)), shifted.argmax[chosen]), below.dtype.type
    below[largest] = -np.inf
    if hidden is not None:
        below[hidden] = -np.inf
    reference = multiplier * below.max(axis=1, initial=-np.inf).astype(np.float64)
    if sink is not None:
        reference = np.minimum(np.maximum(reference, sink[chosen]), 0)
    reference[np.isneginf(reference)] = 0
    below *= number(multiplier)
    below -= reference.astype(number)[:, np.newaxis]
    np.clip(below, number(FLOOR[below.dtype]), number(0), out=below)
    powers = np.exp(below, out=below)
    powers[largest] = 0
    if hidden is not None:
        powers[hidden] = 0
    return powers, reference
