"""The result of a measurement: estimates and histograms, one column for each multiplier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ..against import apart, settings, words
from ..message import joined, message
from ..parameters import Parameters, Value
from ..scales import UNSCALED_RULES, scale_rule

if TYPE_CHECKING:
    from .histogram import Histogram

Subject = TypeVar("Subject")
HistogramName: TypeAlias = Literal["logits", "weights", "entropy", "jacobian_norm", "gradient"]
HISTOGRAMS: tuple[HistogramName, ...] = ("logits", "weights", "entropy", "jacobian_norm")


class Estimate(NamedTuple):
    """A measured value and its standard error over independent draws; None if undefined."""

    value: float | None
    stderr: float | None

    @property
    def is_rough(self) -> bool:
        """Whether the standard error is only known to be at least `stderr`."""
        return isinstance(self, RoughEstimate)


NOTHING = Estimate(None, None)


class RoughEstimate(Estimate):
    """An estimate whose standard error is at least `stderr`: it depends on draws too rare to be among these."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Column:
    """All statistics and histograms at one multiplier."""

    rule: str  # a name of SCALE_RULES, or "file" for the scale in a capture's metadata
    multiplier: float
    measured: Mapping[str, Estimate] = field(repr=False)  # by name, in the order of STATISTICS
    # Those asked for; with all of HISTOGRAMS, "gradient" too if gradients are measured.
    histograms: Mapping[HistogramName, Histogram] = field(repr=False)
    # The values of the parameters in which columns differ, other than those of the scale rule; and `normalise`, if
    # an unscaled column leaves q and k as they are drawn beside one whose rule normalises them.
    apart: Mapping[str, Value] = field(default_factory=dict[str, Value])
    # The smallest and the largest multiplier of a row that sees two keys; None if all have the same.
    multipliers: tuple[float, float] | None = None
    keys: int = 0  # of a row, hidden ones included; 0 if unknown
    # The means over rows of the largest weight, the second, …; empty if weights are not counted.
    average_row: tuple[float, ...] = field(default=(), repr=False)


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


_UNSCALED = frozenset(UNSCALED_RULES.values())


def is_unscaled(column: Column) -> bool:
    """Return whether the rule of a column is multiplier 1, whether or not q and k are normalised."""
    return column.rule in _UNSCALED


def column_names(columns: Sequence[Column]) -> list[str]:
    """Return `unscaled` and `scaled`, or what tells columns apart: `1/d_k` and `1/√d_k`, `bfloat16` and `float32`.

    A column of a capture with the scale in the file's metadata is `file`.
    """
    return _names([(column.rule, column.multiplier, column.apart) for column in columns])


def setting_names(p: Parameters) -> list[str]:
    """Return the same for A and B before they are measured."""
    return _names(
        [(setting.scale, setting.multiplier, own) for setting, own in zip(settings(p), apart(p), strict=True)]
    )


_Named: TypeAlias = tuple[str, float, Mapping[str, Value]]  # a rule, its multiplier, and what is apart


def _names(columns: Sequence[_Named]) -> list[str]:
    others = [words(apart) for _, _, apart in columns]
    of_unscaled = bool(columns) and columns[0][0] in _UNSCALED
    rules = [_rule(column, of_unscaled) for column in columns]
    if not any(others) and ("unscaled" in rules[:1] or "file" in rules):
        plain = [rule if rule in ("unscaled", "file") else message("scaled") for rule in rules]
        if len({*plain}) == len(plain):
            return plain
    if len({*rules}) == 1 and all(others):
        return others
    return [joined([rule, other], ", ") if other else rule for rule, other in zip(rules, others, strict=True)]


def _rule(column: _Named, of_unscaled: bool) -> str:
    """Return the name of a column's rule; beside one that is not unscaled, a normalising one keeps its own."""
    rule, multiplier, _ = column
    if rule == "file":
        return message("file")
    if rule == "custom":
        return f"× {multiplier:.4g}"
    unscaled = rule in _UNSCALED and (of_unscaled or rule == "none")
    return message("unscaled") if unscaled else scale_rule(rule).label
