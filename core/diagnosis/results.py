"""What is found of a head, as plain values: the verdict, and its attention. This module does not need NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NewType, TypeAlias

from ..message import joined, message
from ..parameters import Value

if TYPE_CHECKING:
    from ..captures.capture import Layer

# The stages of attention at which causes act and heads differ, in the order of computing, and the words for them.
StageName: TypeAlias = Literal[
    "qk", "multiplier", "softcap", "bias", "mask", "sink", "lse", "weights", "v", "o"
]  # fmt: skip
STAGES: dict[StageName, str] = {
    "qk": "q·kᵀ",
    "multiplier": "multiplier",
    "softcap": "soft-cap",
    "bias": "bias",
    "mask": "mask",
    "sink": "sink",
    "lse": "log-sum-exp",
    "weights": "weights",
    "v": "values",
    "o": "output",
}
ORDER: tuple[StageName, ...] = tuple(STAGES)
Word: TypeAlias = Literal["healthy", "cause", "undecided", "unexplained", "no-evidence"]
# What q·k was multiplied by in all: the factors inside q and k times what was applied to their product. No other
# multiplier is told to people.
Product = NewType("Product", float)


def amount(multiplier: float) -> str:
    """Return `× 0.1768`: four digits, everywhere."""
    return message("× {multiplier:.4g}", multiplier=multiplier)


@dataclass(frozen=True)
class Expected:
    """The multiplier that a head should have had, and the words for where it comes from."""

    start: float  # the multiplier of q·k as stored; if that is not known, what a fit starts from
    words: str
    assumed: bool = False
    unknown: str = ""  # why it is not known
    inside: float = 1.0  # the factors in the stored q and k, multiplied
    formula: str = ""  # of d_k, such as 1/√64, if it is one

    @property
    def multiplier(self) -> Product | None:
        """What q·k should have been multiplied by in all; None if it is not known."""
        return None if self.unknown else Product(self.start * self.inside)

    @property
    def says(self) -> str:
        """The multiplier and its formula: `× 0.125 = 1/√64`; empty if it is not known."""
        if self.multiplier is None:
            return ""
        return joined([amount(self.multiplier), *([self.formula] if self.formula else [])], " = ")


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
    # The mean over rows of the largest weight, the second, …, at most 64; JSON has none.
    row: tuple[float, ...] = ()
    expected_row: tuple[float, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that was done to a head."""

    cause: str
    says: str  # why; what q·k is multiplied by stands in the verdict
    also: tuple[str, ...] = ()  # causes that explain the evidence as well
    stage: StageName = "multiplier"  # at which it acts
    born: bool = False  # whether it began in this layer for sure, whatever earlier ones did


def is_of_scale(finding: Finding) -> bool:
    """Return whether a cause is that q·k was multiplied by another number than expected."""
    return finding.stage == "multiplier" and "-by-" not in finding.cause


@dataclass(frozen=True)
class Verdict:
    """What was done to a head, as far as the evidence tells."""

    word: Word
    says: str
    expected: Expected
    findings: tuple[Finding, ...] = field(default=(), repr=False)  # in the order of computing
    maybe: tuple[str, ...] = ()  # causes that would explain an undecided head
    evidence: str | None = None
    multiplier: Product | None = None
    multiplier_error: float | None = None
    misfit: float | None = None  # in units of rounding
    consequence: Consequence | None = field(default=None, repr=False)
    conflict: bool = False  # whether it is undecided because two kinds of evidence are of different computations
    note: str = ""  # what else is to be known of the head, such as why its outputs are not judged
    suspect: Finding | None = None  # of a recorded multiplier that is not 1/√d_k, if nothing says what is intended

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
        return self.word in ("cause", "unexplained")

    @property
    def is_unusual(self) -> bool:
        """Whether a recorded multiplier is not 1/√d_k, and nothing says what is intended."""
        return self.suspect is not None

    @property
    def is_doubtful(self) -> bool:
        """Whether somebody has to look at the head: it is wrong, unusual, or its evidence disagrees."""
        return self.is_wrong or self.is_unusual or self.conflict

    @property
    def ratio(self) -> float | None:
        """The multiplier over the expected one; None if the evidence does not tell it."""
        if self.multiplier is None or self.expected.multiplier is None:
            return None
        return self.multiplier / self.expected.multiplier


@dataclass(frozen=True)
class AttentionCells:
    """The attention weights of a head, in cells of some queries × some keys."""

    layer: int  # position in the file
    head: int
    text: int
    queries: tuple[int, ...]  # the first query of each row of cells, and the first one after the last
    keys: tuple[int, ...]  # the same of columns
    positions: tuple[int, ...]  # among the keys, of the first query of each row of cells
    shares: tuple[tuple[float | None, ...], ...]  # of a query's weight on these keys, mean over queries; None: hidden
    rough: bool  # whether only some queries of each cell were computed


@dataclass(frozen=True)
class RowColumn:
    """One row of attention under one rule; if it is NaN in its number format, its figures are 0."""

    rule: str
    multiplier: float  # of q·k without factors that are stored in q and k
    weights: tuple[float, ...]  # of the keys listed
    rest: float  # the weight of all other visible keys
    sink: float | None  # the weight that the sink logit takes; None without one
    entropy: float  # nats
    jacobian: float  # ‖diag(p) − p pᵀ‖_F
    dead: bool  # whether that is so small that no gradient passes
    saturation: float | None  # σ of the row's logits over √(2 ln n); None with fewer than two finite ones
    apart: Mapping[str, Value]  # its number format and soft-cap, where they are not as in the file
    is_nan: bool = False  # whether softmax has no value: a logit is +∞ or NaN, or all are −∞


@dataclass(frozen=True)
class AttentionRow:
    """One query's attention under several rules."""

    layer: int  # position in the file
    head: int
    query: int
    position: int  # of the query among the keys
    visible: int  # keys that the query sees
    keys: tuple[int, ...]  # those listed, in order: the ones with the largest weights under any of the rules
    columns: tuple[RowColumn, ...]
    threshold: float | None  # the multiplier at which the row saturates and recovers; None if there is none


_SATURATED, _HEALTHY = 1.0, math.sqrt(0.5)  # σ of a row's logits over √(2 ln n)


@dataclass(frozen=True)
class RuleReplay:
    """One rule, or several that give the same weights at this head; means over rows."""

    rules: tuple[str, ...]
    multiplier: float  # of q·k without stored factors; for the last query, if rows differ
    divergence: float  # KL(original ‖ replayed), nats
    entropy: float  # nats
    entropy_change: float  # nats, from the original
    one_hot_rows: float  # share of the rows that see at least two keys
    saturation: float | None  # σ of a row's logits over √(2 ln n); None if no row sees two keys


@dataclass(frozen=True)
class Replay:
    """A head under every rule; the original, the file's own scale, comes first."""

    layer: Layer
    head: int
    replayed: tuple[RuleReplay, ...] = field(repr=False)
    left_out: tuple[str, ...]  # rules that need what the file does not say, or have no multiplier here

    @property
    def remedy(self) -> RuleReplay | None:
        """The rule of least divergence that makes a saturated head healthy; None if none does or it is not."""
        original, *others = self.replayed
        if original.saturation is None or original.saturation < _SATURATED:
            return None
        able = [head for head in others if head.saturation is not None and head.saturation < _HEALTHY]
        return min(able, key=lambda head: head.divergence, default=None)
