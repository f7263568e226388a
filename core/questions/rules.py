"""The question of the Rules pane: scale rules side by side, or mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..lab.results import SORTABLE, Order, RuleRow
from ..message import message
from ..parameters import UNSCALED, Parameters
from .parse import called
from .question import NamedQuestion, flag, option, option_words, parameter_options

if TYPE_CHECKING:
    from ..lab.results import MechanismRow
    from ..program.text import Dialect
    from ..tables.rules import ComparedMechanisms, RulesResult
    from ..tables.table import Table
    from ..work.part import Part


@dataclass(frozen=True, eq=False)
class MechanismRows:
    """More rows of mechanisms, and the part of the work that is done, 0 to 1."""

    rows: Sequence[MechanismRow]
    fraction: float


def _column(text: str) -> str:
    with called("--sort", "column"):
        return Order(text.strip().replace("-", "_")).column


_TITLE = "what to compare"


@dataclass(frozen=True)
class CompareRules(NamedQuestion["RulesResult | ComparedMechanisms"]):
    """Scale rules side by side, or mechanisms over d_k."""

    parameters: Parameters
    sort: str = option(
        _TITLE,
        "--sort",
        "COLUMN",
        message(
            "the column to sort by, largest first: {columns}; default: rule, in the order of `attn-tui help rules`",
            columns=", ".join(SORTABLE),
        ),
        default="rule",
        read=_column,
        suggest=SORTABLE,
    )
    reverse: bool = flag(_TITLE, "--reverse", "reverse the order")
    mechanisms: bool = flag(
        _TITLE,
        "--mechanisms",
        "compare mechanisms over d_k instead: the dot product unscaled, scaled and with a sink, bilinear, "
        "additive, cosine, and the bounds of their scores",
    )

    @property
    def order(self) -> Order:
        """The order of rules."""
        return Order(self.sort, self.reverse)

    @property
    def words(self) -> list[str]:
        shared = parameter_options(replace(self.parameters, against=UNSCALED))
        order = option_words(self, ("sort", "reverse"))
        return ["rules", *option_words(self, ("mechanisms",)), *shared, *order]

    @property
    def file_name(self) -> str:
        return "mechanisms" if self.mechanisms else f"rules-d{self.parameters.d_k}"

    def parts(self) -> Iterator[Part[Any]]:
        """Yield the parts of the measurement."""
        from ..work.rules import mechanism_parts, rule_parts

        return (mechanism_parts if self.mechanisms else rule_parts)(self.parameters)

    def result(self, results: Sequence[Any]) -> RulesResult | ComparedMechanisms:
        """Return the results of the parts as an answer."""
        from ..lab.rules import faults
        from ..tables.rules import ComparedMechanisms, RulesResult
        from ..theory.saturation import saturation_of

        p = self.parameters
        if self.mechanisms:
            return ComparedMechanisms(p, results)
        rows = [*faults(p), *(row for row in results if isinstance(row, RuleRow))]
        [curves] = [row for row in results if not isinstance(row, RuleRow)]
        return RulesResult(p, self.order, rows, curves, saturation_of(p, [row.rule for row in rows]))

    def table(self, answer: RulesResult | ComparedMechanisms) -> Table[Any]:
        from ..tables import rules

        if isinstance(answer, rules.RulesResult):
            return rules.rules_table(answer, self.line())
        return rules.mechanisms_table(answer, self.line())

    def code(self, answer: RulesResult | ComparedMechanisms, dialect: Dialect) -> str:
        from ..program.sweep import mechanisms_code, rules_code
        from ..tables.rules import RulesResult

        p, command = answer.parameters, self.line()
        if isinstance(answer, RulesResult):
            return rules_code(p, answer.sorted, dialect, command)
        return mechanisms_code(p, answer.rows, dialect, command)

    def interim(self, results: Sequence[MechanismRow], fraction: float) -> MechanismRows:
        """Return rows of mechanisms for the app, which asks for rules one by one."""
        return MechanismRows(results, fraction)
