"""Where softmax saturates: intervals of d_k, and the deviation of logits that are not plain scores."""

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.arrays import FloatArray
from attn_tui.core.attention.normalise import normalised
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters, ScaleName
from attn_tui.core.scales import SCALE_RULES, multiplier, multipliers, row_multiplier
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.prediction import (
    Interval,
    Saturation,
    crossings,
    is_saturated,
    ratio_given,
    status_given,
)
from attn_tui.core.theory.saturation import saturation, saturation_of
from attn_tui.core.theory.score_moments import capped_deviation
from cases import for_each

WIDEST = 16_384
PLAIN = [rule.name for rule in SCALE_RULES.values() if rule.normalise == "none"]


def known(p: Parameters, rule: ScaleName) -> Saturation:
    found = saturation(p, rule)
    assert found is not None
    return found


def test_unscaled_logits_saturate_and_scaled_ones_do_not() -> None:
    p = Parameters(d_k=64, n_keys=1024)
    unscaled = known(p, "none")
    assert unscaled.threshold == pytest.approx(math.sqrt(2 * math.log(1024)))
    assert unscaled.std == 8
    assert unscaled.ratio == pytest.approx(8 / math.sqrt(2 * math.log(1024)))
    assert unscaled.saturated_at == ((14, WIDEST),)  # from the first above 2 ln n = 13.86
    assert predict(p).columns[1].saturation == known(p, "sqrt_d_k")
    assert known(p, "sqrt_d_k").saturated_at == ()
    assert known(p, "d_k").saturated_at == ()
    # The scale does not depend on the components' size, so they may be large enough to saturate everywhere.
    assert known(replace(p, std_q=10.0), "sqrt_d_k").saturated_at == ((1, WIDEST),)
    assert known(replace(p, correlation=1.0), "none").saturated_at == ()


@for_each("mask", ["none", "causal"])
@for_each("n_keys", [3, 128, 1000])
def test_a_rule_on_the_threshold_is_saturated_at_every_width(n_keys: int, mask: Any) -> None:
    """√(2 ln n)/√d_k puts σ on the threshold at every d_k, where rounding alone would decide."""
    p = Parameters(n_keys=n_keys, n_queries=min(n_keys, 128), mask=mask)
    found = known(p, "sqrt(2*log(n))/sqrt(d)")
    assert found.saturated_at == ((1, WIDEST),)
    assert found.ratio == 1
    assert known(p, "0.999999*sqrt(2*log(n))/sqrt(d)").saturated_at == ()


def test_a_rule_may_saturate_at_small_widths_only() -> None:
    """8/d_k leaves 8/√d_k, which is at least 3.115 up to d_k 6.6."""
    found = known(Parameters(d_k=4), "8/d")
    assert found.std == 4
    assert found.saturated_at == ((1, 6),)
    several = found._replace(saturated_at=((2, 6), (40, WIDEST)))
    assert [d_k for d_k in (1, 2, 6, 7, 39, 40, WIDEST) if is_saturated(several, {}, d_k)] == [2, 6, 40, WIDEST]


def test_without_exact_numbers_the_measured_ratio_says_where_softmax_saturates() -> None:
    ratios = (0.99, 1.0, 1.01, None, math.inf)
    flags = [is_saturated(None, {"saturation": Estimate(ratio, None)}, 8) for ratio in ratios]
    assert flags == [False, True, True, None, None]
    assert is_saturated(None, {}, 8) is None
    places = zip((1, 4, 9, 16, 25, 100), (True, True, False, None, False, True), strict=True)
    assert [*crossings(places)] == [(6.0, False), (50.0, True)]


@for_each("n_keys", range(3, 9))
def test_a_rule_may_saturate_thaw_and_saturate_again(n_keys: int) -> None:
    """√d/ln d is 2.04 at d_k 2, where it exists first, and smallest at e²."""
    first, second = known(Parameters(n_keys=n_keys), "log_d_k").saturated_at
    assert first[0] == 2
    assert first[1] < math.e**2 < second[0]
    assert second[1] == WIDEST


def deviations(p: Parameters, rule: ScaleName) -> FloatArray:
    """The logits' standard deviation within a row by the laws of sums, at every d_k; NaN without a multiplier."""
    widths = np.arange(1, WIDEST + 1)
    size = (p.std_q**2 + p.mean_q**2) * p.std_k**2 * (1 - abs(p.correlation))
    return np.array(multipliers(rule, p.setting, widths.astype(float))) * np.sqrt(widths * size)


@pytest.mark.parametrize("rule", PLAIN)
def test_the_intervals_are_all_widths_whose_logits_reach_the_threshold(rule: ScaleName) -> None:
    """Found by looking at every width."""
    for n_keys, factor in ((2, 0.4), (5, 0.01), (8192, 0.01)):
        p = Parameters(n_keys=n_keys, scale="custom", multiplier=factor, std_k=1.3, mean_q=0.4, correlation=-0.2)
        found, expected = known(p, rule), deviations(p, rule)
        widths = {d for first, last in found.saturated_at for d in range(first, last + 1)}
        beyond = np.flatnonzero(expected >= math.sqrt(2 * math.log(n_keys))) + 1
        assert widths == {*beyond.tolist()}, (n_keys, factor)
        gaps = zip(found.saturated_at, found.saturated_at[1:], strict=False)
        assert all(last + 1 < first for (_, last), (first, _) in gaps)
        assert found.std == pytest.approx(expected[p.d_k - 1])
        assert (found.ratio >= 1) == (p.d_k in widths)


@pytest.mark.parametrize(
    ("rule", "mask"),
    [
        *((rule, mask) for rule in ("none", "8/d", "log_d_k") for mask in ("none", "causal")),
        ("ssmax", "none"),  # under a causal mask, each row has its own multiplier, and theory says nothing
    ],
)
def test_measured_rows_cross_their_thresholds_where_theory_says(rule: ScaleName, mask: Any) -> None:
    """A measured row is as its query and its keys happen to be; in the mean of squares, rows follow the law."""
    p = Parameters(n_keys=64, n_queries=64, batch=16, scale=rule, mask=mask)
    for first, last in known(p, rule).saturated_at:
        for d_k, saturated in ((first - 2, False), (first + 2, True), (last - 2, True), (last + 2, False)):
            if not 2 < d_k <= 200:
                continue
            column = run(replace(p, d_k=d_k), full=False).columns[1]
            assert (known(replace(p, d_k=d_k), rule).ratio >= 1) == saturated
            visible = np.arange(1, 65) if mask == "causal" else np.full(64, 64)
            variance = column.measured["logit_variance_within_row"]
            assert variance.value is not None
            spread = math.sqrt(variance.value / np.mean((visible - 1) / visible))
            ratio = spread * float(np.mean(1 / np.sqrt(2 * np.log(visible[visible > 1]))))
            assert ratio == pytest.approx(known(replace(p, d_k=d_k), rule).ratio, rel=0.03)


def test_under_a_causal_mask_each_row_has_its_own_threshold() -> None:
    p = Parameters(d_k=7, n_keys=3, n_queries=4, mask="causal")  # rows of 1, 2, 3 and 3 keys
    thresholds = [math.sqrt(2 * math.log(n)) for n in (2, 3, 3)]
    assert known(p, "none").ratio == pytest.approx(np.mean([math.sqrt(7) / t for t in thresholds]), rel=1e-14)


def test_saturation_needs_two_keys_and_a_known_deviation() -> None:
    p = Parameters()
    assert saturation(replace(p, n_keys=1), "none") is None
    assert saturation(replace(p, mask="causal", n_queries=1), "none") is None
    unknown: tuple[dict[str, Any], ...] = (
        {"softcap": 50.0, "components": "uniform"}, {"softcap": 50.0, "mean_k": 1.0}, {"mechanism": "additive"},
        {"mechanism": "cosine", "correlation": 0.5},
    )  # fmt: skip
    for change in unknown:
        assert saturation(replace(p, **change), "none") is None, change
    assert saturation(replace(p, correlation=0.5), "cosine_10") is None
    assert saturation(replace(p, sink="logit", components="laplace"), "none") is not None
    with pytest.raises(ParameterError, match="ln d_k"):
        saturation(replace(p, d_k=1), "log_d_k")
    assert saturation_of(replace(p, d_k=1), ["log_d_k", "cosine_10", "d_k"]).keys() == {"cosine_10", "d_k"}


@for_each("rule", SCALE_RULES)
def test_multipliers_at_many_widths_are_those_at_each(rule: ScaleName) -> None:
    setting, widths = Parameters(n_keys=5, layer=3, position=40_000, multiplier=0.3).setting, (1, 2, 7, 64, WIDEST)
    for d_k, found in zip(widths, multipliers(rule, setting, np.array(widths, float)), strict=True):
        try:
            assert found == multiplier(rule, setting._replace(d_k=d_k))
        except ParameterError:
            assert math.isnan(found)
    assert setting.d_k == 64


@for_each(
    ("saturated_at", "words"),
    [
        ([], "stays below saturation at every d_k"),
        ([(1, WIDEST)], "saturated at every d_k"),
        ([(10, WIDEST)], "saturated from d_k 10 up"),
        ([(1, 6)], "saturated at d_k 1–6"),
        ([(2, 2)], "saturated at d_k 2"),
        ([(1, 1), (7120, WIDEST)], "saturated at d_k 1 and from 7120 up"),
        ([(1, 2), (5, 7), (9, WIDEST)], "saturated at d_k 1–2, 5–7 and from 9 up"),
        ([(1, 2), (5, 7)], "saturated at d_k 1–2, 5–7"),
    ],
)
def test_intervals_are_said_in_words_long_and_short(saturated_at: list[Interval], words: str) -> None:
    forms = Saturation(3.0, 1.0, 1.0, tuple(saturated_at), (1.0, 1.0)).words()
    assert forms[0] == words
    assert [len(form) for form in forms] == sorted((len(form) for form in forms), reverse=True)
    assert len(forms[-1]) <= 14
    edges = {str(d) for interval in saturated_at for d in interval if d != WIDEST}
    if words != "saturated at every d_k":
        assert all(edge in form for form in forms for edge in edges)


stats = import_module("scipy.stats")  # without type stubs


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
        return capped_deviation(p, d_k, multiplier(rule, p.setting._replace(d_k=d_k))) >= found.threshold

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
    ratios = [8 * row_multiplier(rule, p.setting._replace(n_keys=n)) / math.sqrt(2 * math.log(n)) for n in seen]
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
    larger = found._replace(std=10.0)
    assert (
        status_given(larger, measured)
        == status_given(None, measured)
        != status_given(larger._replace(decides=True), measured)
    )
    assert ratio_given(found, measured) == measured["saturation"].value
