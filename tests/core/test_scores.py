"""Scores of every mechanism, their weights and their bounds."""

import itertools
import math
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.attention.scores import AdditiveWeights, BilinearWeights, draw_weights, score_bound, scores
from attn_tui.core.parameters import MechanismName
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory import peak_memory

every_mechanism = for_each("mechanism", get_args(MechanismName))


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def weights_for(mechanism: MechanismName, d_k: int, **options: Any) -> Any:
    return draw_weights(mechanism, d_k, np.random.default_rng(3), **options)


def one_score(q: Any, k: Any, mechanism: MechanismName, weights: Any) -> float:
    """The score of one query and one key by its formula."""
    if isinstance(weights, AdditiveWeights):
        hidden = [
            math.tanh(float(weights.w_q[:, unit] @ q + weights.w_k[:, unit] @ k + weights.bias[unit]))
            for unit in range(len(weights.v))
        ]
        return float(weights.v @ hidden)
    if isinstance(weights, BilinearWeights):
        return sum(float(q[i] * weights.w[i, j] * k[j]) for i in range(len(q)) for j in range(len(k)))
    product = float(sum(a * b for a, b in zip(q, k, strict=True)))
    return product / math.hypot(*q) / math.hypot(*k) if mechanism == "cosine" else product


@every_mechanism
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 7), st.floats(0.01, 100))
def test_a_score_agrees_with_its_formula(
    mechanism: MechanismName, batch: int, m: int, n: int, d: int, size: float
) -> None:
    q, k = size * normal(1, batch, m, d), normal(2, batch, n, d)
    weights = weights_for(mechanism, d)
    if isinstance(weights, AdditiveWeights):
        weights = AdditiveWeights(weights.w_q, weights.w_k, normal(4, d), weights.v)
    found = scores(q, k, mechanism, weights)
    assert found.shape == (batch, m, n)
    for at in itertools.product(range(batch), range(m), range(n)):
        expected = one_score(q[at[0], at[1]], k[at[0], at[2]], mechanism, weights)
        assert found[at] == pytest.approx(expected, rel=1e-11, abs=1e-11 * size)


@every_mechanism
def test_scores_keep_the_precision_they_are_given(mechanism: MechanismName) -> None:
    q, k = normal(1, 5, 8), normal(2, 6, 8)
    exact = scores(q, k, mechanism, weights_for(mechanism, 8))
    single = scores(
        q.astype(np.float32), k.astype(np.float32), mechanism, weights_for(mechanism, 8, dtype=np.float32)
    )
    assert (exact.dtype, single.dtype) == (np.float64, np.float32)
    assert single == pytest.approx(exact, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_additive_scores_do_not_depend_on_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, weights = normal(1, 2, 5, 4), normal(2, 2, 6, 4), weights_for("additive", 4)
    at_once = scores(q, k, "additive", weights)
    monkeypatch.setattr("attn_tui.core.attention.scores.BLOCK", block)
    assert scores(q, k, "additive", weights) == pytest.approx(at_once, rel=1e-14, abs=1e-14)


def test_additive_scores_never_hold_the_hidden_units_of_all_pairs() -> None:
    q, k, weights = normal(1, 64, 512), normal(2, 64, 512), weights_for("additive", 512)
    assert peak_memory(lambda: scores(q, k, "additive", weights)) < 64 * 64 * 512 * 8 / 4


@for_each("dtype", ["float32", "float64"])
@for_each("size", [0.0, 1e-3, 1.0, 30.0, 44.0, 50.0, 400.0, 1e6])
def test_hidden_units_saturate_without_warnings(dtype: str, size: float) -> None:
    """Some sums cancel and some do not; the largest are far beyond the range of an exponential."""
    signs = np.array([[1.0], [-1.0], [0.5]], dtype)
    one = np.ones((1, 1), dtype)
    weights = AdditiveWeights(one, one, np.zeros(1, dtype), np.ones(1, dtype))
    number = np.dtype(dtype).type(size)
    with np.errstate(all="raise", under="ignore"):
        found = scores(number * signs, number * signs, "additive", weights)
    assert found == pytest.approx(np.tanh(size * (signs + signs.T)), rel=1e-6, abs=1e-6)


def test_weights_of_one_seed_are_the_same() -> None:
    for mechanism in ("additive", "bilinear"):
        one, two, other = (draw_weights(mechanism, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
        for name in vars(one):
            assert np.array_equal(getattr(one, name), getattr(two, name))
            assert name == "bias" or not np.array_equal(getattr(one, name), getattr(other, name))


def test_weights_are_nested() -> None:
    """The weights of one width are, up to a factor, a corner of those of a larger width."""
    small, large = (draw_weights("additive", d, np.random.default_rng(1)) for d in (8, 18))
    assert isinstance(small, AdditiveWeights)
    assert isinstance(large, AdditiveWeights)
    assert small.w_q == pytest.approx(large.w_q[:8, :8] * 1.5)
    assert small.w_k == pytest.approx(large.w_k[:8, :8] * 1.5)
    assert small.v == pytest.approx(large.v[:8] * 1.5)
    assert not np.any(small.w_q == small.w_k)
    one, two = (draw_weights("bilinear", d, np.random.default_rng(1)) for d in (8, 18))
    assert isinstance(one, BilinearWeights)
    assert isinstance(two, BilinearWeights)
    assert one.w == pytest.approx(two.w[:8, :8] * 1.5)
    assert len(np.unique(two.w)) == 18 * 18


def test_entries_of_weights_are_normal_with_one_over_the_inputs_for_variance() -> None:
    d = 256
    weights = draw_weights("additive", d, np.random.default_rng(0), gain=3.0)
    assert isinstance(weights, AdditiveWeights)
    for entries, variance in ((weights.w_q, 1 / d), (weights.w_k, 1 / d), (weights.v, 9 / d)):
        assert (entries**2).mean() == pytest.approx(variance, abs=4 * variance * math.sqrt(2 / entries.size))
        assert (entries**4).mean() == pytest.approx(
            3 * variance**2, abs=4 * variance**2 * math.sqrt(96 / entries.size)
        )
    assert np.all(weights.bias == 0)


@pytest.mark.parametrize("mechanism", ["additive", "bilinear"])
def test_the_gain_multiplies_the_score(mechanism: MechanismName) -> None:
    q, k = normal(1, 5, 8), normal(2, 6, 8)
    one, seven = (scores(q, k, mechanism, weights_for(mechanism, 8, gain=gain)) for gain in (1.0, 7.0))
    assert seven == pytest.approx(7 * one, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("d", [4, 64])
@pytest.mark.parametrize("mechanism", ["dot_product", "bilinear", "additive"])
def test_scores_at_gain_one_have_their_stated_variance(mechanism: MechanismName, d: int) -> None:
    """Each draw of weights, queries and keys is one sample of E score²."""
    draws, rng = 200, np.random.default_rng(5)
    squares = np.empty(draws)
    for draw in range(draws):
        q, k = rng.standard_normal((8, d)), rng.standard_normal((8, d))
        squares[draw] = np.square(scores(q, k, mechanism, draw_weights(mechanism, d, rng))).mean()
    expected = float(d)
    if mechanism == "additive":  # given q and k, the sum in each tanh is N(0, (|q|² + |k|²)/d)
        x, w = np.polynomial.hermite_e.hermegauss(60)
        sizes = np.sqrt(rng.chisquare(2 * d, (4000, 1)) / d)
        expected = float((np.tanh(sizes * x) ** 2 @ w).mean() / w.sum())
        assert d < 64 or expected == pytest.approx(0.52, abs=0.01)
    assert squares.mean() == pytest.approx(expected, abs=4 * squares.std(ddof=1) / math.sqrt(draws))


def test_additive_scores_are_bounded_by_the_sum_of_v_and_reach_it() -> None:
    weights = weights_for("additive", 64, gain=8.0)
    assert isinstance(weights, AdditiveWeights)
    bound = score_bound("additive", weights)
    assert bound == pytest.approx(np.abs(weights.v).sum())
    assert bound == pytest.approx(8 * math.sqrt(2 * 64 / math.pi), rel=0.2)
    q, k = normal(1, 64, 64), normal(2, 64, 64)
    usual = np.abs(scores(q, k, "additive", weights)).max()
    assert 1 < usual < bound
    towards = np.linalg.solve(weights.w_q.T, 50 * np.sign(weights.v))[np.newaxis]
    assert scores(towards, 0 * k[:1], "additive", weights)[0, 0] == pytest.approx(bound)


def test_the_bounds_of_the_other_mechanisms() -> None:
    assert score_bound("cosine") == 1
    assert score_bound("dot_product") == math.inf
    assert score_bound("bilinear", weights_for("bilinear", 4)) == math.inf


def test_the_cosine_with_a_zero_vector_is_zero() -> None:
    assert np.all(scores(np.zeros((2, 3)), np.ones((4, 3)), "cosine") == 0)
