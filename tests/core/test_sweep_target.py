"""A sweep with a target: each point draws further batches until its standard errors are small enough."""

from dataclasses import replace

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import Point, Target
from attn_tui.core.statistics.catalogue import STATISTICS
from measurements import assert_same
from sweeps import SMALL, all_numbers, cut_small, measure_alone, points

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def reaches(point: Point, target: Target) -> bool:
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
