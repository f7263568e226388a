"""Weightings: weights and Jacobians against other ways to compute them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from attn_tui.core.arrays import BoolArray, FloatArray
from attn_tui.core.attention.weightings import (
    Weighted,
    clip_factor,
    differential,
    differential_factor,
    entmax_15,
    forgetting_bias,
    sigmoid_weighting,
    softmax_weighting,
    sparsemax,
)
from cases import for_each

ROWS, N = 24, 9
EACH: dict[str, Callable[[FloatArray, BoolArray | None], Weighted]] = {
    "softmax": softmax_weighting,
    "sink": lambda z, h: softmax_weighting(z, h, 0.3),
    "sigmoid": lambda z, h: sigmoid_weighting(z, h, -1.2),
    "entmax_15": entmax_15,
    "sparsemax": sparsemax,
}


def drawn(scale: float = 1.0) -> tuple[FloatArray, BoolArray]:
    """Logits of some rows and hidden keys, at least one visible in each row."""
    rng = np.random.default_rng(3)
    hidden = rng.random((ROWS, N)) < 0.3
    hidden[:, 4] = False
    return scale * rng.standard_normal((ROWS, N)), hidden


def entmax_by_bisection(z: FloatArray, alpha: float) -> FloatArray:
    """α-entmax of one row: its definition, with τ found as a root."""

    def weights(tau: float) -> FloatArray:
        return np.maximum((alpha - 1) * z - tau, 0) ** (1 / (alpha - 1))

    high = float((alpha - 1) * z.max())
    low = high - 1.5
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle).sum() > 1 else (low, middle)
    return weights(low)


@for_each("scale", [0.1, 1.0, 30.0])
@for_each(("weighting", "alpha"), [(entmax_15, 1.5), (sparsemax, 2.0)])
def test_entmax_by_sorting_is_entmax_by_bisection(
    weighting: Callable[[FloatArray, BoolArray], Weighted], alpha: float, scale: float
) -> None:
    logits, hidden = drawn(scale)
    p = weighting(logits, hidden).weights
    for row, z, unseen in zip(p, logits, hidden, strict=True):
        assert row[~unseen] == pytest.approx(entmax_by_bisection(z[~unseen], alpha), abs=1e-11)
        assert not row[unseen].any()


def test_entmax_of_two_keys_has_a_closed_form() -> None:
    gap = np.linspace(-3, 3, 41)
    z = np.stack([gap, 0 * gap], axis=1)
    assert sparsemax(z).weights[:, 0] == pytest.approx(np.clip((1 + gap) / 2, 0, 1), abs=1e-15)
    t = np.clip(gap, -2, 2)
    assert entmax_15(z).weights[:, 0] == pytest.approx(0.5 + t * np.sqrt(8 - t**2) / 8, abs=1e-14)


def test_a_key_at_the_threshold_of_entmax_has_no_weight() -> None:
    for others in range(1, 40):
        found = entmax_15(np.array([[2.0] + [0.0] * others])).weights
        assert np.count_nonzero(found) == 1


def test_sparsemax_is_the_nearest_point_of_the_simplex() -> None:
    logits, _ = drawn()
    p = sparsemax(logits).weights
    others = np.random.default_rng(4).dirichlet(np.full(N, 0.3), 2000)
    # p is the projection of z if and only if (z − p)·(y − p) ≤ 0 for every y of the simplex.
    assert (np.vecdot((logits - p)[:, np.newaxis], others - p[:, np.newaxis]) <= 1e-12).all()


@for_each("name", ["softmax", "entmax_15", "sparsemax"])
@for_each("scale", [0.0, 1e-3, 1.0, 1e4])
def test_weights_sum_to_1_and_a_row_without_keys_has_none(name: str, scale: float) -> None:
    logits, hidden = drawn(scale)
    hidden[0] = True
    found = EACH[name](logits, hidden)
    assert found.weights.sum(axis=-1) == pytest.approx(np.r_[0, np.ones(ROWS - 1)], abs=1e-12)
    assert np.isfinite(found.jacobian_norm).all()
    assert found.jacobian_norm[0] == 0


def test_softmax_with_a_sink_is_softmax_with_one_more_key() -> None:
    logits, _ = drawn()
    with_sink = softmax_weighting(np.c_[logits, np.full(ROWS, 0.3)]).weights
    assert softmax_weighting(logits, None, 0.3).weights == pytest.approx(with_sink[:, :-1], abs=1e-15)


def test_sigmoid_weights_are_logistic_at_any_size() -> None:
    logits, hidden = drawn(300.0)
    expected = np.where(hidden, 0, (1 + np.tanh((logits - math.log(N)) / 2)) / 2)
    assert sigmoid_weighting(logits, hidden, -math.log(N)).weights == pytest.approx(expected, rel=1e-12, abs=1e-15)
    # With the bias −ln n and logits 0, weights are 1/(1 + n).
    assert sigmoid_weighting(np.zeros((1, N)), None, -math.log(N)).weights == pytest.approx(1 / (1 + N))


@pytest.mark.parametrize("name", EACH)
def test_the_jacobian_is_the_derivative(name: str) -> None:
    logits, hidden = drawn()
    step, found = 1e-6, EACH[name](logits, hidden)
    columns = [
        (EACH[name](logits + step * unit, hidden).weights - EACH[name](logits - step * unit, hidden).weights)
        / (2 * step)
        for unit in np.eye(N)
    ]
    assert found.jacobian_norm == pytest.approx(np.sqrt(np.square(columns).sum(axis=(0, 2))), rel=1e-6)


def test_the_jacobian_of_differential_attention_has_both_halves() -> None:
    first, hidden = drawn()
    second, step, factor = first[:, ::-1].copy(), 1e-6, 0.37
    found = differential(first, second, hidden, factor)
    changes: list[FloatArray] = []
    for unit in step * np.eye(N):
        for a, b in ((unit, 0 * unit), (0 * unit, unit)):
            ends = [differential(first + s * a, second + s * b, hidden, factor).weights for s in (1, -1)]
            changes.append((ends[0] - ends[1]) / (2 * step))
    assert found.jacobian_norm == pytest.approx(np.sqrt(np.square(changes).sum(axis=(0, 2))), rel=1e-6)
    assert found.weights.sum(axis=-1) == pytest.approx(1 - factor, abs=1e-12)


def test_the_factor_of_differential_attention_grows_with_depth() -> None:
    assert [differential_factor(layer) for layer in (0, 1)] == pytest.approx([0.2, 0.8 - 0.6 * math.exp(-0.3)])
    assert differential_factor(100) == pytest.approx(0.8)


def test_the_forgetting_bias_sums_the_gates_after_the_key() -> None:
    gates = np.log(np.random.default_rng(5).uniform(0.2, 1, 7))
    bias = forgetting_bias(gates, np.array([0, 3, 6]))
    for row, query in zip(bias, (0, 3, 6), strict=True):
        assert row[: query + 1] == pytest.approx([gates[key + 1 : query + 1].sum() for key in range(query + 1)])
        assert not row[query:].any()


def test_forgetting_attention_is_the_recurrence_of_its_paper() -> None:
    # Numerator and denominator of row i: those of row i − 1 times f_i, plus the new key's; here for logits of keys.
    rng = np.random.default_rng(6)
    z, gates = rng.standard_normal(7), rng.uniform(0.2, 1, 7)
    powers = np.zeros(7)
    bias = forgetting_bias(np.log(gates), np.arange(7))
    for query in range(7):
        powers *= gates[query]
        powers[query] = math.exp(z[query])
        p = softmax_weighting(z + bias[query], np.arange(7) > query).weights
        assert p == pytest.approx(powers / powers.sum(), abs=1e-14)


def test_qk_clip_brings_the_largest_logit_to_its_limit() -> None:
    assert clip_factor(250.0, 100.0) * 250 == pytest.approx(100)
    assert clip_factor(99.0, 100.0) == clip_factor(-300.0, 100.0) == 1
