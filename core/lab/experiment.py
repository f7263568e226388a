"""run(Parameters) -> Measurement: draw queries and keys, compute their scores, and collect the statistics.

`stream` does the same in steps, so that a caller can show progress and early results. To stop a run, stop iterating.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..against import apart, settings, share_scores
from ..parameters import Parameters, ScaleName, Value
from ..statistics import reading, tally
from ..statistics.catalogue import EVERY, OF_GRADIENTS
from ..statistics.measurement import HISTOGRAMS, Column, HistogramName, Measurement
from . import one_pass, two_pass
from .numerics import Numerics, numerics
from .sampling import Draws, drawn_from, with_rough_errors
from .scoring import (
    RuleColumn,
    columns_of,
    columns_under,
    empty_tally,
    fits,
    grow,
    is_one_pass,
    range_of_rows,
    sides,
    weights_of,
)


class RunStep(NamedTuple):
    """The progress of a run and its result so far."""

    fraction: float  # of the work done, 0 to 1
    parameters: Parameters  # of the columns being measured
    tallies: Sequence[tally.Tally]  # one for all columns, or one for each
    multipliers: Sequence[float]  # of the columns
    draws: float  # draws done; a fraction means that one is done in part
    numerics: Numerics | None  # None if the components are too large to keep
    earlier: tuple[Column, ...] = ()  # columns that are complete
    later: bool = False  # whether columns are still missing
    subject: Parameters | None = None  # of the whole measurement, if it is not `parameters`
    apart: Sequence[Mapping[str, Value]] = ()  # of each column of the result, what it does not share with the others

    def measurement(self) -> Measurement[Parameters] | None:
        """Return the result so far; None during a draw, and before the second: one draw has no standard error."""
        draws = int(self.draws)
        if draws < 2 or draws != self.draws or self.later:
            return None
        columns, p = self.columns(draws), self.subject or self.parameters
        if self.apart:
            columns = tuple(replace(column, apart=own) for column, own in zip(columns, self.apart, strict=True))
        return Measurement(p, draws, p.batch, columns)

    def columns(self, draws: int) -> tuple[Column, ...]:
        """Return the columns after this many draws, the complete ones first."""
        found = [column for kept in self.tallies for column in reading.columns(kept, draws, unbiased=True)]
        columns: list[Column] = []
        for index, (column, c) in enumerate(zip(found, self.multipliers, strict=True)):
            measured = column.measured
            if self.numerics is not None:
                measured = {**measured, **self.numerics.estimates(index, draws)}
            of_rows = range_of_rows(self.parameters, RuleColumn(column.rule, c, self.parameters.setting))
            column = replace(column, multiplier=c, measured=measured, multipliers=of_rows)
            columns.append(with_rough_errors(self.parameters, column, draws))
        return (*self.earlier, *columns)


def run(
    parameters: Parameters,
    draws: Draws | None = None,
    full: bool = True,
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> Measurement[Parameters]:
    """Return the complete measurement; raise ParameterError if a scale rule has no multiplier at this d_k.

    Without `full`, the statistics of gradients and of the number format are left out, which halves the time.
    """
    statistics = EVERY if full else EVERY - OF_GRADIENTS
    for step in stream(parameters, draws, statistics, histograms=histograms):
        if step.fraction == 1:
            result = step.measurement()
            assert result is not None, "a batch has at least two draws"
            return result
    raise AssertionError("a run ends with a complete step")


def stream(
    parameters: Parameters,
    draws: Draws | None = None,
    statistics: Collection[str] = EVERY,
    names: Sequence[ScaleName] = (),
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> Iterator[RunStep]:
    """Yield the steps of a run, all of them short; the last has fraction 1.

    `draws` keeps components from one run to the next. `statistics` and `histograms` are those measured; the errors of
    the number format are measured with gradients. `names` are the rules of the columns; by default they are A and B.
    A column does not depend on the others, except that all have the same draws where their laws and numbers of keys
    are the same. Raise ParameterError as `run` does.
    """
    p, draws = parameters, draws or Draws()
    if names:
        return _together(p, draws, columns_under(p, names), statistics, histograms)
    if share_scores(p):
        steps = _together(p, draws, columns_of(p), statistics, histograms)
    else:
        steps = _in_turn(p, draws, statistics, histograms)
    by_side = apart(p)
    return (step._replace(apart=by_side) for step in steps) if any(by_side) else steps


def _in_turn(
    p: Parameters, draws: Draws, statistics: Collection[str], histograms: Collection[HistogramName]
) -> Iterator[RunStep]:
    """Yield the steps of A, then those of B."""
    a, b = settings(p)
    columns = [columns_under(each, [each.scale]) for each in (a, b)]
    same = drawn_from(a, sides(a)) == drawn_from(b, sides(b))
    done: tuple[Column, ...] = ()
    for step in _together(a, draws if same else draws.other, columns[0], statistics, histograms):
        yield step._replace(fraction=step.fraction / 2, later=True, subject=p)
        if step.fraction == 1:
            done = step.columns(p.batch)
    for step in _together(b, draws, columns[1], statistics, histograms):
        yield step._replace(fraction=(1 + step.fraction) / 2, earlier=done, subject=p)


def _together(
    p: Parameters,
    draws: Draws,
    columns: Sequence[RuleColumn],
    statistics: Collection[str],
    histograms: Collection[HistogramName],
) -> Iterator[RunStep]:
    """Yield the steps of columns that share their scores."""
    full = not OF_GRADIENTS.isdisjoint(statistics)
    multipliers = [column.multiplier for column in columns]
    made, rough = 0.0, None
    if fits(p):
        made = 0.5
        for fraction in grow(p, draws, full):
            yield RunStep(made * fraction, p, (), multipliers, 0, None)
        rough = numerics(p, draws, weights_of(p), columns) if full else None
    if is_one_pass(p, [column.rule for column in columns]):
        kept = empty_tally(p, columns, statistics=statistics, histograms=histograms)
        work = one_pass.from_cache(p, draws, kept, full) if made else one_pass.draw_by_draw(p, kept, full)
        for fraction, done in work:
            yield RunStep(made + (1 - made) * fraction, p, (kept,), multipliers, done, rough)
    else:
        for fraction, done, tallies in two_pass.stream(p, draws, full, columns, statistics, histograms):
            yield RunStep(made + (1 - made) * fraction, p, tallies, multipliers, done, rough)
