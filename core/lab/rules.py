"""Every scale rule measured on one question: what each makes of the same queries and keys.

All rules share their draws, so that what differs between two rows is the rules' own. The rules whose logits are
multiples of one dot product share a single pass over the scores as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..parameters import Parameters
from . import experiment
from .rule_rows import RULES, Row, fault_of
from .sampling import Draws
from .scoring import is_straight


@dataclass(frozen=True, eq=False)
class Step:
    """How far the work is, and the rows that are new."""

    fraction: float  # of the work done, 0 to 1
    rows: tuple[Row, ...]


def stream(parameters: Parameters, draws: Draws | None = None) -> Iterator[Step]:
    """Every rule's row, once each, in the order in which they are known; the last step has fraction 1.

    A row is the scaled column of `experiment.run` for these parameters with its rule, which takes what else it
    depends on (layer, position, context factor, multiplier) from them. Their own scale rule makes no difference.
    draws keeps components from one call to the next.
    """
    p, draws = parameters, draws or Draws()
    faults = {name: fault for name in RULES if (fault := fault_of(p, name))}
    sound = [name for name in RULES if name not in faults]
    straight = [name for name in sound if is_straight(p, [name])]
    passes = [straight] * bool(straight) + [[name] for name in sound if name not in straight]
    yield Step(0.0, tuple(Row(name, None, {}, fault) for name, fault in faults.items()))
    done = 0
    for names in passes:
        for step in experiment.stream(p, draws, names=names):
            found = step.measurement() if step.fraction == 1 else None
            columns = found.columns if found else ()
            rows = tuple(Row(column.rule, column.multiplier, column.measured) for column in columns)
            yield Step((done + step.fraction * len(names)) / len(sound), rows)
        done += len(names)
