"""Gradients agree with finite differences and with identities."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention import additive
from attn_tui.core.attention.additive import AdditiveWeights
from attn_tui.core.attention.gradients import Gradients, gradients, norm_statistics
from attn_tui.core.attention.scores import MECHANISMS, Mechanism, draw_weights
from attn_tui.core.attention.softmax import softmax
from attn_tui.core.attention.variant import Variant, attend
from attn_tui.core.errors import InputError
from attn_tui.core.scales import Normalise
from hypothesis import assume, given, settings
from hypothesis import strategies as st

STEP = 1e-6


@st.composite
def questions(draw: st.DrawFn) -> tuple[dict[str, Any], Variant, int]:
    """Arrays q, k, v and g, a variant with any of its options, and a seed for directions."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    batch, kv_heads, group = (draw(st.integers(1, 2)) for _ in range(3))
    m, n, d, d_v = (draw(st.integers(1, 5)) for _ in range(4))
    heads = kv_heads * group
    shapes = {
        "q": (batch, heads, m, d), "k": (batch, kv_heads, n, d), "v": (batch, kv_heads, n, d_v),
        "g": (batch, heads, m, d_v),
    }  # fmt: skip
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    mechanism: Mechanism = draw(st.sampled_from(MECHANISMS))
    normalise: Normalise = draw(st.sampled_from(["none", "rms", "layer_norm", "l2"]))
    weights = draw_weights(mechanism, d, rng, gain=draw(st.sampled_from([1.0, 4.0])), hidden_units=3)
    if isinstance(weights, AdditiveWeights):
        weights = dataclasses.replace(weights, bias=rng.standard_normal(3))

    def maybe(*shape: int) -> Any:
        return rng.standard_normal(shape) if draw(st.booleans()) else None

    variant = Variant(
        mechanism,
        weights,
        normalise,
        epsilon=draw(st.sampled_from([0.0, 0.1])),
        gain_q=maybe(heads, 1, d),
        gain_k=maybe(d),
        scale=draw(st.sampled_from([0.125, 3.0])) if draw(st.booleans()) else rng.uniform(0.1, 3, (m, 1)),
        softcap=draw(st.sampled_from([None, 1.5, 50.0])),
        bias=maybe(heads, m, n),
        hidden=rng.random((batch, 1, m, n)) < 0.3 if draw(st.booleans()) else None,
        sink=maybe(heads, 1),
    )
    return arrays, variant, seed


def loss(arrays: dict[str, Any], variant: Variant) -> float:
    return float((attend(arrays["q"], arrays["k"], arrays["v"], variant).output * arrays["g"]).sum())


def assert_derivative(at: Callable[[Any], float], found: Any, value: Any, seed: int, what: str) -> None:
    """The loss, as a function of an array, changes along a random direction as the gradient says."""
    shape: tuple[int, ...] = np.shape(value)
    assert np.shape(found) == shape, what
    direction = np.random.default_rng(seed).standard_normal(shape)
    measured = (at(value + STEP * direction) - at(value - STEP * direction)) / (2 * STEP)
    assert (found * direction).sum() == pytest.approx(measured, rel=2e-5, abs=2e-6), what


@settings(max_examples=100)
@given(questions())
def test_every_gradient_agrees_with_finite_differences(case: Any) -> None:
    arrays, variant, seed = case
    d, how = arrays["q"].shape[-1], variant.normalise
    # One normalised component, or two less their mean, are only a sign: there is no derivative to measure.
    assume(d > 2 or how != "layer_norm")
    assume(d > 1 or (how != "l2" and variant.mechanism != "cosine"))
    found = gradients(arrays["q"], arrays["k"], arrays["v"], arrays["g"], variant)
    for name in ("q", "k", "v"):
        assert_derivative(
            lambda x, name=name: loss(arrays | {name: x}, variant), getattr(found, name), arrays[name], seed, name
        )
    for name in ("gain_q", "gain_k", "scale", "bias", "sink"):
        value = getattr(variant, name)
        if value is None:
            assert getattr(found, name) is None
        else:
            assert_derivative(
                lambda x, name=name: loss(arrays, dataclasses.replace(variant, **{name: x})),
                getattr(found, name), value, seed, name,
            )  # fmt: skip
    for name, value in vars(variant.weights).items() if variant.weights else ():

        def at(x: Any, name: str = name) -> float:
            assert variant.weights is not None
            replaced = dataclasses.replace(variant.weights, **{name: x})
            return loss(arrays, dataclasses.replace(variant, weights=replaced))

        assert_derivative(at, getattr(found.weights, name), value, seed, name)


def plain_case(seed: int = 0, m: int = 5, n: int = 7, d: int = 6, d_v: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in ((m, d), (n, d), (n, d_v), (m, d_v))]


def test_gradients_of_scores_and_logits_differ_by_the_scale() -> None:
    q, k, v, g = plain_case()
    found = gradients(q, k, v, g, Variant(scale=0.3))
    assert found.scores == pytest.approx(0.3 * found.logits)
    assert found.logits.sum(axis=-1) == pytest.approx(0, abs=1e-14)
    assert found.q == pytest.approx(found.scores @ k)
    assert found.v == pytest.approx(softmax(0.3 * (q @ k.T)).T @ g)


def test_hidden_keys_and_rows_that_see_none_have_no_gradient() -> None:
    q, k, v, g = plain_case()
    hidden = np.zeros((5, 7), bool)
    hidden[2] = hidden[:, 4] = True
    found = gradients(q, k, v, g, Variant(hidden=hidden, sink=0.5))
    for array in (found.q[2], found.k[4], found.v[4], found.scores[hidden]):
        assert np.all(array == 0)
    others = gradients(
        np.delete(q, 2, 0), k, v, np.delete(g, 2, 0), Variant(hidden=np.delete(hidden, 2, 0), sink=0.5)
    )
    assert found.sink == pytest.approx(others.sink)
    assert found.k == pytest.approx(others.k)


def test_a_one_hot_row_keeps_the_digits_of_its_gradient() -> None:
    """With two keys the gradient is p(1 − p) times differences; here 1 − p is 4e-18, which a subtraction makes 0."""
    gap, scale = 40.0, 0.5
    q, k, v, g = (np.array(x) for x in ([[gap / scale]], [[1.0], [0.0]], [[3.0], [1.0]], [[1.0]]))
    found = gradients(q, k, v, g, Variant(scale=scale))
    expected = np.exp(-gap) / (1 + np.exp(-gap)) ** 2 * scale * 2
    assert found.q[0, 0] == pytest.approx(expected, rel=1e-12)


def test_grouped_heads_sum_into_the_key_head_that_they_share() -> None:
    rng = np.random.default_rng(0)
    q, g = rng.standard_normal((2, 6, 4, 5)), rng.standard_normal((2, 6, 4, 3))
    k, v = rng.standard_normal((2, 2, 7, 5)), rng.standard_normal((2, 2, 7, 3))
    shared = gradients(q, k, v, g, Variant(scale=0.4))
    apart = gradients(q, np.repeat(k, 3, axis=1), np.repeat(v, 3, axis=1), g, Variant(scale=0.4))
    assert shared.q == pytest.approx(apart.q)
    assert shared.k == pytest.approx(apart.k.reshape(2, 2, 3, 7, 5).sum(axis=2))
    assert shared.v == pytest.approx(apart.v.reshape(2, 2, 3, 7, 3).sum(axis=2))


@pytest.mark.parametrize("block", [1, 20, 64])
def test_gradients_of_additive_attention_do_not_depend_on_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, g = plain_case()
    variant = Variant("additive", draw_weights("additive", 6, np.random.default_rng(1)))
    at_once = gradients(q, k, v, g, variant)
    monkeypatch.setattr(additive, "BLOCK", block)
    in_blocks = gradients(q, k, v, g, variant)
    for name in ("q", "k", "scores"):
        assert getattr(in_blocks, name) == pytest.approx(getattr(at_once, name), rel=1e-12, abs=1e-14)
    for name, value in vars(at_once.weights).items():
        assert getattr(in_blocks.weights, name) == pytest.approx(value, rel=1e-12, abs=1e-14)


def test_the_forward_pass_may_be_handed_in() -> None:
    q, k, v, g = plain_case()
    variant = Variant(softcap=2.0)
    alone, given_path = gradients(q, k, v, g, variant), gradients(q, k, v, g, variant, attend(q, k, v, variant))
    for field in dataclasses.fields(Gradients):
        assert np.array_equal(getattr(alone, field.name), getattr(given_path, field.name)), field.name


def test_arrays_that_do_not_fit_are_refused_with_their_shapes() -> None:
    q, k, v, g = plain_case()
    with pytest.raises(InputError, match=r"one value for each key; the keys are \(7, 6\) and the values \(6, 3\)"):
        gradients(q, k, v[1:], g, Variant())
    with pytest.raises(InputError, match=r"the output's shape \(5, 3\), not \(4, 3\)"):
        gradients(q, k, v, g[1:], Variant())


def test_statistics_of_norms() -> None:
    norms = np.array([[3.0, 1.0, 2.0, 10.0], [0.0, 0.0, 0.0, 5.0]])
    found = norm_statistics(norms)
    assert found.median == pytest.approx([2.5, 0])
    assert found.mean == pytest.approx([4, 1.25])
    assert found.rms == pytest.approx([math.sqrt(114 / 4), 2.5])
    assert found.top1_share == pytest.approx([100 / 114, 1])


@pytest.mark.parametrize(("rows", "top"), [(1, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_one_per_cent_of_rows_is_rounded_up(rows: int, top: int) -> None:
    norms = np.random.default_rng(0).permutation(np.sqrt(np.arange(1.0, rows + 1)))
    expected = np.arange(rows - top + 1, rows + 1).sum() / np.arange(1, rows + 1).sum()
    assert norm_statistics(norms).top1_share == pytest.approx(expected)


def test_norms_that_are_all_zero_have_no_share() -> None:
    with np.errstate(all="raise"):
        found = norm_statistics(np.zeros((2, 5), np.float32))
    assert np.all(np.isnan(found.top1_share))
    assert np.all(found.rms == 0)
