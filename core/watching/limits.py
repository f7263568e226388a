"""A head near the limit of logits."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_LOGIT = "max_logit"  # the statistic that limits apply to: the largest |logit|
RECENT = 32  # steps that a growth rate is fitted to
_LARGEST = 690.0  # the logarithm of 1e300
LIMIT = 100.0  # of the largest |logit|: the threshold of QK-Clip in Kimi K2


@dataclass(frozen=True)
class HeadTrend:
    """One head at one step."""

    layer: int  # its row in the step's arrays
    head: int
    value: float  # the largest |logit|; infinite if it is not finite, NaN if the step has none of this head
    rate: float | None  # of ln(value) per step; None if it does not grow or shrink beyond its noise
    passes_in: float | None  # steps until the limit at this rate; 0 if it is passed; None if it never is
    limit: float
    peak: float  # the largest value up to this step
    peak_step: int  # the first step with that value
    first_over: int | None  # the first step over the limit, up to this one

    def growth(self, steps: int = 1000) -> float | None:
        """Return the factor over this number of steps at the rate, at most 1e300."""
        return None if self.rate is None else math.exp(min(self.rate * steps, _LARGEST))

    @property
    def over(self) -> bool:
        """Whether the limit is passed at this step."""
        return self.value > self.limit

    @property
    def came_back(self) -> bool:
        """Whether the limit was passed at an earlier step, but is not at this one."""
        return self.first_over is not None and not self.over
