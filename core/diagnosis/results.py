"""The verdict on a head, as plain values; this module does not need NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .causes.stages import StageName

Word: TypeAlias = Literal["healthy", "cause", "undecided", "unexplained", "no-evidence"]


@dataclass(frozen=True)
class Expected:
    """The multiplier that a head should have had, and the words for where it comes from."""

    multiplier: float
    words: str
    assumed: bool = False


@dataclass(frozen=True)
class Consequence:
    """Means over rows: as attention was, and as the file says with the expected multiplier."""

    entropy: float  # nats
    expected_entropy: float
    max_weight: float
    expected_max_weight: float
    # KL(as it was ‖ as expected) in nats, a sink included; if only one of the two has a sink, that of the weights on
    # keys over their sum. Expected weights below 1e-45 count as that.
    divergence: float
    changed_rows: float  # share of rows whose largest weight is on another key


@dataclass(frozen=True)
class Finding:
    """One thing that was done to a head."""

    cause: str
    says: str
    also: tuple[str, ...] = ()  # causes that explain the evidence as well
    stage: StageName = "multiplier"  # at which it acts


@dataclass(frozen=True)
class Verdict:
    """What was done to a head, as far as the evidence tells."""

    verdict: Word
    says: str
    expected: Expected
    findings: tuple[Finding, ...] = field(default=(), repr=False)  # in the order of computing
    maybe: tuple[str, ...] = ()  # causes that would explain an undecided head
    evidence: str | None = None
    multiplier: float | None = None
    multiplier_error: float | None = None
    misfit: float | None = None  # in units of rounding
    consequence: Consequence | None = field(default=None, repr=False)

    @property
    def cause(self) -> str | None:
        """The first cause."""
        return self.findings[0].cause if self.findings else None

    @property
    def also(self) -> tuple[str, ...]:
        """Causes that explain the evidence as well as the first one."""
        return self.findings[0].also if self.findings else self.maybe

    @property
    def is_wrong(self) -> bool:
        """Whether the evidence contradicts what the file says."""
        return self.verdict in ("cause", "unexplained")

    @property
    def is_unusual(self) -> bool:
        """Whether a recorded multiplier is not 1/√d_k, and nothing says what is intended."""
        return self.verdict == "undecided" and bool(self.also)

    @property
    def ratio(self) -> float | None:
        """The multiplier over the expected one; None if the evidence does not tell it."""
        return None if self.multiplier is None else self.multiplier / self.expected.multiplier
