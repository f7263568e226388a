"""Attention in low-precision formats, as two kinds of implementation compute it, and its errors.

Both multiply q, k and v in the format and sum products in float32.

- eager, one operation after another as in PyTorch without a fused kernel: the score, the scaled logit, each step of
  the soft-cap and the weights are rounded to the format. Within one operation, such as softmax, everything is float32
  (ATen's opmath), and the multiplier is a float32 number. A bias is stored in the format, and the sum is rounded.
- fused, as in FlashAttention: scores, logits, soft-cap, softmax and its sum stay in float32. Only the unnormalised
  e^(x − max) is rounded, when it meets v; the sum is of the unrounded ones (Dao-AILab/flash-attention,
  csrc/flash_attn/src/flash_fwd_kernel.h: softmax_rescale_o before convert_type). A kernel takes the maximum of the
  keys so far; here it is that of all keys, as if they fitted into one block.

A rule may multiply q and k instead of their score. Then these products are rounded to the format in both, and the
score is the logit.

The weights are those that meet v, p̂. In eager arithmetic they are what autograd saves for the backward pass. All
statistics of weights, the Jacobian diag(p̂) − p̂ p̂ᵀ and gradients are computed from them, in float64 or float32; the
backward pass itself is not rounded.

A number that rounds beyond the largest finite one becomes ±∞, so an eager score may be infinite. A row with +∞ or
NaN, or with nothing above −∞, is NaN.

float8 is fused only, since no kernel rounds scores to it. As in FlashAttention-3 (hopper/flash_fwd_kernel_sm90.h), q,
k and v have a scale each that takes the largest element to the format's largest number, scores are float32, and
e^(x − max) is multiplied by a power of two before it is rounded (`NumberFormat.headroom`). In float64 and float32
nothing is rounded.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, Counts, FloatArray
from ..parameters import ArithmeticName
from .formats import NumberFormat, number_format
from .scores import Weights
from .softmax import Softmax, exponentials, sink_power, softmax, softmax_of

# What float32 sums of pairs of up to 8192 numbers err by at most: 2⁻²⁴ for each of log₂ n sums, rounded up.
_OF_SUMS = 2.0**-20
_AT_ONCE = 1 << 20  # numbers rounded at once, which bounds temporary memory


class Rounded(NamedTuple):
    """Numbers of a format, in the dtype of its accumulator."""

    values: FloatArray
    overflow: BoolArray  # whether a number overflowed, or was NaN


class Losses(NamedTuple):
    """The errors of some rows in a number format."""

    score_overflow: Counts  # (…, m) visible scores that are infinite or NaN
    exp_overflow: Counts  # (…, m) visible logits whose exponential overflows with nothing subtracted
    weight_error: FloatArray  # (…, m) ½ Σ|p − p̂| over the keys; NaN for a NaN row
    weight_lost: FloatArray  # (…, m) 1 − Σp̂, less the sink's share; NaN for a NaN row


def round_to(x: FloatArray, name: str) -> Rounded:
    """Round x to the nearest numbers of a format, ties to even; raise InputError if the format is unknown.

    x is first converted to the format's accumulator; if that is the format itself, the values may be x itself.
    Overflow becomes ±∞, or ±largest in the float8 formats, as NVIDIA's conversions saturate (__NV_SATFINITE in
    cuda_fp8.h); otherwise E5M2 would become ±∞, and E4M3, which has no ∞, NaN.
    """
    form = number_format(name)
    with np.errstate(over="ignore", invalid="ignore"):
        x = values = x.astype(form.accumulator, copy=False)
        if form.rounded:
            values = _nearest(x, form)
        overflow = ~(np.abs(values) <= form.largest)
    if form.rounded and overflow.any():
        overflown = np.float32(form.largest if form.saturates else np.inf)
        values = np.where(overflow & ~np.isnan(x), np.copysign(overflown, x), values)
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


def stored(x: FloatArray, name: str) -> FloatArray:
    """Return tensors (…, rows, d) as they are stored in a format, in the dtype of its accumulator.

    In float8 every tensor has a scale, its largest element over the format's largest number.
    """
    form = number_format(name)
    if not form.rounded:
        return x.astype(form.accumulator, copy=False)
    result = np.empty(x.shape, np.float32)
    tensors = x.reshape(-1, *x.shape[-2:])
    step = max(_AT_ONCE // max(x.shape[-1], 1), 1)
    for tensor, out in zip(tensors, result.reshape(tensors.shape), strict=True):
        size = max(float(tensor.max(initial=0)), -float(tensor.min(initial=0)))
        scale = np.float32(size / form.largest) if form.scaled and size else np.float32(1)
        for first in range(0, len(tensor), step):
            part = slice(first, first + step)
            out[part] = round_to(tensor[part] / scale, name).values * scale
    return result


def stored_weights(weights: Weights, name: str) -> Weights:
    """Return a mechanism's learned weights as they are stored in a format."""
    if weights is None:
        return None
    made: dict[str, FloatArray] = {}
    for field in fields(weights):
        each: FloatArray = getattr(weights, field.name)
        made[field.name] = stored(np.atleast_2d(each), name).reshape(each.shape)
    return replace(weights, **made)


def rounded_softmax(
    logits: FloatArray,
    name: str,
    arithmetic: ArithmeticName,
    hidden: BoolArray | None = None,
    sink: FloatArray | float | None = None,
) -> Softmax:
    """Return the softmax of logits in a format, NaN throughout a NaN row; arguments are as in `softmax_of`.

    The sink's logit is stored in the format, but not in float8.
    """
    form = number_format(name)
    if sink is not None and not form.scaled:
        sink = round_to(np.asarray(sink), name).values
    with np.errstate(over="ignore", invalid="ignore"):
        if form.rounded and arithmetic == "fused":
            result = _fused(logits, form, hidden, sink)
        else:
            weights, share, lse = softmax_of(logits, hidden, sink)
            if form.rounded:
                weights, share = round_to(weights, name).values, round_to(share, name).values
            result = Softmax(weights.astype(form.accumulator, copy=False), share, lse)
    failed = nan_rows(logits, hidden, sink is not None)
    if failed.any():
        for each in result:
            each[failed] = np.nan
    return result


def nan_rows(logits: FloatArray, hidden: BoolArray | None, has_sink: bool) -> BoolArray:
    """Return which rows (…, m) of logits (…, m, n) have no softmax.

    Those have a visible +∞ or NaN, or see keys but, without a sink, nothing above −∞, which cannot be subtracted.
    """
    if np.isfinite(logits).all():
        return np.zeros(logits.shape[:-1], np.bool_)
    seen = np.ones(logits.shape, np.bool_) if hidden is None else np.broadcast_to(~hidden, logits.shape)
    failed = np.any(~(logits < np.inf) & seen, axis=-1)
    if not has_sink:
        failed |= np.any(seen, axis=-1) & np.all(np.isneginf(logits) | ~seen, axis=-1)
    return failed


def losses_of(
    reference: FloatArray,
    low: FloatArray,
    logits: FloatArray,
    found: Softmax,
    name: str,
    hidden: BoolArray | None = None,
    sink: FloatArray | float | None = None,
) -> Losses:
    """Return the errors of rows with these scores `low`, logits and weights in a format.

    `reference` are the logits in float64; all are (…, m, n), and the others as in `softmax_of`.
    """
    error = np.abs(softmax(reference, hidden, sink) - found.weights).sum(axis=-1) / 2
    overflow, exp_overflow = ~np.isfinite(low), ~(logits <= number_format(name).exp_limit)
    sees = np.ones(logits.shape[:-1], np.bool_)
    if hidden is not None:
        overflow, exp_overflow = overflow & ~hidden, exp_overflow & ~hidden
        sees = ~np.broadcast_to(hidden, logits.shape).all(axis=-1)
    return Losses(
        score_overflow=np.count_nonzero(overflow, axis=-1),
        exp_overflow=np.count_nonzero(exp_overflow, axis=-1),
        weight_error=error,
        weight_lost=np.where(sees, weight_lost(found), 0.0),
    )


def weight_lost(rows: Softmax) -> FloatArray:
    """Return 1 − Σp̂ less the share of the sink, in float64; NaN for NaN rows, and 1 for rows that see nothing.

    It is 0 within the rounding of the sum that weights were divided by.
    """
    lost = 1.0 - rows.weights.sum(axis=-1, dtype=np.float64) - rows.sink
    sums = max(1.0, math.log2(rows.weights.shape[-1]) / 13)
    return np.where(np.abs(lost) <= _OF_SUMS * sums, 0.0, lost)


def _fused(
    logits: FloatArray, form: NumberFormat, hidden: BoolArray | None, sink: FloatArray | float | None
) -> Softmax:
    """Return the softmax whose unnormalised weights are rounded; the sink enters the sum only."""
    powers, largest = exponentials(logits, hidden)
    total = powers.sum(axis=-1, dtype=np.float32).astype(np.float64)
    largest = largest[..., 0]
    of_sink = np.zeros_like(total) if sink is None else sink_power(np.asarray(sink) - largest)
    total += of_sink
    with np.errstate(divide="ignore"):
        lse = np.log(total) + largest
    total[total == 0] = 1
    powers *= np.float32(2**form.headroom)
    powers = round_to(powers, form.name).values
    powers *= (2.0**-form.headroom / total).astype(np.float32)[..., np.newaxis]
    return Softmax(powers, of_sink / total, lse)
