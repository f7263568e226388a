"""A histogram: its axis, and how many values lie below each edge of its bins.

It holds plain numbers, because drawing one needs only a few dozen values and the app draws its first histograms
before NumPy is loaded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class BinAxis(NamedTuple):
    """Equal bins from `low` to `high`. With `log10`, these bounds and the values are decimal exponents."""

    low: float
    high: float
    bins: int
    log10: bool = False

    def scaled(self, multiplier: float) -> BinAxis:
        """Return the axis of multiplier·x, for a positive multiplier."""
        return BinAxis(self.low * multiplier, self.high * multiplier, self.bins, self.log10)


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values lie below each edge of the bins of an axis: counts, or shares where only the law is known."""

    axis: BinAxis
    cumulative: Sequence[float]  # below each of bins + 1 edges, and of all values

    @property
    def total(self) -> float:
        """The number of values, inside and outside the axis."""
        return self.cumulative[-1]

    @property
    def counts(self) -> list[float]:
        """The number of values in each bin."""
        return [above - below for below, above in pairwise(self.cumulative[:-1])]

    @property
    def underflow(self) -> float:
        """The number of values below the axis."""
        return self.cumulative[0]

    @property
    def overflow(self) -> float:
        """The number of values above the axis."""
        return self.cumulative[-1] - self.cumulative[-2]

    def scaled(self, multiplier: float) -> Histogram:
        """Return the histogram of multiplier·x, for a positive multiplier: the same counts on a scaled axis."""
        return Histogram(self.axis.scaled(multiplier), self.cumulative)

    def below(self, x: Iterable[float]) -> list[float]:
        """Return the number of values below each x, taking them as evenly spread within a bin."""
        low, high, cumulative = self.axis.low, self.axis.high, self.cumulative
        per_unit = self.axis.bins / (high - low)
        return [
            (0 if each < low else cumulative[-1])
            if not low <= each <= high
            else (under := cumulative[at := int(bins := (each - low) * per_unit)])
            + (bins - at) * (cumulative[at + 1] - under)
            for each in x
        ]

    def onto(self, edges: Iterable[float]) -> list[float]:
        """Return the counts between increasing edges, one fewer than edges, splitting bins in proportion."""
        return [above - below for below, above in pairwise(self.below(edges))]

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """Return the values below which the given shares of all counts lie, clamped to the axis."""
        low, high, cumulative = self.axis.low, self.axis.high, self.cumulative
        width = (high - low) / self.axis.bins
        found: list[float] = []
        for share in shares:
            rank = share * self.total
            if cumulative[0] <= rank < cumulative[-2]:
                at = bisect_right(cumulative, rank) - 1
                found.append(low + width * (at + (rank - cumulative[at]) / (cumulative[at + 1] - cumulative[at])))
            else:
                found.append(low if rank < cumulative[0] else high)
        return found
