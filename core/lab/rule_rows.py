"""Scale rules side by side: what is known of each, and the order they stand in. Nothing here computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..attention.scales import SCALE_RULES, Setting, multiplier
from ..errors import InputError
from ..parameters import ParameterError, Parameters
from ..statistics.measurement import Estimate

RULES = tuple(SCALE_RULES)  # in the order of their declaration
# What is compared, by the names of STATISTICS.
MEASURED = ("logit_std", "entropy_fraction", "max_weight", "grad_q_median", "dead_rows", "score_overflow")
SORTABLE = ("rule", "multiplier", *MEASURED)
SETTINGS = ("layer", "position", "context_factor", "multiplier")  # what some rules depend on, whichever is chosen
# What makes no difference to how mechanisms compare over d_k, each under the rule it is used with.
NOT_OF_MECHANISMS = ("d_k", "mechanism", "scale", *SETTINGS, "softcap", "d_v")


@dataclass(frozen=True, eq=False)
class Row:
    """One rule at these parameters; without a multiplier, why there is none."""

    rule: str  # a name of SCALE_RULES
    multiplier: float | None
    measured: Mapping[str, Estimate]  # by the names of STATISTICS; empty without a multiplier
    fault: str = ""

    def estimate(self, name: str) -> Estimate:
        """What was measured, if it was."""
        return self.measured.get(name, Estimate(None, None))

    def value(self, column: str) -> float | None:
        """What a column of SORTABLE is sorted by; None where it is missing."""
        if column == "rule":
            return float(-RULES.index(self.rule))
        return self.multiplier if column == "multiplier" else self.estimate(column).value


@dataclass(frozen=True)
class Order:
    """By which column rows stand, the largest first; rules as they are declared."""

    column: str = "rule"
    reverse: bool = False

    def __post_init__(self) -> None:
        if self.column not in SORTABLE:
            raise InputError(f"column: {self.column!r} is not accepted; it takes one of {', '.join(SORTABLE)}")

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """The rows in this order. Equal ones stand as they are declared; those without a value come last."""
        declared = sorted(rows, key=lambda row: RULES.index(row.rule))
        valued = [row for row in declared if row.value(self.column) is not None]
        sign = 1 if self.reverse else -1
        valued.sort(key=lambda row: sign * (row.value(self.column) or 0.0))
        return valued + [row for row in declared if row not in valued]


def fault_of(parameters: Parameters, rule: str) -> str:
    """Why a rule has no multiplier at these parameters; empty where it has one."""
    try:
        multiplier(rule, Setting.of(parameters))
    except ParameterError as error:
        return str(error).partition(";")[0].removeprefix("scale ")
    return ""
