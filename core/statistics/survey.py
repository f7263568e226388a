"""Mean, spread and extremes of numbers that arrive in blocks, which a tally needs in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
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

    def axis(self, bins: int) -> Axis:
        """Return an axis for all numbers added, less their mean."""
        reach = max(self.high - self.centre, self.centre - self.low) * (1 + 1e-6) if self.count else 1.0
        return Axis(-reach or -1.0, reach or 1.0, bins)
