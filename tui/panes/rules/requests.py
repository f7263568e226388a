"""The requests of the Rules pane: every scale rule, entropy over d_k, mechanisms over d_k, and weightings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ....core.lab.results import NOT_OF_MECHANISMS
from ....core.lab.weighting.results import NOT_OF_WEIGHTINGS
from ....core.parameters import Parameters
from ....core.scales import is_formula
from ....core.work.part import results_of
from ...compute.request import BATCH_INTERVAL, PROGRESS_INTERVAL, Cache, Progress, Request, Work

if TYPE_CHECKING:
    from ....core.lab.results import MechanismRow, RuleRow
    from ....core.lab.weighting.results import WeightingRow
    from ....core.theory.prediction import Saturation

_SLOW = 0.5  # seconds after which progress is reported


@dataclass(frozen=True)
class MeasureRules(Request):
    """Measure every scale rule on the same queries and keys. Answered by RuleRows and Progress."""

    parameters: Parameters
    first: str = field(default="", compare=False)  # the rule to measure first

    def work(self, cache: Cache) -> Work:
        from ....core.lab.rules import faults
        from ....core.theory.saturation import saturation_of
        from ....core.work.rules import row_parts

        start = last_sent = time.monotonic()
        found: list[RuleRow] = faults(self.parameters)
        saturation: dict[str, Saturation | None] = {**saturation_of(self.parameters, [row.rule for row in found])}
        running = cache.workers.begin(row_parts(self.parameters, self.first))
        for done in running.steps():
            for row in results_of(done):
                found.append(row)
                saturation |= saturation_of(self.parameters, [row.rule])
                yield None  # a few milliseconds each, the first time
            now, fraction = time.monotonic(), min(done.seconds / running.total, 0.999)
            if found and now - last_sent > BATCH_INTERVAL:
                last_sent = now
                if now - start > _SLOW:
                    yield Progress(fraction, running.pace)
                yield RuleRows(found, saturation, fraction)
                found, saturation = [], {}
            elif now - last_sent > PROGRESS_INTERVAL and now - start > _SLOW:
                last_sent = now
                yield Progress(fraction, running.pace)
            else:
                yield None
        yield RuleRows(found, saturation, 1.0)


@dataclass(frozen=True)
class MeasureRuleCurves(Request):
    """Measure entropy over d_k under every scale rule. Answered by RuleCurves."""

    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        from ....core.work.rules import curves_part

        for done in cache.workers.begin([curves_part(self.parameters)]).steps():
            yield from results_of(done) or (None,)


@dataclass(frozen=True)
class MeasureMechanisms(Request):
    """Measure every mechanism over d_k. Answered by MechanismRows and Progress."""

    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        from ....core.work.rules import mechanism_parts

        last_sent = time.monotonic()
        found: list[MechanismRow] = []
        running = cache.workers.begin(mechanism_parts(self.parameters))
        for done in running.steps():
            found += results_of(done)
            if time.monotonic() - last_sent > PROGRESS_INTERVAL:
                last_sent = time.monotonic()
                fraction = min(done.seconds / running.total, 0.999)
                yield Progress(fraction, running.pace)
                yield MechanismRows(found, fraction)
                found = []
            else:
                yield None
        yield MechanismRows(found, 1.0)


@dataclass(frozen=True)
class MeasureWeightings(Request):
    """Measure every weighting on the same logits. Answered by WeightingRows and Progress."""

    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        from ....core.work.rules import weighting_parts

        last_sent = time.monotonic()
        found: list[WeightingRow] = []
        running = cache.workers.begin(weighting_parts(self.parameters))
        for done in running.steps():
            found += results_of(done)
            if time.monotonic() - last_sent > PROGRESS_INTERVAL:
                last_sent = time.monotonic()
                yield Progress(done.seconds / running.total, running.pace)
            else:
                yield None
        yield WeightingRows(found)


def of_rules(p: Parameters) -> Parameters:
    """Return the parameters that rows depend on: all but the scale rule, unless it is a formula."""
    return p if is_formula(p.scale) else replace(p, scale=Parameters.scale)


def of_curves(p: Parameters) -> Parameters:
    """Return the parameters that curves depend on: those that rows depend on, but d_k."""
    return replace(of_rules(p), d_k=Parameters.d_k)


def of_mechanisms(p: Parameters) -> Parameters:
    """Return the parameters that mechanisms over d_k depend on."""
    return _without(p, NOT_OF_MECHANISMS)


def of_weightings(p: Parameters) -> Parameters:
    """Return the parameters that weightings depend on."""
    return _without(p, NOT_OF_WEIGHTINGS)


def _without(p: Parameters, names: Sequence[str]) -> Parameters:
    """Return the parameters with the defaults of those named."""
    usual: dict[str, Any] = {name: getattr(Parameters, name) for name in names}
    return replace(p, **usual)


@dataclass(frozen=True, eq=False)
class RuleRows:
    """Rows of more rules, where softmax saturates under them, and the part of the work that is done, 0 to 1."""

    rows: Sequence[RuleRow]
    saturation: Mapping[str, Saturation | None]  # by rule, of those that have a multiplier
    fraction: float


@dataclass(frozen=True, eq=False)
class MechanismRows:
    """Rows of more mechanisms and d_k, and the part of the work that is done, 0 to 1."""

    rows: Sequence[MechanismRow]
    fraction: float


@dataclass(frozen=True, eq=False)
class WeightingRows:
    """The rows of all weightings."""

    rows: Sequence[WeightingRow]
