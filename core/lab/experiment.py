"""run(Parameters) -> Measurement: draw queries and keys, compute their scores, and collect the statistics.

`stream` does the same in steps, so that a caller can show progress and early results. To stop a run, stop iterating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..parameters import Parameters
from ..statistics import tally
from ..statistics.measurement import Column, Measurement
from . import one_pass, two_pass
from .numerics import Numerics, numerics
from .rare_draws import with_rough_errors
from .sampling import Draws
from .scoring import empty_tally, fits, grow, is_one_pass, rules_of, weights_of


@dataclass(frozen=True, eq=False)
class RunStep:
    """The progress of a run and its result so far."""

    fraction: float  # of the work done, 0 to 1
    parameters: Parameters
    tallies: Sequence[tally.Tally]  # one for all columns, or one for each
    multipliers: Sequence[float]  # of the columns
    draws: float  # draws done; a fraction means that one is done in part
    numerics: Numerics | None  # None if the components are too large to keep

    def measurement(self) -> Measurement[Parameters] | None:
        """Return the result so far; None during a draw, and before the second: one draw has no standard error."""
        draws = int(self.draws)
        if draws < 2 or draws != self.draws:
            return None
        found = [column for kept in self.tallies for column in tally.columns(kept, draws, unbiased=True)]
        columns: list[Column] = []
        for index, (column, c) in enumerate(zip(found, self.multipliers, strict=True)):
            measured = dict(column.measured)
            if self.numerics is not None:
                measured |= self.numerics.estimates(index, draws)
            column = replace(column, multiplier=c, measured=measured)
            columns.append(with_rough_errors(self.parameters, column, draws))
        return Measurement(self.parameters, draws, self.parameters.batch, tuple(columns))


def run(parameters: Parameters, draws: Draws | None = None, full: bool = True) -> Measurement[Parameters]:
    """Return the complete measurement; raise ParameterError if the scale rule has no multiplier at this d_k."""
    for step in stream(parameters, draws, full):
        if step.fraction == 1:
            result = step.measurement()
            assert result is not None, "a batch has at least two draws"
            return result
    raise AssertionError("a run ends with a complete step")


def stream(
    parameters: Parameters, draws: Draws | None = None, full: bool = True, names: Sequence[str] = ()
) -> Iterator[RunStep]:
    """Yield the steps of a run, all of them short; the last has fraction 1.

    `draws` keeps components from one run to the next. Without `full`, the statistics of gradients and of the number
    format are left out, which halves the time. `names` are the rules of the columns, by default unscaled and the
    chosen one; a column does not depend on the others. Raise ParameterError as `run` does.
    """
    p, draws = parameters, draws or Draws()
    rules = rules_of(p, names)
    multipliers = [c for _, c in rules]
    made, rough = 0.0, None
    if fits(p):
        made = 0.5
        for fraction in grow(p, draws, full):
            yield RunStep(made * fraction, p, (), multipliers, 0, None)
        rough = numerics(p, draws, weights_of(p), rules) if full else None
    if is_one_pass(p, names):
        kept = empty_tally(p, names)
        work = one_pass.from_cache(p, draws, kept, full) if made else one_pass.draw_by_draw(p, kept, full)
        for fraction, done in work:
            yield RunStep(made + (1 - made) * fraction, p, (kept,), multipliers, done, rough)
    else:
        for fraction, done, tallies in two_pass.stream(p, draws, full, rules):
            yield RunStep(made + (1 - made) * fraction, p, tallies, multipliers, done, rough)
