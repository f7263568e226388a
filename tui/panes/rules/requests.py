"""The requests of the Rules pane: every scale rule, entropy over d_k, and mechanisms over d_k."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ....core.lab.results import MEASURED, NOT_OF_MECHANISMS, SORTABLE, Order, RuleRow, fault_of, rules_for
from ....core.message import message
from ....core.parameters import UNSCALED, Parameters
from ....core.scales import is_formula, multiplier
from ....core.statistics.measurement import Estimate
from ....core.work.part import results_of
from ...compute.question import Printed, flag, option, option_words, parameter_options
from ...compute.request import Cache, Progress, Request, Work, batches
from ...settings.parse import called

if TYPE_CHECKING:
    from ....core.lab.results import MechanismRow
    from ....core.program.text import Dialect
    from ....core.tables.rules import ComparedMechanisms, RulesResult
    from ....core.tables.table import Table
    from ....core.theory.prediction import Saturation
    from ....core.work.part import Part

_SLOW = 0.5  # seconds after which progress is reported


@dataclass(frozen=True)
class MeasureRules(Request):
    """Measure every scale rule on the same queries and keys. Answered by RuleRows and Progress.

    If this takes long, the exact values that theory knows come first.
    """

    parameters: Parameters
    first: str = field(default="", compare=False)  # the rule to measure first

    def work(self, cache: Cache) -> Work:
        from ....core.lab.rules import faults
        from ....core.theory.saturation import saturation_of
        from ....core.work.rules import row_parts

        p, start = self.parameters, time.monotonic()
        running = cache.workers.begin(row_parts(p, self.first))
        if running.total > _SLOW:
            exact = [*_exact_rows(p)]
            yield RuleRows(exact, saturation_of(p, [row.rule for row in exact]), 0.0, exact=True)
        saturation: dict[str, Saturation | None] = {}

        def steps() -> Iterator[tuple[float, list[RuleRow]]]:
            for row in faults(p):
                saturation.update(saturation_of(p, [row.rule]))
                yield 0.0, [row]
            for done in running.steps():
                yield done.seconds / running.total, []
                for row in results_of(done):
                    saturation.update(saturation_of(p, [row.rule]))  # a few milliseconds each, the first time
                    yield done.seconds / running.total, [row]

        def answer(rows: list[RuleRow], fraction: float) -> RuleRows:
            return RuleRows(
                rows, {row.rule: saturation[row.rule] for row in rows if row.rule in saturation}, fraction
            )

        for each in batches(steps(), answer, running):
            yield None if isinstance(each, Progress) and time.monotonic() - start < _SLOW else each


def _exact_rows(p: Parameters) -> Iterator[RuleRow]:
    """Yield the row of each rule that has a multiplier, with the values that theory knows."""
    from ....core.theory.predict import predict

    for name in rules_for(p.scale):
        if not fault_of(p, name):
            known = predict(replace(p, scale=name, against=UNSCALED)).columns[1].values
            yield RuleRow(name, multiplier(name, p.setting), {each: Estimate(known[each], None) for each in MEASURED})


@dataclass(frozen=True)
class MeasureRuleCurves(Request):
    """Measure entropy over d_k under every scale rule. Answered by RuleCurves."""

    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        from ....core.work.rules import curves_part

        for done in cache.workers.begin([curves_part(self.parameters)]).steps():
            yield from results_of(done) or (None,)


def _column(text: str) -> str:
    with called("--sort", "column"):
        return Order(text.strip().replace("-", "_")).column


_TITLE = "what to compare"


@dataclass(frozen=True)
class Compare(Printed["RulesResult | ComparedMechanisms"]):
    """Scale rules side by side, or mechanisms over d_k.

    Mechanisms are measured by this request, which MechanismRows and Progress answer; rules by those above.
    """

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
        from ....core.work.rules import mechanism_parts, rule_parts

        return (mechanism_parts if self.mechanisms else rule_parts)(self.parameters)

    def result(self, found: Sequence[Any], command: str) -> RulesResult | ComparedMechanisms:
        """Return the results of the parts as an answer."""
        from ....core.lab.rules import faults
        from ....core.tables.rules import ComparedMechanisms, RulesResult
        from ....core.theory.saturation import saturation_of

        p = self.parameters
        if self.mechanisms:
            return ComparedMechanisms(p, found, command)
        rows = [*faults(p), *(each for each in found if isinstance(each, RuleRow))]
        [curves] = [each for each in found if not isinstance(each, RuleRow)]
        return RulesResult(p, self.order, rows, curves, saturation_of(p, [row.rule for row in rows]), command)

    def table(self, answer: RulesResult | ComparedMechanisms) -> Table[Any]:
        from ....core.tables import rules

        if isinstance(answer, rules.RulesResult):
            return rules.rules_table(answer)
        return rules.mechanisms_table(answer)

    def code(self, answer: RulesResult | ComparedMechanisms, dialect: Dialect) -> str:
        from ....core.program.sweep import mechanisms_code, rules_code
        from ....core.tables.rules import RulesResult

        p, command = answer.parameters, answer.command
        if isinstance(answer, RulesResult):
            return rules_code(p, answer.sorted, dialect, command)
        return mechanisms_code(p, answer.rows, dialect, command)

    def work(self, cache: Cache) -> Work:
        running = cache.workers.begin(self.parts())
        steps = ((done.seconds / running.total, results_of(done)) for done in running.steps())
        return batches(steps, MechanismRows, running)


def compared(view: str, p: Parameters, order: Order) -> Compare:
    """Return the question that a view of the pane answers."""
    if view == "mechanisms":
        usual: dict[str, Any] = {name: getattr(Parameters, name) for name in NOT_OF_MECHANISMS}
        return Compare(replace(p, **usual), mechanisms=True)
    return Compare(p, order.column, order.reverse)


def of_rules(p: Parameters) -> Parameters:
    """Return the parameters that rows depend on: all but the scale rule, unless it is a formula."""
    return p if is_formula(p.scale) else replace(p, scale=Parameters.scale)


def of_curves(p: Parameters) -> Parameters:
    """Return the parameters that curves depend on: those that rows depend on, but d_k."""
    return replace(of_rules(p), d_k=Parameters.d_k)


@dataclass(frozen=True, eq=False)
class RuleRows:
    """Rows of more rules, where softmax saturates under them, and the part of the work that is done, 0 to 1."""

    rows: Sequence[RuleRow]
    saturation: Mapping[str, Saturation | None]  # by rule, of those that have a multiplier
    fraction: float
    exact: bool = False  # whether theory foretells these rows, before they are measured


@dataclass(frozen=True, eq=False)
class MechanismRows:
    """More rows of mechanisms, and the part of the work that is done, 0 to 1."""

    rows: Sequence[MechanismRow]
    fraction: float
