"""Comparisons of scale rules and of mechanisms, cut into parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..lab import mechanisms, rule_curves, rules
from ..lab.results import MechanismRow, RuleCurves, RuleRow
from ..parameters import Parameters, ScaleName
from .draws import last_draws
from .part import Part, Steps
from .sweeps import column_seconds, separate_seconds


def rule_parts(p: Parameters) -> Iterator[Part[RuleRow] | Part[RuleCurves]]:
    """Yield the parts that measure every rule, and the curves of their entropy over d_k."""
    yield from row_parts(p)
    yield curves_part(p)


def row_parts(p: Parameters, first: str = "") -> Iterator[Part[RuleRow]]:
    """Yield the parts that measure every rule, the one named `first` before the others."""
    for names in rules.passes(p, first):
        yield Part(measure_rules, (p, names), _seconds(p, len(names), full=True), len(names))


def curves_part(p: Parameters) -> Part[RuleCurves]:
    """Return the part that measures the curves of entropy over d_k."""
    return Part(measure_curves, (p,), 1.0)


def measure_rules(p: Parameters, names: Sequence[ScaleName]) -> Steps[RuleRow]:
    """Measure rules that share a pass over the scores."""
    for step in rules.measure(p, names, last_draws(p)):
        yield step.fraction, step.found


def measure_curves(p: Parameters) -> Steps[RuleCurves]:
    """Measure entropy over d_k under every rule."""
    for step in rule_curves.stream(p):
        yield step.fraction, () if step.found is None else (step.found,)


def mechanism_parts(p: Parameters) -> Iterator[Part[MechanismRow]]:
    """Yield the parts that measure each mechanism at each d_k."""
    for d_k in mechanisms.D_KS:
        for number, (mechanism, rule, _) in enumerate(mechanisms.COMPARED):
            asked = replace(p, d_k=d_k, mechanism=mechanism, scale=rule, softcap=0.0)
            yield Part(measure_mechanism, (p, d_k, number), _seconds(asked, 1, full=False))


def measure_mechanism(p: Parameters, d_k: int, number: int) -> Steps[MechanismRow]:
    """Measure the mechanism of this number at a d_k."""
    for step in mechanisms.measure(p, d_k, mechanisms.COMPARED[number], last_draws(p)):
        yield step.fraction, () if step.found is None else (step.found,)


def _seconds(p: Parameters, columns: int, full: bool) -> float:
    """Return the time of a run with this number of columns, estimated."""
    return column_seconds(p, nested=False) * p.d_k + separate_seconds(p, full) * columns / 2
