"""Measurements in number formats: NaN rows, the whole table from one arithmetic, and sizes of blocks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import rule_curves, scoring, two_pass
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.numerics import Numerics
from attn_tui.core.parameters import ROUNDED, Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import status
from attn_tui.core.theory.predict import predict, theory_of
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from cases import for_each
from measurements import assert_same, cut_into_blocks

SMALL = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4)
OVERFLOWING = replace(SMALL, precision="float16", arithmetic="eager", std_q=100.0, std_k=100.0)
LOST = replace(OVERFLOWING, d_k=4096)  # every row has a score beyond the largest number


def values(p: Parameters, column: int = 1) -> dict[str, Any]:
    return {name: estimate.value for name, estimate in run(p).columns[column].measured.items()}


def test_if_every_row_is_nan_nothing_else_exists() -> None:
    found = run(LOST)
    theory_of(found)
    for column in found.columns:
        existing = {name for name, estimate in column.measured.items() if estimate.value is not None}
        assert existing == {"nan_rows", "score_overflow", "naive_exp_overflow"}
        assert column.measured["nan_rows"] == (1.0, 0.0)
        assert all(histogram.total == 0 for histogram in column.histograms.values())
        assert status(column.measured) == "NaN"


def test_nan_rows_are_counted_and_their_share_has_a_standard_error() -> None:
    found = run(replace(OVERFLOWING, batch=64)).columns[1].measured
    share = found["nan_rows"]
    assert share.value is not None
    assert share.stderr is not None
    assert 0.1 < share.value < 0.9
    assert 0 < share.stderr < 0.1
    assert found["weight_lost"].value == pytest.approx(0, abs=1e-3)  # of the other rows
    for statistic in STATISTICS:
        if not statistic.conditional and statistic.name != "grad_q_top1_share":  # all gradients are 0
            assert found[statistic.name].value is not None, statistic.name


def test_fused_arithmetic_has_no_nan_rows_where_eager_has() -> None:
    for change in ({}, {"precision": "bfloat16"}):
        found = values(replace(LOST, arithmetic="fused", **change))
        assert found["nan_rows"] == found["score_overflow"] == 0
        assert found["one_hot_rows"] == 1
    assert values(replace(LOST, precision="bfloat16"))["nan_rows"] == 0


def test_what_is_lost_is_not_the_sink_s() -> None:
    """4099 weights and a sink of 1/4100 are rounded up to 2⁻¹²."""
    p = Parameters(d_k=1, n_keys=4099, n_queries=2, batch=2, std_q=0.0, precision="bfloat16", arithmetic="eager")
    found = values(replace(p, sink="logit"))
    assert found["weight_lost"] == pytest.approx(-4 / 4096, rel=1e-6)
    assert found["sink_weight"] == pytest.approx(1 / 4096, rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"mask": "causal", "sink": "logit"},
        {"softcap": 20.0, "scale": "rms_none", "mechanism": "bilinear"},
        {"precision": "float8_e4m3fn", "arithmetic": "fused", "mask": "causal"},
        {"precision": "bfloat16", "mechanism": "additive", "gain": 8.0},
        {"scale": "quarter", "mask": "causal"},
    ],
    ids=str,
)
def test_components_too_large_to_keep_and_small_blocks_give_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    p = replace(OVERFLOWING, **change)
    kept = run(p)
    monkeypatch.setattr(two_pass, "_KEPT", 0)
    assert_same(run(p), kept)
    cut_into_blocks(monkeypatch, 30)
    assert_same(run(p), kept)
    monkeypatch.setattr(scoring, "KEPT", 0)
    again = run(p)
    for one, two in zip(again.columns, kept.columns, strict=True):
        for name in ("entropy", "nan_rows", "weight_lost", "logit_std"):
            assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-4), name


@pytest.mark.parametrize("precision", ROUNDED)
def test_rules_are_compared_in_the_same_arithmetic(precision: Any) -> None:
    p = replace(SMALL, precision=precision)
    found = {row.rule: row for done in run_parts(row_parts(p)) for row in results_of(done)}
    for rule in ("none", "sqrt_d_k", "quarter", "cosine_10"):
        column = run(replace(p, scale=rule)).columns[1]
        assert found[rule].measured == column.measured


QUARTER = replace(OVERFLOWING, d_k=64, batch=16, scale="quarter", against="sqrt_d_k")


def test_fewer_rows_overflow_if_q_and_k_are_scaled_and_not_their_score() -> None:
    """The largest |score| of ±10⁴·√64·4 is beyond float16, an eighth of it is not."""
    of_scores, of_vectors = (column.measured for column in run(QUARTER).columns)
    for name in ("score_overflow", "nan_rows"):
        assert (of_scores[name].value or 0) > 0.1
        assert of_vectors[name] == (0.0, 0.0)
    exact = values(replace(QUARTER, precision="float64", arithmetic="fused"))
    assert of_vectors["logit_std"].value == pytest.approx(exact["logit_std"], rel=1e-3)


@pytest.mark.parametrize("arithmetic", ["eager", "fused"])
def test_statistics_of_scaled_q_and_k_are_those_of_1_over_root_d_k_but_for_rounding(arithmetic: Any) -> None:
    p = replace(QUARTER, precision="float16", arithmetic=arithmetic, std_q=1.5, std_k=1.5)
    of_scores, of_vectors = (column.measured for column in run(p).columns)
    for name in ("entropy", "max_weight", "grad_q_rms", "grad_q_median", "logit_std"):
        assert of_vectors[name].value != of_scores[name].value, name
        assert of_vectors[name].value == pytest.approx(of_scores[name].value, rel=5e-3), name
    assert 0 < (of_vectors["weight_error"].value or 0) < 2e-3


@for_each("precision", ["float32", "float64"])
@for_each("change", [{}, {"softcap": 5.0, "mean_k": 0.5}, {"mechanism": "bilinear"}])
def test_scaling_q_and_k_is_1_over_root_d_k_where_nothing_is_rounded(precision: Any, change: dict[str, Any]) -> None:
    found = run(replace(QUARTER, precision=precision, arithmetic="fused", std_q=1.0, std_k=1.0, **change))
    expected = predict(found.subject).columns
    assert found.columns[0].measured == found.columns[1].measured
    assert (expected[0].values, expected[0].saturation) == (expected[1].values, expected[1].saturation)


@pytest.mark.parametrize("mechanism", ["cosine", "additive"])
def test_scores_that_are_no_product_of_q_and_k_are_multiplied_themselves(mechanism: Any) -> None:
    a, b = run(replace(QUARTER, mechanism=mechanism)).columns
    assert a.measured == b.measured


def test_entropy_curves_of_rules_leave_out_nan_rows() -> None:
    *_, (_, [found]) = rule_curves.stream(LOST)
    at = dict(zip(found.d_ks, found.values["none"], strict=True))
    assert at[4] is not None
    assert at[4096] is None
    normalised = found.values["cosine_10"]
    assert all(value is not None for value in normalised)


@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize("arithmetic", ["eager", "fused"])
def test_entropy_curves_of_rules_are_those_of_measurements(arithmetic: Any) -> None:
    p = replace(SMALL, precision="bfloat16", arithmetic=arithmetic, mask="causal", sink="logit", batch=4)
    *_, (_, [curves]) = rule_curves.stream(p)
    for rule in ("none", "sqrt_d_k", "quarter", "rms_none"):
        measured = values(replace(p, scale=rule, batch=curves.draws))["entropy_fraction"]
        curve = curves.values[rule][curves.d_ks.index(16)]
        assert curve == pytest.approx(measured, abs=0.002), rule


def test_draws_whose_rows_are_all_nan_say_nothing_about_errors() -> None:
    """Of 1, 2 and 4 the mean is 7/3, and the sum of squares about it 14/3: its standard error is √(14/3 / 2 / 3)."""
    found = Numerics(["weight_error"], np.array([[[1.0, np.nan, 2.0, 4.0, 9.0]]])).estimates(0, 4)["weight_error"]
    assert (found.value, found.stderr) == pytest.approx((7 / 3, (7 / 9) ** 0.5))
    nothing = Numerics(["weight_error"], np.full((1, 1, 3), np.nan)).estimates(0, 3)["weight_error"]
    assert (nothing.value, nothing.stderr) == (None, None)
