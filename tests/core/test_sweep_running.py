"""How a sweep runs: its steps, its tasks, its memory, and what it leaves behind."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import growing_scores, sweep
from attn_tui.core.lab.growing_scores import GrowingScores
from attn_tui.core.lab.sweep import stream
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import tally
from memory import peak_memory
from sweeps import INLINE, SMALL, cut_small, points

threadpoolctl = import_module("threadpoolctl")  # without type stubs
pytestmark = pytest.mark.usefixtures("one_blas_thread")


@pytest.mark.parametrize("whole", [True, False])
def test_points_stream_and_the_part_done_rises(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    fractions, found = [0.0], 0
    for step in stream(SMALL, range(1, 11), vary=("seed", [0, 1]), executor=INLINE):
        assert fractions[-1] <= step.fraction <= 1
        assert len(step.found) <= 1
        found += len(step.found)
        fractions.append(step.fraction)
        assert found >= 20 * step.fraction - 5 or not whole
    assert (found, fractions[-1]) == (20, 1)


class Watched(Executor):
    """A pool that keeps its tasks and notes when one is cancelled."""

    def __init__(self, workers: int) -> None:
        self.pool, self.tasks, self.cancelled = ThreadPoolExecutor(workers), list[Future[Any]](), threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        task = self.pool.submit(fn, *args, **kwargs)
        task.add_done_callback(lambda task: self.cancelled.set() if task.cancelled() else None)
        self.tasks.append(task)
        return task

    @property
    def unfinished(self) -> int:
        return sum(not task.done() for task in self.tasks)


def test_a_dropped_sweep_ends_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 20)
    before = set(threading.enumerate())
    iterator = sweep.sweep(SMALL, range(1, 4000))
    next(iterator)
    assert next(thread.name[:5] for thread in set(threading.enumerate()) - before) == "sweep"
    del iterator
    assert set(threading.enumerate()) <= before


def test_a_dropped_sweep_leaves_no_task_in_the_pool_and_the_pool_open(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 20)
    pool = Watched(2)
    iterator = sweep.sweep(SMALL, range(1, 4000), executor=pool)
    next(iterator)
    del iterator
    assert pool.unfinished == 0
    done = len(pool.tasks)
    assert done < 100
    assert points(SMALL, [3], executor=pool.pool)
    assert len(pool.tasks) == done
    pool.pool.shutdown()


def test_a_sweep_that_fails_cancels_its_waiting_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does one that is interrupted: a running task ends after its step, a waiting one never begins."""
    cut_small(monkeypatch, 1 << 20)
    pool = Watched(2)
    begun: list[GrowingScores] = []

    def advance(one: GrowingScores, d_k: int, wanted: bool) -> Any:
        begun.append(one)
        if len(begun) == 1:
            raise KeyboardInterrupt
        assert pool.cancelled.wait(5)
        return one, None

    monkeypatch.setattr(sweep, "advance", advance)
    with pytest.raises(KeyboardInterrupt):
        points(replace(SMALL, batch=16), [3], executor=pool)
    assert pool.unfinished == 0
    assert len(pool.tasks) == 16
    assert len(begun) <= 4
    pool.pool.shutdown()


def drain(p: Parameters, d_ks: Sequence[int]) -> None:
    for _ in sweep.sweep(p, d_ks, executor=INLINE):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_memory_does_not_grow_with_the_number_of_points(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    few, many = (peak_memory(lambda most=most: drain(SMALL, range(1, most))) for most in (31, 121))
    assert many <= 1.1 * few


def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 17, 1 << 15)
    monkeypatch.setattr(tally, "PIECE", 1 << 13)
    p = Parameters(n_keys=64, batch=2)
    few, many = (peak_memory(lambda n=n: drain(replace(p, n_queries=n), [8, 64])) for n in (1 << 10, 1 << 13))
    assert many <= few + 64 * 4 * 2 * (1 << 13)  # one chunk of all queries of a draw


@pytest.mark.parametrize(
    ("batch", "rows", "keys"), [(16, 64, 128), (16, 256, 256), (16, 1024, 1024), (4096, 64, 64), (2, 8192, 8192)]
)
def test_parts_cover_every_row_of_every_draw_once(batch: int, rows: int, keys: int) -> None:
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
    monkeypatch.setattr(growing_scores, "ROOM", 1 << 18)
    sizes: list[int] = []
    for batch in (2, 64):
        narrow = GrowingScores(p, slice(0, batch), slice(0, p.n_queries))
        for d_k in (200, 700, 1500):
            for _ in narrow.at(d_k):
                sizes.append(sum(each.size for each in narrow.made))
    assert max(sizes) <= 2 * growing_scores.ROOM
    assert narrow.stride == 128


def test_the_threads_of_a_sweep_have_one_blas_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def advance(*task: Any) -> Any:
        found.extend(int(pool["num_threads"]) for pool in threadpoolctl.threadpool_info())
        return growing_scores.advance(*task)

    monkeypatch.setattr(sweep, "advance", advance)
    with threadpoolctl.threadpool_limits(2):
        points(SMALL, [3, 17], executor=None)
    assert set(found) == {1}
