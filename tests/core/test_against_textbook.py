"""Measurements agree with the textbook formulas of textbook.py, which take whole arrays in float64."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import textbook
from attn_tui.core.lab import numerics, scoring, two_pass
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Column, HistogramName
from cases import for_each
from measurements import cut_into_blocks

QUESTION = Parameters(d_k=9, n_keys=13, n_queries=11, batch=4, d_v=5)
MECHANISMS = ("dot_product", "additive", "cosine", "bilinear")
GRADIENT = (*textbook.OF_QUERIES, *textbook.OF_LOGITS)
RULES = [rule for rule in textbook.RULES if rule != "none"]
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "soft-cap": {"softcap": 2.0},
    "sink": {"sink": "logit", "sink_logit": 1.0},
    "causal": {"mask": "causal"},
    "all": {"softcap": 1.5, "sink": "logit", "sink_logit": -1.0, "mask": "causal", "gain": 3.0, "norm_gain": 0.8},
}
OTHERS: dict[str, dict[str, Any]] = {
    "wider than a chunk": {"d_k": 70, "d_v": 66, "scale": "rms_sqrt_d_k"},
    "one component": {"d_k": 1, "mechanism": "additive"},
    "three components": {"d_k": 3, "scale": "layer_norm_sqrt_d_k", "mean_q": 2.0},
    "a gain of the norm": {"scale": "rms_sqrt_d_k", "norm_gain": 2.3},
    "a gain below 1 and a mechanism": {"scale": "cosine_learned", "norm_gain": 0.4, "mechanism": "additive"},
    "a gain without a norm": {"norm_gain": 5.0},
    "means": {"mean_q": 1.5, "std_q": 0.5, "mean_k": -0.7, "std_k": 2.0, "scale": "cosine_10"},
    "sizes and means of one product": {"mean_q": 1.5, "std_q": 0.5, "mean_k": -0.7, "std_k": 2.0},
    "means and a sink": {"mean_q": 1.5, "mean_k": -0.7, "std_k": 2.0, "sink": "logit", "sink_logit": -3.0},
    "means and a soft-cap": {"mean_q": 1.5, "mean_k": -0.7, "std_k": 2.0, "softcap": 8.0},
    "correlation": {"correlation": 0.6, "mechanism": "bilinear"},
    "correlation below 0": {"correlation": -0.6, "mechanism": "cosine", "mean_q": 0.3, "scale": "cosine_10"},
    "a law with tails": {"components": "laplace", "mechanism": "additive", "gain": 5.0},
    "signs": {"components": "rademacher", "softcap": 3.0},
    "more queries than keys": {"n_queries": 24, "n_keys": 8, "mask": "causal", "scale": "rms_none"},
    "one key for the first query": {"n_queries": 2, "n_keys": 20, "mask": "causal", "mechanism": "cosine"},
    "a strong sink": {"sink": "logit", "sink_logit": 30.0, "mechanism": "bilinear"},
    "a weak sink": {"sink": "logit", "sink_logit": -30.0, "mask": "causal", "softcap": 5.0},
    "many draws": {"batch": 16, "n_queries": 8, "mechanism": "additive", "seed": 7},
}


def band_of(p: Parameters, of: textbook.Attention) -> tuple[float, float]:
    """The mean and σ of ±3σ: those of the score's law if it is known, otherwise those of all draws."""
    z = of.z[of.seen & np.isfinite(of.z)]
    rules = [textbook.RULES[rule][0] for rule in ("none", p.scale)]
    if (
        p.mechanism != "dot_product"
        or p.softcap
        or p.precision not in ("float32", "float64")
        or set(rules) != {"none"}
        or (p.scale == "ssmax" and p.mask == "causal")
    ):
        return float(z.mean()), float(z.std())
    c = float(z.flat[0] / of.raw[:, of.seen].flat[0])
    rho, spread = p.correlation, p.std_q * p.std_k
    fourth = {"normal": 3.0, "laplace": 6.0, "rademacher": 1.0}[p.components]
    variance = spread**2 * (1 + rho**2 * (fourth - 2)) + (p.mean_q * p.std_k) ** 2 + (p.mean_k * p.std_q) ** 2
    variance += 2 * rho * spread * p.mean_q * p.mean_k
    return c * p.d_k * (p.mean_q * p.mean_k + rho * spread), c * math.sqrt(p.d_k * variance)


def assert_measured(column: Column, p: Parameters) -> None:
    """Every statistic and every standard error of a column agrees with the textbook, to the digits of its format.

    Logits are compared in units of their standard deviation, since sums of many may cancel; the deviation of a row of
    nearly equal logits is the root of a difference. Norms of gradients are
    float32. In formats with fewer digits than float64, one logit may fall to the other side of three σ.
    """
    of = textbook.attention(p, column.rule)
    expected = textbook.estimates(of, band_of(p, of))
    assert column.multiplier == pytest.approx(textbook.RULES[column.rule][1](p.d_k, p.n_keys), rel=1e-14)
    digits = {"float64": 1e-10, "float32": 1e-5}.get(p.precision, 1e-3)
    least = dict.fromkeys(expected, 1e-3) | dict.fromkeys(
        ("logit_mean", "logit_min", "logit_max"), expected["logit_std"][0]
    )
    # Rounded weights are float32: where one key has all weight, the gradient is of the order of its error.
    smallest = 0.01 if p.precision in textbook.LARGEST else 2.0**-126
    least |= {"logit_excess_kurtosis": 3.0, "saturation": 10.0} | dict.fromkeys(GRADIENT, smallest)
    for name, (value, stderr) in expected.items():
        if name == "grad_q_top1_share" and expected["grad_q_rms"][0] < smallest:
            continue
        found = column.measured[name]
        allowed = max(digits, 2e-7 if name in GRADIENT else 0) * max(abs(value), least[name])
        if name == "logit_within_3sd" and p.precision != "float64":
            allowed += 1 / of.z[:, of.seen].size
        for actual, wanted, within in ((found.value, value, allowed), (found.stderr, stderr, 10 * allowed)):
            if wanted is None or math.isnan(wanted):
                assert actual is None, name
            else:
                assert actual == pytest.approx(wanted, abs=within), name


@pytest.mark.parametrize(
    ("mechanism", "variant"),
    [
        pytest.param(
            mechanism, variant, id=f"{mechanism}-{name}",
            marks=[] if mechanism == "dot_product" or name in ("plain", "all") else pytest.mark.slow,
        )
        for mechanism in MECHANISMS
        for name, variant in VARIANTS.items()
    ],
)  # fmt: skip
def test_measurements_of_every_mechanism_and_rule(mechanism: Any, variant: dict[str, Any]) -> None:
    """Every other rule, and the rules between them in the next variant; sizes change from rule to rule."""
    first = (MECHANISMS.index(mechanism) + [*VARIANTS.values()].index(variant)) % 2
    for number, scale in [*enumerate(RULES)][first::2]:
        shape = {"d_k": 4 + 3 * number % 13, "n_keys": 8 + 5 * number % 17, "n_queries": 8 + 7 * number % 11}
        p = replace(QUESTION, mechanism=mechanism, scale=scale, **shape, **variant)
        single, double = (replace(p, precision=name) for name in ("float32", "float64"))
        unscaled, scaled = run(double).columns
        for column in (unscaled, scaled) if number < 2 else (scaled,):
            assert_measured(column, double)
        assert_measured(run(single).columns[1], single)


@for_each("change", OTHERS.values())
def test_measurements_of_other_inputs(change: dict[str, Any]) -> None:
    p = replace(QUESTION, precision="float64", **change)
    for column in run(p).columns:
        assert_measured(column, p)


def test_a_layer_norm_of_two_components_passes_no_gradient() -> None:
    """Its output says only which of the two components is larger."""
    _, scaled = run(replace(QUESTION, d_k=2, scale="layer_norm_sqrt_d_k", precision="float64")).columns
    assert [scaled.measured[name].value for name in textbook.OF_QUERIES] == [0, 0, 0, None]


@for_each("mechanism", MECHANISMS)
@for_each("rule", ["none", "rms_none", "layer_norm_sqrt_d_k", "cosine_10"])
def test_the_textbooks_gradients_agree_with_finite_differences(mechanism: Any, rule: str) -> None:
    p = replace(QUESTION, mechanism=mechanism, **VARIANTS["all"], batch=2, n_queries=3, n_keys=4, d_k=3)
    q, k, v, g = textbook.inputs(p)
    step, found = 1e-5, textbook.attention(p, rule).d_q
    for component in np.eye(p.d_k):
        ahead, behind = (
            np.einsum("bmv,bmn,bnv->bm", g, textbook.attention(p, rule, (q + side * component, k, v, g)).p, v)
            for side in (step, -step)
        )
        assert found @ component == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("block", [70, 600])
@pytest.mark.parametrize("change", [{}, {"softcap": 3.0}, {"mechanism": "additive", "scale": "cosine_10"}], ids=str)
def test_measurements_in_blocks(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], block: int) -> None:
    """With blocks of part of a draw, not of several draws, components and logits are made and forgotten."""
    p = replace(QUESTION, precision="float64", mask="causal", sink="logit", **change)
    cut_into_blocks(monkeypatch, block)
    if block < p.n_queries * p.n_keys:
        monkeypatch.setattr(scoring, "KEPT", 0)
        monkeypatch.setattr(two_pass, "_KEPT", 0)
    for column in run(p).columns:
        assert_measured(column, p)


@pytest.mark.parametrize("change", [{}, {"mechanism": "additive", "sink": "logit", "softcap": 4.0}], ids=str)
def test_histograms(change: dict[str, Any]) -> None:
    p = replace(QUESTION, precision="float64", mask="causal", scale="rms_sqrt_d_k", **change)
    for column in run(p).columns:
        of = textbook.attention(p, column.rule)
        rows: dict[HistogramName, Any] = {
            "logits": of.z[:, of.seen],
            "weights": np.log10(of.p[:, of.seen]),
            "entropy": -np.sum(of.p * np.log(np.where(of.p > 0, of.p, 1)), axis=-1),
            "jacobian_norm": np.linalg.norm(of.jacobian, axis=(-2, -1)),
            "gradient": np.log10(np.maximum(np.linalg.norm(of.d_q, axis=-1), np.finfo(np.float32).tiny)),
        }
        for name, values in rows.items():
            shown = column.histograms[name]
            inside = np.linspace(shown.axis.low, shown.axis.high, shown.axis.bins + 1)
            inside[-1] = np.nextafter(inside[-1], np.inf)  # the end belongs to the axis
            expected = np.histogram(values, np.concatenate(([-np.inf], inside, [np.inf])))[0]
            found = np.concatenate(([shown.underflow], shown.counts, [shown.overflow]))
            # A value may be rounded to the other side of an edge.
            assert np.abs(np.cumsum(found - expected)).max() <= 1, name


FEW_BITS: dict[str, dict[str, Any]] = {
    "moderate": {},
    "with a norm and a sink": {"scale": "cosine_10", "sink": "logit", "sink_logit": 0.3, "mechanism": "additive"},
    "with a gain": {"scale": "rms_sqrt_d_k", "norm_gain": 1.7},
    "with a soft-cap": {"scale": "rms_none", "softcap": 4.0, "mask": "causal", "mechanism": "bilinear"},
    "with overflow": {"std_q": 90.0, "std_k": 90.0, "mask": "causal", "batch": 10},
    "with a small multiplier": {"std_q": 20.0, "std_k": 20.0, "scale": "granite_8b"},
}
ARITHMETICS = [
    *((name, "fused") for name in textbook.LARGEST),
    *((name, "eager") for name in ("float16", "bfloat16")),
]


@for_each(("precision", "arithmetic"), ARITHMETICS)
@for_each("change", FEW_BITS.values())
def test_measurements_in_few_bits(precision: Any, arithmetic: Any, change: dict[str, Any]) -> None:
    """Every row of the table comes from the same rounded weights; NaN rows are left out and counted."""
    p = replace(QUESTION, precision=precision, arithmetic=arithmetic, **change)
    for column in run(p).columns:
        # A float32 sum between two numbers of the format may be rounded to the other one.
        assert_measured(column, p)
        assert_loses(column, p, range(p.n_queries))


def assert_loses(column: Column, p: Parameters, rows: Sequence[int]) -> None:
    """The numerics of a column agree with the textbook on these rows of the first eight draws."""
    for name, each in textbook.losses(replace(p, batch=min(p.batch, 8)), column.rule).items():
        of_draws = np.nanmean(each[:, rows], axis=1)
        value, stderr = column.measured[name]
        assert value == pytest.approx(of_draws.mean(), rel=0.01, abs=1e-8), name
        assert stderr == pytest.approx(of_draws.std(ddof=1) / math.sqrt(len(of_draws)), rel=0.05, abs=1e-4), name


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_numerics_are_measured_on_evenly_spaced_rows(monkeypatch: pytest.MonkeyPatch, mask: Any) -> None:
    p = replace(QUESTION, precision="float8_e4m3fn", batch=12, n_queries=21, mask=mask, std_q=9.0)
    monkeypatch.setattr(numerics, "ENTRIES", 5 * 8 * p.n_keys)
    for column in run(p).columns:
        assert_loses(column, p, [0, 5, 10, 15, 20])
