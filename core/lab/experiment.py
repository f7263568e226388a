"""run(Parameters) -> Measurement: draw queries and keys, score them, and keep the statistics.

`stream` does the work in steps, so that whoever asked can show progress, look at an early result, or drop the
rest: to stop a run is to stop asking for its next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..parameters import Parameters
from ..statistics import tally
from ..statistics.measurement import Column, Measurement
from . import straight, surveyed
from .numerics import Numerics, numerics
from .sampling import Draws
from .scoring import empty_tally, fits, grow, is_straight, rules_of, weights_of


@dataclass(frozen=True, eq=False)
class Step:
    """How far a run is, and what it knows so far."""

    fraction: float  # of the work done, 0 to 1
    parameters: Parameters
    tallies: Sequence[tally.Tally]  # one for all columns, or one for each
    multipliers: Sequence[float]  # of the columns
    draws: float  # how many are done, the last one perhaps in part
    numerics: Numerics | None  # None for a question too large to keep

    def measurement(self) -> Measurement[Parameters] | None:
        """The result so far; None in the midst of a draw, and before the second, since one has no standard error."""
        draws = int(self.draws)
        if draws < 2 or draws != self.draws:
            return None
        found = [column for kept in self.tallies for column in tally.columns(kept, draws, unbiased=True)]
        columns: list[Column] = []
        for index, (column, c) in enumerate(zip(found, self.multipliers, strict=True)):
            measured = dict(column.measured)
            if self.numerics is not None:
                measured |= self.numerics.estimates(index, draws)
            columns.append(replace(column, multiplier=c, measured=measured))
        return Measurement(self.parameters, draws, self.parameters.batch, tuple(columns))


def run(parameters: Parameters, draws: Draws | None = None, full: bool = True) -> Measurement[Parameters]:
    """The complete measurement; raises ParameterError where the scale rule has no multiplier at this d_k."""
    for step in stream(parameters, draws, full):
        if step.fraction == 1:
            result = step.measurement()
            assert result is not None, "a batch has at least two draws"
            return result
    raise AssertionError("a run ends with a complete step")


def stream(
    parameters: Parameters, draws: Draws | None = None, full: bool = True, names: Sequence[str] = ()
) -> Iterator[Step]:
    """The steps of a run, none of them long; the last has fraction 1.

    draws keeps components from one run to the next. A run that is not full leaves out the statistics of gradients and
    of the number format, and takes about half the time. names are the rules of the columns: unless others are asked
    for, unscaled and the chosen one. A column is the same whatever others there are.
    """
    p, draws = parameters, draws or Draws()
    rules = rules_of(p, names)
    multipliers = [c for _, c in rules]
    made, rough = 0.0, None
    if fits(p):
        made = 0.5
        for fraction in grow(p, draws, full):
            yield Step(made * fraction, p, (), multipliers, 0, None)
        rough = numerics(p, draws, weights_of(p), rules) if full else None
    if is_straight(p, names):
        kept = empty_tally(p, names)
        work = straight.from_cache(p, draws, kept, full) if made else straight.draw_by_draw(p, kept, full)
        for fraction, done in work:
            yield Step(made + (1 - made) * fraction, p, (kept,), multipliers, done, rough)
    else:
        for fraction, done, tallies in surveyed.stream(p, draws, full, rules):
            yield Step(made + (1 - made) * fraction, p, tallies, multipliers, done, rough)
