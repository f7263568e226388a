"""A histogram that owns its axis, its counts and what fell outside.

Counting uses the top sixteen bits of a float32 as the bin: sign, exponent and seven bits of the mantissa.
Every bin is less than 0.8 % wide, the axis is the same for all data and known beforehand, so counts of any
two parts add up exactly, whatever the order or the split, and no pass over the data has to find a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Counts, FloatArray

BINS = 1 << 16


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts between increasing edges; `edges` has one entry more than `counts`."""

    edges: FloatArray
    counts: Counts
    underflow: int = 0  # below the first edge
    overflow: int = 0  # at or above the last edge

    @property
    def total(self) -> int:
        """Everything that was counted, in and out of the axis."""
        return int(self.counts.sum()) + self.underflow + self.overflow

    def scaled(self, multiplier: float) -> Histogram:
        """The histogram of multiplier·x, for a positive multiplier: the same counts on a stretched axis."""
        return Histogram(self.edges * multiplier, self.counts, self.underflow, self.overflow)

    def shifted(self, offset: float) -> Histogram:
        """The histogram of x + offset."""
        return Histogram(self.edges + offset, self.counts, self.underflow, self.overflow)

    def cumulative(self, x: npt.ArrayLike) -> FloatArray:
        """How many counts lie below each x, taking counts as evenly spread within their bin."""
        below = np.concatenate(([0.0], np.cumsum(self.counts))) + self.underflow
        points = np.asarray(x, dtype=np.float64)
        inside = np.interp(points, self.edges, below)
        return np.where(points < self.edges[0], 0.0, np.where(points > self.edges[-1], float(self.total), inside))

    def onto(self, edges: FloatArray) -> FloatArray:
        """The counts that fall between the given increasing edges, parts of a bin in proportion; shape (len − 1,)."""
        return np.diff(self.cumulative(edges))


def count_floats(values: npt.NDArray[np.float32]) -> Counts:
    """How many values fall in each of the 65 536 bins of the universal axis; NaN is counted nowhere.

    Shape (BINS,), indexed by the top sixteen bits of the float32 pattern; `histogram` puts them in order.
    """
    top = np.ascontiguousarray(values).view(np.uint16)[..., _TOP_HALF::2]
    counts = np.bincount(top.ravel(), minlength=BINS)
    counts[_NAN] = 0
    return counts


def histogram(counts: Counts) -> Histogram:
    """The counts of the universal axis as a histogram from the first to the last bin that holds any.

    Infinities become under- and overflow.
    """
    negative, positive = counts[_NEGATIVE][::-1], counts[_POSITIVE]
    ordered = np.concatenate((negative, positive))
    filled = np.flatnonzero(ordered)
    if filled.size == 0:
        first, last = negative.size, negative.size + 1  # an empty histogram around zero
    else:
        first, last = int(filled[0]), int(filled[-1]) + 1
    return Histogram(_EDGES[first : last + 1], ordered[first:last], int(counts[0xFF80]), int(counts[0x7F80]))


def _edges() -> FloatArray:
    """The edges of the universal axis in increasing order: finite patterns from −max through 0 to +max."""
    magnitudes = (np.arange(0x7F81, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    magnitudes[-1] = 2.0**128
    return np.concatenate((-magnitudes[:0:-1], magnitudes))


_TOP_HALF = 1 if np.little_endian else 0
_POSITIVE = slice(0x0000, 0x7F80)
_NEGATIVE = slice(0x8000, 0xFF80)
_NAN = np.concatenate((np.arange(0x7F81, 0x8000), np.arange(0xFF81, 0x10000)))
_EDGES = _edges()
