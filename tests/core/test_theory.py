"""Predictions: against plain simulation, closed forms and limits. The simulation here is its own few lines."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from attn_tui.core.attention.scales import SCALE_RULES, Setting, multiplier
from attn_tui.core.lab.curves import curves
from attn_tui.core.lab.query_norm import norm_nodes
from attn_tui.core.lab.score_law import score_density, share_within
from attn_tui.core.lab.score_moments import moment, score_moments
from attn_tui.core.lab.theory import freezing, predict
from attn_tui.core.parameters import MaskName, Parameters, ScaleName
from attn_tui.core.statistics.catalogue import STATISTICS
from scipy import integrate, special, stats

SOFTMAX = ("entropy", "max_weight", "one_hot_rows", "sum_squared_weights", "jacobian_norm_squared")
LAWS = ("normal", "uniform", "laplace", "rademacher", "student_t")


def components(p: Parameters, rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Standardised components."""
    match p.components:
        case "normal":
            return rng.standard_normal(shape)
        case "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
        case "laplace":
            return rng.laplace(0, math.sqrt(0.5), shape)
        case "rademacher":
            return rng.choice([-1.0, 1.0], shape)
        case "student_t":
            v = p.degrees_of_freedom
            return rng.standard_t(v, shape) * math.sqrt((v - 2) / v)


def draw_scores(p: Parameters, rng: np.random.Generator, draws: int, rows: int, keys: int) -> np.ndarray:
    """Scores of independent draws; shape (draws, rows, keys)."""
    shared, own = math.sqrt(abs(p.correlation)), math.sqrt(1 - abs(p.correlation))
    g = components(p, rng, draws, 1, p.d_k)
    q = shared * g + own * components(p, rng, draws, rows, p.d_k)
    k = math.copysign(shared, p.correlation) * g + own * components(p, rng, draws, keys, p.d_k)
    return (p.mean_q + p.std_q * q) @ (p.mean_k + p.std_k * k).mT


def z_score(samples: np.ndarray, expected: float, least: float = 1e-12) -> float:
    """How many standard errors the mean of independent samples is from what was expected."""
    return (samples.mean() - expected) / max(samples.std(ddof=1) / math.sqrt(len(samples)), least)


def unscaled(p: Parameters) -> Mapping[str, float | None]:
    return predict(p).columns[0].values


def test_columns_are_the_unscaled_and_the_chosen_rule() -> None:
    p = Parameters(d_k=64, scale="two_sqrt_d_k")
    prediction = predict(p)
    assert prediction.parameters is p
    assert [(c.rule, c.multiplier) for c in prediction.columns] == [("none", 1.0), ("two_sqrt_d_k", 1 / 16)]
    for column in prediction.columns:
        assert list(column.values) == [statistic.name for statistic in STATISTICS]
        assert all(value is None or math.isfinite(value) for value in column.values.values())
    with pytest.raises(ValueError, match="ln d_k"):
        predict(Parameters(d_k=1, scale="log_d_k"))


def test_the_default_question() -> None:
    """A head of 64 with 128 keys."""
    without, scaled = (column.values for column in predict(Parameters(d_k=64, n_keys=128)).columns)
    assert without["logit_variance"] == 64
    assert scaled["logit_variance"] == 1
    assert without["logit_excess_kurtosis"] == pytest.approx(6 / 64, abs=1e-12)
    assert without["entropy"] == pytest.approx(0.6680, abs=5e-5)
    assert scaled["entropy"] == pytest.approx(4.366, abs=5e-4)
    assert scaled["first_key_weight"] == 1 / 128
    assert scaled["logit_variance_within_row"] == pytest.approx(127 / 128)
    assert [name for name, value in scaled.items() if value is None] == [
        "logit_min", "logit_max", "effective_keys", "jacobian_norm", "dead_rows", "grad_q_median", "grad_q_mean",
        "grad_q_top1_share", "score_overflow", "naive_exp_overflow", "weight_error",
    ]  # fmt: skip


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
@pytest.mark.parametrize("n_keys", [2, 10, 128])
@pytest.mark.parametrize("scale", ["none", "sqrt_d_k"])
def test_softmax_of_normal_components(d_k: int, n_keys: int, scale: str) -> None:
    p = Parameters(d_k=d_k, n_keys=n_keys, n_queries=4)
    assert_softmax(p, 0 if scale == "none" else 1)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.9, 1.0])
@pytest.mark.parametrize("means", [(0.0, 0.0), (1.5, -0.4)])
def test_softmax_with_means_correlation_and_a_causal_mask(
    mask: str, correlation: float, means: tuple[float, float]
) -> None:
    p = Parameters(d_k=6, n_keys=12, n_queries=16, std_q=0.8, std_k=1.3, correlation=correlation)
    p = p.with_value("mask", mask).with_value("mean_q", means[0]).with_value("mean_k", means[1])
    for column in (0, 1):
        assert_softmax(p, column)


def assert_softmax(p: Parameters, column: int) -> None:
    """Predictions agree with the softmax of 1500 independent draws, within four standard errors."""
    predicted = predict(p).columns[column]
    scores = draw_scores(p, np.random.default_rng(11), 1500, p.n_queries, p.n_keys) * predicted.multiplier
    visible = np.full(p.n_queries, p.n_keys)
    if p.mask == "causal":
        visible = np.minimum(np.arange(p.n_queries) + 1, p.n_keys)
        scores = np.where(np.arange(p.n_keys) < visible[:, None], scores, -np.inf)
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    w = e / e.sum(axis=2, keepdims=True)
    squares, entropy = (w**2).sum(axis=2), special.entr(w).sum(axis=2)
    within = np.where(np.isinf(scores), 0, scores)
    variance = (within**2).sum(axis=2) / visible - (within.sum(axis=2) / visible) ** 2
    several = visible > 1
    rows = {
        "entropy": entropy,
        "entropy_fraction": entropy[:, several] / np.log(visible[several]),
        "max_weight": w.max(axis=2),
        "one_hot_rows": w.max(axis=2) > 0.95,
        "sum_squared_weights": squares,
        "first_key_weight": w[:, :, 0],
        "jacobian_norm_squared": squares - 2 * (w**3).sum(axis=2) + squares**2,
        "weight_times_complement": (1 - squares) / visible,
        "logit_variance_within_row": variance,
    }
    for name, values in rows.items():
        expected = predicted.values[name]
        assert expected is not None, name
        # Where nothing was seen in so many rows, the share may still be a few in that many.
        least = math.sqrt(max(expected, 1e-9) / values.size) if name == "one_hot_rows" else 1e-9
        assert abs(z_score(values.mean(axis=1), expected, least)) < 4, name


def test_wide_heads_tend_to_normal_logits() -> None:
    values = predict(Parameters(d_k=16_384, n_keys=128)).columns[1].values
    limit = curves(128, 1, "none").at(np.ones(1))
    for name in SOFTMAX:
        assert values[name] == pytest.approx(limit[name][0], abs=3e-4)
    # Their difference is of order 1/d_k.
    narrower = predict(Parameters(d_k=8_192, n_keys=128)).columns[1].values
    assert narrower["entropy"] - limit["entropy"][0] == pytest.approx(
        2 * (values["entropy"] - limit["entropy"][0]), rel=1e-3
    )


def test_a_narrow_head_is_not_its_normal_limit() -> None:
    """One component and ten keys: E H over |q|, not H at the mean of |q|²."""
    entropy = predict(Parameters(d_k=1, n_keys=10)).columns[1].values["entropy"]
    curve = curves(10, 1, "none")
    assert curve.at(np.ones(1))["entropy"][0] == pytest.approx(1.9236, abs=5e-5)
    mixed = integrate.quad(
        lambda r: 2 * stats.norm.pdf(r) * curve.at(np.array([r]))["entropy"][0], 0, 10, epsabs=1e-12, epsrel=1e-12
    )[0]
    assert entropy == pytest.approx(mixed, abs=1e-11)
    assert entropy == pytest.approx(2.0024, abs=5e-5)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 64, 16_384])
@pytest.mark.parametrize("offset", [0.0, 0.2, 1.0, 7.0, 1e4])
def test_query_lengths(d: int, offset: float) -> None:
    norms, weights = norm_nodes(d, offset)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    noncentral = d * offset**2
    assert weights @ norms**2 == pytest.approx(d + noncentral, rel=1e-11)
    a = 0.7 / (d + noncentral)
    transform = math.exp(-d / 2 * math.log1p(2 * a) - noncentral * a / (1 + 2 * a))
    assert weights @ np.exp(-a * norms**2) == pytest.approx(transform, abs=1e-11)


def test_moments_of_components() -> None:
    def by_quadrature(law: stats.rv_frozen, order: int) -> float:
        return law.expect(lambda x: x**order, epsabs=1e-12, epsrel=1e-12)

    laws = {
        "normal": stats.norm(),
        "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
        "laplace": stats.laplace(0, math.sqrt(0.5)),
        "student_t": stats.t(12, 0, math.sqrt(10 / 12)),
    }
    for name, law in laws.items():
        for order in range(9):
            assert moment(name, order, 12) == pytest.approx(by_quadrature(law, order), rel=1e-6, abs=1e-9)
    assert moment("rademacher", 8, 5) == 1
    assert moment("student_t", 4, 5) == 9
    assert [moment("student_t", order, 5) is None for order in (3, 4, 5, 6)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("law", "kurtosis"), [("normal", 6), ("uniform", 0.24), ("laplace", 33), ("rademacher", -2), ("student_t", 78)]
)
def test_excess_kurtosis_of_zero_mean_scores(law: str, kurtosis: float) -> None:
    p = Parameters(d_k=16, std_q=1.5, std_k=0.2).with_value("components", law)
    moments = score_moments(p)
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
    assert score_moments(p.with_value("d_k", 50)).excess_kurtosis == pytest.approx(moments.excess_kurtosis / 10)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("correlation", [0.0, 0.4, -0.7])
@pytest.mark.parametrize("means", [(0.0, 0.0), (0.5, 0.8)])
def test_moments_agree_with_simulation(law: str, correlation: float, means: tuple[float, float]) -> None:
    p = Parameters(d_k=12, mean_q=means[0], std_q=1.1, mean_k=means[1], std_k=0.7, correlation=correlation)
    p = p.with_value("components", law).with_value("degrees_of_freedom", 40)
    moments = score_moments(p)
    scores = draw_scores(p, np.random.default_rng(5), 100_000, 1, 1).reshape(-1) - moments.mean
    assert abs(z_score(scores, 0)) < 4
    assert abs(z_score(scores**2, moments.variance)) < 4
    assert abs(z_score(scores**4, moments.variance**2 * (3 + moments.excess_kurtosis))) < 4


def test_moments_that_do_not_exist() -> None:
    def of(degrees: int, correlation: float = 0.0) -> Mapping[str, float | None]:
        return unscaled(Parameters(components="student_t", degrees_of_freedom=degrees, correlation=correlation))

    assert of(4)["logit_variance"] == 64
    assert of(4)["logit_excess_kurtosis"] is None
    assert of(5)["logit_excess_kurtosis"] is not None
    # With a shared direction g, the variance needs g⁴ and the kurtosis g⁸.
    for name in ("logit_variance", "logit_std", "row_mean_share", "logit_within_3sd"):
        assert of(4, 0.5)[name] is None
    assert of(4, 0.5)["logit_mean"] == 32
    assert of(4, 0.5)["logit_variance_within_row"] is not None
    assert of(8, 0.5)["logit_excess_kurtosis"] is None
    assert of(9, 0.5)["logit_excess_kurtosis"] is not None


@pytest.mark.parametrize("law", LAWS[1:])
def test_softmax_of_other_components_has_no_exact_value(law: str) -> None:
    values = unscaled(Parameters(mask="causal", n_keys=3, n_queries=3).with_value("components", law))
    assert all(values[name] is None for name in (*SOFTMAX, "entropy_fraction", "weight_times_complement"))
    assert values["first_key_weight"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert values["logit_variance_within_row"] == pytest.approx(64 * (0 + 1 / 2 + 2 / 3) / 3)
    assert values["row_mean_share"] == pytest.approx(1 - (0 + 1 + 2) / 6)


@pytest.mark.parametrize(
    "change", [{"std_k": 0.0, "mean_k": 2.0}, {"std_q": 0.0}, {"correlation": -1.0}, {"n_keys": 1}]
)
@pytest.mark.parametrize("law", LAWS)
def test_rows_of_equal_logits_are_uniform_whatever_the_law(change: dict[str, float], law: str) -> None:
    p = Parameters(d_k=4, n_keys=5)
    for name, value in {**change, "components": law}.items():
        p = p.with_value(name, value)
    n = p.n_keys
    values = unscaled(p)
    assert values["entropy"] == pytest.approx(math.log(n), abs=1e-12)
    assert values["effective_keys"] == n
    assert values["max_weight"] == values["first_key_weight"] == pytest.approx(1 / n)
    assert values["one_hot_rows"] == (n == 1)
    assert values["jacobian_norm"] == pytest.approx(math.sqrt((n - 1) / n**2))
    assert values["dead_rows"] == (n == 1)
    assert (values["entropy_fraction"] is None) == (n == 1)
    assert values["logit_variance_within_row"] == 0


def test_equal_scores_have_no_shape() -> None:
    values = unscaled(Parameters(d_k=4, std_q=0.0, std_k=0.0, mean_q=2.0, mean_k=0.5))
    assert values["logit_min"] == values["logit_mean"] == values["logit_max"] == 4
    assert values["logit_variance"] == values["logit_std"] == 0
    assert values["logit_excess_kurtosis"] is None
    assert values["row_mean_share"] is None
    assert values["logit_within_3sd"] == 1
    # ±1 signs that are all shared: every product is 1.
    assert unscaled(Parameters(components="rademacher", correlation=1.0))["logit_variance"] == 0


@pytest.mark.parametrize("d_k", [1, 2, 3, 16, 64, 200])
def test_density_of_normal_components_is_variance_gamma(d_k: int) -> None:
    x = np.array([-2.0, 1e-3, 0.4, 3.0, 11.0])
    order, far = (d_k - 1) / 2, np.abs(x)
    log_bessel = np.log(special.kve(order, far)) - far
    log_density = order * np.log(far) + log_bessel - special.gammaln(d_k / 2) - order * math.log(2)
    expected = np.exp(log_density) / math.sqrt(math.pi)
    finite = np.isfinite(expected)
    assert finite.sum() >= 3
    found = score_density(Parameters(d_k=d_k), x)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-7)


def test_density_at_zero() -> None:
    assert np.isinf(score_density(Parameters(d_k=1), np.zeros(1))).all()
    assert score_density(Parameters(d_k=2), np.zeros(1))[0] == pytest.approx(0.5)


LAWS_WITH_DENSITY = [
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


@pytest.mark.parametrize("change", LAWS_WITH_DENSITY, ids=str)
def test_density_and_share_agree_with_simulation(change: dict[str, float]) -> None:
    p = Parameters(**change)
    moments = score_moments(p)
    deviation = math.sqrt(moments.variance)
    scores = draw_scores(p, np.random.default_rng(2), 60_000, 1, 1).reshape(-1)
    share = share_within(p, 3)
    inside = np.abs(scores - moments.mean) <= 3 * deviation
    assert abs(z_score(inside, share)) < 4
    if p.d_k == 1 and p.std_q:
        return  # the density is infinite at 0, and Gauss–Legendre nodes are not for that
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    # At 0 the density of a few products has a kink.
    for low, high in pairwise(sorted({0.0, *(moments.mean + deviation * edge for edge in (-3, -1, -0.2, 0.7, 3))})):
        probability = score_density(p, (low + high) / 2 + (high - low) / 2 * nodes) @ weights * (high - low) / 2
        assert abs(z_score((scores > low) & (scores < high), probability, 1e-9)) < 4
        total += probability if abs((low + high) / 2 - moments.mean) < 3 * deviation else 0
    assert total == pytest.approx(share, abs=1e-6)


def test_where_there_is_no_density() -> None:
    x = np.linspace(-3, 3, 5)
    assert score_density(Parameters(components="rademacher"), x) is None
    assert score_density(Parameters(components="laplace", correlation=0.1), x) is None
    assert score_density(Parameters(components="uniform", d_k=1), x) is None
    assert score_density(Parameters(std_q=0.0), x) is None


@pytest.mark.parametrize("d_k", [1, 4, 9, 10, 64, 1000, 16_384])
def test_share_of_random_signs(d_k: int) -> None:
    heads = stats.binom(d_k, 0.5)
    furthest = math.isqrt(9 * d_k)
    low = -(-max(d_k - furthest, 0) // 2)
    expected = heads.cdf(d_k - low) - heads.cdf(low - 1)
    assert share_within(Parameters(d_k=d_k, components="rademacher"), 3) == pytest.approx(expected, abs=1e-10)


def test_freezing() -> None:
    p = Parameters(d_k=64, n_keys=1024)
    unscaled_rule = freezing(p, "none")
    assert unscaled_rule.threshold == pytest.approx(math.sqrt(2 * math.log(1024)))
    assert unscaled_rule.logit_std == 8
    assert unscaled_rule.d_k == 14  # the first above 2 ln n = 13.86
    assert predict(p).columns[1].freezing == freezing(p, "sqrt_d_k")
    assert freezing(p, "sqrt_d_k").d_k is None
    assert freezing(p, "d_k").d_k is None
    # A rule that does not depend on d_k enough freezes everywhere, or nowhere, with the components' size.
    assert freezing(p.with_value("std_q", 10.0), "sqrt_d_k").d_k == 1
    assert freezing(p.with_value("n_keys", 1), "none").d_k is None
    assert freezing(p.with_value("correlation", 1.0), "none").d_k is None


@pytest.mark.parametrize("rule", [rule.name for rule in SCALE_RULES.values() if rule.normalise == "none"])
def test_where_each_rule_freezes(rule: ScaleName) -> None:
    """The first width of those from which on every one is at or above the threshold, looked at one by one."""
    widths = range(2 if rule == "log_d_k" else 1, 16_385)
    for n_keys, factor in ((2, 0.4), (3, 0.01), (5, 0.4), (8, 0.01), (128, 0.4), (8192, 0.01)):
        asked = Parameters(n_keys=n_keys, scale="custom", multiplier=factor, std_k=1.3)
        found = freezing(asked, rule)
        near = {d for edge in (1, found.d_k or 1, 16_384) for d in range(edge - 150, edge + 150)}
        looked_at = [d for d in widths if d in near or d % 37 == 0]
        std = [multiplier(rule, replace(Setting.of(asked), d_k=d)) * 1.3 * math.sqrt(d) for d in looked_at]
        thawed = np.flatnonzero(np.array(std) < found.threshold)
        after = looked_at[thawed[-1] + 1 :] if len(thawed) else looked_at
        assert found.d_k == (after[0] if after else None), (n_keys, factor)


def test_freezing_does_not_know_normalised_scores() -> None:
    with pytest.raises(ValueError, match="cosine_10"):
        freezing(Parameters(), "cosine_10")


def test_any_question_has_an_answer() -> None:
    """Extremes of every parameter, without a warning and without a value that is not a number."""
    extremes = [
        {"d_k": 1, "n_keys": 8192, "std_q": 100.0, "std_k": 100.0, "scale": "custom", "multiplier": 1000.0},
        {"d_k": 16_384, "n_keys": 8192, "std_q": 100.0, "std_k": 100.0, "mean_q": 100.0, "mean_k": -100.0},
        {"d_k": 16_384, "n_keys": 2, "std_q": 1e-9, "mean_q": 100.0, "mean_k": 1e-9},
        {"d_k": 3, "n_keys": 2, "std_q": 1e-150, "std_k": 1e-150},
        {"d_k": 1, "n_keys": 1, "n_queries": 1, "mask": "causal"},
        {"d_k": 1, "n_keys": 8192, "n_queries": 8192, "mask": "causal", "correlation": -0.999},
        {"d_k": 5, "components": "student_t", "degrees_of_freedom": 1000, "correlation": 1e-12},
        {"d_k": 16_384, "components": "laplace", "scale": "custom", "multiplier": 1e-6},
    ]
    for change in extremes:
        for column in predict(Parameters(**change)).columns:
            for name, value in column.values.items():
                assert value is None or math.isfinite(value), (change, name)
            for name in ("max_weight", "one_hot_rows", "sum_squared_weights", "logit_within_3sd"):
                value = column.values[name]
                assert value is None or -1e-12 <= value <= 1 + 1e-12, (change, name)


def test_theory_loads_neither_scipy_nor_the_experiment() -> None:
    code = (
        "import json, sys; from attn_tui.core.lab.theory import predict; "
        "from attn_tui.core.parameters import Parameters; "
        "predict(Parameters(n_keys=4)); print(json.dumps(list(sys.modules)))"
    )
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    lab = {name.removeprefix("attn_tui.core.lab.") for name in loaded if name.startswith("attn_tui.core.lab.")}
    assert not lab & {"components", "sampling", "experiment", "sweep"}
    assert not {name.split(".")[0] for name in loaded} & {"scipy", "textual", "rich"}


@pytest.mark.parametrize("n_keys", [16, 64, 100, 128, 8192])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_a_share_of_one_hot_rows_below_what_curves_can_tell_is_zero(n_keys: int, mask: MaskName) -> None:
    for d_k in (16, 94, 512):
        share = predict(Parameters(d_k=d_k, n_keys=n_keys, mask=mask)).columns[1].values["one_hot_rows"]
        assert share == 0 or (share is not None and share >= 1e-9)
    assert predict(Parameters(d_k=94, n_keys=256)).columns[1].values["one_hot_rows"] == 0
