"""Theory of scores of normalised queries and keys: against the lab's measurements and closed forms."""

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.saturation import saturation
from attn_tui.core.theory.score_moments import normalised_law, share_of_cosine
from cases import for_each

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
