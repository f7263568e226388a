"""Variant: one kind of attention, and its whole path from queries, keys and values to the output.

normalise → score → scale → soft-cap → + bias → mask → softmax with sink → weighted sum of the values: the order of
every implementation that was read. Each array of the path is kept: this is for few rows, for references and for
gradients, not for large statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import BoolArray, FloatArray
from ..errors import InputError
from .normalise import normalised
from .scales import Normalise
from .scores import Mechanism, Weights, fold_heads, scores
from .softmax import softcap, softmax_and_sink


@dataclass(frozen=True, eq=False)
class Variant:
    """What stands between queries, keys and attention weights; as it is, plain dot-product attention."""

    mechanism: Mechanism = "dot_product"
    weights: Weights = None  # of the mechanism
    normalise: Normalise = "none"  # what happens to each query and key before the mechanism
    epsilon: float = 0.0  # of the normalisation
    gain_q: FloatArray | None = None  # learned factors of the normalised queries; broadcasts to q
    gain_k: FloatArray | None = None  # of the normalised keys; broadcasts to k
    scale: FloatArray | float = (
        1.0  # multiplier of the scores; broadcasts to (…, m, n), so that (m, 1) is by position
    )
    softcap: float | None = None
    bias: FloatArray | None = None  # added to the capped logits; broadcasts to (…, m, n)
    hidden: BoolArray | None = None  # keys that a query may not see; broadcasts to (…, m, n)
    sink: FloatArray | float | None = None  # a logit of no key; broadcasts to (…, m), so that (heads, 1) is by head


@dataclass(frozen=True, eq=False)
class Attended:
    """What attention made on its way; m queries, n keys."""

    q: FloatArray  # (…, m, d) normalised, with its gain
    k: FloatArray  # (…, n, d) normalised, with its gain
    scores: FloatArray  # (…, m, n)
    capped: FloatArray  # (…, m, n) scale · scores, soft-capped
    logits: FloatArray  # (…, m, n) capped + bias, of hidden keys too
    weights: FloatArray  # (…, m, n)
    sink_weight: FloatArray  # (…, m) what the sink takes of each row
    output: FloatArray  # (…, m, d_v)


def attend(q: FloatArray, k: FloatArray, v: FloatArray, variant: Variant) -> Attended:
    """Attention of queries q (…, heads, m, d) to keys k (…, kv_heads, n, d) with values v (…, kv_heads, n, d_v).

    Heads are as in `scores.scores`. Raises InputError for sizes that do not fit.
    """
    if k.shape[:-1] != v.shape[:-1]:
        raise InputError(f"there is one value for each key; the keys are {k.shape} and the values {v.shape}")
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
    """x times a gain, if there is one."""
    return x if gain is None else x * gain
