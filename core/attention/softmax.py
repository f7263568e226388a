"""Softmax over visible keys: its weights, and the statistics of its rows without storing the weights.

The statistics are computed from E = exp(c·(s − max s)) without its largest entry, so the sums of the others
r_k = Σ' E^k keep their full precision on one-hot rows, where 1 − max p is tiny. With t = exp(σ − c·max s) for a sink
logit σ, or t = 0 without one:
Z = 1 + r₁ + t · max p = 1/Z · H = −Σ p ln p = ((1 + r₁) ln Z − Σ' E ln E)/Z · Σp² = (1 + r₂)/Z² ·
Σp − Σp² = (2r₁ + r₁² − r₂ + t(1 + r₁))/Z².

A sink is a logit that belongs to no key: it absorbs weight and contributes nothing to the output, so the keys'
weights sum to less than 1 (GPT-OSS learns one per head; 0 is the off-by-one softmax).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray

# Sinks are clipped to this distance above a row's largest logit, far beyond where all weights of the row are 0.
HIGHEST_SINK = 700.0

_LEAST = 1e-45  # of a weight: the smallest number of float32

# A weight below exp(FLOOR) cannot change a sum that includes the largest entry, 1. Its square is still a normal
# number: arithmetic on denormal numbers is ten times slower.
FLOOR = {np.dtype(np.float32): -29.0, np.dtype(np.float64): -230.0}


class ShiftedRows(NamedTuple):
    """Scores of some rows, minus the largest visible score of each row."""

    below: FloatArray  # (rows, n), ≤ 0; 0 where hidden
    hidden: BoolArray | None  # (rows, n)
    largest: FloatArray  # (rows,) the subtracted score; 0 for a row that sees no key
    argmax: npt.NDArray[np.intp]  # (rows,)
    visible: npt.NDArray[np.intp]  # (rows,) keys that each row sees
    smallest: FloatArray  # (rows,) the smallest entry of `below`
    edge: slice = slice(None)  # the keys outside which none is hidden

    def only(self, rows: slice | npt.NDArray[np.intp]) -> ShiftedRows:
        """Return some of these rows; a slice shares their memory."""
        hidden = None if self.hidden is None else self.hidden[rows]
        some = self.below[rows], hidden, self.largest[rows], self.argmax[rows], self.visible[rows]
        return ShiftedRows(*some, self.smallest[rows], self.edge)

    @property
    def lowest(self) -> float:
        """The smallest entry of `below`."""
        return float(self.smallest.min(initial=0))


class RowStatistics(NamedTuple):
    """Statistics of the rows of softmax(c·scores); all arrays are float64 and have the same shape.

    A row that sees no key has no weights: all its entries are 0.
    """

    entropy: FloatArray  # −Σ p ln p over the keys, in nats
    max_weight: FloatArray
    sum_squared_weights: FloatArray
    complement: FloatArray  # Σ p(1 − p), the trace of the Jacobian: 1 − Σp² without a sink
    first_key_weight: FloatArray
    jacobian_norm_squared: FloatArray


class Softmax(NamedTuple):
    """Softmax of rows of logits (…, n)."""

    weights: FloatArray  # (…, n); those of a row that sees no key are 0
    sink: FloatArray  # (…) the share of each row that its sink absorbs
    lse: FloatArray  # (…) ln Σ e^logit, the sink included; −∞ for a row without either


def softcapped(
    logits: FloatArray,
    cap: float,
    out: FloatArray | None = None,
    rounded: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """Return cap·tanh(logits/cap), always within ±cap, as Gemma 2 does after the scale and before the mask.

    `rounded` is applied to the result of each operation.
    """
    number = logits.dtype.type(cap)
    if rounded is not None:
        return rounded(rounded(np.tanh(rounded(logits / number))) * number)
    capped = np.tanh(np.divide(logits, number, out=out), out=out)
    return np.multiply(capped, number, out=out)


def softcap_slopes(capped: FloatArray, cap: float) -> FloatArray:
    """Return the derivative 1 − tanh² of `softcapped` by its logits, from its result."""
    return np.maximum(1 - np.square(capped / capped.dtype.type(cap)), 0)


def exponentials(
    logits: FloatArray, hidden: BoolArray | None = None, sinks: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return e^(logit − largest) (…, n), 0 where `hidden`, and the largest (…, 1) of each row and its sink (…, 1).

    The largest of a row without finite logits is 0.
    """
    seen = logits if hidden is None else np.where(hidden, -np.inf, logits)
    largest = seen.max(axis=-1, keepdims=True)
    if sinks is not None:
        largest = np.maximum(largest, sinks)
    largest[np.isneginf(largest)] = 0
    powers = np.subtract(seen, largest, out=None if hidden is None else seen)
    return np.exp(powers, out=powers), largest


def softmax_of(
    logits: FloatArray, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> Softmax:
    """Return the softmax of logits (…, n); `hidden` marks hidden keys, and `sink` broadcasts to the rows (…)."""
    if sink is None:
        powers, largest = exponentials(logits, hidden)
        share, total = 0.0, powers.sum(axis=-1, keepdims=True)
    else:
        sinks = np.expand_dims(np.asarray(sink, logits.dtype), -1)
        powers, largest = exponentials(logits, hidden, sinks)
        share = np.exp(sinks - largest)
        total = powers.sum(axis=-1, keepdims=True) + share
    with np.errstate(divide="ignore"):
        lse = np.log(total) + largest
    total[total == 0] = 1
    powers /= total
    return Softmax(powers, (share / total)[..., 0], lse[..., 0])


def softmax(
    logits: FloatArray, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> FloatArray:
    """Return the weights of `softmax_of`."""
    return softmax_of(logits, hidden, sink).weights


def shift_rows(scores: FloatArray, hidden: BoolArray | None = None, edge: slice = slice(None)) -> ShiftedRows:
    """Subtract from each row its largest visible score.

    `scores` (rows, n) is overwritten; `hidden` (rows, n) marks the hidden keys, none outside the `edge`.
    """
    rows = np.arange(len(scores))
    if hidden is None:
        visible = np.full(len(scores), scores.shape[1])
    else:
        visible = (scores.shape[1] - hidden[:, edge].sum(axis=1, dtype=np.int32)).astype(np.intp)
        np.copyto(scores[:, edge], np.finfo(scores.dtype).min, where=hidden[:, edge])
    argmax = scores.argmax(axis=1)
    largest = np.where(visible > 0, scores[rows, argmax], 0)
    if hidden is not None:
        np.copyto(scores[:, edge], largest[:, np.newaxis], where=hidden[:, edge])
    below = np.subtract(scores, largest[:, np.newaxis], out=scores)
    smallest = below[rows, below.argmin(axis=1)]  # several times faster than min here
    return ShiftedRows(below, hidden, largest, argmax, visible, smallest, edge)


def logits_below(shifted: ShiftedRows, multiplier: float, out: FloatArray | None = None) -> FloatArray:
    """Return multiplier·below (rows, n), clipped to FLOOR, below which a weight no longer counts."""
    below = shifted.below
    lowest, number = FLOOR[below.dtype], below.dtype.type
    if multiplier == 1:
        return np.clip(below, number(lowest), number(0), out=out)
    logits = np.multiply(below, number(multiplier), out=out)
    if multiplier * shifted.lowest < lowest:
        np.clip(logits, number(lowest), number(0), out=logits)
    return logits


def row_sums(logits: FloatArray, shifted: ShiftedRows, scratch: FloatArray | None = None) -> FloatArray:
    """Return the first visible key's E, r₁, r₂, r₃ and Σ' E·logit of each row; shape (5, rows).

    `logits` are from `logits_below` and are overwritten; `scratch` (rows, n) saves an allocation.
    """
    rows = np.arange(len(logits))
    powers = np.exp(logits, out=scratch)
    first_key = 0
    if shifted.hidden is not None:
        np.copyto(powers[:, shifted.edge], 0, where=shifted.hidden[:, shifted.edge])
        first_key = np.argmin(shifted.hidden, axis=1)
    sums = np.empty((5, len(powers)), powers.dtype)
    sums[0] = powers[rows, first_key]
    powers[rows, shifted.argmax] = 0
    np.vecdot(powers, logits, out=sums[4])
    np.matmul(powers, np.ones(powers.shape[1], powers.dtype), out=sums[1])
    np.vecdot(powers, powers, out=sums[2])
    np.vecdot(np.multiply(powers, powers, out=logits), powers, out=sums[3])
    return sums


def sink_power(sink: FloatArray) -> FloatArray:
    """Return t (…) of sink logits (…) minus the largest logit of their rows."""
    return np.exp(np.minimum(sink, HIGHEST_SINK, dtype=np.float64))


def row_statistics(
    sums: FloatArray, visible: FloatArray | npt.NDArray[np.intp], sink: FloatArray | None = None
) -> RowStatistics:
    """Return the statistics of rows from their `row_sums` (5, …) and the number of keys each row sees (…).

    `sink` (…) is the sink logit minus the largest logit of each row. Agrees with float64 references to 1e-12 if the
    sums are float64; the formulas are in the module's docstring.
    """
    first, r1, r2, r3, heat = sums.astype(np.float64, copy=False)
    t = 0.0 if sink is None else sink_power(sink)
    p1 = (visible > 0) / (1 + r1 + t)
    p2 = p1 * p1
    sum_squared = (1 + r2) * p2
    others = r1 + t
    # ‖J‖² = Σ p²((1 − p)² + Σp² − p²), with the largest entry separate: no cancellation.
    jacobian = p2 * (np.square(others * p1) + r2 * p2 + r2 * (1 + sum_squared) - 2 * r3 * p1)
    return RowStatistics(
        entropy=(1 + r1) * p1 * np.log1p(others) - heat * p1,
        max_weight=p1,
        sum_squared_weights=sum_squared,
        complement=(2 * r1 + r1 * r1 - r2 + t * (1 + r1)) * p2,
        first_key_weight=first * p1,
        jacobian_norm_squared=jacobian,
    )


def weight_statistics(
    weights: FloatArray, visible: FloatArray | npt.NDArray[np.intp], hidden: BoolArray | None = None
) -> RowStatistics:
    """Return the statistics of rows from their weights (rows, n), which need not sum to 1; all must be finite.

    `visible` (rows,) is the number of keys each row sees, and `hidden` (rows, n) marks the hidden keys, which have
    weight 0.
    """
    p = weights.astype(np.float64)
    squares = p * p
    sum_squared = squares.sum(axis=-1)
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    complement = 1 - p
    first = 0 if hidden is None else np.argmin(hidden, axis=-1)
    jacobian = np.square(complement)
    jacobian += sum_squared[:, np.newaxis] - squares
    seen = visible > 0
    return RowStatistics(
        entropy=seen * (0.0 - np.vecdot(p, logs)),
        max_weight=seen * p.max(axis=-1, initial=0),
        sum_squared_weights=seen * sum_squared,
        complement=seen * np.vecdot(p, complement),
        first_key_weight=seen * p[np.arange(len(p)), first],
        jacobian_norm_squared=seen * np.vecdot(squares, jacobian),
    )


def divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return KL(p ‖ q) in nats of rows of weights (…, n), which beside a sink need not sum to 1."""
    seen = p > 0
    gap = np.log(np.where(seen, p, 1)) - np.log(np.where(seen, np.maximum(q, _LEAST), 1))
    return np.asarray(np.vecdot(p, gap) - p.sum(axis=-1) + q.sum(axis=-1))


def moved(p: FloatArray, q: FloatArray) -> BoolArray:
    """Return for rows of weights (…, n) whether q is largest at another key than p, which is smaller in p."""
    there = np.take_along_axis(p, q.argmax(axis=-1, keepdims=True), axis=-1)[..., 0]
    return np.less(there, p.max(axis=-1) * (1 - 1e-2))
