"""Measure every scale rule on the same queries and keys.

All rules share their draws, so rows differ only because of the rules. Rules of one normalisation also share their
scores, and those whose logits are multiples of one dot product a single pass over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..parameters import Parameters, ScaleName
from ..scales import scale_rule
from . import experiment
from .results import ProgressStep, RuleRow, fault_of, rules_for
from .scoring import is_one_pass, last_draws


def faults(p: Parameters) -> list[RuleRow]:
    """Return the rows of the rules that have no multiplier."""
    return [RuleRow(name, None, {}, fault) for name in rules_for(p.scale) if (fault := fault_of(p, name))]


def passes(p: Parameters, first: str = "") -> list[tuple[ScaleName, ...]]:
    """Return the other rules: `first` alone, then those that share a pass, then those that share normalised vectors.

    What shares neither is alone.
    """
    groups: dict[object, tuple[ScaleName, ...]] = {first: (), (True, "none"): ()}  # in this order
    for name in rules_for(p.scale):
        single, norm = is_one_pass(p, [name]), scale_rule(name).normalise
        group = name if name == first or (not single and norm == "none") else (single, norm)
        if not fault_of(p, name):
            groups[group] = (*groups.get(group, ()), name)
    return [group for group in groups.values() if group]


def measure(p: Parameters, names: Sequence[ScaleName]) -> Iterator[ProgressStep[RuleRow]]:
    """Yield the steps of one pass, the last with the rows of its rules."""
    for step in experiment.stream(p, last_draws(p), names=names):
        measurement = step.measurement() if step.fraction == 1 else None
        columns = measurement.columns if measurement else ()
        yield ProgressStep(step.fraction, tuple(RuleRow(c.rule, c.multiplier, c.measured) for c in columns))
