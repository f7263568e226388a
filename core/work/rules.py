"""Comparisons of scale rules and of mechanisms, cut into parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..lab import mechanisms, rule_curves, rules
from ..lab.results import MechanismRow, RuleCurves, RuleRow
from ..parameters import Parameters
from .part import Part
from .sweeps import column_seconds, separate_seconds


def rule_parts(p: Parameters) -> Iterator[Part[RuleRow] | Part[RuleCurves]]:
    """Yield the parts that measure every rule, and the curves of their entropy over d_k."""
    yield from row_parts(p)
    yield curves_part(p)


def row_parts(p: Parameters, first: str = "") -> Iterator[Part[RuleRow]]:
    """Yield the parts that measure every rule, the one named `first` before the others."""
    for names in rules.passes(p, first):
        yield Part(rules.measure, (p, names), _seconds(p, len(names), full=True), len(names))


def curves_part(p: Parameters) -> Part[RuleCurves]:
    """Return the part that measures the curves of entropy over d_k."""
    return Part(rule_curves.stream, (p,), 1.0)


def mechanism_parts(p: Parameters) -> Iterator[Part[MechanismRow]]:
    """Yield the parts that measure each mechanism at each d_k."""
    for d_k in mechanisms.D_KS:
        for compared in mechanisms.COMPARED:
            mechanism, rule, _ = compared
            asked = replace(p, d_k=d_k, mechanism=mechanism, scale=rule, softcap=0.0)
            yield Part(mechanisms.measure, (p, d_k, compared), _seconds(asked, 1, full=False))


def _seconds(p: Parameters, columns: int, full: bool) -> float:
    """Return the time of a run with this number of columns, estimated."""
    return column_seconds(p, nested=False) * p.d_k + separate_seconds(p, full) * columns / 2
