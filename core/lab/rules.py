"""Measure every scale rule on the same queries and keys.

All rules share their draws, so rows differ only because of the rules. Rules whose logits are multiples of one dot
product also share a single pass over the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..parameters import Parameters, ScaleName
from . import experiment
from .results import RuleRow, Step, fault_of, rules_for
from .sampling import Draws
from .scoring import is_one_pass


def faults(p: Parameters) -> list[RuleRow]:
    """Return the rows of the rules that have no multiplier."""
    return [RuleRow(name, None, {}, fault) for name in rules_for(p.scale) if (fault := fault_of(p, name))]


def passes(p: Parameters, first: str = "") -> list[tuple[ScaleName, ...]]:
    """Return the other rules: `first` alone, then those together that share a pass over the scores, then the rest."""
    valid = [name for name in rules_for(p.scale) if not fault_of(p, name)]
    leading = tuple(name for name in valid if name == first)
    together = tuple(name for name in valid if name != first and is_one_pass(p, [name]))
    alone = [(name,) for name in valid if name != first and name not in together]
    return [each for each in (leading, together, *alone) if each]


def measure(
    p: Parameters, names: Sequence[ScaleName], draws: Draws | None = None
) -> Iterator[Step[tuple[RuleRow, ...]]]:
    """Yield the steps of one pass, the last with the rows of its rules."""
    for step in experiment.stream(p, draws, names=names):
        found = step.measurement() if step.fraction == 1 else None
        columns = found.columns if found else ()
        yield Step(step.fraction, tuple(RuleRow(each.rule, each.multiplier, each.measured) for each in columns))
