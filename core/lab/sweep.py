"""Measure the statistics over a grid of d_k, for little more than the matrix products of the largest d_k.

A sweep over numbers of keys, or over another parameter, is such a grid for each value. Draws are nested, so the
scores at one d_k are those at a smaller one plus the products of the columns between. The rows of all draws are cut
into parts, each of which grows its scores from point to point; one step of one part is a task for the executor. The
parts' tallies of a point are merged in a fixed order, whichever is done first.

To stop a sweep, stop iterating: nothing runs between steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from ..against import settings, share_scores
from ..blas import one_blas_thread
from ..errors import InputError
from ..parameters import FIELD, Parameters, Value
from ..scales import multiplier
from ..statistics import tally
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Measurement
from ..statistics.merge import merge
from . import experiment
from .growing_scores import STRIDE, GrowingScores, advance
from .rare_draws import with_rough_errors
from .results import Point, Step, Target
from .sampling import Draws
from .scoring import is_one_pass

# The most scores held at once, 64 MB, besides those being measured; larger sweeps are processed region by region.
HELD = 1 << 24
# Scores of a part: at least what is worth a task, at most a short step. Each part draws the keys itself, which costs
# little if it has many rows.
LEAST, MOST = 1 << 18, 1 << 22
PARTS = 8  # unless that makes them too small or too large
# Points measured together if there are several regions or a target: few, so that the first are soon complete, and
# enough that growing the scores again for the next group costs little beside measuring.
GROUP = 8

PointsStep: TypeAlias = Step[tuple[Point, ...]]  # the new points


def sweep(
    parameters: Parameters,
    d_ks: Sequence[int],
    *,
    vary: tuple[str, Sequence[Value]] | None = None,
    n_keys: Sequence[int] = (),
    target: Target | None = None,
    executor: Executor | None = None,
    full: bool = False,
) -> Iterator[Point]:
    """Return an iterator over the points of `stream`."""
    steps = stream(parameters, d_ks, vary=vary, n_keys=n_keys, target=target, executor=executor, full=full)
    return (point for step in steps for point in step.found)


def stream(
    parameters: Parameters,
    d_ks: Sequence[int],
    *,
    vary: tuple[str, Sequence[Value]] | None = None,
    n_keys: Sequence[int] = (),
    target: Target | None = None,
    executor: Executor | None = None,
    full: bool = False,
) -> Generator[PointsStep, None, None]:
    """Yield the steps of a sweep: for each value of the second axis, for each number of keys, every d_k, both rising.

    `vary` is the second axis: another parameter and its values. Without `n_keys`, the number of keys is that of the
    parameters. With a target, each point draws further batches until
    it is precise enough. Without an executor, a thread pool runs while the sweep lasts, and BLAS is limited to one
    thread; callers that pass an executor should do the same, as for `run`. With `full`, or if the target needs it,
    the statistics of gradients and of the number format are measured too; they do not nest, so each point is a
    separate run in this thread.

    The numbers depend on neither the executor nor its number of workers. A point of another grid, or of `run`, has
    the same draws and agrees to the precision of float32. Raise InputError, before anything is computed, if an
    argument is invalid.
    """
    grid = sorted(set(d_ks))
    questions = _questions(parameters, vary, sorted(set(n_keys)))
    _check(grid, questions)
    full = full or (target is not None and STATISTIC[target.statistic].optional)
    return _stream(questions, grid, target, executor, full)


def _questions(
    parameters: Parameters, vary: tuple[str, Sequence[Value]] | None, n_keys: Sequence[int]
) -> list[Parameters]:
    """Return the parameters at each value of the second axis and each number of keys, in that order."""
    if n_keys:
        return [p.with_value("n_keys", n) for p in _questions(parameters, vary, ()) for n in n_keys]
    if vary is None:
        return [parameters]
    name, values = vary
    accepted = [other for other in FIELD if other != "d_k"]
    if name not in accepted:
        raise InputError(f"second axis: must be one of {', '.join(accepted)}, not {name!r}")
    if not values:
        raise InputError(f"second axis: no values of {FIELD[name].label}; a value must be {FIELD[name].accepted}")
    return [parameters.with_value(name, value) for value in values]


def _check(grid: list[int], questions: list[Parameters]) -> None:
    if not grid:
        raise InputError(f"d_k: no values to sweep; a value must be {FIELD['d_k'].accepted}")
    for d_k in grid:
        FIELD["d_k"].check(d_k)
        for p in questions:
            for each in settings(replace(p, d_k=d_k)):
                multiplier(each.scale, each.setting)


def nests(parameters: Parameters) -> bool:
    """Return whether scores can grow from one d_k to the next; otherwise every point is a separate run."""
    p = parameters
    return share_scores(p) and is_one_pass(p, [each.scale for each in settings(p)]) and p.precision == "float32"


def _stream(
    questions: list[Parameters], grid: list[int], target: Target | None, executor: Executor | None, full: bool
) -> Generator[PointsStep, None, None]:
    if executor is None:
        with one_blas_thread(), ThreadPoolExecutor(os.cpu_count(), "sweep") as pool:
            yield from _stream(questions, grid, target, pool, full)
        return
    for number, p in enumerate(questions):
        alone = full or not nests(p)
        steps = _alone(p, grid, target, full) if alone else _nested(p, grid, target, executor)
        for step in steps:
            yield replace(step, fraction=(number + step.fraction) / len(questions))


def _alone(p: Parameters, grid: list[int], target: Target | None, full: bool) -> Iterator[PointsStep]:
    """Measure each d_k in a separate run in this thread, with twice the draws until it is precise enough."""
    most_draws = max(target.most_draws, p.batch) if target else p.batch
    draws = Draws()
    for number, d_k in enumerate(grid):
        asked, point = replace(p, d_k=d_k), None
        while point is None:
            for step in experiment.stream(asked, draws, full):
                measurement = step.measurement() if step.fraction == 1 else None
                if measurement is not None:
                    reached = target is None or target.reached(measurement.columns)
                    if reached or asked.batch == most_draws:
                        point = Point(measurement, reached)
                part = 1.0 if asked.batch > p.batch else step.fraction
                yield Step((number + part) / len(grid), () if point is None else (point,))
            asked = replace(asked, batch=min(2 * asked.batch, most_draws))


def _nested(p: Parameters, grid: list[int], target: Target | None, executor: Executor) -> Iterator[PointsStep]:
    at_once = len(regions(p, slice(0, p.batch))) == 1 and target is None
    size = len(grid) if at_once else GROUP
    groups = [grid[first : first + size] for first in range(0, len(grid), size)]
    for number, group in enumerate(groups):
        for step in _group(p, group, target, executor):
            yield replace(step, fraction=(number + step.fraction) / len(groups))


def _group(p: Parameters, group: list[int], target: Target | None, executor: Executor) -> Iterator[PointsStep]:
    """Measure batch after batch until every point is precise enough; yield points in order."""
    most_draws = max(target.most_draws, p.batch) if target else p.batch
    kept: dict[int, tally.Tally] = {}
    known: dict[int, Point] = {}
    missing, waiting, draws = group, group[::-1], slice(0, p.batch)
    while missing:
        for fraction, d_k in _batch(p, draws, missing, kept, executor):
            if d_k is not None:
                subject = replace(p, d_k=d_k, batch=draws.stop)
                found = tally.columns(kept[d_k], draws.stop, unbiased=True)
                columns = tuple(with_rough_errors(subject, column, draws.stop) for column in found)
                reached = target is None or target.reached(columns)
                if reached or draws.stop == most_draws:
                    known[d_k] = Point(Measurement(subject, draws.stop, draws.stop, columns), reached)
                    del kept[d_k]
            points: list[Point] = []
            while waiting and waiting[-1] in known:
                points.append(known.pop(waiting.pop()))
            yield Step(1.0 if draws.start else fraction, tuple(points))
        missing, draws = [*kept], slice(draws.stop, min(draws.stop + p.batch, most_draws))


def _batch(
    p: Parameters, draws: slice, d_ks: list[int], kept: dict[int, tally.Tally], executor: Executor
) -> Iterator[tuple[float, int | None]]:
    """Merge these draws into the tally of each d_k; yield the finished fraction, and a d_k that is complete."""
    asked, wanted = replace(p, batch=draws.stop), set(d_ks)
    stops = [stop for pair in pairwise([0, *d_ks]) for stop in (*range(pair[0] + STRIDE, pair[1], STRIDE), pair[1])]
    cut = regions(p, draws)
    for number, region in enumerate(cut, 1):
        parts = [GrowingScores(asked, *slices) for slices in region]
        for at, stop in enumerate(stops, 1):
            results = _each(executor, parts, stop, stop in wanted)
            parts = [part for part, _ in results]
            tallies = [found for _, found in results if found is not None]
            if tallies:
                kept[stop] = merge([kept[stop], *tallies] if stop in kept else tallies)
            complete = stop in wanted and number == len(cut)
            yield (number - 1 + at / len(stops)) / len(cut), stop if complete else None


def regions(p: Parameters, draws: slice) -> list[list[tuple[slice, slice]]]:
    """Return the regions in turn, each a list of parts (draws, rows) that are held at once."""
    shape = tally.Shape(draws.stop - draws.start, p.n_queries, p.n_keys)
    per_draw = shape.rows * shape.keys
    size = min(max(LEAST, per_draw, shape.draws * per_draw // PARTS), MOST)
    parts = [(slice(draws.start + d.start, draws.start + d.stop), rows) for d, rows in tally.blocks(shape, size)]
    d, rows = parts[0]
    at_once = math.ceil(HELD / ((d.stop - d.start) * (rows.stop - rows.start) * p.n_keys))
    return [parts[first : first + at_once] for first in range(0, len(parts), at_once)]


def _each(
    executor: Executor, parts: list[GrowingScores], stop: int, wanted: bool
) -> list[tuple[GrowingScores, tally.Tally | None]]:
    """Run one step of every part; no task is left running, even after an error."""
    futures = [executor.submit(advance, part, stop, wanted) for part in parts]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
