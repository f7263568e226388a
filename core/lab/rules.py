"""Measure every scale rule on the same queries and keys.

All rules share their draws, so rows differ only because of the rules. Rules whose logits are multiples of one dot
product also share a single pass over the scores.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..parameters import Parameters
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
    names = rules_for(p.scale)
    faults = {name: fault for name in names if (fault := fault_of(p, name))}
    valid = [name for name in names if name not in faults]
    leading = [name for name in valid if name == first]
    together = [name for name in valid if name != first and is_one_pass(p, [name])]
    alone = [[name] for name in valid if name != first and name not in together]
    passes = [each for each in (leading, together, *alone) if each]
    yield Step(0.0, tuple(RuleRow(name, None, {}, fault) for name, fault in faults.items()))
    done = 0
    for names in passes:
        for step in experiment.stream(p, draws, names=names):
            found = step.measurement() if step.fraction == 1 else None
            columns = found.columns if found else ()
            rows = tuple(RuleRow(column.rule, column.multiplier, column.measured) for column in columns)
            yield Step((done + step.fraction * len(names)) / len(valid), rows)
        done += len(names)
