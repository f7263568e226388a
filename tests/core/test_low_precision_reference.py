"""Attention in few bits agrees with PyTorch's: data/low_precision.npz, made by data/make_low_precision.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.computation import Computation
from attn_tui.core.attention.formats import FORMATS
from attn_tui.core.attention.precision import round_to
from attn_tui.core.attention.row_gradients import query_gradient_norms, upstream, weight_gradients
from attn_tui.core.attention.softmax import shift_rows
from attn_tui.core.parameters import ArithmeticName, FormatName
from cases import for_each

REFERENCE = np.load(Path(__file__).parents[1] / "data" / "low_precision.npz")
HALVES: tuple[FormatName, ...] = ("float16", "bfloat16")
EIGHTS: tuple[FormatName, ...] = ("float8_e4m3fn", "float8_e5m2")
EXACT = ("exact sums", "exact sums, causal", "exact sums, soft-cap", "overflow")
NORMAL = ("normal", "normal, unscaled", "normal, soft-cap")


class Case:
    """The arrays of one case, and what this program makes of its queries and keys."""

    def __init__(self, name: FormatName, case: str, arithmetic: ArithmeticName) -> None:
        self.prefix = f"{name}/{case}/"
        setting = self["setting"] if f"{self.prefix}setting" in REFERENCE else (1.0,)
        multiplier, cap, causal = (*setting, 0, 0)[:3]
        c = Computation(multiplier=multiplier, softcap=cap or None, precision=name, arithmetic=arithmetic)
        self.q, self.k = c.vectors(self["q"], self["k"])
        self.scores = c.scores(self.q, self.k)
        self.logits = c.logits(self.scores)
        self.hidden = ~np.tril(np.ones(self.scores.shape, np.bool_)) if causal else None
        self.weights = c.weights(self.logits, self.hidden).weights
        self.multiplier, self.cap = multiplier, cap

    def __getitem__(self, quantity: str) -> Any:
        return REFERENCE[self.prefix + quantity]


def steps(found: Any, expected: Any, name: str) -> Any:
    """The differences in units of the last place; 0 for two NaN or two equal infinities."""
    form = FORMATS[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(expected))), form.min_exponent)
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        return np.where(same, 0, np.abs(found - expected) / 2.0 ** (exponent - form.mantissa))


@for_each("case", EXACT)
@for_each("name", HALVES)
def test_eager_arithmetic_is_pytorchs_bit_for_bit_if_sums_are_exact(name: FormatName, case: str) -> None:
    """Then the order of the sums does not matter, and every other result is rounded once."""
    own = Case(name, case, "eager")
    for found, quantity in ((own.scores, "scores"), (own.logits, "logits"), (own.weights, "weights")):
        assert np.array_equal(found, own[quantity], equal_nan=True), quantity


@for_each("case", NORMAL)
@for_each("name", HALVES)
def test_eager_arithmetic_is_pytorchs_but_for_the_order_of_sums(name: FormatName, case: str) -> None:
    """A float32 sum near the middle of two numbers may be rounded to the other; the soft-cap's steps add up to 3."""
    own = Case(name, case, "eager")
    for found, quantity in ((own.scores, "scores"), (own.logits, "logits"), (own.weights, "weights")):
        apart = steps(found, own[quantity], name)
        assert apart.max() <= (3 if quantity == "logits" and own.cap else 1), quantity
        assert np.mean(apart > 0) < 0.01, quantity


def test_overflow_makes_the_rows_nan_that_are_nan_in_pytorch() -> None:
    own = Case("float16", "overflow", "eager")
    failed = np.isnan(own["weights"]).any(axis=-1)
    assert 0 < np.count_nonzero(failed) < len(failed)
    assert np.isnan(own.weights).any(axis=-1).tolist() == failed.tolist()
    assert np.isnan(own["gradient"]).tolist() == failed.tolist()


@for_each("case", ["exact sums", "exact sums, causal", "exact sums, soft-cap", *NORMAL])
@for_each("name", HALVES)
def test_gradients_of_rounded_weights_are_pytorchs(name: FormatName, case: str) -> None:
    """PyTorch rounds the backward pass too, which moves a norm by up to 2 % in bfloat16."""
    own = Case(name, case, "eager")
    logits = np.where(own.hidden, 0, own.logits) if own.hidden is not None else own.logits
    received = upstream(own["g"], own["v"], shift_rows(logits.copy(), own.hidden))
    missing = 1 - own.weights.sum(axis=-1, dtype=np.float64)
    found = weight_gradients(own.weights, received, missing)
    if own.cap:
        np.multiply(found.entries, 1 - np.square(own.logits / own.cap), out=found.entries)
    norms = query_gradient_norms(found, own.multiplier, own.k)
    assert norms == pytest.approx(own["gradient"], rel=2.0 ** -(FORMATS[name].mantissa - 2), abs=1e-3)


@pytest.mark.parametrize("name", HALVES)
def test_the_scale_of_q_and_k_is_that_of_pytorchs_math_backend(name: FormatName) -> None:
    """The products are rounded before they meet, and scores are the logits."""
    reference = Case(name, "on vectors", "eager")
    factor = 64**-0.25
    c = Computation(factor=factor, precision=name, arithmetic="eager")
    q, k = c.vectors(reference["q"], reference["k"])
    scores = c.scores(q, k)
    weights = c.weights(scores).weights
    for found, quantity in ((scores, "scores"), (weights, "weights")):
        apart = steps(found, reference[quantity], name)
        assert apart.max() <= 1, quantity
        assert np.mean(apart > 0) < 0.01, quantity
    of_scores = replace(c, multiplier=0.125).logits(reference.scores)
    assert np.mean(steps(of_scores, reference["scores"], name) > 0) > 0.2, "another computation than 1/√d_k"
    received = upstream(reference["g"], reference["v"], shift_rows(scores.copy(), None))
    gradients = weight_gradients(weights, received, 1 - weights.sum(axis=-1, dtype=np.float64))
    norms = query_gradient_norms(gradients, factor, k)
    assert norms == pytest.approx(reference["gradient"], rel=2.0 ** -(FORMATS[name].mantissa - 2), abs=1e-3)


def test_the_scale_of_q_and_k_keeps_scores_finite_where_that_of_scores_does_not() -> None:
    own = Case("float16", "on vectors, large", "eager")
    assert np.isinf(own.scores).any()
    c = Computation(factor=64**-0.25, precision="float16", arithmetic="eager")
    assert np.isnan(c.weights(replace(c, multiplier=0.125).logits(own.scores)).weights).any()
    scores = c.scores(*c.vectors(own["q"], own["k"]))
    assert np.isfinite(scores).all()
    assert steps(scores, own["scores"], "float16").max() <= 1
    assert np.array_equal(c.weights(scores).weights.argmax(axis=1), own["weights"].argmax(axis=1))


@pytest.mark.parametrize("case", ["fused", "fused unscaled"])
@pytest.mark.parametrize("name", HALVES)
def test_fused_arithmetic_is_that_of_pytorchs_flash_attention(name: FormatName, case: str) -> None:
    """Its values are an identity, so its output is its weights, rounded once more; its exponential is approximate."""
    own = Case(name, case, "fused")
    apart = steps(round_to(own.weights, name).values, own["output"], name)
    assert apart.max() <= 3
    assert np.mean(apart > 0) < 0.1
    exact = Case(name, case, "eager").weights
    assert np.mean(exact != own["output"]) > 0.15


@pytest.mark.parametrize("name", EIGHTS)
def test_conversions_to_float8_are_pytorchs(name: str) -> None:
    numbers, expected = (REFERENCE[f"{name}/numbers/{quantity}"] for quantity in ("numbers", "rounded"))
    assert np.array_equal(round_to(numbers, name).values, expected)


@pytest.mark.parametrize("case", ["fused", "fused sharp"])
@pytest.mark.parametrize("name", EIGHTS)
def test_float8_attention_agrees_with_the_same_steps_in_pytorch(name: FormatName, case: str) -> None:
    own = Case(name, case, "fused")
    assert np.array_equal(own.q, own["stored_q"])
    assert np.array_equal(own.k, own["stored_k"])
    assert own.weights == pytest.approx(own["weights"], rel=1e-5)
