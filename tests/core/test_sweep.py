"""The points of a sweep: each is what a run measures, whatever the grid and the executor."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab import growing_scores, sweep
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import Target
from attn_tui.core.parameters import Parameters
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.sweeps import sweep_plan
from cases import for_each
from measurements import CHANGES, assert_same, numbers
from sweeps import SMALL, all_numbers, cut_small, points, steps_of

pytestmark = pytest.mark.usefixtures("one_blas_thread")


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_point_is_what_a_run_measures(change: dict[str, Any]) -> None:
    p = replace(Parameters(n_keys=48, n_queries=40, batch=4), **change)
    for point in points(p, sorted({2, 63, 64, 70, 200, p.d_k})):
        assert point.reached
        assert point.parameters == replace(p, d_k=point.parameters.d_k)
        assert (point.measurement.draws, point.measurement.complete) == (p.batch, True)
        assert_same(point.measurement, run(replace(point.parameters, precision="float64"), full=False))
        alone = run(point.parameters, full=False)
        for one, two in zip(point.measurement.columns, alone.columns, strict=True):
            for name, histogram in two.histograms.items():
                assert one.histograms[name].axis == histogram.axis
                moved = np.abs(np.subtract(one.histograms[name].counts, histogram.counts)).sum()
                assert moved <= 4 + histogram.total / 500, name


@pytest.mark.parametrize("d_ks", [(*range(1, 40), 64, 65, 66, 149), (1, 2, 1500, 1501, 1600, 4096)], ids=str)
@pytest.mark.parametrize(
    "change", [{}, {"correlation": -0.5, "mean_q": 2.0, "mean_k": -3.0, "mask": "causal"}], ids=str
)
def test_scores_stay_accurate_however_they_grow(change: dict[str, Any], d_ks: Sequence[int]) -> None:
    for point in points(replace(SMALL, **change), d_ks):
        assert_same(point.measurement, run(replace(point.parameters, precision="float64"), full=False))


@pytest.mark.parametrize("change", [{}, {"mask": "causal", "correlation": 0.5, "mean_k": 3.0}], ids=str)
def test_groups_and_cuts_change_no_number(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    p = replace(SMALL, **change)
    whole = points(p)
    for most in (1 << 20, 1 << 7, 30, 1):
        cut_small(monkeypatch, most)
        for one, two in zip(points(p), whole, strict=True):
            assert one.parameters == two.parameters
            assert_same(one.measurement, two.measurement, 1e-5)
            totals = [[c.histograms["logits"].total for c in each.measurement.columns] for each in (one, two)]
            assert totals[0] == totals[1]


def test_points_come_in_rising_order_each_once() -> None:
    found = points(SMALL, [64, 3, 64, 17])
    assert [point.parameters.d_k for point in found] == [3, 17, 64]


@pytest.mark.parametrize(
    ("name", "values"), [("n_keys", (5, 12)), ("scale", ("none", "d_k")), ("components", ("uniform", "laplace"))]
)
def test_a_second_axis_is_swept_value_by_value(name: str, values: tuple[Any, Any]) -> None:
    found = points(SMALL, [3, 17], vary=(name, values))
    asked = [(getattr(point.parameters, name), point.parameters.d_k) for point in found]
    assert asked == [(value, d_k) for value in values for d_k in (3, 17)]
    alone = [point for value in values for point in points(replace(SMALL, **{name: value}), [3, 17])]
    assert all_numbers(found) == all_numbers(alone)


@pytest.mark.parametrize(
    ("d_ks", "vary", "message"),
    [
        (list[int](), None, "d_k: no values"),
        ([0, 1], None, "d_k: must be"),
        ([16, 1 << 20], None, "whole number from 1 to 16384"),
        ([1, 2], ("scale", ["none", "log_d_k"]), "no value at d_k = 1"),
        ([2], ("d_k", [3]), "not 'd_k'"),
        ([2], ("width", [3]), "one of model, n_keys, n_queries"),
        ([2], ("n_keys", list[int]()), "no values of keys"),
        ([2], ("n_keys", [1.5]), "keys: must be"),
    ],
)
def test_an_invalid_sweep_is_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, d_ks: list[int], vary: Any, message: str
) -> None:
    monkeypatch.setattr(growing_scores, "components", None)
    with pytest.raises(InputError, match=message) as error:
        sweep_plan(SMALL, d_ks, vary=vary)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, Target(0.002, most_draws=30)], ids=str)
def test_every_engine_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch, target: Target | None) -> None:
    p = Parameters(n_keys=48, n_queries=40, batch=12, mask="causal", correlation=0.3)
    cut_small(monkeypatch, 1 << 11)
    options: dict[str, Any] = {"vary": ("n_keys", [7, 48]), "target": target}
    expected = all_numbers(points(p, **options))
    for name in ("threads:1", "threads:4", "processes:2"):
        with open_engine(name) as engine:
            assert all_numbers(points(p, engine=engine, **options)) == expected


def test_rules_that_share_their_scores_are_measured_as_they_are_alone() -> None:
    rules = ("d_k", "rms_sqrt_d_k", "none", "1.5/d")
    together = points(SMALL, [3, 17], vary=("scale", rules), n_keys=[5, 24])
    alone = [point for rule in rules for point in points(replace(SMALL, scale=rule), [3, 17], n_keys=[5, 24])]
    assert all_numbers(together) == all_numbers(alone)
    target = Target(0.02)
    together = points(SMALL, [3, 17], vary=("scale", rules), target=target)
    alone = [point for rule in rules for point in points(replace(SMALL, scale=rule), [3, 17], target=target)]
    assert len({point.parameters.batch for point in together}) > 1
    assert all_numbers(together) == all_numbers(alone)


@for_each("precision", ["float32", "bfloat16"])  # whose points nest, or are separate runs
@for_each(("stderr", "most_draws", "draws"), [(1e-9, 10, 10), (1e-9, 8, 8), (1e-9, 2, 4), (9.0, 99, 4)])
def test_a_point_ends_at_its_target_or_at_the_most_draws(
    precision: str, stderr: float, most_draws: int, draws: int
) -> None:
    found = points(
        replace(SMALL, batch=4, precision=precision), [3, 17], target=Target(stderr, most_draws=most_draws)
    )
    assert [(point.measurement.draws, point.reached) for point in found] == [(draws, stderr > 1)] * 2


def test_a_sweep_does_not_depend_on_an_earlier_one() -> None:
    first = all_numbers(points(SMALL))
    points(replace(SMALL, seed=1))
    assert all_numbers(points(SMALL)) == first


def test_points_that_do_not_nest_are_separate_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nests = sweep.nests

    def nests_without_mask(p: Parameters) -> bool:
        return nests(p) and p.mask == "none"

    monkeypatch.setattr(sweep, "nests", nests_without_mask)
    p = replace(SMALL, mask="causal", batch=6)
    steps = [*steps_of(sweep_plan(p, [17, 3, 64], vary=("mask", ["none", "causal"])))]
    fractions = [fraction for fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    assert len([part for part in fractions if part > 0.5]) > 6  # a run takes several steps
    found = [point for _, new in steps for point in new]
    assert [(point.parameters.mask, point.parameters.d_k) for point in found] == [
        (mask, d_k) for mask in ("none", "causal") for d_k in (3, 17, 64)
    ]
    for point in found[3:]:
        assert numbers(point.measurement.columns) == numbers(
            run(replace(p, d_k=point.parameters.d_k), full=False).columns
        )


def test_only_a_full_sweep_has_gradients_and_numerics() -> None:
    p = replace(SMALL, precision="float16")
    for point in points(p, [3, 64], full=True):
        assert numbers(point.measurement.columns) == numbers(run(replace(p, d_k=point.parameters.d_k)).columns)
        assert all(column.measured["grad_q_median"].value for column in point.measurement.columns)
        assert all(column.measured["weight_error"].value for column in point.measurement.columns)
    for point in points(SMALL, [3]):
        assert all(column.measured["grad_q_median"].value is None for column in point.measurement.columns)
