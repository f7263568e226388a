"""The result of a measurement: estimates and histograms, one column for each multiplier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ..parameters import Value

if TYPE_CHECKING:  # views import these types before NumPy is loaded
    from .histogram import Histogram

Subject = TypeVar("Subject")
HistogramName: TypeAlias = Literal["logits", "weights", "entropy", "jacobian_norm", "gradient"]
HISTOGRAMS: tuple[HistogramName, ...] = ("logits", "weights", "entropy", "jacobian_norm")  # in every column


class Estimate(NamedTuple):
    """A measured value and its standard error over independent draws; None if undefined."""

    value: float | None
    stderr: float | None

    @property
    def is_rough(self) -> bool:
        """Whether the standard error is only known to be at least `stderr`."""
        return isinstance(self, RoughEstimate)


class RoughEstimate(Estimate):
    """An estimate whose standard error is at least `stderr`: it depends on draws too rare to be among these."""

    __slots__ = ()


class RowWeights(NamedTuple):
    """The attention weights of one query."""

    keys: int  # that it sees
    largest: tuple[float, ...]  # weights, the largest first
    effective: float | None  # e^H of the weights, the effective keys; None if they are NaN or there are none


@dataclass(frozen=True, eq=False)
class Column:
    """All statistics and histograms at one multiplier."""

    rule: str  # a name of SCALE_RULES, or "file" for the scale in a capture's metadata
    multiplier: float
    measured: Mapping[str, Estimate]  # by name, in the order of STATISTICS
    histograms: Mapping[HistogramName, Histogram]  # "gradient" if gradients are measured
    # The values of the parameters in which columns differ, other than those of the scale rule; and `normalise`, if
    # an unscaled column leaves q and k as they are drawn beside one whose rule normalises them.
    apart: Mapping[str, Value] = field(default_factory=dict[str, Value])
    # The smallest and the largest multiplier of a row that sees two keys; None if all have the same.
    multipliers: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Measurement(Generic[Subject]):
    """The result for one subject: the lab's Parameters, or one head of a capture."""

    subject: Subject
    draws: int  # independent draws (or texts of a batch) behind every value
    asked: int  # draws requested
    columns: tuple[Column, ...]

    @property
    def complete(self) -> bool:
        """Whether it contains all the requested draws."""
        return self.draws == self.asked
