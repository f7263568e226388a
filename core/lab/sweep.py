"""The statistics over a grid of d_k, for little more than the matrix work of its largest.

Draws are nested, so the scores at one d_k are those at a smaller one plus the products of a few more columns. The
rows of all draws are cut into lanes, each of which grows its own scores from point to point; a step of a lane is
one task for the executor. What lanes find at a point is merged in their order, whichever is done first.

To stop a sweep is to stop asking for its next step: between steps nothing runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import pairwise

from ..attention.scales import Setting, multiplier
from ..blas import one_blas_thread
from ..errors import InputError
from ..parameters import FIELD, Parameters, Value
from ..statistics import tally
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Column, Measurement
from ..statistics.merge import merge
from . import experiment
from .lane import STRIDE, Lane, advance
from .sampling import Draws
from .scoring import is_straight

# Scores that are held at once, 64 MB of them and as many that are being measured: a larger question is worked on
# region by region.
HELD = 1 << 24
# Scores of a lane. The least is worth a task; a lane of the most is a short step, and still has rows enough for
# drawing the keys, which each lane does for itself, to be little beside multiplying them.
LEAST, MOST = 1 << 18, 1 << 22
LANES = 8  # as many as there are, unless they would be too small or too large
# Points whose tallies wait at once for the last region, or for further batches: few, so that the first are known
# soon, and enough that growing the scores again for the next ones is little beside measuring them.
GROUP = 8
MOST_DRAWS = int(FIELD["batch"].high)  # that a precision target may ask for


@dataclass(frozen=True, eq=False)
class Point:
    """What was measured at one d_k and one value of the second axis."""

    measurement: Measurement[Parameters]
    reached: bool  # whether its standard errors are as small as was asked for; true if nothing was

    @property
    def parameters(self) -> Parameters:
        """What was measured; `batch` is the draws that were taken, with which `run` gives the same result."""
        return self.measurement.subject


@dataclass(frozen=True, eq=False)
class Step:
    """How far a sweep is, and the points that are new."""

    fraction: float  # of the work done, 0 to 1; what a precision target adds to it is not foreseen
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Target:
    """A precision to be reached: the standard error of a statistic in every column in which it exists."""

    stderr: float
    statistic: str = "entropy_fraction"
    most_draws: int = MOST_DRAWS  # at most so many draws are taken, whether or not it is reached by then

    def __post_init__(self) -> None:
        accepted = [name for name in STATISTIC if name not in ("logit_min", "logit_max")]
        if self.statistic not in accepted:
            raise InputError(f"statistic: {self.statistic!r} has no standard error; one of {', '.join(accepted)} has")
        if not 0 < self.stderr < math.inf:
            raise InputError(f"standard error: {self.stderr!r} is not accepted; it takes a number above 0")
        FIELD["batch"].check(self.most_draws)

    def reached(self, columns: Sequence[Column]) -> bool:
        """Whether these columns are precise enough."""
        estimates = [column.measured[self.statistic] for column in columns]
        return all(e.value is None or (e.stderr is not None and e.stderr <= self.stderr) for e in estimates)


def sweep(
    parameters: Parameters,
    d_ks: Sequence[int],
    *,
    vary: tuple[str, Sequence[Value]] | None = None,
    target: Target | None = None,
    executor: Executor | None = None,
    full: bool = False,
) -> Iterator[Point]:
    """The points of `stream`, one by one."""
    steps = stream(parameters, d_ks, vary=vary, target=target, executor=executor, full=full)
    return (point for step in steps for point in step.points)


def stream(
    parameters: Parameters,
    d_ks: Sequence[int],
    *,
    vary: tuple[str, Sequence[Value]] | None = None,
    target: Target | None = None,
    executor: Executor | None = None,
    full: bool = False,
) -> Generator[Step, None, None]:
    """The steps of a sweep, none of them long: for each value of the second axis in turn, every d_k in rising order.

    vary is the second axis, any other parameter and its values. With a target each point draws further batches until
    it is precise enough. Without an executor there is a pool of threads while the sweep lasts, and BLAS has one
    thread; whoever hands an executor over had best see to that, as for `run`. A full sweep has the statistics of
    gradients and of the number format too, for which nothing nests: each of its points is a run in this thread. So
    is a sweep whose target is one of those.

    The same arguments give the same numbers, whatever the executor and however many workers it has. A point of
    another grid, or of `run`, has the same draws and is the same to the precision of float32.
    Raises InputError, before anything is computed, for what cannot be swept.
    """
    grid = sorted(set(d_ks))
    questions = _questions(parameters, vary)
    _check(grid, questions)
    full = full or (target is not None and STATISTIC[target.statistic].optional)
    return _stream(questions, grid, target, executor, full)


def _questions(parameters: Parameters, vary: tuple[str, Sequence[Value]] | None) -> list[Parameters]:
    if vary is None:
        return [parameters]
    name, values = vary
    accepted = [other for other in FIELD if other != "d_k"]
    if name not in accepted:
        raise InputError(f"second axis: {name!r} cannot be varied; it takes one of {', '.join(accepted)}")
    if not values:
        raise InputError(f"second axis: no values of {FIELD[name].label}; it takes {FIELD[name].accepted}")
    return [parameters.with_value(name, value) for value in values]


def _check(grid: list[int], questions: list[Parameters]) -> None:
    if not grid:
        raise InputError(f"d_k: no values to sweep; it takes {FIELD['d_k'].accepted}")
    for d_k in grid:
        FIELD["d_k"].check(d_k)
        for p in questions:
            multiplier(p.scale, replace(Setting.of(p), d_k=d_k))


def nests(parameters: Parameters) -> bool:
    """Whether the scores at one d_k are part of those at a larger one; otherwise every point is measured alone."""
    return is_straight(parameters) and parameters.precision == "float32"


def _stream(
    questions: list[Parameters], grid: list[int], target: Target | None, executor: Executor | None, full: bool
) -> Generator[Step, None, None]:
    if executor is None:
        with one_blas_thread(), ThreadPoolExecutor(os.cpu_count(), "sweep") as pool:
            yield from _stream(questions, grid, target, pool, full)
        return
    for number, p in enumerate(questions):
        alone = full or not nests(p)
        steps = _alone(p, grid, target, full) if alone else _nested(p, grid, target, executor)
        for step in steps:
            yield replace(step, fraction=(number + step.fraction) / len(questions))


def _alone(p: Parameters, grid: list[int], target: Target | None, full: bool) -> Iterator[Step]:
    """A run for each d_k in this thread; one that is not precise enough is followed by one of twice the draws."""
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


def _nested(p: Parameters, grid: list[int], target: Target | None, executor: Executor) -> Iterator[Step]:
    at_once = len(regions(p, slice(0, p.batch))) == 1 and target is None
    size = len(grid) if at_once else GROUP
    groups = [grid[first : first + size] for first in range(0, len(grid), size)]
    for number, group in enumerate(groups):
        for step in _group(p, group, target, executor):
            yield replace(step, fraction=(number + step.fraction) / len(groups))


def _group(p: Parameters, group: list[int], target: Target | None, executor: Executor) -> Iterator[Step]:
    """Batch after batch until every point is precise enough; a point comes out after all before it."""
    most_draws = max(target.most_draws, p.batch) if target else p.batch
    kept: dict[int, tally.Tally] = {}
    known: dict[int, Point] = {}
    missing, waiting, draws = group, group[::-1], slice(0, p.batch)
    while missing:
        for fraction, d_k in _batch(p, draws, missing, kept, executor):
            if d_k is not None:
                columns = tally.columns(kept[d_k], draws.stop, unbiased=True)
                reached = target is None or target.reached(columns)
                if reached or draws.stop == most_draws:
                    subject = replace(p, d_k=d_k, batch=draws.stop)
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
    """Merge these draws into what is kept of each d_k; yields the part done, and a d_k that has them all."""
    asked, wanted = replace(p, batch=draws.stop), set(d_ks)
    stops = [stop for pair in pairwise([0, *d_ks]) for stop in (*range(pair[0] + STRIDE, pair[1], STRIDE), pair[1])]
    cut = regions(p, draws)
    for number, region in enumerate(cut, 1):
        lanes = [Lane(asked, *slices) for slices in region]
        for at, stop in enumerate(stops, 1):
            results = _each(executor, lanes, stop, stop in wanted)
            lanes = [lane for lane, _ in results]
            parts = [part for _, part in results if part is not None]
            if parts:
                kept[stop] = merge([kept[stop], *parts] if stop in kept else parts)
            complete = stop in wanted and number == len(cut)
            yield (number - 1 + at / len(stops)) / len(cut), stop if complete else None


def regions(p: Parameters, draws: slice) -> list[list[tuple[slice, slice]]]:
    """The lanes that are held at once, as their draws and rows."""
    shape = tally.Shape(draws.stop - draws.start, p.n_queries, p.n_keys)
    per_draw = shape.rows * shape.keys
    size = min(max(LEAST, per_draw, shape.draws * per_draw // LANES), MOST)
    lanes = [(slice(draws.start + d.start, draws.start + d.stop), rows) for d, rows in tally.blocks(shape, size)]
    d, rows = lanes[0]
    at_once = math.ceil(HELD / ((d.stop - d.start) * (rows.stop - rows.start) * p.n_keys))
    return [lanes[first : first + at_once] for first in range(0, len(lanes), at_once)]


def _each(executor: Executor, lanes: list[Lane], stop: int, wanted: bool) -> list[tuple[Lane, tally.Tally | None]]:
    """One step of every lane. Whatever happens, nothing is left to run afterwards."""
    futures = [executor.submit(advance, lane, stop, wanted) for lane in lanes]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
