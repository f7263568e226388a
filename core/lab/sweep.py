"""Measure the statistics over a grid of d_k, for little more than the matrix products of the largest d_k.

A sweep over numbers of keys, or over another parameter, is such a grid for each value. Draws are nested, so the
scores at one d_k are those at a smaller one plus the products of the columns between. `core.work` cuts a sweep into
parts; the functions here measure one: some d_k of a grid, of all draws or of some rows of some draws.

To stop a measurement, stop iterating: nothing runs between steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from ..against import settings, share_scores
from ..errors import InputError, not_one_of
from ..parameters import FIELD, Parameters, ScaleName, Value, setting_a
from ..scales import multiplier
from ..statistics import reading, tally
from ..statistics.catalogue import EVERY, OF_GRADIENTS
from ..statistics.measurement import HISTOGRAMS, Column, HistogramName, Measurement
from ..statistics.reading import merge
from . import experiment
from .growing_scores import STRIDE, GrowingScores
from .results import ProgressStep, SweepPoint, Target
from .sampling import Draws, with_rough_errors
from .scoring import columns_under, empty_tally, hidden, is_one_pass

# The most scores that a part of a sweep holds, 16 MB. Each part draws the keys itself, which costs little if it has
# many rows.
MOST = 1 << 22

Placed: TypeAlias = tuple[
    int, SweepPoint
]  # the number of the scale rule among those measured together, and a point of it


def questions(
    parameters: Parameters,
    d_ks: Sequence[int],
    vary: tuple[str, Sequence[Value]] | None = None,
    n_keys: Sequence[int] = (),
) -> list[Parameters]:
    """Return the parameters at each value of the second axis and each number of keys, in that order.

    Each is measured over all d_k; that of the parameters is ignored. Raise InputError if an argument is invalid.
    """
    found = _questions(parameters, vary, sorted(set(n_keys)))
    if not d_ks:
        raise InputError("d_k: no values to sweep; a value must be {accepted}", accepted=FIELD["d_k"].accepted)
    for d_k in d_ks:
        FIELD["d_k"].check(d_k)
        for p in found:
            for setting in settings(replace(p, d_k=d_k)):
                multiplier(setting.scale, setting.setting)
    return found


def _questions(
    parameters: Parameters, vary: tuple[str, Sequence[Value]] | None, n_keys: Sequence[int]
) -> list[Parameters]:
    if n_keys:
        return [p.with_value("n_keys", n) for p in _questions(parameters, vary, ()) for n in n_keys]
    if vary is None:
        return [parameters]
    name, values = vary
    accepted = [other for other in FIELD if other != "d_k"]
    if name not in accepted:
        raise InputError("second axis: {reason}", reason=not_one_of(name, accepted))
    if not values:
        raise InputError(
            "second axis: no values of {label}; a value must be {accepted}",
            label=FIELD[name].label,
            accepted=FIELD[name].accepted,
        )
    return [parameters.with_value(name, value) for value in values]


def nests(p: Parameters) -> bool:
    """Return whether scores can grow from one d_k to the next; otherwise every point is a separate run."""
    return share_scores(p) and is_one_pass(p, [setting.scale for setting in settings(p)]) and p.precision == "float32"


def cuts(p: Parameters, draws: slice, most_draws: int = 4096) -> list[tuple[slice, slice]]:
    """Return the slices (draws, rows) whose scores grow separately: at most MOST scores, or rows of `most_draws`."""
    shape = tally.Shape(draws.stop - draws.start, p.n_queries, p.n_keys)
    size = min(MOST, most_draws * shape.rows * shape.keys)
    return [(slice(draws.start + d.start, draws.start + d.stop), rows) for d, rows in tally.blocks(shape, size)]


def separate(
    p: Parameters,
    d_ks: Sequence[int],
    target: Target | None = None,
    full: bool = False,
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> Iterator[ProgressStep[Placed]]:
    """Measure each d_k in a separate run, with twice the draws until it is precise enough."""
    most_draws = max(target.most_draws, p.batch) if target else p.batch
    draws, statistics = Draws(), EVERY if full else EVERY - OF_GRADIENTS
    for number, d_k in enumerate(d_ks):
        asked, point = replace(p, d_k=d_k), None
        while point is None:
            for step in experiment.stream(asked, draws, statistics, histograms=histograms):
                measurement = step.measurement() if step.fraction == 1 else None
                if measurement is not None:
                    reached = target is None or target.reached(measurement.columns)
                    if reached or asked.batch == most_draws:
                        point = SweepPoint(measurement, reached)
                part = 1.0 if asked.batch > p.batch else step.fraction
                yield ProgressStep((number + part) / len(d_ks), () if point is None else ((0, point),))
            asked = replace(asked, batch=min(2 * asked.batch, most_draws))


def nested(
    p: Parameters,
    d_ks: Sequence[int],
    rules: Sequence[ScaleName],
    target: Target | None = None,
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> Iterator[ProgressStep[Placed]]:
    """Measure rising d_k under each rule on the same scores; yield the points of each rule in order.

    With a target, draw batch after batch until every point is precise enough.
    """
    most_draws = max(target.most_draws, p.batch) if target else p.batch
    kept: dict[int, tally.Tally] = {}
    known: dict[tuple[int, int], SweepPoint] = {}
    waiting = [[*reversed(d_ks)] for _ in rules]
    missing = dict.fromkeys(d_ks, frozenset(range(len(rules))))
    draws = slice(0, p.batch)
    while missing:
        cut = cuts(p, draws)
        for number, (d, rows) in enumerate(cut):
            asked = replace(p, batch=draws.stop)
            for step in tallies(asked, d, rows, [*missing], rules, histograms):
                for d_k, found in step.found:
                    kept[d_k] = merge([kept[d_k], found] if d_k in kept else [found])
                    if number == len(cut) - 1:
                        for place, point in enumerate(points(p, d_k, rules, kept[d_k], target)):
                            if place in missing[d_k] and (point.reached or draws.stop == most_draws):
                                known[place, d_k] = point
                                missing[d_k] -= {place}
                        if not missing[d_k]:
                            del kept[d_k], missing[d_k]
                complete: list[Placed] = []
                for place, rest in enumerate(waiting):
                    while rest and (place, rest[-1]) in known:
                        complete.append((place, known.pop((place, rest.pop()))))
                yield ProgressStep(1.0 if draws.start else (number + step.fraction) / len(cut), tuple(complete))
        draws = slice(draws.stop, min(draws.stop + p.batch, most_draws))


def points(
    p: Parameters, d_k: int, rules: Sequence[ScaleName], found: tally.Tally, target: Target | None = None
) -> Iterator[SweepPoint]:
    """Yield the point of each rule at a d_k, from the tally of all draws so far."""
    draws = found.held.stop
    first, *others = reading.columns(found, draws, unbiased=True)
    for rule, column in zip(rules, others, strict=True):
        subject = replace(p, d_k=d_k, batch=draws, scale=rule)
        columns: tuple[Column, ...] = (
            with_rough_errors(subject, first, draws),
            with_rough_errors(subject, column, draws),
        )
        yield SweepPoint(Measurement(subject, draws, draws, columns), target is None or target.reached(columns))


def tallies(
    p: Parameters,
    draws: slice,
    rows: slice,
    d_ks: Sequence[int],
    rules: Sequence[ScaleName],
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> Iterator[ProgressStep[tuple[int, tally.Tally]]]:
    """Grow the scores of some rows of some draws over rising d_k; yield each d_k with its tally, in short steps.

    The tally has the column of setting A and one for each rule. `batch` of the parameters is the number of all draws.
    """
    stops = [stop for pair in pairwise([0, *d_ks]) for stop in (*range(pair[0] + STRIDE, pair[1], STRIDE), pair[1])]
    wanted, scores = {*d_ks}, GrowingScores(p, draws, rows)
    for at, stop in enumerate(stops, 1):
        if stop not in wanted:
            scores.grow(stop)
            yield ProgressStep(at / len(stops))
            continue
        asked = replace(p, d_k=stop)
        columns = [*columns_under(setting_a(asked), [setting_a(asked).scale]), *columns_under(asked, rules)]
        found = empty_tally(asked, columns, draws, histograms=histograms)
        for piece in scores.at(stop):
            tally.add(found, piece.draws, piece.rows, piece.scores, hidden(asked, piece.rows), piece.of_query)
        found.scratch.clear()
        yield ProgressStep(at / len(stops), ((stop, found),))
