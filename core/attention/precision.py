"""Attention in low-precision formats, computed as hardware does, and its errors.

q and k are rounded to the format, products are summed in float32, and the score is rounded. Scale, soft-cap and
softmax, with the largest logit subtracted, are computed in float32, and the weight is rounded. In float64 everything
stays float64.

A number that rounds beyond the largest finite one overflows. It becomes ±∞ in float16, bfloat16 and float32. The
float8 formats saturate at ±largest, like NVIDIA's conversions (__NV_SATFINITE in cuda_fp8.h); otherwise E5M2 would
become ±∞, and E4M3, which has no ∞, NaN. Saturation counts as overflow too.
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
    overflow: BoolArray  # whether a number overflowed, or was NaN


class Losses(NamedTuple):
    """The errors of some rows in a number format."""

    score_overflow: Counts  # (…, m) visible scores that overflow when they are rounded
    exp_overflow: Counts  # (…, m) visible logits whose exponential overflows with nothing subtracted
    weight_error: FloatArray  # (…, m) ½ Σ|p − p̂| over the keys; 1 for a row whose weights are NaN


def round_to(x: FloatArray, name: str) -> Rounded:
    """Round x to the nearest numbers of a format, ties to even; raise InputError if the format is unknown.

    x is first converted to the format's accumulator; if that is the format itself, the values may be x itself.
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
    """Round float32 numbers to multiples of the format's spacing at their magnitude."""
    if form.name == "bfloat16":  # it has the range of float32, in which the sum below would overflow
        import ml_dtypes

        return x.astype(ml_dtypes.bfloat16).astype(np.float32)
    bits = np.bitwise_and(x.view(np.int32), 0x7F80_0000, out=np.empty_like(x, np.int32))
    shift = bits.view(np.float32)  # each number rounded down to a power of two
    np.maximum(shift, np.float32(2.0**form.min_exponent), out=shift)
    # A sum between 2^23 and 2^24 spacings is rounded by float32 to whole spacings, ties to even.
    shift *= np.float32(1.5 * 2.0 ** (23 - form.mantissa))
    values = x + shift
    values -= shift
    return values


def low_precision_scores(
    q: FloatArray, k: FloatArray, name: str, mechanism: Mechanism = "dot_product", weights: Weights = None
) -> Rounded:
    """Return scores (…, m, n) in a format, for arguments as in `scores.scores`; mechanism weights are rounded too."""
    if weights is not None:
        rounded = {field.name: round_to(getattr(weights, field.name), name).values for field in fields(weights)}
        weights = replace(weights, **rounded)
    with np.errstate(over="ignore", invalid="ignore"):
        return round_to(scores(round_to(q, name).values, round_to(k, name).values, mechanism, weights), name)


def low_precision_weights(
    logits: FloatArray, name: str, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> FloatArray:
    """Return attention weights (…, n) in a format, from logits in its accumulator.

    They are NaN in a row with a logit of +∞ or NaN, and in one where nothing, not even a sink, is above −∞.
    """
    if sink is not None:
        sink = round_to(np.asarray(sink), name).values
    with np.errstate(over="ignore", invalid="ignore"):
        weights = round_to(softmax(logits, hidden, sink), name).values
    lowest = np.isneginf(logits)
    if sink is None and lowest.any():
        seen = np.ones_like(lowest) if hidden is None else np.broadcast_to(~hidden, lowest.shape)
        # If all visible logits are −∞, the largest cannot be subtracted.
        weights[seen.any(axis=-1) & (lowest | ~seen).all(axis=-1)] = np.nan
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
    """Return the errors of rows, from scores (…, m, n) in float64 and in a format as from `low_precision_scores`.

    Logits are multiplier·scores, soft-capped; `multiplier` and `hidden` broadcast to (…, m, n), and `sink` to (…, m).
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
