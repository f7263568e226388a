"""What attention loses when it is computed in few bits, as hardware computes it.

q and k are rounded to the format, products are summed in float32, and the score is rounded. Scale, soft-cap and
softmax, with the largest logit subtracted, take place in float32, and the weight is rounded. In float64 all of it
stays float64.

A number beyond the largest finite one overflows, after it is rounded. It becomes ±∞ in float16, bfloat16 and float32.
The float8 formats saturate at ±largest, as NVIDIA's conversions do (__NV_SATFINITE in cuda_fp8.h); without that E5M2
has ∞ and E4M3, which has none, gives NaN. It counts as overflow all the same.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, Counts, FloatArray
from .formats import NumberFormat, number_format
from .scores import Mechanism, Weights, scores
from .softmax import softcap as soft_capped
from .softmax import softmax


class Rounded(NamedTuple):
    """Numbers of a format, in the dtype of its accumulator."""

    values: FloatArray
    overflow: BoolArray  # where a number was beyond the largest, or none at all


class Losses(NamedTuple):
    """What some rows lose to a number format."""

    score_overflow: Counts  # (…, m) visible scores that overflow when they are rounded
    exp_overflow: Counts  # (…, m) visible logits whose exponential would, with nothing subtracted
    weight_error: FloatArray  # (…, m) ½ Σ|p − p̂| over the keys; 1 for a row whose weights are not numbers


def round_to(x: FloatArray, name: str) -> Rounded:
    """x rounded to the nearest numbers of a format, ties to even; raises InputError for a format that is not known.

    x is taken in the format's accumulator first; where that is the format, the values may be x itself.
    """
    form = number_format(name)
    with np.errstate(over="ignore", invalid="ignore"):
        x = values = x.astype(form.accumulator, copy=False)
        if form.bits < 32:
            values = _nearest(x, form)
        overflow = ~(np.abs(values) <= form.largest)
    if form.bits < 32 and overflow.any():
        beyond = np.float32(form.largest if form.saturates else np.inf)
        values = np.where(overflow & ~np.isnan(x), np.copysign(beyond, x), values)
    return Rounded(values, overflow)


def _nearest(x: FloatArray, form: NumberFormat) -> FloatArray:
    """float32 numbers as the nearest multiples of the spacing that the format has at their size."""
    if form.name == "bfloat16":  # it reaches as far as float32, where what is added below would overflow
        import ml_dtypes

        return x.astype(ml_dtypes.bfloat16).astype(np.float32)
    bits = np.bitwise_and(x.view(np.int32), 0x7F80_0000, out=np.empty_like(x, np.int32))
    shift = bits.view(np.float32)  # the power of two below each
    np.maximum(shift, np.float32(2.0**form.min_exponent), out=shift)
    # Between 2^23 and 2^24 spacings float32 has no bits for less than one, and rounds ties to even.
    shift *= np.float32(1.5 * 2.0 ** (23 - form.mantissa))
    values = x + shift
    values -= shift
    return values


def low_precision_scores(
    q: FloatArray, k: FloatArray, name: str, mechanism: Mechanism = "dot_product", weights: Weights = None
) -> Rounded:
    """Scores (…, m, n) in a format, of inputs as in `scores.scores`; the mechanism's weights are rounded as well."""
    if weights is not None:
        rounded = {field.name: round_to(getattr(weights, field.name), name).values for field in fields(weights)}
        weights = replace(weights, **rounded)
    with np.errstate(over="ignore", invalid="ignore"):
        return round_to(scores(round_to(q, name).values, round_to(k, name).values, mechanism, weights), name)


def low_precision_weights(
    logits: FloatArray, name: str, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> FloatArray:
    """Attention weights (…, n) in a format, of logits in its accumulator.

    They are NaN in a row with a logit of ∞ or NaN, and in one where nothing, not even a sink, is above −∞.
    """
    if sink is not None:
        sink = round_to(np.asarray(sink), name).values
    with np.errstate(over="ignore", invalid="ignore"):
        weights = round_to(softmax(logits, hidden, sink), name).values
    held = np.isneginf(logits)
    if sink is None and held.any():
        seen = np.ones_like(held) if hidden is None else np.broadcast_to(~hidden, held.shape)
        weights[seen.any(axis=-1) & (held | ~seen).all(axis=-1)] = np.nan  # its largest logit cannot be subtracted
    return weights


def losses(
    exact: FloatArray,
    rounded: Rounded,
    name: str,
    multiplier: FloatArray | float = 1.0,
    softcap: float | None = None,
    hidden: BoolArray | None = None,
    sink: FloatArray | float | None = None,
) -> Losses:
    """What rows lose, from their scores (…, m, n) in float64 and in a format, as `low_precision_scores` has them.

    Logits are multiplier·scores, soft-capped; multiplier broadcasts to (…, m, n), hidden too, and sink to (…, m).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (_logits(each, multiplier, softcap) for each in (rounded.values, exact.astype(np.float64)))
    error = softmax(high, hidden, sink)
    error -= low_precision_weights(low, name, hidden, sink)
    error = np.abs(error, out=error).sum(axis=-1) / 2
    overflow, beyond = rounded.overflow, ~(low <= number_format(name).exp_limit)
    if hidden is not None:
        overflow, beyond = overflow & ~hidden, beyond & ~hidden
    return Losses(
        score_overflow=np.count_nonzero(overflow, axis=-1),
        exp_overflow=np.count_nonzero(beyond, axis=-1),
        weight_error=np.where(np.isnan(error), 1, error),
    )


def _logits(raw: FloatArray, multiplier: FloatArray | float, softcap: float | None) -> FloatArray:
    scaled = raw * np.asarray(multiplier, raw.dtype)
    return scaled if softcap is None else soft_capped(scaled, softcap, out=scaled)
