"""Variant: one kind of attention, and its computation from queries, keys and values to the output.

normalise → score → scale → soft-cap → + bias → mask → softmax with sink → weighted sum of the values: the order of
all implementations examined. Every intermediate array is kept: this is for small inputs, references and gradients,
not for large statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import BoolArray, FloatArray
from ..errors import InputError
from ..scales import Normalise
from .normalise import normalised
from .scores import Mechanism, Weights, fold_heads, scores
from .softmax import softcap, softmax_and_sink


@dataclass(frozen=True, eq=False)
class Variant:
    """The steps between queries, keys and attention weights; the defaults are plain dot-product attention."""

    mechanism: Mechanism = "dot_product"
    weights: Weights = None  # of the mechanism
    normalise: Normalise = "none"  # applied to each query and key before the mechanism
    epsilon: float = 0.0  # of the normalisation
    gain_q: FloatArray | None = None  # learned factors of the normalised queries; broadcasts to q
    gain_k: FloatArray | None = None  # of the normalised keys; broadcasts to k
    scale: FloatArray | float = 1.0  # multiplier of the scores; broadcasts to (…, m, n), (m, 1) being per query
    softcap: float | None = None
    bias: FloatArray | None = None  # added to the capped logits; broadcasts to (…, m, n)
    hidden: BoolArray | None = None  # hidden keys; broadcasts to (…, m, n)
    sink: FloatArray | float | None = None  # of the sink; broadcasts to (…, m), (heads, 1) being per head


@dataclass(frozen=True, eq=False)
class Attended:
    """All intermediate arrays of attention; m queries, n keys."""

    q: FloatArray  # (…, m, d) normalised, with its gain
    k: FloatArray  # (…, n, d) normalised, with its gain
    scores: FloatArray  # (…, m, n)
    capped: FloatArray  # (…, m, n) scale · scores, soft-capped
    logits: FloatArray  # (…, m, n) capped + bias, including hidden keys
    weights: FloatArray  # (…, m, n)
    sink_weight: FloatArray  # (…, m) weight on the sink
    output: FloatArray  # (…, m, d_v)


def attend(q: FloatArray, k: FloatArray, v: FloatArray, variant: Variant) -> Attended:
    """Attend from queries q (…, heads, m, d) to keys k (…, kv_heads, n, d) with values v (…, kv_heads, n, d_v).

    Heads are as in `scores.scores`. Raise InputError if sizes do not match.
    """
    if k.shape[:-1] != v.shape[:-1]:
        raise InputError(
            "there must be one value for each key; the keys are {k_shape} and the values {v_shape}",
            k_shape=k.shape,
            v_shape=v.shape,
        )
    normal_q = with_gain(normalised(q, variant.normalise, variant.epsilon), variant.gain_q)
    normal_k = with_gain(normalised(k, variant.normalise, variant.epsilon), variant.gain_k)
    raw = scores(normal_q, normal_k, variant.mechanism, variant.weights)
    scaled = raw * variant.scale
    capped = scaled if variant.softcap is None else softcap(scaled, variant.softcap)
    logits = capped if variant.bias is None else capped + variant.bias
    weights, sink_weight = softmax_and_sink(logits, variant.hidden, variant.sink)
    output = (fold_heads(weights, v) @ v).reshape(*q.shape[:-1], v.shape[-1])
    return Attended(normal_q, normal_k, raw, capped, logits, weights, sink_weight, output)


def with_gain(x: FloatArray, gain: FloatArray | None) -> FloatArray:
    """Return x times a gain, if there is one."""
    return x if gain is None else x * gain
