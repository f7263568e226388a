"""Measurements of whole layers: gradients through a stack, and batch and heads at once."""

import numpy as np
import pytest
from attn_tui.core.arrays import FloatArray
from attn_tui.core.claims.trials import input_gradient, mean_cosine, shapes, through_layers
from attn_tui.core.learning.trials import heads_at_once

DEPTH, WIDTH, TOKENS = 3, 4, 5


def output(x: FloatArray, weights: FloatArray, multiplier: float) -> FloatArray:
    """LayerNorm of the output of a stack, token by token."""
    for w_q, w_k, w_v in weights:
        h = [(row - row.mean()) / row.std() for row in x]
        added: list[FloatArray] = []
        for one in h:
            logits = np.array([multiplier * (one @ w_q) @ (other @ w_k) for other in h])
            p = np.exp(logits) / np.exp(logits).sum()
            added.append(sum((each * (other @ w_v) for each, other in zip(p, h, strict=True)), np.zeros(WIDTH)))
        x = x + np.array(added)
    return np.array([(row - row.mean()) / row.std() for row in x])


@pytest.mark.parametrize("multiplier", [1.0, 0.5])
def test_the_gradient_through_a_stack_is_that_of_finite_differences(multiplier: float) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.standard_normal((2, TOKENS, WIDTH))
    weights = rng.standard_normal((DEPTH, 3, WIDTH, WIDTH)) / 2
    found, end = input_gradient(x, weights, multiplier, grad)
    assert end == pytest.approx(output(x, weights, multiplier))
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-5
        up, down = ((grad * output(x + sign * step, weights, multiplier)).sum() for sign in (1, -1))
        assert found[at] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7)


def test_the_mean_cosine_is_that_of_all_pairs() -> None:
    x = np.random.default_rng(1).standard_normal((4, 3))
    pairs = [x[a] @ x[b] / np.linalg.norm(x[a]) / np.linalg.norm(x[b]) for a in range(4) for b in range(4) if a != b]
    assert mean_cosine(x) == pytest.approx(np.mean(pairs))


def test_a_stack_of_one_layer_has_the_ratio_of_one_layer() -> None:
    found = through_layers(1, 8, 4)
    assert found["over_one"].measured == (1, 0)
    unscaled, scaled, ratio = (found[name].measured for name in ("unscaled", "scaled", "ratio"))
    assert unscaled is not None
    assert scaled is not None
    assert ratio is not None
    assert ratio.value == pytest.approx((unscaled.value or 0) / (scaled.value or 1))


def test_scores_have_a_number_for_every_pair_of_every_batch_and_head() -> None:
    found = {name: reading.exact for name, reading in shapes(2, 3, 5, 4).items()}
    assert found == {"scores": 2 * 3 * 5 * 5, "output": 2 * 3 * 5 * 4, "sum": 1, "apart": 0}


def test_heads_look_at_several_keys_and_near_and_far() -> None:
    found = {name: reading.measured for name, reading in heads_at_once().items()}
    values = {name: each.value or 0.0 for name, each in found.items() if each is not None}
    assert 1 < values["keys"] < 12
    assert 0 < values["near"] < values["far"] < 70
    assert (values["rank"], values["full"]) == (32, 70)
