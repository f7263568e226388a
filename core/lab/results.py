"""Results of the lab other than a measurement, as plain values; this module does not need NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..errors import InputError, ParameterError, did_you_mean, not_one_of
from ..message import message
from ..parameters import FIELD, MechanismName, Parameters, ScaleName
from ..scales import SCALE_RULES, multiplier
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import NOTHING, Column, Estimate, Measurement

RULES = tuple(SCALE_RULES)  # in catalogue order; a formula comes after them
# The statistics by which rules are compared.
MEASURED = (
    "logit_std", "entropy_fraction", "max_weight", "grad_q_median", "dead_rows", "saturation", "score_overflow",
)  # fmt: skip
SORTABLE = ("rule", "multiplier", *MEASURED)
# The parameters that only some rules depend on.
SETTINGS = ("layer", "position", "context_factor", "multiplier", "temperature", "norm_gain")
# The parameters that the comparison of mechanisms ignores.
NOT_OF_MECHANISMS = ("d_k", "mechanism", "scale", "against", *SETTINGS, "softcap", "d_v")


Found = TypeVar("Found")


class ProgressStep(NamedTuple, Generic[Found]):
    """The progress of some work, and what it has found since the previous step."""

    fraction: float  # of the work done, 0 to 1
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """The measurement at one d_k and one value of the second axis."""

    measurement: Measurement[Parameters]
    reached: bool  # whether it reaches the target; true without one

    @property
    def parameters(self) -> Parameters:
        """The parameters measured; `batch` is the number of draws, so `run` gives the same result."""
        return self.measurement.subject


@dataclass(frozen=True)
class Target:
    """The largest acceptable standard error of a statistic, in every column in which it exists."""

    stderr: float
    statistic: str = "entropy_fraction"
    most_draws: int = int(FIELD["batch"].high)  # the limit of draws, even if the target is not reached

    def __post_init__(self) -> None:
        accepted = [name for name in STATISTIC if name not in ("logit_min", "logit_max")]
        if self.statistic not in accepted:
            reason = message(
                "must be one with a standard error: {accepted}; not {statistic!r}{near}",
                accepted=", ".join(accepted),
                statistic=self.statistic,
                near=did_you_mean(self.statistic, accepted),
            )
            raise InputError("statistic: {reason}", reason=reason)
        if not 0 < self.stderr < math.inf:
            raise InputError("standard error: must be a number above 0, not {stderr!r}", stderr=self.stderr)
        FIELD["batch"].check(self.most_draws)

    def reached(self, columns: Sequence[Column]) -> bool:
        """Return whether these columns are precise enough; a rough standard error may be larger than it says."""
        estimates = [column.measured[self.statistic] for column in columns]
        known = [e for e in estimates if e.value is not None]
        return all(not e.is_rough and e.stderr is not None and e.stderr <= self.stderr for e in known)


@dataclass(frozen=True, eq=False)
class RuleRow:
    """The measurement of one rule, or the reason why it has no multiplier."""

    rule: str  # a name of SCALE_RULES, or a formula
    multiplier: float | None
    measured: Mapping[str, Estimate]  # by the names of STATISTICS; empty without a multiplier
    fault: str = ""

    def estimate(self, name: str) -> Estimate:
        """Return an estimate, without a value if it was not measured."""
        return self.measured.get(name, NOTHING)

    def value(self, column: str) -> float | None:
        """Return the sort key of a column of SORTABLE; None if missing."""
        if column == "rule":
            return float(-_place(self.rule))
        return self.multiplier if column == "multiplier" else self.estimate(column).value


@dataclass(frozen=True)
class Order:
    """The order of rows: by a column, the largest first, or by rule in catalogue order."""

    column: str = "rule"
    reverse: bool = False

    def __post_init__(self) -> None:
        if self.column not in SORTABLE:
            raise InputError("column: {reason}", reason=not_one_of(self.column, SORTABLE))

    def of(self, rows: Iterable[RuleRow]) -> list[RuleRow]:
        """Return the rows in this order; ties keep catalogue order, and rows without a value come last."""
        declared = sorted(rows, key=lambda row: _place(row.rule))
        valued = [row for row in declared if row.value(self.column) is not None]
        sign = 1 if self.reverse else -1
        valued.sort(key=lambda row: sign * (row.value(self.column) or 0.0))
        return valued + [row for row in declared if row not in valued]


def rules_for(scale: ScaleName) -> tuple[ScaleName, ...]:
    """Return the rules to compare if this one is chosen: all of the catalogue, and the chosen one if a formula."""
    return RULES if scale in SCALE_RULES else (*RULES, scale)


def listed_rules(p: Parameters) -> list[ScaleName]:
    """Return the rules to list: custom is one if it is chosen or its multiplier is set; else it would be `none`."""
    idle = p.scale != "custom" and p.multiplier == Parameters.multiplier
    return [name for name in rules_for(p.scale) if not (idle and name == "custom")]


def _place(rule: ScaleName) -> int:
    """Return a rule's place in the order of the catalogue."""
    return RULES.index(rule) if rule in SCALE_RULES else len(RULES)


def fault_of(parameters: Parameters, rule: str) -> str:
    """Return why a rule has no multiplier at these parameters; empty if it has one."""
    try:
        multiplier(rule, parameters.setting)
    except ParameterError as error:
        return str(error).partition(";")[0].removeprefix("scale ")
    return ""


@dataclass(frozen=True, eq=False)
class RuleCurves:
    """Entropy as a share of its largest possible value, for each rule at each d_k; None if it has no multiplier."""

    d_ks: Sequence[int]
    draws: int  # behind each value
    rows: int  # of each draw
    values: Mapping[str, Sequence[float | None]]  # by rule


@dataclass(frozen=True, eq=False)
class MechanismRow:
    """One mechanism at one d_k."""

    mechanism: MechanismName
    rule: ScaleName
    multiplier: float
    d_k: int
    measured: Mapping[str, Estimate]  # by the names of STATISTICS
    largest: float | None  # the largest |score| drawn; None if no pair is visible
    bound: float | None  # the upper bound of |score|; None if there is none
    with_sink: bool = False  # whether it has an attention sink whatever the parameters say
