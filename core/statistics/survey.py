"""Mean, spread and extremes of numbers that arrive in blocks, which a tally needs in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray
from .histogram import Axis


@dataclass
class Survey:
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

    def add_rows(self, below: FloatArray, offsets: FloatArray, hidden: BoolArray | None) -> None:
        """Add numbers below + offsets of rows, (…, n) and (…), without those `hidden` (…, n), which are 0 in `below`.

        The sums are exact to float64, whatever the format of `below`. A hidden 0 may widen the extremes of its row.
        """
        if not self.count:
            self._pilot = float(offsets.mean())
        own, n = offsets - self._pilot, below.shape[-1]
        seen = np.full(own.shape, n) if hidden is None else n - np.count_nonzero(hidden, axis=-1)
        if not np.any(seen):
            return
        first: FloatArray = (below @ np.ones(n, below.dtype)).astype(np.float64)
        second: FloatArray = np.vecdot(below, below).astype(np.float64)
        self.count += int(np.sum(seen))
        self._total += float(np.sum(first + seen * own))
        self._squares += float(np.sum(second + 2 * own * first + seen * own * own))
        # argmin and argmax are several times faster than min and max here
        low, high = (
            (np.take_along_axis(below, at[..., np.newaxis], axis=-1)[..., 0] + own)[seen > 0]
            for at in (below.argmin(axis=-1), below.argmax(axis=-1))
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

    def axis(self, bins: int, margin: float = 1e-6) -> Axis:
        """Return an axis for all numbers added, less their mean, with a margin at each end, a share of its length."""
        reach = max(self.high - self.centre, self.centre - self.low) * (1 + margin) if self.count else 1.0
        return Axis(-reach or -1.0, reach or 1.0, bins)
