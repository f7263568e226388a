"""How a sweep runs: its steps, tasks and memory, its target, and numbers of keys as its axis."""

import csv
import io
import json
import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab import growing_scores, sweep
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.growing_scores import GrowingScores
from attn_tui.core.lab.results import SweepPoint, Target
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.tables.lab import SweepResult, place_titles, sweep_table
from attn_tui.core.tables.table import written
from attn_tui.core.theory.predict import predict
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.sweeps import parts, sweep_plan
from attn_tui.core.work.worker import perform_on_dask, versions
from attn_tui.tui.views.results.sweep import sweep_sentences
from measurements import assert_same
from memory import peak_memory
from sweeps import SMALL, all_numbers, cut_small, measure_alone, points, steps_of

threadpoolctl = import_module("threadpoolctl")  # without type stubs
pytestmark = pytest.mark.usefixtures("one_blas_thread")


@pytest.mark.parametrize("whole", [True, False])
def test_points_stream_and_the_part_done_rises(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    if not whole:
        cut_small(monkeypatch)
    fractions, found = [0.0], 0
    for fraction, new in steps_of(sweep_plan(SMALL, range(1, 11), vary=("seed", [0, 1]))):
        assert fractions[-1] <= fraction <= 1 + 1e-9
        assert len(new) <= 1
        found += len(new)
        fractions.append(fraction)
        assert found >= 20 * fraction - 5 or not whole
    assert (found, fractions[-1]) == (20, pytest.approx(1))


def test_a_dropped_sweep_ends_the_threads_of_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 1 << 20)
    before = set(threading.enumerate())
    with open_engine("threads:2") as engine:
        steps = steps_of(sweep_plan(SMALL, range(1, 4000)), engine)
        while not next(steps)[1]:
            pass
        assert next(thread.name[:4] for thread in set(threading.enumerate()) - before) == "work"
        del steps
    assert set(threading.enumerate()) <= before


def drain(p: Parameters, d_ks: Sequence[int]) -> None:
    for _ in steps_of(sweep_plan(p, d_ks)):
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


def reaches(point: SweepPoint, target: Target) -> bool:
    """Whether the standard errors of both columns are small enough."""
    errors = [column.measured[target.statistic].stderr for column in point.measurement.columns]
    return all(error is not None and error <= target.stderr for error in errors)


@pytest.mark.parametrize("target", [Target(0.02), Target(2.0, "logit_variance")], ids=str)
@pytest.mark.parametrize("way", ["at once", "in parts", "one by one"])
def test_batches_are_drawn_until_both_columns_are_precise_enough(
    monkeypatch: pytest.MonkeyPatch, target: Target, way: str
) -> None:
    if way == "in parts":
        cut_small(monkeypatch)
    elif way == "one by one":
        measure_alone(monkeypatch)
    found = points(SMALL, (2, 3, 17, 20, 30, 40), target=target)
    assert [point.parameters.d_k for point in found] == [2, 3, 17, 20, 30, 40]
    assert len({point.parameters.batch for point in found}) > 1  # each point takes what it needs
    for point in found:
        assert point.reached
        assert reaches(point, target)
        assert point.parameters.batch % SMALL.batch == 0
        assert_same(point.measurement, run(point.parameters, full=False))
        fewer = point.parameters.batch - SMALL.batch
        if fewer and way != "one by one":  # which doubles its draws
            earlier = run(replace(point.parameters, batch=fewer), full=False).columns
            assert max(column.measured[target.statistic].stderr or 0 for column in earlier) > target.stderr


def test_a_target_for_gradients_measures_gradients() -> None:
    target = Target(0.5, "grad_q_median")
    (point,) = points(SMALL, [3], target=target)
    assert reaches(point, target)


@pytest.mark.parametrize("nests", [True, False])
@pytest.mark.parametrize(("most", "drawn"), [(10, 10), (2, SMALL.batch)])
def test_a_target_out_of_reach_ends_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, nests: bool, most: int, drawn: int
) -> None:
    """One whole batch is drawn in any case."""
    if not nests:
        measure_alone(monkeypatch)
    for point in points(SMALL, [3, 17], target=Target(1e-9, most_draws=most)):
        assert not point.reached
        assert point.parameters.batch == point.measurement.draws == drawn


def test_a_statistic_that_does_not_exist_needs_no_precision() -> None:
    one_key = replace(SMALL, n_keys=1)
    assert [point.parameters.batch for point in points(one_key, [3], target=Target(1e-9))] == [SMALL.batch]


def test_points_that_need_no_further_batch_are_those_without_a_target() -> None:
    assert all_numbers(points(SMALL)) == all_numbers(points(SMALL, target=Target(1.0)))


@pytest.mark.parametrize("stderr", [0, -1, float("nan"), float("inf")])
def test_the_standard_error_of_a_target_is_above_zero(stderr: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        Target(stderr)


def test_a_target_accepts_the_statistics_that_have_a_standard_error() -> None:
    measured = run(SMALL).columns[0].measured
    for statistic in STATISTICS:
        if statistic.conditional:
            continue
        if measured[statistic.name].stderr is None:
            with pytest.raises(InputError, match="with a standard error: logit_mean, "):
                Target(0.1, statistic.name)
        else:
            assert Target(0.1, statistic.name).statistic == statistic.name
    with pytest.raises(InputError, match="with a standard error"):
        Target(0.1, "entropy of it")


def test_the_limit_of_a_target_is_a_possible_batch() -> None:
    with pytest.raises(InputError, match="from 2 to 4096"):
        Target(0.1, most_draws=5000)


N_KEYS = (3, 24, 100)


@pytest.mark.parametrize(
    "change", [{}, {"mask": "causal"}, {"scale": "ssmax"}, {"precision": "bfloat16"}, {"softcap": 20.0}], ids=str
)
def test_a_point_is_what_a_single_report_measures(change: dict[str, object]) -> None:
    p = replace(Parameters(d_k=32, n_queries=8, batch=4), **change)  # pyright: ignore[reportArgumentType]
    found = points(p, [32], n_keys=N_KEYS)
    assert [point.parameters for point in found] == [replace(p, n_keys=n) for n in N_KEYS]
    for point in found:
        assert_same(point.measurement, run(point.parameters, full=False), 1e-5)


def test_both_axes_make_a_grid_with_d_k_inside() -> None:
    found = points(SMALL, [17, 3], n_keys=[24, 5, 24])
    assert [(point.parameters.n_keys, point.parameters.d_k) for point in found] == [
        (5, 3),
        (5, 17),
        (24, 3),
        (24, 17),
    ]
    alone = [point for n in (5, 24) for point in points(replace(SMALL, n_keys=n), [3, 17])]
    assert all_numbers(found) == all_numbers(alone)


def test_a_second_axis_repeats_the_grid_for_each_of_its_values() -> None:
    found = points(SMALL, [3], vary=("scale", ("d_k", "log(n)/d")), n_keys=[5, 24])
    places = [(point.parameters.scale, point.parameters.n_keys) for point in found]
    assert places == [("d_k", 5), ("d_k", 24), ("log(n)/d", 5), ("log(n)/d", 24)]


def test_a_rule_without_a_multiplier_at_a_number_of_keys_is_refused() -> None:
    with pytest.raises(InputError, match="at d_k = 3, keys = 1"):
        points(replace(SMALL, scale="ssmax"), [3], n_keys=[1, 5])


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    p = Parameters(n_queries=8, batch=4)
    found = [(point, predict(point.parameters)) for point in points(p, [4], n_keys=N_KEYS)]
    return SweepResult(p, (4,), found, n_keys=N_KEYS)


def test_json_and_csv_name_the_keys_of_each_point(swept: SweepResult) -> None:
    found = json.loads(written(sweep_table(swept, "attn-tui sweep"), "json"))
    assert found["n_keys"] == [*N_KEYS]
    assert found["complete"] is True
    assert [point["n_keys"] for point in found["points"]] == [*N_KEYS]
    assert "n_keys" not in found["parameters"]
    rows = [
        row
        for row in csv.DictReader(io.StringIO(written(sweep_table(swept, "attn-tui sweep"), "csv")))
        if row["statistic"] == "entropy"
    ]
    assert [row["n_keys"] for row in rows[::2]] == [str(n) for n in N_KEYS]
    assert place_titles(swept) == ["keys", "d_k"]
    assert "| 3 | 4 |" in written(sweep_table(swept, "attn-tui sweep"), "markdown")


def test_the_sentence_says_at_which_numbers_of_keys_softmax_is_saturated(swept: SweepResult) -> None:
    """σ is 2 unscaled and 1 scaled; √(2 ln n) is 1.48 for 3 keys and 2.52 for 24."""
    none: dict[str, float | None] = {}
    assert sweep_sentences(swept, [(none, none)] * 3) == [
        "Unscaled, softmax is saturated at 3 keys; scaled, it stays below saturation at all these numbers of keys."
    ]
    one = replace(swept, points=swept.points[:1], n_keys=N_KEYS[:1])
    assert sweep_sentences(one, [(none, none)]) == []
