import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from attn_tui.core.blas import one_blas_thread
from attn_tui.core.errors import InputError
from attn_tui.core.lab import lane, sweep
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.lane import Lane
from attn_tui.core.lab.sweep import Point, Target, stream
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import tally
from test_experiment import GRID, assert_close, numbers
from threadpoolctl import threadpool_info, threadpool_limits

SMALL = Parameters(n_keys=12, n_queries=8, batch=4)
D_KS = (2, 3, 17, 64, 65, 130)


@pytest.fixture(autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with one_blas_thread():
        yield


class Inline(Executor):
    """Runs each task as it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def points(p: Parameters, d_ks: Any = D_KS, **options: Any) -> list[Point]:
    return [*sweep.sweep(p, d_ks, **{"executor": Inline()} | options)]


def all_numbers(found: list[Point]) -> Any:
    """All numbers of all points, to be compared bit for bit."""
    return [(point.parameters, point.reached, numbers(point.measurement)) for point in found]


def cut_small(monkeypatch: pytest.MonkeyPatch, held: int = 1 << 9, most: int = 1 << 7) -> None:
    """Let even a small question be cut into lanes and regions."""
    for name, value in (("HELD", held), ("LEAST", most // 2), ("MOST", most), ("GROUP", 4)):
        monkeypatch.setattr(sweep, name, value)


# What a point is


@pytest.mark.parametrize("change", GRID.values(), ids=GRID)
def test_a_point_is_what_a_run_measures(change: dict[str, Any]) -> None:
    p = replace(Parameters(n_keys=48, n_queries=40, batch=4), **change)
    for point in points(p, sorted({2, 63, 64, 70, 200, p.d_k})):
        expected = run(replace(point.parameters, precision="float64"), full=False)
        assert point.reached
        assert point.parameters == replace(p, d_k=point.parameters.d_k)
        assert (point.measurement.draws, point.measurement.complete) == (p.batch, True)
        for one, two in zip(point.measurement.columns, expected.columns, strict=True):
            assert_close(one, two, p)
        for one, two in zip(point.measurement.columns, run(point.parameters, full=False).columns, strict=True):
            for name, histogram in two.histograms.items():
                assert one.histograms[name].axis == histogram.axis
                moved = np.abs(np.subtract(one.histograms[name].counts, histogram.counts)).sum()
                assert moved <= 4 + histogram.total / 500, name


@pytest.mark.parametrize("d_ks", [range(1, 150), (1, 2, 1500, 1501, 1600, 4096)], ids=str)
@pytest.mark.parametrize(
    "change", [{}, {"correlation": -0.5, "mean_q": 2.0, "mean_k": -3.0, "mask": "causal"}], ids=str
)
def test_scores_stay_accurate_however_they_grow(change: Any, d_ks: Any) -> None:
    p = replace(SMALL, **change)
    for point in points(p, d_ks):
        expected = run(replace(point.parameters, precision="float64"), full=False)
        for one, two in zip(point.measurement.columns, expected.columns, strict=True):
            assert_close(one, two, p)


@pytest.mark.parametrize("change", [{}, {"mask": "causal", "correlation": 0.5, "mean_k": 3.0}], ids=str)
def test_lanes_and_regions_change_nothing(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    p = replace(SMALL, **change)
    whole = points(p)
    for held, most in ((1 << 20, 1 << 7), (1 << 9, 1 << 7), (1, 30), (1, 1)):
        cut_small(monkeypatch, held, most)
        for one, two in zip(points(p), whole, strict=True):
            assert one.parameters == two.parameters
            for a, b in zip(one.measurement.columns, two.measurement.columns, strict=True):
                assert_close(a, b, p, 1e-5)
                assert a.histograms["logits"].total == b.histograms["logits"].total


def test_points_come_in_rising_order_each_once() -> None:
    found = points(SMALL, [64, 3, 64, 17])
    assert [point.parameters.d_k for point in found] == [3, 17, 64]


def test_a_second_axis_is_swept_value_by_value() -> None:
    for name, values in (("n_keys", (5, 12)), ("scale", ("none", "d_k")), ("components", ("uniform", "laplace"))):
        found = points(SMALL, [3, 17], vary=(name, values))
        asked = [(getattr(point.parameters, name), point.parameters.d_k) for point in found]
        assert asked == [(value, d_k) for value in values for d_k in (3, 17)]
        alone = [point for value in values for point in points(replace(SMALL, **{name: value}), [3, 17])]
        assert all_numbers(found) == all_numbers(alone)


def test_what_cannot_be_swept_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "components", None)
    for d_ks, options, message in (
        ([], {}, "d_k: no values"),
        ([0, 1], {}, "d_k: 0 is not accepted"),
        ([16, 1 << 20], {}, "whole number from 1 to 16384"),
        ([1, 2], {"vary": ("scale", ["none", "log_d_k"])}, "no value at d_k = 1"),
        ([2], {"vary": ("d_k", [3])}, "'d_k' cannot be varied"),
        ([2], {"vary": ("width", [3])}, "one of n_keys, n_queries"),
        ([2], {"vary": ("n_keys", [])}, "no values of keys"),
        ([2], {"vary": ("n_keys", [1.5])}, "keys: 1.5 is not accepted"),
    ):
        with pytest.raises(InputError, match=message) as error:
            sweep.sweep(SMALL, d_ks, **options)
        assert "\n" not in str(error.value)


# The same arguments, the same numbers


def test_numbers_depend_neither_on_the_executor_nor_on_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    p = Parameters(n_keys=48, n_queries=40, batch=12, mask="causal", correlation=0.3)
    cut_small(monkeypatch, 1 << 14, 1 << 11)
    options: dict[str, Any] = {"vary": ("n_keys", [7, 48]), "target": Target(0.002, most_draws=30)}
    expected = all_numbers(points(p, **options))
    for workers in (1, 4):
        with ThreadPoolExecutor(workers) as pool:
            for _ in range(3):
                assert all_numbers(points(p, executor=pool, **options)) == expected
    assert all_numbers(points(p, executor=None, **options)) == expected


def test_work_can_be_handed_to_processes() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert all_numbers(points(SMALL, [3, 17, 130], executor=pool)) == all_numbers(points(SMALL, [3, 17, 130]))


def test_a_sweep_does_not_depend_on_the_one_before() -> None:
    first = all_numbers(points(SMALL))
    points(replace(SMALL, seed=1))
    assert all_numbers(points(SMALL)) == first


# How it runs


def test_points_stream_and_the_part_done_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    for whole in (True, False):
        if not whole:
            cut_small(monkeypatch)
        fractions, found = [0.0], 0
        for step in stream(SMALL, range(1, 11), vary=("seed", [0, 1]), executor=Inline()):
            assert fractions[-1] <= step.fraction <= 1
            assert len(step.points) <= 1
            found += len(step.points)
            fractions.append(step.fraction)
            assert found >= 20 * step.fraction - 5 or not whole
        assert (found, fractions[-1]) == (20, 1)


class Watched(Executor):
    """A pool that knows how many of its tasks are not done."""

    def __init__(self, workers: int) -> None:
        self.pool, self.tasks = ThreadPoolExecutor(workers), list[Future[Any]]()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(self.pool.submit(fn, *args, **kwargs))
        return self.tasks[-1]

    @property
    def unfinished(self) -> int:
        return sum(not task.done() for task in self.tasks)


def test_a_dropped_sweep_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 20)
    before = set(threading.enumerate())
    iterator = sweep.sweep(SMALL, range(1, 4000))
    next(iterator)
    assert next(thread.name[:5] for thread in set(threading.enumerate()) - before) == "sweep"
    del iterator
    assert set(threading.enumerate()) <= before

    pool = Watched(2)
    iterator = sweep.sweep(SMALL, range(1, 4000), executor=pool)
    next(iterator)
    del iterator
    assert pool.unfinished == 0
    done = len(pool.tasks)
    assert done < 100
    assert points(SMALL, [3], executor=pool.pool), "the pool was not ours to shut down"
    assert len(pool.tasks) == done
    pool.pool.shutdown()


def test_a_sweep_that_fails_cancels_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does when it is interrupted: what runs ends after its step, what waits is never begun."""
    cut_small(monkeypatch, 1 << 20)
    begun: list[Lane] = []

    def advance(one: Lane, d_k: int, wanted: bool) -> Any:
        begun.append(one)
        if len(begun) == 1:
            raise KeyboardInterrupt
        time.sleep(0.1)
        return one, None

    monkeypatch.setattr(sweep, "advance", advance)
    pool = Watched(2)
    with pytest.raises(KeyboardInterrupt):
        points(replace(SMALL, batch=16), [3], executor=pool)
    assert pool.unfinished == 0
    assert len(pool.tasks) == 16
    assert len(begun) <= 4
    pool.pool.shutdown()


def peak(work: Callable[[], object]) -> int:
    """The most bytes that are held at once while it runs, once everything is imported and cached."""
    work()
    tracemalloc.start()
    work()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


def drain(p: Parameters, d_ks: Any) -> None:
    for _ in sweep.sweep(p, d_ks, executor=Inline()):
        pass


@pytest.mark.parametrize("whole", [True, False])
def test_memory_does_not_grow_with_the_number_of_points(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    assert peak(lambda: drain(SMALL, range(1, 121))) <= 1.1 * peak(lambda: drain(SMALL, range(1, 31)))


def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 17, 1 << 15)
    monkeypatch.setattr(tally, "PIECE", 1 << 13)
    p = Parameters(n_keys=64, batch=2)
    few, many = (peak(lambda n=n: drain(replace(p, n_queries=n), [8, 64])) for n in (1 << 10, 1 << 13))
    assert many <= few + 64 * 4 * 2 * (1 << 13), "no more than one chunk of all queries of a draw"


def test_lanes_cover_every_row_of_every_draw_once_and_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    for batch, rows, keys in ((16, 64, 128), (16, 256, 256), (16, 1024, 1024), (4096, 64, 64), (2, 8192, 8192)):
        p = Parameters(batch=batch, n_queries=rows, n_keys=keys)
        regions = sweep.regions(p, slice(5, 5 + batch))
        covered = np.zeros((5 + batch, rows), np.int8)
        for region in regions:
            entries = [(d.stop - d.start) * (r.stop - r.start) * keys for d, r in region]
            assert max(entries) <= sweep.MOST
            assert sum(entries) <= sweep.HELD + max(entries)
            assert len(entries) >= 4 or sum(entries) <= 4 * sweep.LEAST
            for d, r in region:
                covered[d, r] += 1
        assert np.all(covered[:5] == 0)
        assert np.all(covered[5:] == 1)
        assert len(regions) == 1 or batch * rows * keys > sweep.HELD


def test_many_narrow_draws_take_fewer_columns_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    p = Parameters(n_keys=16, n_queries=16, batch=64, correlation=0.5)
    monkeypatch.setattr(lane, "ROOM", 1 << 18)
    sizes: list[int] = []
    for batch in (2, 64):
        narrow = Lane(p, slice(0, batch), slice(0, p.n_queries))
        for d_k in (200, 700, 1500):
            for _ in narrow.at(d_k):
                sizes.append(sum(each.size for each in narrow.made))
    assert max(sizes) <= 2 * lane.ROOM
    assert narrow.stride == 128


def test_its_own_threads_find_blas_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def advance(*task: Any) -> Any:
        found.extend(pool["num_threads"] for pool in threadpool_info())
        return lane.advance(*task)

    monkeypatch.setattr(sweep, "advance", advance)
    with threadpool_limits(2):
        points(SMALL, [3, 17], executor=None)
    assert set(found) == {1}


# Where scores do not nest


def test_points_that_do_not_nest_are_runs_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "nests", lambda p: p.mask == "none")
    p = replace(SMALL, mask="causal", batch=6)
    steps = [*stream(p, [17, 3, 64], vary=("mask", ["none", "causal"]), executor=Inline())]
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert len([part for part in fractions if part > 0.5]) > 6, "a run is no single step"
    found = [point for step in steps for point in step.points]
    assert [(point.parameters.mask, point.parameters.d_k) for point in found] == [
        (mask, d_k) for mask in ("none", "causal") for d_k in (3, 17, 64)
    ]
    for point in found[3:]:
        assert numbers(point.measurement) == numbers(run(replace(p, d_k=point.parameters.d_k), full=False))


def test_points_that_do_not_nest_reach_a_precision_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "nests", lambda p: False)
    found = points(SMALL, (3, 17, 40), target=Target(0.02, most_draws=100))
    assert len({point.parameters.batch for point in found}) > 1
    for point in found:
        assert point.reached
        assert all(error is not None and error <= 0.02 for error in errors(point, "entropy_fraction"))
        assert numbers(point.measurement) == numbers(run(point.parameters, full=False))
    for point in points(SMALL, [3], target=Target(1e-9, most_draws=10)):
        assert (point.reached, point.parameters.batch, point.measurement.draws) == (False, 10, 10)


def test_a_full_sweep_has_what_a_run_has() -> None:
    p = replace(SMALL, precision="float16")
    for point in points(p, [3, 64], full=True):
        expected = run(replace(p, d_k=point.parameters.d_k))
        assert numbers(point.measurement) == numbers(expected)
        assert all(column.measured["grad_q_median"].value for column in point.measurement.columns)
        assert all(column.measured["weight_error"].value for column in point.measurement.columns)
    (precise,) = points(SMALL, [3], target=Target(0.5, "grad_q_median"))
    assert all(error is not None and error <= 0.5 for error in errors(precise, "grad_q_median"))
    for point in points(SMALL, [3]):
        assert all(column.measured["grad_q_median"].value is None for column in point.measurement.columns)


# A precision target


def errors(point: Point, statistic: str) -> list[float | None]:
    return [column.measured[statistic].stderr for column in point.measurement.columns]


@pytest.mark.parametrize("statistic", ["entropy_fraction", "logit_variance"])
@pytest.mark.parametrize("cut", [False, True])
def test_batches_are_drawn_until_both_columns_are_precise_enough(
    monkeypatch: pytest.MonkeyPatch, statistic: str, cut: bool
) -> None:
    if cut:
        cut_small(monkeypatch)
    target = Target(0.02 if statistic == "entropy_fraction" else 2.0, statistic)
    found = points(SMALL, (2, 3, 17, 20, 30, 40), target=target)
    assert [point.parameters.d_k for point in found] == [2, 3, 17, 20, 30, 40]
    draws = [point.parameters.batch for point in found]
    assert len(set(draws)) > 2, "each point takes what it needs"
    for point in found:
        assert point.reached
        assert point.parameters.batch % SMALL.batch == 0
        assert all(error is not None and error <= target.stderr for error in errors(point, statistic))
        measured = run(point.parameters, full=False)
        for one, two in zip(point.measurement.columns, measured.columns, strict=True):
            assert_close(one, two, point.parameters)
        fewer = point.parameters.batch - SMALL.batch
        if fewer:
            earlier = run(replace(point.parameters, batch=fewer), full=False).columns
            assert max(column.measured[statistic].stderr or 0 for column in earlier) > target.stderr


def test_a_target_out_of_reach_ends_at_its_limit() -> None:
    for point in points(SMALL, [3, 17], target=Target(1e-9, most_draws=10)):
        assert not point.reached
        assert point.parameters.batch == point.measurement.draws == 10
    for point in points(SMALL, [3], target=Target(1e-9, most_draws=2)):
        assert not point.reached
        assert point.parameters.batch == SMALL.batch, "a whole batch is drawn in any case"


def test_a_statistic_that_does_not_exist_needs_no_precision() -> None:
    one_key = replace(SMALL, n_keys=1)
    assert [point.parameters.batch for point in points(one_key, [3], target=Target(1e-9))] == [SMALL.batch]


def test_batches_for_precision_go_on_with_the_same_numbers() -> None:
    """Points that need none of them are those of a sweep without a target."""
    plain, precise = points(SMALL), points(SMALL, target=Target(1.0))
    assert all_numbers(plain) == all_numbers(precise)


@pytest.mark.parametrize("stderr", [0, -1, float("nan"), float("inf")])
def test_a_precision_is_a_number_above_zero(stderr: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        Target(stderr)


def test_a_target_names_a_statistic_with_a_standard_error_and_a_possible_limit() -> None:
    for name in ("logit_max", "entropy of it"):
        with pytest.raises(InputError, match="has no standard error; one of logit_mean, "):
            Target(0.1, name)
    with pytest.raises(InputError, match="from 2 to 4096"):
        Target(0.1, most_draws=5000)
