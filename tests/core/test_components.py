"""The laws of components, and the mean, standard deviation and reach of their scores."""

import itertools
import math
from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.lab.sampling import LAWS, Side
from attn_tui.core.lab.scoring import one_draw, score_mean, score_reach, score_std, vectors_of
from attn_tui.core.parameters import ComponentLaw, Parameters
from cases import for_each

stats = import_module("scipy.stats")  # without type stubs

SIDES: tuple[Side, ...] = ("query", "key")
DEGREES = 13  # enough for Student's t to have the moments that give the standard errors below
SIZE = 1 << 18


@pytest.mark.parametrize("law", get_args(ComponentLaw))
def test_components_have_the_moments_of_their_law(law: ComponentLaw) -> None:
    values = LAWS[law].sample(np.random.default_rng(0), (512, SIZE // 512), DEGREES)
    assert values.shape == (512, SIZE // 512)
    assert values.dtype == np.float32
    x = values.astype(float).ravel()
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, LAWS[law].fourth_moment(DEGREES))):
        stderr = (x**power).std() / math.sqrt(SIZE)
        assert abs((x**power).mean() - moment) <= 4 * stderr + 1e-6, power


@pytest.mark.parametrize("degrees", [3, 5, 30])
def test_components_are_divided_by_the_standard_deviation_of_their_law(degrees: int) -> None:
    """That of U(0, 1) is √(1/12), that of Laplace's with scale 1 √2, and that of Student's t √(ν/(ν − 2))."""
    raw: dict[ComponentLaw, tuple[Any, float]] = {
        "uniform": (np.random.default_rng(0).random(50, np.float32) - 0.5, math.sqrt(1 / 12)),
        "laplace": (np.random.default_rng(0).laplace(size=50), math.sqrt(2)),
        "student_t": (np.random.default_rng(0).standard_t(degrees, 50), math.sqrt(degrees / (degrees - 2))),
    }
    for law, (values, std) in raw.items():
        found = LAWS[law].sample(np.random.default_rng(0), (50,), degrees)
        assert found == pytest.approx(values / std, rel=1e-6), law


@pytest.mark.parametrize("degrees", [3, 5, 30])
@pytest.mark.parametrize("law", get_args(ComponentLaw))
def test_components_have_the_distribution_of_their_law(law: ComponentLaw, degrees: int) -> None:
    """The Kolmogorov–Smirnov distance has no need of moments, so it sees the scale of heavy tails too."""
    if law == "rademacher":
        pytest.skip("not continuous")
    x = np.sort(LAWS[law].sample(np.random.default_rng(1), (512, SIZE // 512), degrees).astype(float).ravel())
    cdf = {
        "normal": stats.norm.cdf,
        "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf,
        "laplace": stats.laplace(scale=math.sqrt(1 / 2)).cdf,
        "student_t": stats.t(degrees, scale=math.sqrt(1 - 2 / degrees)).cdf,
    }[law](x)
    steps = np.arange(SIZE + 1) / SIZE
    assert max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()) < 2.2 / math.sqrt(SIZE)  # once in 10⁴ times


@pytest.mark.parametrize("law", get_args(ComponentLaw))
def test_queries_and_keys_have_their_own_mean_and_deviation(law: ComponentLaw) -> None:
    p = Parameters(
        n_queries=128, n_keys=128, batch=4, components=law, degrees_of_freedom=DEGREES,
        mean_q=0.5, std_q=2.0, mean_k=-1.0, std_k=0.25,
    )  # fmt: skip
    q, k = vectors_of(p, [np.concatenate([one_draw(p, (side,), n)[0] for n in range(4)]) for side in SIDES])
    fourth = LAWS[law].fourth_moment(DEGREES)
    for values, mean, std in ((q, 0.5, 2.0), (k, -1.0, 0.25)):
        assert abs(values.mean(dtype=float) - mean) < 4 * std / math.sqrt(values.size)
        spread = math.sqrt((fourth - 1) / values.size)  # of the mean square over σ²
        assert abs(np.square((values - mean) / std).mean(dtype=float) - 1) <= 4 * spread + 1e-5


def test_fourth_moments_are_the_known_ones() -> None:
    fourth = {law: LAWS[law].fourth_moment(DEGREES) for law in get_args(ComponentLaw)}
    assert fourth == {"normal": 3, "uniform": 1.8, "laplace": 6, "rademacher": 1, "student_t": pytest.approx(11 / 3)}
    assert LAWS["student_t"].fourth_moment(5) == 9
    assert math.isinf(LAWS["student_t"].fourth_moment(4))


def test_rademacher_components_are_signs() -> None:
    assert set(np.unique(LAWS["rademacher"].sample(np.random.default_rng(0), (64, 64), 5))) == {-1.0, 1.0}


@for_each("law", get_args(ComponentLaw))
@for_each(("mean_q", "mean_k"), [(0.0, 0.0), (2.0, 0.0), (-1.5, 0.5)])
@for_each(("std_q", "std_k"), [(1.0, 1.0), (0.5, 3.0), (0.0, 1.0), (0.0, 0.0)])
def test_scores_of_independent_components_have_the_closed_form(
    law: Any, mean_q: float, mean_k: float, std_q: float, std_k: float
) -> None:
    p = Parameters(d_k=48, components=law, mean_q=mean_q, mean_k=mean_k, std_q=std_q, std_k=std_k)
    variance = (std_q**2 + mean_q**2) * (std_k**2 + mean_k**2) - mean_q**2 * mean_k**2
    assert score_mean(p) == pytest.approx(48 * mean_q * mean_k, abs=1e-12)
    assert score_std(p) == pytest.approx(math.sqrt(48 * variance), abs=1e-12)


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.25, 1.0])
def test_scores_of_correlated_normal_components_have_the_closed_form(correlation: float) -> None:
    for mean_q, mean_k, std_q, std_k in itertools.product((0.0, 1.5), (0.0, -2.0), (1.0, 0.5), (1.0, 3.0)):
        p = Parameters(d_k=48, mean_q=mean_q, mean_k=mean_k, std_q=std_q, std_k=std_k, correlation=correlation)
        spread = std_q**2 * std_k**2 * (1 + correlation**2) + mean_q**2 * std_k**2 + mean_k**2 * std_q**2
        variance = spread + 2 * correlation * std_q * std_k * mean_q * mean_k
        assert score_mean(p) == pytest.approx(48 * (mean_q * mean_k + correlation * std_q * std_k))
        assert score_std(p) == pytest.approx(math.sqrt(48 * variance), abs=1e-12)


def test_a_standard_deviation_that_does_not_exist_is_nan() -> None:
    heavy = Parameters(components="student_t", degrees_of_freedom=4)
    assert math.isfinite(score_std(heavy))
    assert math.isnan(score_std(replace(heavy, correlation=0.1)))
    assert math.isfinite(score_std(replace(heavy, correlation=0.1, degrees_of_freedom=5)))


@pytest.mark.parametrize("side", ["std_q", "std_k"])
def test_heavy_tails_do_not_matter_if_one_side_has_no_spread(side: str) -> None:
    p = Parameters(components="student_t", degrees_of_freedom=3, correlation=0.5, mean_q=2.0, mean_k=3.0)
    exact = {"std_q": 2.0, "std_k": 3.0}[side] * math.sqrt(p.d_k)  # only the other side varies, with variance 1
    assert score_std(p.with_value(side, 0.0)) == pytest.approx(exact)


def test_the_reach_of_scores_is_their_standard_deviation_or_that_of_normal_components() -> None:
    heavy = Parameters(components="student_t", degrees_of_freedom=3, correlation=0.5, mean_q=2.0, std_k=3.0)
    assert math.isnan(score_std(heavy))
    assert score_reach(heavy) == score_std(replace(heavy, components="normal")) > 0
    for p in (replace(heavy, degrees_of_freedom=5), replace(heavy, correlation=0.0)):
        assert score_reach(p) == score_std(p)
