"""The law of a score: its moments, its density and its share within three standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attn_tui.core.parameters import ComponentLaw, Parameters
from attn_tui.core.theory.predict import predict, score_curve
from attn_tui.core.theory.score_law import score_density, share_within
from attn_tui.core.theory.score_moments import moment, score_moments
from cases import for_each, present
from measurements import LAWS
from simulation import draw_scores, z_score

special, stats = import_module("scipy.special"), import_module("scipy.stats")  # without type stubs


def unscaled(p: Parameters) -> Mapping[str, float | None]:
    return predict(p).columns[0].values


@pytest.mark.parametrize(
    ("law", "exact"),
    [
        ("normal", stats.norm()),
        ("uniform", stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
        ("laplace", stats.laplace(0, math.sqrt(0.5))),
        ("student_t", stats.t(12, 0, math.sqrt(10 / 12))),
    ],
)
def test_moments_of_components_are_those_of_their_density(law: ComponentLaw, exact: Any) -> None:
    for order in (0, 1, 2, 4, 6, 8):

        def power(x: float, order: int = order) -> float:
            return x**order

        by_quadrature = exact.expect(power, epsabs=1e-12, epsrel=1e-12)
        assert moment(law, order, 12) == pytest.approx(by_quadrature, rel=1e-6, abs=1e-9)


def test_moments_of_signs_and_of_heavy_tails() -> None:
    assert moment("rademacher", 8, 5) == 1
    assert moment("student_t", 4, 5) == 9
    assert [moment("student_t", order, 5) is None for order in (3, 4, 5, 6)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("law", "kurtosis"), [("normal", 6), ("uniform", 0.24), ("laplace", 33), ("rademacher", -2), ("student_t", 78)]
)
def test_excess_kurtosis_of_zero_mean_scores(law: ComponentLaw, kurtosis: float) -> None:
    moments = score_moments(Parameters(d_k=16, std_q=1.5, std_k=0.2, components=law))
    assert moments.mean == 0
    assert moments.variance == pytest.approx(16 * 0.09)
    assert moments.excess_kurtosis == pytest.approx(kurtosis / 16)


def test_variance_of_correlated_normal_components() -> None:
    p = Parameters(d_k=5, mean_q=0.7, std_q=1.2, mean_k=-2.0, std_k=0.6, correlation=-0.35)
    moments = score_moments(p)
    spread = 1.2 * 0.6
    assert moments.mean == pytest.approx(5 * (0.7 * -2 - 0.35 * spread))
    variance = spread**2 * (1 + 0.35**2) + (0.7 * 0.6) ** 2 + (2 * 1.2) ** 2 + 2 * -0.35 * spread * 0.7 * -2
    assert moments.variance == pytest.approx(5 * variance)
    assert moments.variance_within_row == pytest.approx(5 * (1.2**2 + 0.7**2) * 0.6**2 * 0.65)
    assert moments.excess_kurtosis is not None
    assert score_moments(p.with_value("d_k", 50)).excess_kurtosis == pytest.approx(moments.excess_kurtosis / 10)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("correlation", [0.0, 0.4, -0.7])
@pytest.mark.parametrize(("mean_q", "mean_k"), [(0.0, 0.0), (0.5, 0.8)])
def test_moments_agree_with_simulation(law: ComponentLaw, correlation: float, mean_q: float, mean_k: float) -> None:
    p = Parameters(
        d_k=12, mean_q=mean_q, std_q=1.1, mean_k=mean_k, std_k=0.7, correlation=correlation, components=law,
        degrees_of_freedom=40,
    )  # fmt: skip
    moments = score_moments(p)
    assert moments.variance is not None
    assert moments.excess_kurtosis is not None
    scores = draw_scores(p, 5, 100_000) - moments.mean
    assert abs(z_score(scores, 0)) < 4
    assert abs(z_score(scores**2, moments.variance)) < 4
    assert abs(z_score(scores**4, moments.variance**2 * (3 + moments.excess_kurtosis))) < 4


@pytest.mark.parametrize(
    ("degrees", "correlation", "missing", "known"),
    [
        (4, 0.0, "logit_excess_kurtosis", "logit_variance"),
        (5, 0.0, "", "logit_excess_kurtosis"),
        # With a shared direction g, the variance needs g⁴ and the kurtosis g⁸.
        (4, 0.5, "logit_variance logit_std row_mean_share logit_within_3sd", "logit_variance_within_row logit_mean"),
        (8, 0.5, "logit_excess_kurtosis", "logit_variance"),
        (9, 0.5, "", "logit_excess_kurtosis"),
    ],
)
def test_moments_that_heavy_tails_do_not_have_are_missing(
    degrees: int, correlation: float, missing: str, known: str
) -> None:
    values = unscaled(Parameters(components="student_t", degrees_of_freedom=degrees, correlation=correlation))
    assert {values[name] for name in missing.split()} <= {None}
    assert None not in {values[name] for name in known.split()}
    assert values["logit_mean"] == 64 * correlation
    assert correlation or values["logit_variance"] == 64


def test_the_curve_of_a_score_is_its_law_within_eight_standard_deviations() -> None:
    """Those of two components have the Laplace law; without a correlation or means, half of the curve is mirrored."""
    for p, law in (
        (Parameters(d_k=2, std_q=1.5), stats.laplace(0, 1.5)),
        (Parameters(std_q=0, mean_q=0.5, mean_k=1, std_k=2), stats.norm(32, 8)),
    ):
        curve = present(score_curve(p))
        low, high = law.mean() - 8 * law.std(), law.mean() + 8 * law.std()
        assert (curve.axis.low, curve.axis.high) == pytest.approx((low, high))
        assert (len(curve.counts), curve.total, curve.underflow, curve.overflow) == (curve.axis.bins, 1, 0, 0)
        assert curve.cumulative[:-1] == pytest.approx(law.cdf(np.linspace(low, high, 256)).tolist(), abs=1e-3)


@for_each(
    "changed",
    [
        *({"components": law, "degrees_of_freedom": 40, "std_q": 1.5} for law in ("uniform", "laplace", "student_t")),
        {}, {"correlation": 0.6}, {"correlation": -0.6, "std_k": 2.0}, {"mean_q": 0.7, "correlation": 0.6},
        {"mean_k": 0.7, "std_k": 0.5}, {"mean_q": 0.5, "mean_k": 0.8}, {"mean_q": 0.5, "mean_k": -0.8, "std_q": 1.5},
        {"mean_q": 0.5, "mean_k": 0.8, "correlation": 0.4}, {"mean_q": -1.0, "mean_k": 0.3, "correlation": -0.8},
        {"mean_q": 0.5, "mean_k": 0.2, "correlation": 0.4}, {"mean_q": 0.2, "mean_k": 0.5, "correlation": 0.4},
        {"mean_q": 2.0, "mean_k": 0.5, "std_q": 0.0}, {"mean_q": 2.0, "mean_k": 0.5, "std_k": 0.0, "std_q": 0.3},
    ],
)  # fmt: skip
def test_densities_have_the_moments_of_scores(changed: dict[str, Any]) -> None:
    p = Parameters(d_k=32, **changed)
    moments = score_moments(p)
    spread = math.sqrt(present(moments.variance))
    x = np.linspace(-12, 12, 2401)
    density = 0.01 * spread * present(score_density(p, present(moments.mean) + spread * x))
    assert density.sum() == pytest.approx(1, abs=1e-3)
    assert x @ density == pytest.approx(0, abs=1e-3)
    assert x**2 @ density == pytest.approx(1, abs=1e-3)
    assert x**4 @ density - 3 == pytest.approx(present(moments.excess_kurtosis), abs=1e-2)


@for_each("changed", [{"std_q": 0.0, "std_k": 0.0}, {"scale": "cosine_10"}, {"mechanism": "additive"}])
def test_a_score_that_does_not_vary_or_is_no_product_has_no_curve(changed: dict[str, Any]) -> None:
    assert score_curve(Parameters(**changed)) is None


def test_equal_scores_have_no_shape() -> None:
    values = unscaled(Parameters(d_k=4, std_q=0.0, std_k=0.0, mean_q=2.0, mean_k=0.5))
    assert values["logit_min"] == values["logit_mean"] == values["logit_max"] == 4
    assert values["logit_variance"] == values["logit_std"] == 0
    assert values["logit_excess_kurtosis"] is None
    assert values["row_mean_share"] is None
    assert values["logit_within_3sd"] == 1
    # Signs that q and k share: every product is 1.
    assert unscaled(Parameters(components="rademacher", correlation=1.0))["logit_variance"] == 0


@for_each("d_k", [1, 2, 3, 16, 64, 200])
def test_the_density_of_normal_components_is_variance_gamma(d_k: int) -> None:
    x = np.array([-2.0, 1e-3, 0.4, 3.0, 11.0])
    order, far = (d_k - 1) / 2, np.abs(x)
    log_bessel = np.log(special.kve(order, far)) - far
    log_density = order * np.log(far) + log_bessel - special.gammaln(d_k / 2) - order * math.log(2)
    expected = np.exp(log_density) / math.sqrt(math.pi)
    finite = np.isfinite(expected)
    assert finite.sum() >= 3
    found = score_density(Parameters(d_k=d_k), x)
    assert found is not None
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-7)


@pytest.mark.parametrize(("d_k", "expected"), [(1, math.inf), (2, 0.5)])
def test_the_density_at_zero(d_k: int, expected: float) -> None:
    found = score_density(Parameters(d_k=d_k), np.zeros(1))
    assert found is not None
    assert found[0] == pytest.approx(expected)


LAWS_WITH_DENSITY: list[dict[str, Any]] = [
    {"d_k": 3},
    {"d_k": 3, "correlation": 0.6},
    {"d_k": 1, "mean_q": 1.0},
    {"d_k": 2, "mean_k": -2.0, "std_k": 0.5},
    {"d_k": 1, "std_q": 0.0, "mean_q": 3.0},
    {"d_k": 8, "mean_q": 0.5, "mean_k": -0.7, "std_q": 1.3, "correlation": 0.5},
    {"d_k": 16, "mean_q": 0.5, "mean_k": -0.7, "correlation": -1.0},
    {"d_k": 64, "mean_q": 100.0, "mean_k": 50.0},
    {"d_k": 8, "components": "uniform"},
    {"d_k": 300, "components": "uniform"},
    {"d_k": 16, "components": "laplace", "std_q": 2.5},
    {"d_k": 64, "components": "student_t", "degrees_of_freedom": 3},
    {"d_k": 16, "components": "student_t", "degrees_of_freedom": 30},
]


@pytest.mark.slow
@pytest.mark.parametrize("change", LAWS_WITH_DENSITY, ids=str)
def test_density_and_share_agree_with_simulation(change: dict[str, Any]) -> None:
    p = Parameters(**change)
    moments, share = score_moments(p), share_within(p, 3)
    assert moments.variance is not None
    assert share is not None
    deviation = math.sqrt(moments.variance)
    scores = draw_scores(p, 2, 60_000)
    assert abs(z_score(np.abs(scores - moments.mean) <= 3 * deviation, share)) < 4
    if p.d_k == 1 and p.std_q:
        return  # the density is infinite at 0, which Gauss–Legendre nodes cannot integrate
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    # At 0 the density of a few products has a kink.
    for low, high in pairwise(sorted({0.0, *(moments.mean + deviation * edge for edge in (-3, -1, -0.2, 0.7, 3))})):
        density = score_density(p, (low + high) / 2 + (high - low) / 2 * nodes)
        assert density is not None
        probability = float(density @ weights * (high - low) / 2)
        assert abs(z_score((scores > low) & (scores < high), probability, 1e-9)) < 4
        total += probability if abs((low + high) / 2 - moments.mean) < 3 * deviation else 0
    assert total == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"components": "rademacher"},
        {"components": "laplace", "correlation": 0.1},
        {"components": "uniform", "d_k": 1},
        {"std_q": 0.0},
    ],
    ids=str,
)
def test_some_laws_have_no_density(change: dict[str, Any]) -> None:
    assert score_density(Parameters(**change), np.linspace(-3, 3, 5)) is None


@for_each("d_k", [1, 4, 9, 10, 64, 1000, 16_384])
def test_the_share_of_random_signs_is_binomial(d_k: int) -> None:
    heads = stats.binom(d_k, 0.5)
    furthest = math.isqrt(9 * d_k)
    low = -(-max(d_k - furthest, 0) // 2)
    expected = heads.cdf(d_k - low) - heads.cdf(low - 1)
    assert share_within(Parameters(d_k=d_k, components="rademacher"), 3) == pytest.approx(expected, abs=1e-10)
