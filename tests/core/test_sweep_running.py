"""How a sweep runs: its steps, its tasks, its memory, and what it leaves behind."""

import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import growing_scores, sweep
from attn_tui.core.lab.growing_scores import GrowingScores
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics import tally
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.sweeps import parts, plan_seconds, stream, sweep_plan
from attn_tui.core.work.worker import perform_on_dask, versions
from memory import peak_memory
from sweeps import SMALL, cut_small, points

threadpoolctl = import_module("threadpoolctl")  # without type stubs
pytestmark = pytest.mark.usefixtures("one_blas_thread")


@pytest.mark.parametrize("whole", [True, False])
def test_points_stream_and_the_part_done_rises(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    fractions, found = [0.0], 0
    for step in stream(sweep_plan(SMALL, range(1, 11), vary=("seed", [0, 1]))):
        assert fractions[-1] <= step.fraction <= 1
        assert len(step.found) <= 1
        found += len(step.found)
        fractions.append(step.fraction)
        assert found >= 20 * step.fraction - 5 or not whole
    assert (found, fractions[-1]) == (20, 1)


def test_a_dropped_sweep_ends_the_threads_of_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 20)
    before = set(threading.enumerate())
    with open_engine("threads:2") as engine:
        steps = stream(sweep_plan(SMALL, range(1, 4000)), engine)
        while not next(steps).found:
            pass
        assert next(thread.name[:4] for thread in set(threading.enumerate()) - before) == "work"
        steps.close()
    assert set(threading.enumerate()) <= before


def drain(p: Parameters, d_ks: Sequence[int]) -> None:
    for _ in stream(sweep_plan(p, d_ks)):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_memory_does_not_grow_with_the_number_of_points(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    few, many = (peak_memory(lambda most=most: drain(SMALL, range(1, most))) for most in (41, 121))
    assert many <= 1.5 * few  # both are more points than caches hold


def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 15)
    monkeypatch.setattr(tally, "PIECE", 1 << 13)
    p = Parameters(n_keys=64, batch=2)
    few, many = (peak_memory(lambda n=n: drain(replace(p, n_queries=n), [8, 64])) for n in (1 << 10, 1 << 12))
    assert many <= few + 64 * 4 * 2 * (1 << 12)  # one chunk of all queries of a draw


@pytest.mark.parametrize(
    ("batch", "rows", "keys"), [(16, 64, 128), (16, 256, 256), (16, 1024, 1024), (4096, 64, 64), (2, 8192, 8192)]
)
def test_cuts_cover_every_row_of_every_draw_once(batch: int, rows: int, keys: int) -> None:
    p = Parameters(batch=batch, n_queries=rows, n_keys=keys)
    covered = np.zeros((5 + batch, rows), np.int8)
    for d, r in sweep.cuts(p, slice(5, 5 + batch)):
        assert (d.stop - d.start) * (r.stop - r.start) * keys <= sweep.MOST
        covered[d, r] += 1
    assert np.all(covered[:5] == 0)
    assert np.all(covered[5:] == 1)


@pytest.mark.parametrize("change", [{}, {"n_keys": 1024, "n_queries": 1024}], ids=str)
def test_parts_have_every_width_once_and_take_no_more_than_a_few_seconds(change: dict[str, Any]) -> None:
    plan = sweep_plan(replace(Parameters(), **change), range(1, 2000))
    found = [*parts(plan)]
    whole = [part for part in found if len(part.arguments) < 3 or getattr(part.arguments[1], "last", True)]
    assert [d_k for part in whole for d_k in part.arguments[0].d_ks] == [*plan.d_ks]
    assert sum(part.seconds for part in found) == pytest.approx(plan_seconds(plan))
    assert len(found) > 4
    assert max(part.seconds for part in found) < 15
    assert max(len(pickle.dumps(part)) for part in found) < 1000


def test_a_tally_is_as_large_for_late_draws_as_for_the_first() -> None:
    p = Parameters(n_keys=16, n_queries=16, batch=4096)
    sizes = [
        len(pickle.dumps(found))
        for first in (0, 4080)
        for step in sweep.tallies(p, slice(first, first + 16), slice(0, 16), [64], [p.scale], ("logits",))
        for _, found in step.found
    ]
    assert max(sizes) <= 20_000


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"n_keys": 1024, "batch": 4096},
        {"n_keys": 1024, "n_queries": 1024},
    ],
    ids=str,
)
def test_parts_and_what_they_return_are_small(change: dict[str, Any]) -> None:
    p = replace(Parameters(), **change)
    send = partial(perform_on_dask, versions())
    rules = [*SCALE_RULES][:10]
    for vary in (None, ("scale", rules)):
        found = [*parts(sweep_plan(p, [*range(2, 40), 45, 77], vary=vary, histograms=()))]
        assert max(len(pickle.dumps((send, part))) for part in found) <= 1000
        one = min(found, key=lambda part: part.seconds)
        _, [first, *_] = next(step for step in one.steps() if step[1])
        assert len(pickle.dumps(first)) <= 25_000


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


@pytest.mark.parametrize("name", ["serial", "threads:2"])
def test_work_has_one_blas_thread_each(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found: list[int] = []
    tallies = sweep.tallies

    def noted(*arguments: Any) -> Any:
        found.extend(int(pool["num_threads"]) for pool in threadpoolctl.threadpool_info())
        return tallies(*arguments)

    monkeypatch.setattr(sweep, "tallies", noted)
    with threadpoolctl.threadpool_limits(2), open_engine(name) as engine:
        points(SMALL, [3, 17], engine=engine)
    assert set(found) == {1}
