"""A histogram that owns its axis, its counts and what fell outside.

Whoever draws one needs a few dozen values of it, so it is made of plain numbers: the app shows its first histograms
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
    """Equal bins from low to high. With `log10` low, high and the values are decimal exponents of what is counted."""

    low: float
    high: float
    bins: int
    log10: bool = False

    def scaled(self, multiplier: float) -> Axis:
        """The axis of multiplier·x, for a positive multiplier."""
        return Axis(self.low * multiplier, self.high * multiplier, self.bins, self.log10)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts, one for each bin of an axis, and the counts below and above it."""

    axis: Axis
    counts: Sequence[int]
    underflow: int = 0
    overflow: int = 0

    @cached_property
    def total(self) -> int:
        """Everything that was counted, in and out of the axis."""
        return self._cumulative[-1] + self.overflow

    def __add__(self, other: Histogram) -> Histogram:
        """The histogram of both sets of values; exact, in whatever order parts are added."""
        if self.axis != other.axis:
            raise ValueError(f"histograms on different axes cannot be added: {self.axis} and {other.axis}")
        counts = tuple(one + two for one, two in zip(self.counts, other.counts, strict=True))
        return Histogram(self.axis, counts, self.underflow + other.underflow, self.overflow + other.overflow)

    def scaled(self, multiplier: float) -> Histogram:
        """The histogram of multiplier·x, for a positive multiplier: the same counts on a stretched axis."""
        return Histogram(self.axis.scaled(multiplier), self.counts, self.underflow, self.overflow)

    def below(self, x: Iterable[float]) -> list[float]:
        """How many values lie below each x, taken as evenly spread within a bin; in and out of the axis."""
        low, high, counts, cumulative = self.axis.low, self.axis.high, self.counts, self._cumulative
        last, per_unit, everything = len(counts) - 1, len(counts) / (high - low), float(self.total)
        found: list[float] = []
        for each in x:
            if low <= each <= high:
                bins = (each - low) * per_unit
                at = min(int(bins), last)
                found.append(cumulative[at] + (bins - at) * counts[at])
            else:
                found.append(0.0 if each < low else everything)
        return found

    def onto(self, edges: Iterable[float]) -> list[float]:
        """The counts between given increasing edges, parts of a bin in proportion; one less than edges."""
        return [above - below for below, above in pairwise(self.below(edges))]

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """Where the given shares of all counts lie below; an end of the axis for what lies outside it."""
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
