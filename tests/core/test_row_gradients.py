"""Norms of ∂L/∂q computed row by row agree with exact gradients, and with longer numbers for one-hot rows."""

import math
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised
from attn_tui.core.attention.row_gradients import (
    logit_gradients,
    query_gradient_norms,
    upstream,
    weight_gradients,
)
from attn_tui.core.attention.scores import draw_weights, scores
from attn_tui.core.attention.softmax import ShiftedRows, logits_below, row_sums, shift_rows
from attn_tui.core.parameters import MechanismName, Parameters
from attn_tui.core.scales import Normalise
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from textbook import mechanism as textbook_scores
from textbook import unit


def draw(seed: int, draws: int = 2, m: int = 4, n: int = 6, d: int = 5, d_v: int = 3) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((draws, *shape)) for shape in ((m, d), (n, d), (n, d_v), (m, d_v))]


def shift(raw: Any, hidden: Any = None) -> ShiftedRows:
    """The shifted rows of scores (draws, m, n)."""
    flat = None if hidden is None else np.broadcast_to(hidden, raw.shape).reshape(-1, raw.shape[-1])
    return shift_rows(raw.reshape(-1, raw.shape[-1]).copy(), flat)


def exponentials(shifted: ShiftedRows, multiplier: float) -> tuple[Any, Any]:
    """Return the exponentials of all keys but the largest, and their sums."""
    powers = np.empty_like(shifted.below)
    return powers, row_sums(logits_below(shifted, multiplier), shifted, powers)[1]


def exact_gradients(z: Any, a: Any, hidden: Any = False, sink: float | None = None) -> Any:
    """∂L/∂z_i = p_i (Σ_j p_j (A_i − A_j) + p_sink A_i) of logits (…, n), in long doubles and without cancellation."""
    z, a = (each.astype(np.longdouble) for each in (z, a))
    sinks = np.full((*z.shape[:-1], 1), -np.inf if sink is None else sink, np.longdouble)
    z = np.concatenate([np.where(hidden, -np.inf, z), sinks], axis=-1)
    p = np.exp(z - np.maximum(z.max(axis=-1, keepdims=True), -1e300))
    p /= np.maximum(p.sum(axis=-1, keepdims=True), np.finfo(np.longdouble).tiny)
    a = np.concatenate([a, np.zeros_like(sinks)], axis=-1)
    return (p * np.stack([(p * (a[..., [i]] - a)).sum(axis=-1) for i in range(p.shape[-1])], axis=-1))[..., :-1]


def norms_of(x: Any) -> Any:
    return np.sqrt(np.square(x).sum(axis=-1)).ravel()


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0.01, 30), st.floats(0, 1), st.booleans(),
    st.one_of(st.none(), st.floats(-60, 60)),
)  # fmt: skip
def test_norms_agree_with_exact_gradients(
    seed: int, n: int, multiplier: float, hide: float, reuse: bool, sink: float | None
) -> None:
    q, k, v, g = draw(seed, n=n)
    hidden = np.random.default_rng(seed).random((2, 4, n)) < hide
    shifted = shift(q @ k.mT, hidden)
    others = exponentials(shifted, multiplier) if reuse else None
    sinks = None if sink is None else sink - multiplier * shifted.largest
    with np.errstate(all="raise", under="ignore"):
        found = logit_gradients(shifted, multiplier, upstream(g, v, shifted), sinks, others)
        norms = query_gradient_norms(found, multiplier, k)
    exact = exact_gradients(multiplier * (q @ k.mT), g @ v.mT, hidden, sink)
    assert norms == pytest.approx(norms_of(multiplier * exact @ k), rel=1e-9, abs=1e-14)
    entries = found.entries * found.factor[:, np.newaxis]
    assert entries == pytest.approx(exact.reshape(entries.shape), rel=1e-9, abs=1e-14)


@for_each("mechanism", get_args(MechanismName))
@for_each("normalise", ["none", "rms", "layer_norm", "l2"])
def test_norms_of_every_mechanism_agree_with_exact_gradients(mechanism: MechanismName, normalise: Normalise) -> None:
    q, k, v, g = draw(1, d=8)
    weights = draw_weights(mechanism, 8, np.random.default_rng(2), gain=3.0)
    keys = normalised(k, normalise)
    shifted = shift(scores(normalised(q, normalise), keys, mechanism, weights))
    found = logit_gradients(shifted, 0.7, upstream(g, v, shifted))
    norms = query_gradient_norms(found, 0.7, keys, q, mechanism, weights, normalise)
    normal_q, of_norm = unit(q, normalise)
    raw, of_score = textbook_scores(normal_q, unit(k, normalise)[0], Parameters(mechanism=mechanism), weights)
    of_logits = exact_gradients(0.7 * raw, g @ v.mT)
    exact = 0.7 * np.einsum("bmn,bmnd,bmde->bme", of_logits, of_score, of_norm)
    assert norms == pytest.approx(norms_of(exact), rel=1e-10)


@pytest.mark.parametrize("block", [1, 20, 64])
def test_norms_of_additive_attention_do_not_depend_on_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, g = draw(1)
    weights = draw_weights("additive", 5, np.random.default_rng(1))
    shifted = shift(scores(q, k, "additive", weights))
    of_logits = logit_gradients(shifted, 1.0, upstream(g, v, shifted))
    at_once = query_gradient_norms(of_logits, 1.0, k, q, "additive", weights)
    monkeypatch.setattr("attn_tui.core.attention.scores.BLOCK", block)
    in_blocks = query_gradient_norms(of_logits, 1.0, k, q, "additive", weights)
    assert in_blocks == pytest.approx(at_once, rel=1e-12, abs=1e-14)


def test_the_caller_multiplies_by_the_slopes_of_a_soft_cap() -> None:
    q, k, v, g = draw(1)
    raw, cap, multiplier = q @ k.mT, 2.0, 1.5
    capped = cap * np.tanh(multiplier * raw / cap)
    shifted = shift(capped)
    found = logit_gradients(shifted, 1.0, upstream(g, v, shifted))
    found.entries[:] *= (1 - np.square(capped / cap)).reshape(found.entries.shape)
    exact = multiplier * (exact_gradients(capped, g @ v.mT) * (1 - np.square(capped / cap))) @ k
    assert query_gradient_norms(found, multiplier, k) == pytest.approx(norms_of(exact), rel=1e-10)


def test_each_row_may_have_its_own_multiplier() -> None:
    q, k, v, g = draw(1)
    temperatures = np.array([[0.5], [1.0], [2.0], [3.0]])
    shifted = shift(temperatures * (q @ k.mT))
    found = logit_gradients(shifted, 1.0, upstream(g, v, shifted))
    exact = temperatures * exact_gradients(temperatures * (q @ k.mT), g @ v.mT) @ k
    norms = query_gradient_norms(found, np.tile(temperatures.ravel(), 2), k)
    assert norms == pytest.approx(norms_of(exact), rel=1e-10)


@for_each("reuse", [False, True])
@for_each("d", [16, 256, 4096, 16384])
def test_almost_one_hot_rows_keep_their_digits_in_float32(d: int, reuse: bool) -> None:
    """Norms go down to 1e-38 and less; the float32 scores count as exact."""
    rng = np.random.default_rng(d)
    m, n, width = 40, 12, 8
    raw = (math.sqrt(d) * rng.standard_normal((m, n))).astype(np.float32)
    k, v = (rng.standard_normal((n, width), dtype=np.float32) for _ in range(2))
    g = rng.standard_normal((m, width), dtype=np.float32)
    shifted = shift_rows(raw)
    others = exponentials(shifted, 1.0) if reuse else None
    found = query_gradient_norms(logit_gradients(shifted, 1.0, upstream(g, v, shifted), None, others), 1.0, k)
    expected = norms_of(exact_gradients(shifted.below, g.astype(np.longdouble) @ v.T) @ k)
    assert np.all(np.abs(found - expected) <= 1e-4 * expected)
    if d == 16384:
        assert np.median(found) < 1e-12


def test_a_one_hot_row_competes_with_the_sink_alone() -> None:
    """One key is far above the others and the sink between them: only the key and the sink matter."""
    gap = 60.0
    below = np.array([[0.0, -2000.0]])
    shifted = shift_rows(below.copy())
    v, k, g = np.array([[3.0], [1.0]]), np.array([[1.0], [5.0]]), np.array([[1.0]])
    with np.errstate(all="raise", under="ignore"):
        found = logit_gradients(shifted, 1.0, upstream(g, v, shifted), np.array([-gap]))
    expected = 3 * np.exp(-gap) / (1 + np.exp(-gap)) ** 2
    assert query_gradient_norms(found, 1.0, k)[0] == pytest.approx(expected, rel=1e-12)


def test_hidden_keys_do_not_cost_a_one_hot_row_its_digits() -> None:
    shifted = shift_rows(np.array([[80.0, 500.0, 20.0]], np.float32), np.array([[False, True, False]]))
    v, k, g = (np.array(x, np.float32) for x in ([[3.0], [7.0], [1.0]], [[1.0], [9.0], [5.0]], [[1.0]]))
    found = logit_gradients(shifted, 1.0, upstream(g, v, shifted))
    assert query_gradient_norms(found, 1.0, k)[0] == pytest.approx(np.exp(-60.0) * 2 * 4, rel=1e-5)


def test_gradients_of_given_weights_do_not_underflow() -> None:
    """Weights of 1e−30 are numbers of float32, and bfloat16; the squares of their gradients are not."""
    rng = np.random.default_rng(0)
    k, v, g = (rng.standard_normal((rows, 5), dtype=np.float32) for rows in (3, 3, 2))
    weights = np.array([[1, 1e-30, 2e-30], [0, 1, 0]], np.float32)
    received = upstream(g, v, shift_rows(np.log(np.maximum(weights, 1e-38))))
    norms = query_gradient_norms(weight_gradients(weights, received, np.zeros(2)), 1.0, k)
    a, p = (g @ v.T).astype(float)[0], weights[0].astype(float)
    expected = (p * (a - a[0] - p[1:] @ (a[1:] - a[0]))) @ k
    assert norms == pytest.approx([np.linalg.norm(expected), 0], rel=1e-5, abs=0)


@pytest.mark.parametrize("sink", [None, -1000.0, 0.0, 1000.0])
def test_rows_with_one_visible_key_have_a_gradient_only_with_a_sink(sink: float | None) -> None:
    scores_of_rows = np.array([[5.0, 1.0, 2.0], [5.0, 1.0, 2.0]])
    hidden = np.array([[True, True, True], [True, False, True]])
    shifted = shift_rows(scores_of_rows, hidden)
    rng = np.random.default_rng(0)
    v, k, g = (rng.standard_normal(shape) for shape in ((3, 2), (3, 2), (2, 2)))
    sinks = None if sink is None else sink - shifted.largest
    with np.errstate(all="raise", under="ignore"):
        norms = query_gradient_norms(logit_gradients(shifted, 1.0, upstream(g, v, shifted), sinks), 1.0, k)
    assert norms[0] == 0
    assert (norms[1] > 0.01) == (sink == 0)


def test_gradients_in_given_memory_are_the_same() -> None:
    q, k, v, g = (each.astype(np.float32) for each in draw(3, draws=3, m=8, n=16))
    shifted = shift(q @ k.mT)
    alone = logit_gradients(shifted, 0.5, upstream(g, v, shifted))
    lent = np.full((2, *shifted.below.shape), np.nan, np.float32)
    found = logit_gradients(shifted, 0.5, upstream(g, v, shifted, lent[0]), None, None, lent[1])
    assert np.shares_memory(found.entries, lent[1])
    assert np.array_equal(found.entries, alone.entries)
    others = exponentials(shifted, 0.5)
    from_powers = logit_gradients(shifted, 0.5, upstream(g, v, shifted, lent[0]), None, others, lent[1])
    one, two = (query_gradient_norms(each, 0.5, k) for each in (alone, from_powers))
    assert one == pytest.approx(two, rel=1e-5)


@pytest.mark.parametrize(("multiplier", "median"), [(0.125, 1.0), (1.0, 7.7)])
def test_medians_have_not_changed(multiplier: float, median: float) -> None:
    """With 128 keys, d_k 64 and d_v 64 in float32: about 1 if scaled, and larger if not."""
    q, k, v, g = (each.astype(np.float32) for each in draw(5, draws=64, m=32, n=128, d=64, d_v=64))
    shifted = shift(q @ k.mT)
    of_logits = logit_gradients(shifted, multiplier, upstream(g, v, shifted))
    norms = query_gradient_norms(of_logits, multiplier, k).reshape(64, 32)
    each = np.median(norms, axis=1)
    standard_error = each.std(ddof=1) / 8
    assert np.median(norms) == pytest.approx(median, abs=4 * standard_error + 0.05)
    assert standard_error < 0.1 * median
