"""Exact gradients of L = Σ G∘O, for the upstream gradient G = ∂L/∂O of an attention's output O.

With A = G Vᵀ, p the weights of a row and z its logits, softmax gives ∂L/∂z = p∘(A − Σ p A), with or without a sink.
The other steps follow from the chain rule, from the output back to q, k, v and the learned parameters of a variant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..errors import InputError
from .additive import AdditiveWeights, additive_gradients, additive_query_gradients
from .normalise import normalised, normalised_backward
from .scores import BilinearWeights, Mechanism, Weights, fold_heads
from .variant import Attended, Variant, attend, with_gain


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradient with respect to each array of a variant, in its shape; None for arrays it does not have."""

    q: FloatArray
    k: FloatArray
    v: FloatArray
    scores: FloatArray  # (…, m, n); 0 where hidden, as are those of logits
    logits: FloatArray
    scale: FloatArray
    weights: Weights
    gain_q: FloatArray | None
    gain_k: FloatArray | None
    bias: FloatArray | None
    sink: FloatArray | None


class NormStatistics(NamedTuple):
    """The distribution of row norms; each array has the norms' shape without the last axis."""

    median: FloatArray
    mean: FloatArray
    rms: FloatArray
    top1_share: FloatArray  # NaN where all norms are 0


def gradients(
    q: FloatArray, k: FloatArray, v: FloatArray, g: FloatArray, variant: Variant, attended: Attended | None = None
) -> Gradients:
    """Return all gradients for queries, keys and values as in `attend`, and g of the output's shape (…, m, d_v).

    `attended` is the result of `attend` for the same arguments, if already computed. Raise InputError as `attend`
    does.
    """
    path = attended or attend(q, k, v, variant)
    if g.shape != path.output.shape:
        raise InputError(
            "upstream gradient: must have the output's shape {shape}, not {given}",
            shape=path.output.shape,
            given=g.shape,
        )
    folded_g = fold_heads(g, v)
    d_v = fold_heads(path.weights, v).mT @ folded_g
    d_weights = (folded_g @ v.mT).reshape(path.weights.shape)
    # Only differences of A within a row matter. Relative to the key with the largest weight there is no cancellation,
    # so the gradient of a one-hot row keeps its precision. The sink's A is 0, so its relative value is −at_largest.
    largest = path.weights.argmax(axis=-1, keepdims=True)
    at_largest = np.take_along_axis(d_weights, largest, axis=-1)
    d_weights = d_weights - at_largest
    sink_weight = path.sink_weight[..., np.newaxis]
    along = (path.weights * d_weights).sum(axis=-1, keepdims=True) - sink_weight * at_largest
    d_logits = path.weights * (d_weights - along)
    d_sink = -sink_weight * (at_largest + along)
    d_scaled = d_logits
    if variant.softcap is not None:
        d_scaled = d_logits * (1 - np.square(path.capped / variant.softcap))
    d_scores = d_scaled * variant.scale
    folded_q = fold_heads(path.q, path.k)
    folded_d = d_scores.reshape(*folded_q.shape[:-1], path.k.shape[-2])
    d_q, d_k, d_mechanism = _of_mechanism(folded_d, folded_q, path.k, variant.mechanism, variant.weights)
    sides = (d_q.reshape(q.shape), q, variant.gain_q), (d_k, k, variant.gain_k)
    (d_q, d_gain_q), (d_k, d_gain_k) = (_through_normalise(*side, variant) for side in sides)
    return Gradients(
        q=d_q,
        k=d_k,
        v=d_v,
        scores=d_scores,
        logits=d_logits,
        scale=_summed_to(d_scaled * path.scores, np.shape(variant.scale)),
        weights=d_mechanism,
        gain_q=d_gain_q,
        gain_k=d_gain_k,
        bias=None if variant.bias is None else _summed_to(d_logits, variant.bias.shape),
        sink=None if variant.sink is None else _summed_to(d_sink[..., 0], np.shape(variant.sink)),
    )


def query_gradients(
    d_scores: FloatArray, q: FloatArray, k: FloatArray, mechanism: Mechanism = "dot_product", weights: Weights = None
) -> FloatArray:
    """Return ∂L/∂q (…, m, d) from ∂L/∂scores (…, m, n), q (…, m, d) and k (…, n, d), with folded heads."""
    if isinstance(weights, AdditiveWeights):
        return additive_query_gradients(d_scores, q, k, weights)
    if isinstance(weights, BilinearWeights):
        return d_scores @ (k @ weights.w.T)
    if mechanism == "cosine":
        return normalised_backward(d_scores @ normalised(k, "l2"), q, "l2")
    return d_scores @ k


def norm_statistics(norms: FloatArray) -> NormStatistics:
    """Return median, mean, root mean square and concentration of gradient norms (…, rows).

    `top1_share` is the share of Σ‖·‖² in the largest one per cent of rows, their number rounded up: one row of up to
    100, two of 101. All are NaN if there are no rows.
    """
    rows = norms.shape[-1]
    if not rows:
        return NormStatistics(*np.full((4, *norms.shape[:-1]), np.nan))
    top = -(-rows // 100)
    squares = np.square(norms, dtype=np.float64)
    total = squares.sum(axis=-1)
    rising = np.sort(norms, axis=-1)  # NaN last
    largest = np.square(rising[..., rows - top :], dtype=np.float64).sum(axis=-1)
    middle = rising[..., (rows - 1) // 2 : rows // 2 + 1].mean(axis=-1)
    return NormStatistics(
        median=np.where(np.isnan(rising[..., -1]), np.nan, middle),
        mean=norms.mean(axis=-1, dtype=np.float64),
        rms=np.sqrt(total / rows),
        top1_share=np.where(total > 0, largest / np.where(total > 0, total, 1), np.nan),
    )


def _of_mechanism(
    d_scores: FloatArray, q: FloatArray, k: FloatArray, mechanism: Mechanism, weights: Weights
) -> tuple[FloatArray, FloatArray, Weights]:
    """Return ∂L/∂q, ∂L/∂k and ∂L/∂weights; ∂L/∂k is ∂L/∂q of the transposed scores."""
    if isinstance(weights, AdditiveWeights):
        return additive_gradients(d_scores, q, k, weights)
    d_q, d_w, transposed = query_gradients(d_scores, q, k, mechanism, weights), None, None
    if isinstance(weights, BilinearWeights):
        d_w = BilinearWeights(q.reshape(-1, q.shape[-1]).T @ (d_scores @ k).reshape(-1, k.shape[-1]))
        transposed = BilinearWeights(weights.w.T)
    return d_q, query_gradients(d_scores.mT, k, q, mechanism, transposed), d_w


def _through_normalise(
    upstream: FloatArray, x: FloatArray, gain: FloatArray | None, variant: Variant
) -> tuple[FloatArray, FloatArray | None]:
    """Return ∂L/∂x and ∂L/∂gain from upstream = ∂L/∂(gain∘normalised(x))."""
    d_gain = None
    if gain is not None:
        d_gain = _summed_to(upstream * normalised(x, variant.normalise, variant.epsilon), gain.shape)
    return normalised_backward(with_gain(upstream, gain), x, variant.normalise, variant.epsilon), d_gain


def _summed_to(x: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Sum x over the axes that were broadcast from this shape."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    kept = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return x.sum(axis=kept, keepdims=True)
