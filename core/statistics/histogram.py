"""A histogram that owns its axis, its counts and what fell outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ..arrays import Counts, FloatArray


@dataclass(frozen=True)
class Axis:
    """Equal bins from low to high. With `log10` low, high and the values are decimal exponents of what is counted."""

    low: float
    high: float
    bins: int
    log10: bool = False

    def scaled(self, multiplier: float) -> Axis:
        """The axis of multiplier·x, for a positive multiplier."""
        return Axis(self.low * multiplier, self.high * multiplier, self.bins, self.log10)

    @property
    def edges(self) -> FloatArray:
        """The edges of the bins, shape (bins + 1,)."""
        return _edges(self.low, self.high, self.bins)


@lru_cache(maxsize=64)
def _edges(low: float, high: float, bins: int) -> FloatArray:
    """Kept, because most axes are those of the measurement before."""
    edges = np.linspace(low, high, bins + 1)
    edges.flags.writeable = False
    return edges


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts (bins,) on an axis, and the counts below and above it."""

    axis: Axis
    counts: Counts
    underflow: int = 0
    overflow: int = 0

    @cached_property
    def total(self) -> int:
        """Everything that was counted, in and out of the axis."""
        return int(self.counts.sum()) + self.underflow + self.overflow

    def __add__(self, other: Histogram) -> Histogram:
        """The histogram of both sets of values; exact, in whatever order parts are added."""
        if self.axis != other.axis:
            raise ValueError(f"histograms on different axes cannot be added: {self.axis} and {other.axis}")
        return Histogram(
            self.axis, self.counts + other.counts, self.underflow + other.underflow, self.overflow + other.overflow
        )

    def scaled(self, multiplier: float) -> Histogram:
        """The histogram of multiplier·x, for a positive multiplier: the same counts on a stretched axis."""
        return Histogram(self.axis.scaled(multiplier), self.counts, self.underflow, self.overflow)

    def below(self, x: npt.ArrayLike) -> FloatArray:
        """How many values lie below each x, taken as evenly spread within a bin; in and out of the axis."""
        points = np.asarray(x, dtype=np.float64)
        return np.interp(points, self.axis.edges, self._cumulative, left=0.0, right=self.total)

    def onto(self, edges: npt.ArrayLike) -> FloatArray:
        """The counts between given increasing edges, parts of a bin in proportion; shape (len(edges) − 1,)."""
        return np.diff(self.below(edges))

    def quantiles(self, shares: npt.ArrayLike) -> FloatArray:
        """Where the given shares of all counts lie below; an end of the axis for what lies outside it."""
        wanted = np.asarray(shares) * self.total
        return np.interp(wanted, self._cumulative, self.axis.edges)

    @cached_property
    def _cumulative(self) -> FloatArray:
        cumulative = np.zeros(len(self.counts) + 1)
        np.cumsum(self.counts, out=cumulative[1:])
        cumulative += self.underflow
        return cumulative


def count(values: FloatArray, axis: Axis) -> Counts:
    """Counts (bins + 2,) of values on an axis: what lies below it, its bins, what lies above it.

    One pass of `bincount` over bin numbers: several times faster than np.histogram, which searches edges. The
    axis counts as a millionth longer than it is, so that both its ends, rounded, belong to it.
    """
    number = values.dtype.type
    per_unit = axis.bins / (axis.high - axis.low) * (1 - 1e-6)
    position = np.multiply(values, number(per_unit))
    position += number(1 + 5e-7 * axis.bins - axis.low * per_unit)
    np.clip(position, 0, number(axis.bins + 1), out=position)
    return np.bincount(position.ravel().astype(np.uint16), minlength=axis.bins + 2)


def histogram(counts: Counts, axis: Axis) -> Histogram:
    """The histogram of what `count` returned, or of a sum of such counts."""
    return Histogram(axis, counts[1:-1].copy(), int(counts[0]), int(counts[-1]))
