"""Softmax over visible keys: its weights, and the statistics of its rows without ever storing the weights.

The statistics are computed from E = exp(c·(s − max s)) with the largest entry taken out, so that the sums of the
others r_k = Σ' E^k keep their full precision on one-hot rows, where 1 − max p is tiny. With t = exp(σ − c·max s)
for a sink logit σ, and t = 0 without one:
Z = 1 + r₁ + t · max p = 1/Z · H = −Σ p ln p = ((1 + r₁) ln Z − Σ' E ln E)/Z · Σp² = (1 + r₂)/Z² ·
Σp − Σp² = (2r₁ + r₁² − r₂ + t(1 + r₁))/Z².

A sink is a logit of no key: it takes its share of the weight and gives nothing to the output, so that the weights of
the keys sum to less than 1 (GPT-OSS learns one for each head; 0 is the off-by-one softmax).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray

# No sink is further above a row's largest logit than this: all weights of the row are 0 long before.
HIGHEST_SINK = 700.0

# Below exp(FLOOR) a weight can no longer change a sum that contains the 1 of the largest entry, and its square
# is still a normal number: arithmetic on denormal ones is ten times slower.
FLOOR = {np.dtype(np.float32): -29.0, np.dtype(np.float64): -230.0}


@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """Scores of some rows, each less the largest that its row sees."""

    below: FloatArray  # (rows, n), ≤ 0; 0 where hidden
    hidden: BoolArray | None  # (rows, n)
    largest: FloatArray  # (rows,) the score that was subtracted; 0 for a row that sees no key
    argmax: npt.NDArray[np.intp]  # (rows,)
    smallest: FloatArray  # (rows,) the smallest that each row sees; 0 for a row that sees no key
    visible: npt.NDArray[np.intp]  # (rows,) keys that each row sees

    @property
    def lowest(self) -> float:
        """The smallest entry of `below`."""
        return float((self.smallest - self.largest).min(initial=0))

    def only(self, rows: slice | npt.NDArray[np.intp]) -> ShiftedRows:
        """Some of these rows; a slice of them in the same memory."""
        hidden = None if self.hidden is None else self.hidden[rows]
        return ShiftedRows(
            self.below[rows], hidden, self.largest[rows], self.argmax[rows], self.smallest[rows], self.visible[rows]
        )


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """What softmax(c·scores) looks like, row by row; all arrays are float64 of one shape.

    A row that sees no key has no weights: all its entries are 0.
    """

    entropy: FloatArray  # −Σ p ln p over the keys, in nats
    max_weight: FloatArray
    sum_squared_weights: FloatArray
    complement: FloatArray  # Σ p(1 − p), the trace of the Jacobian: 1 − Σp² without a sink
    first_key_weight: FloatArray
    jacobian_norm_squared: FloatArray


def softcap(logits: FloatArray, cap: float, out: FloatArray | None = None) -> FloatArray:
    """cap·tanh(logits/cap), as Gemma 2 does after the scale and before the mask; every logit then lies in ±cap."""
    capped = np.tanh(np.divide(logits, logits.dtype.type(cap), out=out), out=out)
    return np.multiply(capped, logits.dtype.type(cap), out=out)


def softmax(
    logits: FloatArray, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> FloatArray:
    """Attention weights (…, n) of logits (…, n); a row that sees no key has weights 0.

    hidden broadcasts to the logits and marks keys that a row may not see. sink broadcasts to the rows (…).
    """
    return softmax_and_sink(logits, hidden, sink)[0]


def softmax_and_sink(
    logits: FloatArray, hidden: BoolArray | None = None, sink: FloatArray | float | None = None
) -> tuple[FloatArray, FloatArray]:
    """The weights of `softmax` and the share (…) of each row that its sink takes."""
    seen = logits if hidden is None else np.where(hidden, -np.inf, logits)
    largest = seen.max(axis=-1, keepdims=True)
    sinks = np.full_like(largest, -np.inf)
    if sink is not None:
        sinks[..., 0] = sink
        largest = np.maximum(largest, sinks)
    largest[np.isneginf(largest)] = 0
    powers, sinks = seen - largest, np.exp(sinks - largest)
    np.exp(powers, out=powers)
    total = powers.sum(axis=-1, keepdims=True) + sinks
    total[total == 0] = 1
    powers /= total
    return powers, (sinks / total)[..., 0]


def shift_rows(scores: FloatArray, hidden: BoolArray | None = None) -> ShiftedRows:
    """Subtract from each row the largest score that it sees.

    scores (rows, n) is taken over and overwritten; hidden (rows, n) marks the keys that a row may not see.
    """
    rows = np.arange(len(scores))
    if hidden is None:
        visible = np.full(len(scores), scores.shape[1])
    else:
        visible = scores.shape[1] - np.count_nonzero(hidden, axis=1)
        np.copyto(scores, np.finfo(scores.dtype).min, where=hidden)
    argmax = scores.argmax(axis=1)
    largest = np.where(visible > 0, scores[rows, argmax], 0)
    if hidden is not None:
        np.copyto(scores, largest[:, np.newaxis], where=hidden)
    smallest = scores[rows, scores.argmin(axis=1)]  # argmin is several times faster than min here
    below = np.subtract(scores, largest[:, np.newaxis], out=scores)
    return ShiftedRows(below, hidden, largest, argmax, smallest, visible)


def logits_below(shifted: ShiftedRows, multiplier: float, out: FloatArray | None = None) -> FloatArray:
    """multiplier·below, but nowhere less than where a weight stops to count; shape (rows, n)."""
    below = shifted.below
    lowest, number = FLOOR[below.dtype], below.dtype.type
    if multiplier == 1:
        return np.clip(below, number(lowest), number(0), out=out)
    logits = np.multiply(below, number(multiplier), out=out)
    if multiplier * shifted.lowest < lowest:
        np.clip(logits, number(lowest), number(0), out=logits)
    return logits


def row_sums(logits: FloatArray, shifted: ShiftedRows, scratch: FloatArray | None = None) -> FloatArray:
    """The first visible key's E, r₁, r₂, r₃ and Σ' E·logit of each row; shape (5, rows).

    logits are `logits_below` and are overwritten; scratch (rows, n) saves an allocation.
    """
    rows = np.arange(len(logits))
    powers = np.exp(logits, out=scratch)
    first_key = 0
    if shifted.hidden is not None:
        np.copyto(powers, 0, where=shifted.hidden)
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
    """t (…) of sinks (…) less the largest logit of their rows."""
    return np.exp(np.minimum(sink, HIGHEST_SINK, dtype=np.float64))


def row_statistics(sums: FloatArray, visible: FloatArray, sink: FloatArray | None = None) -> RowStatistics:
    """The statistics of rows from their `row_sums` (5, …) and the number of keys that each sees (…).

    sink (…) is the sink logit less the largest logit of each row. Agrees with float64 references to 1e-12 when the
    sums are float64; see the module's text for the formulas.
    """
    first, r1, r2, r3, heat = sums.astype(np.float64)
    t = 0.0 if sink is None else sink_power(sink)
    p1 = 1 / (1 + r1 + t)
    p2 = p1 * p1
    sum_squared = (1 + r2) * p2
    others = r1 + t
    # ‖J‖² = Σ p²((1 − p)² + Σp² − p²), the largest entry apart: no term cancels.
    jacobian = p2 * (np.square(others * p1) + r2 * p2 + r2 * (1 + sum_squared) - 2 * r3 * p1)
    seen = visible > 0
    return RowStatistics(
        entropy=seen * ((1 + r1) * p1 * np.log1p(others) - heat * p1),
        max_weight=seen * p1,
        sum_squared_weights=seen * sum_squared,
        complement=seen * ((2 * r1 + r1 * r1 - r2 + t * (1 + r1)) * p2),
        first_key_weight=seen * (first * p1),
        jacobian_norm_squared=seen * jacobian,
    )
