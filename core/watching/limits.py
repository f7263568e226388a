"""A head near the limit of logits."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LOGIT = "max_logit"  # the statistic that limits apply to: the largest |logit|
LIMIT = 100.0  # of the largest |logit|: the threshold of QK-Clip in Kimi K2


@dataclass(frozen=True)
class Offender:
    """One head at one step."""

    layer: int  # its row in the step's arrays
    head: int
    value: float  # the largest |logit|; infinite if it is not finite
    growth: float | None  # the factor per 1,000 steps; None if it does not grow or shrink beyond its noise
    passes_in: float | None  # steps until the limit at this rate; 0 if it is passed; None if it never is
    limit: float

    @property
    def over(self) -> bool:
        """Whether the limit is passed."""
        return self.value > self.limit
