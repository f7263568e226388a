"""The requests of the Rules pane: every scale rule, entropy over d_k, and mechanisms over d_k."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ....core.lab.results import MEASURED, NOT_OF_MECHANISMS, Order, RuleRow, fault_of, rules_for
from ....core.parameters import UNSCALED, Parameters
from ....core.questions.request import Cache, Progress, Request, Work, batches
from ....core.questions.rules import CompareRules
from ....core.scales import ScaleName, is_formula, multiplier
from ....core.statistics.measurement import Estimate
from ....core.work.part import results_of

if TYPE_CHECKING:
    from ....core.theory.prediction import Saturation

_SLOW = 0.5  # seconds after which progress is reported


@dataclass(frozen=True)
class MeasureRules(Request):
    """Measure every scale rule on the same queries and keys. Answered by RuleRows and Progress.

    The exact values that theory knows of a typed rule come first, and of all if this takes long.
    """

    parameters: Parameters
    first: str = field(default="", compare=False)  # the rule to measure first

    def work(self, cache: Cache) -> Work:
        from ....core.lab.rules import faults
        from ....core.theory.saturation import saturation_of
        from ....core.work.rules import row_parts

        p, start = self.parameters, time.monotonic()
        running = cache.workers.begin(row_parts(p, self.first))
        names = rules_for(p.scale) if running.total > _SLOW else [p.scale] if is_formula(p.scale) else []
        if names:
            exact = [*_exact_rows(p, names)]
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

        for batch in batches(steps(), answer, running):
            yield None if isinstance(batch, Progress) and time.monotonic() - start < _SLOW else batch


def _exact_rows(p: Parameters, names: Iterable[ScaleName]) -> Iterator[RuleRow]:
    """Yield the row of each of these rules that has a multiplier, with the values that theory knows."""
    from ....core.theory.predict import predict

    for name in names:
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


def compared(view: str, p: Parameters, order: Order) -> CompareRules:
    """Return the question that a view of the pane answers."""
    if view == "mechanisms":
        usual: dict[str, Any] = {name: getattr(Parameters, name) for name in NOT_OF_MECHANISMS}
        return CompareRules(replace(p, **usual), mechanisms=True)
    return CompareRules(p, order.column, order.reverse)


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
