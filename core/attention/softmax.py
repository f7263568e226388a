"""Softmax over visible keys and the statistics of its rows, without ever storing the weights.

Everything is computed from E = exp(c·(s − max s)) with the largest entry taken out, so that the sums of the
others r_k = Σ' E^k keep their full precision on one-hot rows, where 1 − max p is tiny:
Z = 1 + r₁ · max p = 1/Z · H = ln Z − Σ' E ln E / Z · Σp² = (1 + r₂)/Z² · 1 − Σp² = (2r₁ + r₁² − r₂)/Z².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray

# Below exp(FLOOR) a weight can no longer change a sum that contains the 1 of the largest entry, and its square
# is still a normal number: arithmetic on denormal ones is ten times slower.
_FLOOR = {np.dtype(np.float32): -29.0, np.dtype(np.float64): -230.0}


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


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """What softmax(c·scores) looks like, row by row; all arrays are float64 of one shape.

    A row that sees no key has no weights: all its entries are 0.
    """

    entropy: FloatArray  # nats
    max_weight: FloatArray
    sum_squared_weights: FloatArray
    complement: FloatArray  # 1 − Σp², the trace of the Jacobian
    first_key_weight: FloatArray
    jacobian_norm_squared: FloatArray


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
    lowest, number = _FLOOR[below.dtype], below.dtype.type
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


def row_statistics(sums: FloatArray, visible: FloatArray) -> RowStatistics:
    """The statistics of rows from their `row_sums` (5, …) and the number of keys that each sees (…).

    Agrees with float64 references to 1e-12 when the sums are float64; see the module's text for the formulas.
    """
    first, r1, r2, r3, heat = sums.astype(np.float64)
    p1 = 1 / (1 + r1)
    p2 = p1 * p1
    sum_squared = (1 + r2) * p2
    # ‖J‖² = Σ p²((1 − p)² + Σp² − p²), the largest entry apart: no term cancels.
    jacobian = p2 * ((r1 * r1 + r2) * p2 + r2 * (1 + sum_squared) - 2 * r3 * p1)
    seen = visible > 0
    return RowStatistics(
        entropy=seen * (np.log1p(r1) - heat * p1),
        max_weight=seen * p1,
        sum_squared_weights=seen * sum_squared,
        complement=seen * ((2 * r1 + r1 * r1 - r2) * p2),
        first_key_weight=seen * (first * p1),
        jacobian_norm_squared=seen * jacobian,
    )
