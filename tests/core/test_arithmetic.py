"""Attention in number formats, in eager and in fused arithmetic, and what it loses.

Comparisons with PyTorch are in test_low_precision_reference.py, whole measurements in test_against_textbook.py.
"""

import math
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.computation import Computation, Terms
from attn_tui.core.attention.formats import FORMATS, number_format
from attn_tui.core.attention.precision import losses_of, round_to, rounded_softmax, stored_weights, weight_lost
from attn_tui.core.attention.scores import scores
from attn_tui.core.attention.softmax import softmax
from attn_tui.core.parameters import ArithmeticName, MechanismName
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

FEW_BITS = [name for name, form in FORMATS.items() if form.bits <= 16]
EAGER: list[tuple[str, ArithmeticName]] = [("float16", "eager"), ("bfloat16", "eager")]
WAYS: list[tuple[str, ArithmeticName]] = [*((name, "fused") for name in FEW_BITS), *EAGER]
every_way = for_each(("name", "arithmetic"), WAYS)


def computation(name: Any, arithmetic: ArithmeticName, **how: Any) -> Any:
    return Computation(precision=name, arithmetic=arithmetic, **how)


def logits_of(raw: Any, name: str, arithmetic: ArithmeticName, multiplier: float, cap: float | None = None) -> Any:
    return computation(name, arithmetic, multiplier=multiplier, softcap=cap).logits(raw)


def scores_in(
    q: Any,
    k: Any,
    name: str,
    arithmetic: ArithmeticName,
    mechanism: MechanismName = "dot_product",
    weights: Any = None,
) -> Any:
    c = computation(name, arithmetic, mechanism=mechanism, learned=stored_weights(weights, name))
    return c.scores(*c.vectors(q, k))


def report(q: Any, k: Any, name: str, arithmetic: ArithmeticName = "eager", hidden: Any = None, **how: Any) -> Any:
    c = computation(name, arithmetic, **how)
    return c.losses(scores(q, k), scores_in(q, k, name, arithmetic), Terms(hidden, c.multiplier))


@for_each("name", FEW_BITS)
@for_each("sink", [None, 1.0, 500.0])
def test_fused_weights_are_numbers_of_the_format_over_an_unrounded_sum(name: str, sink: float | None) -> None:
    logits = np.random.default_rng(0).normal(0, 3, (20, 30)).astype(np.float32)
    hidden = np.random.default_rng(1).random((20, 30)) < 0.2
    found = rounded_softmax(logits, name, "fused", hidden, sink)
    exact = softmax(logits.astype(np.float64), hidden, sink)
    factor = {"float8_e4m3fn": 2.0**8, "float8_e5m2": 2.0**15}.get(name, 1.0)  # FlashAttention-3's Max_offset is 8
    powers = exact / exact.max(axis=-1, keepdims=True)
    expected = round_to(powers * factor, name).values / factor * exact.max(axis=-1, keepdims=True)
    # A float32 exponential may be rounded to the other of two numbers.
    apart = np.abs(found.weights - expected) > 1e-5 * expected + 1e-30
    assert np.mean(apart) < 0.01
    assert not found.weights[hidden].any()
    total = softmax(logits.astype(np.float64), hidden, sink).sum(axis=-1)
    assert found.sink == pytest.approx(1 - total, abs=1e-6)


def test_the_rounding_of_a_float32_sum_is_no_lost_weight() -> None:
    logits = np.random.default_rng(0).normal(0, 1, (200, 256)).astype(np.float32)
    exact = rounded_softmax(logits, "float32", "fused")
    assert np.abs(exact.weights.sum(axis=-1, dtype=np.float64) - 1).max() > 0
    assert weight_lost(exact).tolist() == [0.0] * 200
    assert np.all(weight_lost(rounded_softmax(logits, "bfloat16", "fused")) != 0)


def test_a_sinks_share_is_not_lost() -> None:
    for name, arithmetic in WAYS:
        found = rounded_softmax(np.zeros((1, 4), np.float32), name, arithmetic, sink=0.0)
        assert weight_lost(found) == pytest.approx(0, abs=1e-3), (name, arithmetic)


def test_float64_loses_nothing() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((8, 32)), rng.standard_normal((10, 32))
    found = report(q, k, "float64", multiplier=0.3, softcap=20.0, sink=0.0)
    assert np.all(found.weight_error == 0)
    assert np.abs(found.weight_lost).max() < 1e-15
    assert not found.score_overflow.any()
    assert not found.exp_overflow.any()


@given(st.sampled_from(WAYS), st.floats(0.01, 1), st.sampled_from([None, 5.0]), st.booleans(), st.integers(0, 99))
def test_weight_error_is_total_variation(
    way: tuple[str, ArithmeticName], multiplier: float, cap: float | None, sink: bool, seed: int
) -> None:
    name, arithmetic = way
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 3, 16)), rng.standard_normal((2, 5, 16))
    hidden = rng.random((2, 3, 5)) < 0.3
    sinks = 0.3 if sink else None
    found = report(q, k, name, arithmetic, multiplier=multiplier, softcap=cap, hidden=hidden, sink=sinks)
    logits = multiplier * (q @ k.mT)
    exact = softmax(cap * np.tanh(logits / cap) if cap else logits, hidden, sinks)
    low = logits_of(scores_in(q, k, name, arithmetic), name, arithmetic, multiplier, cap)
    rows = rounded_softmax(low, name, arithmetic, hidden, sinks)
    assert found.weight_error == pytest.approx(np.abs(exact - rows.weights).sum(axis=-1) / 2, abs=1e-12)
    assert np.all(found.weight_error[hidden.all(axis=-1)] == 0)
    assert np.all(found.weight_lost[hidden.all(axis=-1)] == 0)


def test_only_visible_overflows_are_counted() -> None:
    q = np.array([[300.0], [1.0], [-300.0]])
    k = np.array([[300.0], [1.0], [11.0], [0.0]])
    found = report(q, k, "float16")
    assert found.score_overflow.tolist() == [1, 0, 1]
    assert found.exp_overflow.tolist() == [3, 1, 0]
    hidden = np.array([[True, False, False, False]])
    seen = report(q, k, "float16", hidden=hidden)
    assert seen.score_overflow.tolist() == [0, 0, 0]
    assert seen.exp_overflow.tolist() == [2, 0, 0]
    scaled = report(q, k, "float16", multiplier=0.01)
    assert scaled.score_overflow.tolist() == [1, 0, 1]
    assert scaled.exp_overflow.tolist() == [2, 0, 0]
    fused = report(q, k, "float16", "fused")
    assert fused.score_overflow.tolist() == [0, 0, 0]
    assert fused.exp_overflow.tolist() == [3, 1, 0]


@pytest.mark.parametrize("arithmetic", ["eager", "fused"])
def test_a_row_that_sees_no_key_loses_no_weight(arithmetic: ArithmeticName) -> None:
    found = report(np.ones((2, 3)), np.ones((4, 3)), "float16", arithmetic, hidden=np.ones((2, 4), np.bool_))
    assert found.weight_lost.tolist() == found.weight_error.tolist() == [0, 0]


def test_the_exponential_overflows_above_its_limit() -> None:
    limit = number_format("float64").exp_limit
    logits = np.array([[limit, np.nextafter(limit, np.inf), np.nan]])
    found = losses_of(logits, logits, logits, rounded_softmax(logits, "float64", "eager"), "float64")
    assert found.exp_overflow.tolist() == [2]


def test_a_row_with_an_infinite_score_is_nan_in_eager_arithmetic() -> None:
    q, k = np.array([[300.0], [-300.0]]), np.array([[300.0], [1.0], [0.0]])
    with np.errstate(all="raise", under="ignore"):
        found = report(q, k, "float16")
        weights = rounded_softmax(scores_in(q, k, "float16", "eager"), "float16", "eager").weights
    assert np.isnan(weights).all(axis=1).tolist() == [True, False]
    for each in (found.weight_error, found.weight_lost):
        assert each == pytest.approx([math.nan, 0], nan_ok=True)  # the score −∞ has weight 0, as it should
    assert report(q, k, "float16", "fused").weight_error == pytest.approx(0)
    assert report(q, k, "bfloat16").weight_error == pytest.approx(0)


def test_a_row_with_nothing_above_minus_infinity_is_nan_unless_it_sees_nothing() -> None:
    q, k = np.array([[-300.0]] * 3), np.array([[300.0], [1.0], [400.0]])
    hidden = np.array([[False, True, False], [True, True, True], [False, False, False]])
    with np.errstate(all="raise", under="ignore"):
        plain = report(q, k, "float16", hidden=hidden).weight_error
        assert plain == pytest.approx([math.nan, 0, 0], nan_ok=True)
        assert report(q, k, "float16", hidden=hidden, sink=0.0).weight_error.tolist() == [0, 0, pytest.approx(0)]


def test_an_infinite_score_of_a_hidden_key_does_no_harm() -> None:
    """A mask hides it before softmax, as `is_causal` and masked_fill do."""
    q, k = np.array([[300.0]]), np.array([[1.0], [300.0], [0.0]])
    hidden = np.array([[False, True, False]])
    found = report(q, k, "float16", hidden=hidden)
    assert found.weight_error.tolist() == [pytest.approx(0)]
    assert found.score_overflow.tolist() == [0]
    assert math.isnan(report(q, k, "float16").weight_error.item())
