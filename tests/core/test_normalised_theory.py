"""Normalised queries and keys: their sizes, scores and backward pass, and the theory of their scores."""

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised, normalised_backward
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES, Normalise, RuleSetting, multiplier
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.saturation import saturation
from attn_tui.core.theory.score_moments import normalised_law, share_of_cosine
from cases import for_each
from golden import cases, reference

special = import_module("scipy.special")  # without type stubs

QUESTION = Parameters(d_k=12, n_keys=40, n_queries=30, batch=60, precision="float64", scale="rms_sqrt_d_k")
LOGITS = (
    "logit_mean", "logit_variance", "logit_std", "logit_excess_kurtosis", "logit_within_3sd",
    "logit_variance_within_row", "row_mean_share",
)  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "rms": {},
    "a gain": {"norm_gain": 1.6},
    "sizes": {"std_q": 3.0, "std_k": 0.2, "scale": "rms_none"},
    "a mean of queries": {"mean_q": 2.0},
    "queries all alike": {"mean_q": 2.0, "std_q": 0.0},
    "causal": {"mask": "causal"},
    "layer norm": {"scale": "layer_norm_sqrt_d_k", "d_k": 5},
    "layer norm with means": {"scale": "layer_norm_sqrt_d_k", "mean_q": 2.0, "mean_k": -3.0, "norm_gain": 0.7},
    "cosine": {"scale": "cosine_10", "d_k": 3},
    "learned cosine with a gain": {"scale": "cosine_learned", "temperature": 7.0, "norm_gain": 1.2},
    "one dimension": {"d_k": 1},
    "two dimensions": {"d_k": 2},
    "wide": {"d_k": 300, "batch": 20},
    "a sink": {"sink": "logit"},
    "uniform components": {"components": "uniform"},
    "heavy tails": {"components": "student_t", "degrees_of_freedom": 3},
    "signs": {"components": "rademacher", "scale": "cosine_10"},
    "layer norm of heavy tails": {"components": "laplace", "scale": "layer_norm_sqrt_d_k", "mean_k": 1.0},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_predictions_agree_with_measurements(case: dict[str, Any]) -> None:
    p = replace(QUESTION, **case)
    exact, measured = predict(p).columns[1].values, run(p).columns[1].measured
    known = [name for name in LOGITS if exact[name] is not None]
    assert {"logit_mean", "logit_variance", "logit_std", "logit_variance_within_row", "row_mean_share"} <= {*known}
    assert ("logit_excess_kurtosis" in known) == (p.components == "normal")
    for name in known:
        found = measured[name]
        assert found.value is not None
        allowed = 5 * (found.stderr or 0) + 1e-9 * max(abs(exact[name] or 0), 1)
        assert found.value == pytest.approx(exact[name], abs=allowed), name


@for_each("rule", [rule.name for rule in SCALE_RULES.values() if rule.normalise != "none"])
def test_the_gain_multiplies_logits_by_its_square(rule: str) -> None:
    one, two = (predict(replace(QUESTION, scale=rule, norm_gain=gain)).columns[1].values for gain in (1.0, 2.0))
    assert two["logit_std"] == pytest.approx(4 * (one["logit_std"] or 0), rel=1e-14)
    assert two["logit_excess_kurtosis"] == one["logit_excess_kurtosis"]


@for_each(
    "change",
    [
        {"mean_k": 0.5}, {"correlation": 0.3}, {"softcap": 5.0}, {"mechanism": "bilinear"}, {"std_k": 0.0},
        {"std_q": 0.0}, {"scale": "layer_norm_sqrt_d_k", "components": "rademacher"},
        {"scale": "layer_norm_sqrt_d_k", "std_q": 0.0, "mean_q": 1.0}, {"scale": "sqrt_d_k"},
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_predicted(change: dict[str, Any]) -> None:
    p = replace(QUESTION, **change)
    assert normalised_law(p, p.scale) is None


@for_each("dimensions", [1, 2, 3, 4, 9, 10, 64, 1000, 16_384])
@for_each("deviations", [0.5, 1, 3])
def test_the_share_of_a_cosine_is_an_incomplete_beta_function(dimensions: int, deviations: float) -> None:
    most = deviations / math.sqrt(dimensions)
    expected = (
        1.0 if most >= 1 else float(special.betainc(0.5, (dimensions - 1) / 2, most**2)) if dimensions > 1 else 0
    )
    assert share_of_cosine(dimensions, most) == pytest.approx(expected, rel=1e-10)


def test_rms_norm_saturates_where_its_gain_does() -> None:
    """Under 1/√d_k the deviation within a row is g², at every width."""
    threshold = math.sqrt(2 * math.log(QUESTION.n_keys))
    for gain in (0.5, 1.0, 1.6, 1.7, 3.0):
        found = saturation(replace(QUESTION, norm_gain=gain), "rms_sqrt_d_k")
        assert found is not None
        assert found.std == pytest.approx(gain**2, rel=1e-12)
        assert found.saturated_at == (((1, 16_384),) if gain**2 >= threshold else ())


def test_a_cosine_saturates_at_small_widths_only() -> None:
    found = saturation(replace(QUESTION, scale="cosine_10"), "cosine_10")
    assert found is not None
    last = math.floor((10 / math.sqrt(2 * math.log(QUESTION.n_keys))) ** 2)  # σ is 10/√d_k
    assert found.saturated_at == ((1, last),)


def test_the_deviation_within_a_row_is_what_saturation_compares() -> None:
    for rule in ("layer_norm_sqrt_d_k", "cosine_sqrt_d_k", "rms_gemma3_27b"):
        p = replace(QUESTION, scale=rule, norm_gain=1.3)
        found = saturation(p, rule)
        assert found is not None
        within = predict(p).columns[1].values["logit_variance_within_row"]
        assert within == pytest.approx(found.std**2 * (1 - 1 / p.n_keys), rel=1e-12)
        assert np.isfinite(found.threshold)


COSINES = [case for case in cases("cosine") if "_t1" in case["case"]]
(RMS,) = cases("qknorm_rms")
KINDS: tuple[Normalise, ...] = ("rms", "layer_norm", "l2")


def draw(*shape: int, dtype: str = "float64") -> Any:
    return (3 * np.random.default_rng(5).standard_normal(shape) + 0.5).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normalised_vectors_have_the_size_of_their_kind(dtype: str) -> None:
    x = draw(3, 4, 10, dtype=dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    assert normalised(x, "none") is x
    assert np.allclose(np.linalg.norm(normalised(x, "l2"), axis=-1), 1, rtol=tolerance)
    assert np.allclose((normalised(x, "rms") ** 2).mean(axis=-1), 1, rtol=tolerance)
    layer_norm = normalised(x, "layer_norm")
    assert np.allclose(layer_norm.mean(axis=-1), 0, atol=tolerance)
    assert np.allclose(layer_norm.var(axis=-1), 1, rtol=tolerance)
    for how in KINDS:
        assert normalised(x, how).dtype == x.dtype
        assert normalised(x, how).shape == x.shape


@for_each("how", KINDS)
@for_each("factor", [1e-3, 7.0, 1e4])
def test_the_size_of_a_vector_does_not_matter(how: Normalise, factor: float) -> None:
    x = draw(5, 16)
    assert np.allclose(normalised(factor * x, how), normalised(x, how), rtol=1e-12, atol=1e-14)


@for_each("dtype", ["float32", "float64"])
@for_each("how", KINDS)
def test_a_vector_without_direction_becomes_zero(how: Normalise, dtype: str) -> None:
    flat = np.full((1, 7), 0.1, dtype)
    assert np.array_equal(normalised(np.zeros((2, 7), dtype), how), np.zeros((2, 7)))
    if how == "layer_norm":
        assert np.array_equal(normalised(flat, how), np.zeros((1, 7)))
        assert np.array_equal(normalised(draw(4, 1, dtype=dtype), how), np.zeros((4, 1)))
    else:
        assert (normalised(flat, how) > 0).all()


@for_each("case", COSINES)
def test_cosines_agree_with_references(case: dict[str, Any]) -> None:
    q, k = (normalised(reference(case, side), "l2") for side in "qk")
    assert np.allclose(q @ k.mT, reference(case, "raw"), rtol=1e-12, atol=1e-12)


def test_rms_scores_agree_with_references_up_to_their_epsilon() -> None:
    q, k = (normalised(reference(RMS, side), "rms") * reference(RMS, f"g{side}") for side in "qk")
    assert np.allclose(q @ k.mT, reference(RMS, "raw"), rtol=2e-5, atol=2e-5)


@for_each("how", ["none", *KINDS])
@for_each("size", [1.0, 1e-2, 1e-5])
def test_the_backward_pass_agrees_with_finite_differences(how: Normalise, size: float) -> None:
    rng = np.random.default_rng(1)
    x, upstream, direction = (rng.standard_normal((3, 6)) for _ in range(3))
    x, step = size * x, 1e-5 * size

    def along(t: float) -> float:
        return float((upstream * normalised(x + t * direction, how)).sum())

    expected = (along(step) - along(-step)) / (2 * step)
    assert (normalised_backward(upstream, x, how) * direction).sum() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("how", KINDS)
def test_no_vector_is_too_small_for_the_backward_pass(how: Normalise) -> None:
    tiny = np.array([[0.0, 0.0], [1e-30, -1e-30], [1e-13, 0.0], [2.0, 2.0]], np.float32)
    with np.errstate(all="raise", under="ignore"):
        back = normalised_backward(np.ones_like(tiny), tiny, how)
    assert back.dtype == np.float32
    assert np.all(np.isfinite(back))
    assert np.all(back[0] == 0)


def test_ngpt_and_qwen3_start_from_the_same_logits() -> None:
    q, k = draw(6, 24), draw(9, 24)[::-1]
    setting = RuleSetting(d_k=24)
    logits = [
        multiplier(name, setting)
        * normalised(q, SCALE_RULES[name].normalise)
        @ normalised(k, SCALE_RULES[name].normalise).T
        for name in ("rms_sqrt_d_k", "cosine_sqrt_d_k")
    ]
    assert np.allclose(*logits, rtol=1e-12)
