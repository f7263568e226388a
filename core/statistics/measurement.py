"""What a measurement is: one column of estimates and histograms for each multiplier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:  # views name these types before NumPy is loaded
    from .histogram import Histogram

Subject = TypeVar("Subject")
HistogramName: TypeAlias = Literal["logits", "weights", "entropy", "jacobian_norm", "gradient"]
HISTOGRAMS: tuple[HistogramName, ...] = ("logits", "weights", "entropy", "jacobian_norm")  # of every column


class Estimate(NamedTuple):
    """A measured value and its standard error over independent draws; None where it does not exist."""

    value: float | None
    stderr: float | None


@dataclass(frozen=True, eq=False)
class Column:
    """Everything measured at one multiplier."""

    rule: str  # a name of SCALE_RULES, or "file": the scale that a capture says it used
    multiplier: float
    measured: Mapping[str, Estimate]  # by the names of STATISTICS, in their order
    histograms: Mapping[HistogramName, Histogram]  # "gradient" where gradients are measured


@dataclass(frozen=True, eq=False)
class Measurement(Generic[Subject]):
    """The result for one subject: the lab's Parameters, or one head of a capture."""

    subject: Subject
    draws: int  # independent draws (or texts of a batch) behind every value
    asked: int  # draws it will have when it is complete
    columns: tuple[Column, ...]

    @property
    def complete(self) -> bool:
        """Whether all the draws that were asked for are in."""
        return self.draws == self.asked
