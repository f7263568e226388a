"""How far measured values are from exact ones, in standard errors: rarely far, unless the theory is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import FAR
from attn_tui.core.statistics.measurement import Estimate, RoughEstimate
from attn_tui.core.theory.predict import deviations, normal_equivalent, predict

SMALL = Parameters(d_k=16, n_keys=32, n_queries=32)


def test_a_wrong_theory_is_noticed() -> None:
    measured = run(replace(SMALL, batch=64))
    wrong = predict(replace(SMALL, d_k=18))
    assert any(abs(each) > FAR for each in deviations(measured, wrong)[0].values() if each is not None)


def test_statistics_without_an_exact_value_are_not_compared() -> None:
    p = replace(SMALL, components="rademacher")
    compared = deviations(run(p), predict(p))[0]
    assert compared["entropy"] is None
    assert compared["logit_min"] is None
    assert compared["logit_variance"] is not None


@pytest.mark.parametrize(
    ("kind", "away", "found"), [(Estimate, 5e-6, 0.0), (Estimate, 2e-5, 20.0), (RoughEstimate, 2e-5, None)]
)
def test_only_differences_beyond_single_precision_are_compared_with_known_errors(
    kind: type[Estimate], away: float, found: float | None
) -> None:
    measurement, prediction = run(SMALL), predict(SMALL)
    exact = prediction.columns[0].values["entropy"]
    assert exact is not None
    shifted = kind(exact * (1 + away), exact * 1e-6)
    columns = [replace(each, measured={**each.measured, "entropy": shifted}) for each in measurement.columns]
    many = replace(measurement, columns=tuple(columns), draws=10**9)
    assert deviations(many, prediction)[0]["entropy"] == (found and pytest.approx(found, rel=1e-3))


def test_a_measured_share_of_zero_agrees_with_a_tiny_exact_share() -> None:
    """At 1/√d_k none of a few hundred rows is one-hot, and 0 ± 0 does not contradict one in a million."""
    compared = deviations(run(Parameters()), predict(Parameters()))[1]["one_hot_rows"]
    assert compared is not None
    assert abs(compared) < 1


@pytest.mark.parametrize(("t", "degrees", "normal"), [(5.607, 15, 4.0556), (2.131, 15, 1.9596), (4.604, 4, 2.5758)])
def test_students_t_becomes_the_normal_deviate_with_its_probability(t: float, degrees: int, normal: float) -> None:
    assert normal_equivalent(t, degrees) == pytest.approx(normal, rel=0.01)
    assert normal_equivalent(-t, degrees) == pytest.approx(-normal, rel=0.01)


def test_a_deviation_is_above_0_where_more_was_measured_than_expected() -> None:
    """Of three draws, t has two degrees of freedom: P(T < t) = ½ + t/(2√(2 + t²))."""
    p = replace(SMALL, batch=3)
    signs: set[float] = set()
    for seed in range(8):
        measurement, prediction = run(replace(p, seed=seed)), predict(p)
        value, stderr = measurement.columns[1].measured["entropy"]
        exact, found = prediction.columns[1].values["entropy"], deviations(measurement, prediction)[1]["entropy"]
        assert value is not None
        assert stderr is not None
        assert exact is not None
        t = (value - exact) / stderr
        if abs(t) < 3:
            expected = NormalDist().inv_cdf(0.5 + t / (2 * math.sqrt(2 + t * t)))
            assert found == pytest.approx(expected, rel=0.05)
            signs.add(math.copysign(1, t))
    assert signs == {-1.0, 1.0}


def test_a_share_of_rows_is_one_of_those_that_see_two_keys() -> None:
    """With a causal mask the first row of a draw sees one key: of its two rows, one can be more or less one-hot."""
    p = Parameters(d_k=64, n_keys=2, n_queries=2, mask="causal", scale="custom", multiplier=0.1, batch=16)
    measurement, prediction = run(p), predict(p)
    assert measurement.columns[1].measured["one_hot_rows"][:2] == (0.0, 0.0)
    exact, found = (
        prediction.columns[1].values["one_hot_rows"],
        deviations(measurement, prediction)[1]["one_hot_rows"],
    )
    assert exact is not None
    assert exact > 1e-4
    assert found == pytest.approx(normal_equivalent(-math.sqrt(16 * exact / (1 - exact)), 15))


@pytest.mark.parametrize(
    ("tails", "degrees", "compared"),
    [
        (5.9, 9, {"row_mean_share", "logit_variance"}),
        (5.9, 8, {"logit_variance"}),
        (6.0, 9, {"logit_variance"}),
        (12.0, 9, set[str]()),
    ],
)
def test_statistics_that_rare_scores_decide_are_not_compared(tails: float, degrees: int, compared: set[str]) -> None:
    p = replace(SMALL, components="student_t", degrees_of_freedom=degrees)
    measurement, prediction = run(p), predict(p)
    columns = [replace(c, values={**c.values, "logit_excess_kurtosis": tails}) for c in prediction.columns]
    for found in deviations(measurement, prediction._replace(columns=tuple(columns))):
        assert {name for name in ("row_mean_share", "logit_variance") if found[name] is not None} == compared


def test_values_rounded_to_few_bits_are_not_compared() -> None:
    """Scores beyond 65,504 are infinite in float16, and the spread of the others is far from that of all."""
    p = replace(SMALL, precision="float16", arithmetic="eager", std_q=100.0, std_k=100.0, batch=64)
    measurement, prediction = run(p), predict(p)
    for column, predicted, found in zip(
        measurement.columns, prediction.columns, deviations(measurement, prediction), strict=True
    ):
        value, stderr = column.measured["logit_std"]
        exact = predicted.values["logit_std"]
        assert value is not None
        assert stderr is not None
        assert exact is not None
        assert abs(value - exact) > 5 * stderr
        assert set(found.values()) == {None}
