"""Counts of values on the axis of a histogram and within a band, and a survey of their mean, spread and extremes."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, Counts, FloatArray
from .histogram import BinAxis, Histogram

Chosen: TypeAlias = slice | npt.NDArray[np.intp]  # indices of rows

_GOLDEN = (math.sqrt(5) - 1) / 2


def count(
    values: FloatArray,
    axis: BinAxis,
    factor: float = 1.0,
    shift: FloatArray | float = 0.0,
    hidden: BoolArray | None = None,
) -> Counts:
    """Return the counts (bins + 2,) of factor·values + shift on an axis: below it, in each bin, above it.

    `shift` broadcasts to the values, which are overwritten, and `hidden` marks those that are left out.

    One pass of `bincount` over bin numbers is several times faster than np.histogram, which searches edges. The axis
    is treated as a millionth longer, so that both its ends belong to it after rounding.
    """
    number = values.dtype.type
    per_unit = axis.bins / (axis.high - axis.low) * (1 - 1e-6)
    position = np.multiply(values, number(per_unit * factor), out=values)
    position += np.asarray(1 + 5e-7 * axis.bins + (shift - axis.low) * per_unit, values.dtype)
    position.clip(number(0), number(axis.bins + 1), out=position)
    position = position if hidden is None else position[~hidden]
    return np.bincount(position.ravel().astype(np.uint16), minlength=axis.bins + 2)


def histogram(counts: Counts, axis: BinAxis) -> Histogram:
    """Return the histogram of counts from `count`, or of a sum of such counts."""
    return Histogram(axis, array("q", counts.cumsum().tobytes()))


def count_inside(
    band: float,
    draws: int,
    scores: FloatArray,
    hidden: BoolArray | None,
    offsets: FloatArray | None,
    out: FloatArray,
    edge: slice = slice(None),
) -> FloatArray:
    """Count, for each draw, the visible scores (rows of all draws, n) within ±band.

    `offsets` (rows,) are still to be added to the scores. `out`, of their shape, is overwritten. No key outside the
    `edge` is hidden.
    """
    inside: BoolArray
    if offsets is None:
        inside = np.abs(scores, out=out) <= scores.dtype.type(band)
    else:
        own = offsets[:, np.newaxis]
        inside = (scores >= (-band - own).astype(scores.dtype)) & (scores <= (band - own).astype(scores.dtype))
    if hidden is not None:
        inside[:, edge] &= ~hidden[:, edge]
    return np.array([np.count_nonzero(draw) for draw in inside.reshape(draws, -1)], np.float64)


@lru_cache(maxsize=64)
def counted_rows(every: int, first: int, rows: int) -> npt.NDArray[np.intp] | None:
    """Select which of `rows` rows, starting at row `first` of all draws, are counted: one in each group of `every`.

    Its position in the group advances by the golden ratio, so that under a causal mask every position is counted in
    turn, whatever common factors the sizes have.
    """
    groups = np.arange(first // every, (first + rows - 1) // every + 1)
    chosen = groups * every + (groups * _GOLDEN % 1 * every).astype(np.intp) - first
    chosen = chosen[(chosen >= 0) & (chosen < rows)]
    return chosen if chosen.size else None


@dataclass
class RunningStatistics:
    """Running statistics of the numbers added so far."""

    count: int = 0
    low: float = math.inf
    high: float = -math.inf
    _pilot: float = 0.0  # the first block's mean; sums are taken about it, so that a large mean costs no digits
    _total: float = 0.0
    _squares: float = 0.0

    def add(self, values: FloatArray) -> None:
        """Add finite numbers of any shape."""
        if not values.size:
            return
        if not self.count:
            self._pilot = float(values.mean(dtype=np.float64))
        away = values - values.dtype.type(self._pilot)
        self.count += away.size
        self._total += float(away.sum(dtype=np.float64))
        self._squares += float(np.square(away, dtype=np.float64).sum())
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def add_rows(
        self, below: FloatArray, offsets: FloatArray, hidden: BoolArray | None, edge: slice = slice(None)
    ) -> None:
        """Add numbers below + offsets of rows, (…, n) and (…), without those `hidden` (…, n), which are 0 in `below`.

        The sums are exact to float64, whatever the format of `below`. A hidden 0 may widen the extremes of its row.
        No key outside the `edge` is hidden.
        """
        if not self.count:
            self._pilot = float(offsets.mean())
        moved, n = offsets - self._pilot, below.shape[-1]
        seen = np.full(moved.shape, n) if hidden is None else n - hidden[..., edge].sum(axis=-1, dtype=np.int32)
        if not np.any(seen):
            return
        first: FloatArray = (below @ np.ones(n, below.dtype)).astype(np.float64)
        second: FloatArray = np.vecdot(below, below).astype(np.float64)
        self.count += int(np.sum(seen))
        self._total += float(np.sum(first + seen * moved))
        self._squares += float(np.sum(second + 2 * moved * first + seen * moved * moved))
        # argmin and argmax are several times faster than min and max here
        rows, every = below.reshape(-1, n), np.arange(moved.size)
        low, high = (
            (rows[every, at].reshape(moved.shape) + moved)[seen > 0]
            for at in (rows.argmin(axis=1), rows.argmax(axis=1))
        )
        self.low = min(self.low, float(low.min()) + self._pilot)
        self.high = max(self.high, float(high.max()) + self._pilot)

    @property
    def centre(self) -> float:
        """The mean; 0 if empty."""
        return self._pilot + self._total / self.count if self.count else 0.0

    @property
    def std(self) -> float:
        """The population standard deviation; NaN if empty."""
        if not self.count:
            return math.nan
        return math.sqrt(max(self._squares / self.count - (self._total / self.count) ** 2, 0.0))

    def axis(self, bins: int, margin: float = 1e-6) -> BinAxis:
        """Return an axis for all numbers added, less their mean, with a margin at each end, a share of its length."""
        reach = max(self.high - self.centre, self.centre - self.low) * (1 + margin) if self.count else 1.0
        return BinAxis(-reach or -1.0, reach or 1.0, bins)
