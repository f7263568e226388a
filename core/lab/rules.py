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


def stream(
    parameters: Parameters, draws: Draws | None = None, first: str = ""
) -> Iterator[Step[tuple[RuleRow, ...]]]:
    """Yield every rule's row once, in the order of measurement; the last step has fraction 1.

    A row is the scaled column of `experiment.run` for these parameters under its rule. The scale rule of the
    parameters matters only if it is a formula, which has a row too. `draws` keeps components from one call to the
    next. The rule named `first` is measured before the others, in a separate pass.
    """
    p, draws = parameters, draws or Draws()
    found = faults(p)
    yield Step(0.0, tuple(found))
    valid, done = len(rules_for(p.scale)) - len(found), 0
    for names in passes(p, first):
        for step in measure(p, names, draws):
            yield Step((done + step.fraction * len(names)) / valid, step.found)
        done += len(names)


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
