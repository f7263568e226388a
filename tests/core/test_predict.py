"""Predictions of the statistics of weights: against a simulation, closed forms and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import textbook
from attn_tui.core.against import settings
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import ComponentLaw, MaskName, Parameters
from attn_tui.core.scales import multiplier
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.theory.curves import curves
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.score_moments import norm_nodes
from cases import for_each
from measurements import LAWS
from simulation import draw_vectors, z_score

# These have no type stubs.
integrate, special, stats = (import_module(f"scipy.{name}") for name in ("integrate", "special", "stats"))
SOFTMAX = ("entropy", "max_weight", "one_hot_rows", "sum_squared_weights", "jacobian_norm_squared")


def unscaled(p: Parameters) -> Mapping[str, float | None]:
    return predict(p).columns[0].values


def scaled(p: Parameters) -> dict[str, float]:
    """The values that are known under the chosen rule."""
    return {name: value for name, value in predict(p).columns[1].values.items() if value is not None}


def test_columns_are_the_unscaled_one_and_the_chosen_rule() -> None:
    p = Parameters(d_k=64, scale="two_sqrt_d_k")
    prediction = predict(p)
    assert prediction.parameters is p
    for column in prediction.columns:
        assert list(column.values) == [statistic.name for statistic in STATISTICS]
    with pytest.raises(ValueError, match="ln d_k"):
        predict(Parameters(d_k=1, scale="log_d_k"))


def test_a_head_of_64_with_128_keys() -> None:
    without, known = unscaled(Parameters(d_k=64, n_keys=128)), scaled(Parameters(d_k=64, n_keys=128))
    assert without["logit_variance"] == 64
    assert known["logit_variance"] == 1
    assert without["logit_excess_kurtosis"] == pytest.approx(6 / 64, abs=1e-12)
    assert without["entropy"] == pytest.approx(0.6680, abs=5e-5)
    assert known["entropy"] == pytest.approx(4.366, abs=5e-4)
    assert known["first_key_weight"] == 1 / 128
    assert known["logit_variance_within_row"] == pytest.approx(127 / 128)
    assert known.keys() >= {"logit_mean", "logit_std", "logit_within_3sd", "row_mean_share", "grad_q_rms"}
    assert known.keys().isdisjoint({
        "logit_min", "logit_max", "effective_keys", "jacobian_norm", "dead_rows", "grad_q_median", "grad_q_mean",
        "grad_q_top1_share", "score_overflow", "naive_exp_overflow", "weight_error",
    })  # fmt: skip


def assert_softmax(p: Parameters, column: int) -> None:
    """Predictions agree with the softmax of 1500 independent draws, within four standard errors."""
    predicted, side = predict(p).columns[column], settings(p)[column]
    q, k = draw_vectors(p, np.random.default_rng(11), 1500, p.n_queries, p.n_keys)
    scores = q @ k.mT * multiplier(side.scale, side.setting)
    visible = np.full(p.n_queries, p.n_keys)
    if p.mask == "causal":
        visible = np.minimum(np.arange(p.n_queries) + 1, p.n_keys)
        scores = np.where(np.arange(p.n_keys) < visible[:, None], scores, -np.inf)
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    w = e / e.sum(axis=2, keepdims=True)
    squares, entropy = (w**2).sum(axis=2), special.entr(w).sum(axis=2)
    within = np.where(np.isinf(scores), 0, scores)
    variance = np.maximum((within**2).sum(axis=2) / visible - (within.sum(axis=2) / visible) ** 2, 0)
    several = visible > 1
    rows = {
        "entropy": entropy,
        "entropy_fraction": entropy[:, several] / np.log(visible[several]),
        "max_weight": w.max(axis=2),
        "one_hot_rows": w[:, several].max(axis=2) > 0.95,
        "sum_squared_weights": squares,
        "first_key_weight": w[:, :, 0],
        "jacobian_norm_squared": squares - 2 * (w**3).sum(axis=2) + squares**2,
        "weight_times_complement": (1 - squares) / visible,
        "logit_variance_within_row": variance,
        "saturation": np.sqrt(variance[:, several] / (2 * np.log(visible[several]))),
    }
    for name, values in rows.items():
        expected = predicted.values[name]
        assert expected is not None, name
        # If no row was one-hot, the share may still be a few in as many rows.
        least = math.sqrt(max(expected, 1e-9) / values.size) if name == "one_hot_rows" else 1e-9
        least = 1e-7 if name == "saturation" else least  # the root of a variance that should be 0
        assert abs(z_score(values.mean(axis=1), expected, least)) < 4, name


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
@pytest.mark.parametrize("n_keys", [2, 10, 128])
@pytest.mark.parametrize("column", [0, 1])
def test_softmax_of_normal_components(d_k: int, n_keys: int, column: int) -> None:
    assert_softmax(Parameters(d_k=d_k, n_keys=n_keys, n_queries=4), column)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.9, 1.0])
@pytest.mark.parametrize(("mean_q", "mean_k"), [(0.0, 0.0), (1.5, -0.4)])
def test_softmax_with_means_correlation_and_a_causal_mask(
    mask: MaskName, correlation: float, mean_q: float, mean_k: float
) -> None:
    p = Parameters(d_k=6, n_keys=12, n_queries=16, std_q=0.8, std_k=1.3, correlation=correlation, mask=mask)
    for column in (0, 1):
        assert_softmax(replace(p, mean_q=mean_q, mean_k=mean_k), column)


def test_wide_heads_tend_to_normal_logits() -> None:
    wide, narrower = (scaled(Parameters(d_k=d_k, n_keys=128)) for d_k in (16_384, 8_192))
    limit = {name: values[0] for name, values in curves(128, 1, "none").at(np.ones(1)).items()}
    for name in SOFTMAX:
        assert wide[name] == pytest.approx(limit[name], abs=3e-4)
    # The difference is of order 1/d_k.
    doubled = 2 * (wide["entropy"] - limit["entropy"])
    assert narrower["entropy"] - limit["entropy"] == pytest.approx(doubled, rel=1e-3)


def test_a_narrow_head_is_not_its_normal_limit() -> None:
    """One component and ten keys: the mean of H over |q|, not H at the mean of |q|²."""
    curve = curves(10, 1, "none")
    assert curve.at(np.ones(1))["entropy"][0] == pytest.approx(1.9236, abs=5e-5)

    def weighted(r: float) -> float:
        return 2 * stats.norm.pdf(r) * curve.at(np.array([r]))["entropy"][0]

    entropy = scaled(Parameters(d_k=1, n_keys=10))["entropy"]
    assert entropy == pytest.approx(integrate.quad(weighted, 0, 10, epsabs=1e-12, epsrel=1e-12)[0], abs=1e-11)
    assert entropy == pytest.approx(2.0024, abs=5e-5)


@for_each("d", [1, 2, 3, 8, 64, 16_384])
@for_each("offset", [0.0, 0.2, 1.0, 7.0, 1e4])
def test_query_lengths(d: int, offset: float) -> None:
    norms, weights = norm_nodes(d, offset)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    noncentral = d * offset**2
    assert weights @ norms**2 == pytest.approx(d + noncentral, rel=1e-11)
    a = 0.7 / (d + noncentral)
    transform = math.exp(-d / 2 * math.log1p(2 * a) - noncentral * a / (1 + 2 * a))
    assert weights @ np.exp(-a * norms**2) == pytest.approx(transform, abs=1e-11)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "normal"])
def test_softmax_of_other_components_has_no_exact_value(law: ComponentLaw) -> None:
    values = unscaled(Parameters(mask="causal", n_keys=3, n_queries=3, components=law))
    assert all(
        values[name] is None for name in (*SOFTMAX, "saturation", "entropy_fraction", "weight_times_complement")
    )
    assert values["first_key_weight"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert values["logit_variance_within_row"] == pytest.approx(64 * (0 + 1 / 2 + 2 / 3) / 3)
    assert values["row_mean_share"] == pytest.approx(1 - (0 + 1 + 2) / 6)


@pytest.mark.parametrize("n", [128, 8192])
def test_uniform_rows_pass_gradients(n: int) -> None:
    """‖J‖_F² of weights 1/n is (1 − 1/n)/n, which is above 0.01² for less than 9,999 keys."""
    assert unscaled(Parameters(std_k=0.0, n_keys=n))["dead_rows"] == 0


@for_each("change", [{"std_k": 0.0, "mean_k": 2.0}, {"std_q": 0.0}, {"correlation": -1.0}, {"n_keys": 1}])
@for_each("law", LAWS)
def test_rows_of_equal_logits_are_uniform_whatever_the_law(change: dict[str, Any], law: ComponentLaw) -> None:
    p = replace(Parameters(d_k=4, n_keys=5, components=law), **change)
    n, values = p.n_keys, unscaled(p)
    assert values["entropy"] == pytest.approx(math.log(n), abs=1e-12)
    assert values["effective_keys"] == n
    assert values["max_weight"] == values["first_key_weight"] == pytest.approx(1 / n)
    assert values["saturation"] == values["one_hot_rows"] == values["dead_rows"] == (None if n == 1 else 0)
    assert values["first_key_over_uniform"] == 1
    assert values["jacobian_norm"] == pytest.approx(math.sqrt((n - 1) / n**2))
    assert (values["entropy_fraction"] is None) == (n == 1)
    assert values["logit_variance_within_row"] == 0


EXTREMES: list[dict[str, Any]] = [
    {"d_k": 1, "n_keys": 8192, "std_q": 100.0, "std_k": 100.0, "scale": "custom", "multiplier": 1000.0},
    {"d_k": 16_384, "n_keys": 8192, "std_q": 100.0, "std_k": 100.0, "mean_q": 100.0, "mean_k": -100.0},
    {"d_k": 16_384, "n_keys": 2, "std_q": 1e-6, "mean_q": 100.0, "mean_k": 1e-6},
    {"d_k": 3, "n_keys": 2, "std_q": 1e-6, "std_k": 1e-6},
    {"d_k": 1, "n_keys": 1, "n_queries": 1, "mask": "causal"},
    {"d_k": 1, "n_keys": 8192, "n_queries": 8192, "mask": "causal", "correlation": -0.999},
    {"d_k": 5, "components": "student_t", "degrees_of_freedom": 1000, "correlation": 1e-6},
    {"d_k": 16_384, "components": "laplace", "scale": "custom", "multiplier": 1e-6},
]


@for_each("change", EXTREMES)
def test_extreme_parameters_give_finite_values_and_no_warning(change: dict[str, Any]) -> None:
    for column in predict(Parameters(**change)).columns:
        for name, value in column.values.items():
            assert value is None or math.isfinite(value), name
        for name in ("max_weight", "one_hot_rows", "sum_squared_weights", "logit_within_3sd"):
            share = column.values[name]
            assert share is None or -1e-12 <= share <= 1 + 1e-12, name


@for_each("n_keys", [16, 64, 100, 128, 8192])
@for_each("mask", ["none", "causal"])
def test_a_share_of_one_hot_rows_below_the_precision_of_the_curves_is_zero(n_keys: int, mask: MaskName) -> None:
    for d_k in (16, 94, 512):
        share = scaled(Parameters(d_k=d_k, n_keys=n_keys, mask=mask))["one_hot_rows"]
        assert share == 0 or share >= 1e-9
    assert scaled(Parameters(d_k=94, n_keys=256))["one_hot_rows"] == 0


QUESTION = Parameters(d_k=9, n_keys=13, n_queries=11, batch=4, d_v=5)
EXACT: dict[str, dict[str, Any]] = {
    "default": {},
    "one component": {"d_k": 1},
    "wide": {"d_k": 40, "scale": "ssmax"},
    "causal": {"mask": "causal"},
    "causal beyond the keys": {"mask": "causal", "n_queries": 30, "d_k": 4},
    "means": {"mean_q": 1.5, "mean_k": -4.0},
    "sizes": {"std_q": 3.0, "std_k": 0.5},
    "aligned": {"correlation": 0.6},
    "opposed, with means": {"correlation": -0.5, "mean_q": 0.7, "mean_k": 1.0, "mask": "causal"},
    "one query for all": {"std_q": 0.0, "mean_q": 1.0},
    "narrow values": {"d_v": 1},
    "no queries": {"std_q": 0.0, "components": "laplace"},
    "no queries and a mask": {"std_q": 0.0, "components": "uniform", "mask": "causal", "correlation": 0.5},
}


@pytest.mark.parametrize("change", EXACT.values(), ids=EXACT)
def test_the_exact_gradient_agrees_with_a_simulation(change: dict[str, Any]) -> None:
    p, draws = replace(QUESTION, **change), 8_000
    rng = np.random.default_rng(0)
    q, k = draw_vectors(p, rng, draws, 1, p.n_keys)
    g, v = rng.standard_normal((draws, p.d_v)), rng.standard_normal((draws, p.n_keys, p.d_v))
    received = np.einsum("dv,dnv->dn", g, v)
    row = np.arange(draws) % p.n_queries if p.mask == "causal" else np.full(draws, p.n_keys)
    seen = np.arange(p.n_keys) <= row[:, None]
    for rule, column in zip(("none", p.scale), predict(p).columns, strict=True):
        c = textbook.RULES[rule][1](p.d_k, p.n_keys)
        weights = textbook.softmax(c * (q @ k.mT)[:, 0], seen, None)[0]
        d_z = weights * (received - np.sum(weights * received, axis=1, keepdims=True))
        squares = np.sum(np.einsum("dn,dnk->dk", d_z, c * k) ** 2, axis=1)
        of_logits = np.sum(d_z**2, axis=1)
        for name, each in (("grad_q_rms", squares), ("grad_logits_rms", of_logits)):
            exact, stderr = column.values[name], each.std() / math.sqrt(draws)
            assert exact is not None
            assert stderr < 0.05 * exact**2
            assert abs(each.mean() - exact**2) < 3.5 * stderr, name


@pytest.mark.parametrize(
    "change",
    [{"components": "uniform"}, {"sink": "logit"}, {"softcap": 9.0}, {"mechanism": "cosine"}, {"scale": "rms_none"}],
    ids=str,
)
def test_some_gradients_have_no_exact_value(change: dict[str, Any]) -> None:
    values = predict(replace(QUESTION, **change)).columns[1].values
    assert values["grad_q_rms"] is values["grad_logits_rms"] is None


@pytest.mark.parametrize("change", [{"n_keys": 1}, {"std_k": 0.0, "mean_k": 3.0}, {"correlation": -1.0}], ids=str)
def test_with_equal_keys_the_exact_and_the_measured_gradient_are_zero(change: dict[str, Any]) -> None:
    p = replace(QUESTION, **change)
    for measured, exact in zip(run(p).columns, predict(p).columns, strict=True):
        assert exact.values["grad_q_rms"] == 0
        assert measured.measured["grad_q_rms"].value == pytest.approx(0, abs=1e-5)
