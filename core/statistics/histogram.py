"""A histogram: its axis, its counts and the counts outside the axis.

It holds plain numbers, because drawing one needs only a few dozen values and the app draws its first histograms
before NumPy is loaded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise


@dataclass(frozen=True)
class Axis:
    """Equal bins from `low` to `high`. With `log10`, these bounds and the values are decimal exponents."""

    low: float
    high: float
    bins: int
    log10: bool = False

    def scaled(self, multiplier: float) -> Axis:
        """Return the axis of multiplier·x, for a positive multiplier."""
        return Axis(self.low * multiplier, self.high * multiplier, self.bins, self.log10)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts for each bin of an axis, and the counts below and above the axis."""

    axis: Axis
    counts: Sequence[int]
    underflow: int = 0
    overflow: int = 0

    @cached_property
    def total(self) -> int:
        """The number of values, inside and outside the axis."""
        return self._cumulative[-1] + self.overflow

    def scaled(self, multiplier: float) -> Histogram:
        """Return the histogram of multiplier·x, for a positive multiplier: the same counts on a scaled axis."""
        return Histogram(self.axis.scaled(multiplier), self.counts, self.underflow, self.overflow)

    def below(self, x: Iterable[float]) -> list[float]:
        """Return the number of values below each x, taking them as evenly spread within a bin."""
        low, high, counts, cumulative = self.axis.low, self.axis.high, (*self.counts, 0), self._cumulative
        per_unit, everything = len(self.counts) / (high - low), float(self.total)
        return [
            (0.0 if each < low else everything)
            if not low <= each <= high
            else cumulative[at := int(bins := (each - low) * per_unit)] + (bins - at) * counts[at]
            for each in x
        ]

    def onto(self, edges: Iterable[float]) -> list[float]:
        """Return the counts between increasing edges, one fewer than edges, splitting bins in proportion."""
        return [above - below for below, above in pairwise(self.below(edges))]

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """Return the values below which the given shares of all counts lie, clamped to the axis."""
        low, high, counts, cumulative = self.axis.low, self.axis.high, self.counts, self._cumulative
        width = (high - low) / len(counts)
        found: list[float] = []
        for share in shares:
            rank = share * self.total
            if cumulative[0] <= rank < cumulative[-1]:
                at = bisect_right(cumulative, rank) - 1
                found.append(low + width * (at + (rank - cumulative[at]) / counts[at]))
            else:
                found.append(low if rank < cumulative[0] else high)
        return found

    @cached_property
    def _cumulative(self) -> Sequence[int]:
        """The counts below each edge."""
        return [*accumulate(self.counts, initial=self.underflow)]


def interpolated(at: Iterable[float], x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Interpolate linearly between the points (x, y) at each `at`, like `numpy.interp`; x must not decrease."""
    first, last = x[0], x[-1]
    return [
        (y[0] if each < first else y[-1])
        if not first <= each < last
        else (y0 := y[(n := bisect_right(x, each)) - 1]) + (y[n] - y0) * (each - x[n - 1]) / (x[n] - x[n - 1])
        for each in at
    ]
