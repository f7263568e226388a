"""Where softmax saturates beyond scaled dot products: soft-caps, mechanisms, rows with multipliers, few bits."""

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters, ScaleName
from attn_tui.core.scales import SCALE_RULES, multiplier, row_multiplier
from attn_tui.core.theory.prediction import Saturation, ratio_given, status_given
from attn_tui.core.theory.saturation import saturation
from attn_tui.core.theory.score_moments import capped_deviation
from cases import for_each

stats = import_module("scipy.stats")  # without type stubs
WIDEST = 16_384


def known(p: Parameters, rule: ScaleName) -> Saturation:
    found = saturation(p, rule)
    assert found is not None
    return found


@pytest.mark.parametrize(("d_k", "cap", "c"), [(1, 2.0, 1.0), (4, 50.0, 0.5), (64, 20.0, 1.0), (64, 0.5, 3.0)])
def test_the_deviation_of_soft_capped_logits_is_an_integral(d_k: int, cap: float, c: float) -> None:
    """Over the density of a score: a query's length is chi distributed, and given it a score is normal."""
    z, r = np.linspace(-10, 10, 8001), np.linspace(0, math.sqrt(d_k) + 9, 801)
    given = np.trapezoid(np.tanh(c * r[:, np.newaxis] * z / cap) ** 2 * stats.norm.pdf(z), z)
    square = float(np.trapezoid(stats.chi.pdf(r, d_k) * given, r))
    p = Parameters(d_k=d_k, softcap=cap)
    assert capped_deviation(p, d_k, c) == pytest.approx(cap * math.sqrt(square), rel=2e-6)


@for_each("gain", [0.5, 1.0, 3.0])
@for_each(
    "rule",
    ["rms_sqrt_d_k", "rms_none", "layer_norm_none", "layer_norm_sqrt_d_k", "cosine_sqrt_d_k", "cosine_learned"],
)
def test_normalised_queries_and_keys_spread_as_points_of_a_sphere(rule: ScaleName, gain: float) -> None:
    """A cosine of random directions in d dimensions has variance 1/d; a gain counts for q and for k."""
    for d in (2, 7, 64, 1000):
        spread = {"rms": math.sqrt(d), "layer_norm": d / math.sqrt(d - 1), "l2": 1 / math.sqrt(d)}
        p = Parameters(d_k=d, n_keys=10, norm_gain=gain)
        found = known(p, rule)
        own = gain**2 * multiplier(rule, p.setting) * spread[SCALE_RULES[rule].normalise]
        assert found.std == pytest.approx(own, rel=1e-12)
        inside = any(first <= d <= last for first, last in found.saturated_at)
        assert inside == (own >= math.sqrt(2 * math.log(10)))


@for_each("d_k", [2, 3, 5])
@for_each("rule", ["rms_none", "layer_norm_none", "cosine_10"])
def test_bilinear_scores_of_normalised_vectors_spread_as_an_average_over_weights(rule: ScaleName, d_k: int) -> None:
    rng = np.random.default_rng(d_k)
    q, k = (normalised(rng.standard_normal((4000, d_k)), SCALE_RULES[rule].normalise) for _ in range(2))
    w = rng.standard_normal((4000, d_k, d_k)) / math.sqrt(d_k)
    square = np.square(np.einsum("ni,nij,mj->nm", q, w, k[:50])).mean()
    p = Parameters(d_k=d_k, mechanism="bilinear", gain=3.0)
    own = 3 * multiplier(rule, p.setting) * math.sqrt(square)
    assert known(p, rule).std == pytest.approx(own, rel=0.06)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"softcap": 20.0}, "none"), ({"softcap": 5.0, "n_keys": 4}, "log_d_k"), ({"softcap": 10.0}, "8/d"),
        ({"softcap": 20.0, "mean_q": 0.7, "std_k": 0.5}, "none"),
    ],
)  # fmt: skip
def test_intervals_with_a_soft_cap_end_where_the_deviation_crosses_the_threshold(
    changes: dict[str, Any], rule: ScaleName
) -> None:
    p = replace(Parameters(), **changes)
    found = known(p, rule)
    assert found.saturated_at

    def reaches(d_k: int) -> bool:
        return capped_deviation(p, d_k, multiplier(rule, replace(p.setting, d_k=d_k))) >= found.threshold

    for first, last in found.saturated_at:
        assert reaches(first)
        assert reaches(last)
        assert first == 1 or (rule == "log_d_k" and first == 2) or not reaches(first - 1)
        assert last == WIDEST or not reaches(last + 1)
    for d_k in (2, 3, 5, 8, 13, 40, 100, 1000, 5000):
        assert any(first <= d_k <= last for first, last in found.saturated_at) == reaches(d_k)


def test_a_soft_cap_below_the_threshold_never_saturates() -> None:
    p = Parameters(softcap=3.0, std_q=100.0)
    assert known(p, "none").saturated_at == ()
    assert known(replace(p, softcap=4.0), "none").saturated_at == ((1, WIDEST),)


@pytest.mark.parametrize("rule", ["ssmax", "log512_n", "log(n)/sqrt(d)"])
def test_each_row_of_a_causal_mask_has_its_own_multiplier(rule: ScaleName) -> None:
    p = Parameters(d_k=64, n_keys=32, n_queries=40, mask="causal")
    seen = [min(row + 1, 32) for row in range(1, 40)]
    ratios = [8 * row_multiplier(rule, replace(p.setting, n_keys=n)) / math.sqrt(2 * math.log(n)) for n in seen]
    found = known(p, rule)
    assert found.ratio == pytest.approx(np.mean(ratios), rel=1e-12)
    assert found.threshold == known(p, "none").threshold
    assert saturation(p, "1/d**(1/n)") is None  # no product of a factor of the row and one of d_k


@pytest.mark.parametrize("changes", [{"precision": "float16", "arithmetic": "eager"}, {"mechanism": "bilinear"}])
def test_measured_rows_decide_the_status_where_theory_is_of_another_arithmetic_or_of_a_mean(
    changes: dict[str, Any],
) -> None:
    p = replace(Parameters(d_k=9, batch=4), **changes)
    found = known(p, "none")
    assert (found.saturated_at, found.decides) == (((10, WIDEST),), False)
    measured = run(p, full=False).columns[0].measured
    larger = replace(found, std=10.0)
    assert (
        status_given(larger, measured)
        == status_given(None, measured)
        != status_given(replace(larger, decides=True), measured)
    )
    assert ratio_given(found, measured) == measured["saturation"].value
