"""Normalised queries and keys: their sizes, their scores and the backward pass."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised, normalised_backward
from attn_tui.core.scales import SCALE_RULES, Normalise, Setting, multiplier
from cases import for_each
from golden import cases, reference

COSINES = [case for case in cases("cosine") if "_t1" in case["case"]]
(RMS,) = cases("qknorm_rms")
KINDS: tuple[Normalise, ...] = ("rms", "layer_norm", "l2")


def draw(*shape: int, dtype: str = "float64") -> Any:
    return (3 * np.random.default_rng(5).standard_normal(shape) + 0.5).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normalised_vectors_have_the_size_of_their_kind(dtype: str) -> None:
    x = draw(3, 4, 10, dtype=dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    assert normalised(x, "none") is x
    assert np.allclose(np.linalg.norm(normalised(x, "l2"), axis=-1), 1, rtol=tolerance)
    assert np.allclose((normalised(x, "rms") ** 2).mean(axis=-1), 1, rtol=tolerance)
    layer_norm = normalised(x, "layer_norm")
    assert np.allclose(layer_norm.mean(axis=-1), 0, atol=tolerance)
    assert np.allclose(layer_norm.var(axis=-1), 1, rtol=tolerance)
    for how in KINDS:
        assert normalised(x, how).dtype == x.dtype
        assert normalised(x, how).shape == x.shape


@for_each("how", KINDS)
@for_each("factor", [1e-3, 7.0, 1e4])
def test_the_size_of_a_vector_does_not_matter(how: Normalise, factor: float) -> None:
    x = draw(5, 16)
    assert np.allclose(normalised(factor * x, how), normalised(x, how), rtol=1e-12, atol=1e-14)


@for_each("dtype", ["float32", "float64"])
@for_each("how", KINDS)
def test_a_vector_without_direction_becomes_zero(how: Normalise, dtype: str) -> None:
    flat = np.full((1, 7), 0.1, dtype)
    assert np.array_equal(normalised(np.zeros((2, 7), dtype), how), np.zeros((2, 7)))
    if how == "layer_norm":
        assert np.array_equal(normalised(flat, how), np.zeros((1, 7)))
        assert np.array_equal(normalised(draw(4, 1, dtype=dtype), how), np.zeros((4, 1)))
    else:
        assert (normalised(flat, how) > 0).all()


@for_each("case", COSINES)
def test_cosines_agree_with_references(case: dict[str, Any]) -> None:
    q, k = (normalised(reference(case, side), "l2") for side in "qk")
    assert np.allclose(q @ k.mT, reference(case, "raw"), rtol=1e-12, atol=1e-12)


def test_rms_scores_agree_with_references_up_to_their_epsilon() -> None:
    q, k = (normalised(reference(RMS, side), "rms") * reference(RMS, f"g{side}") for side in "qk")
    assert np.allclose(q @ k.mT, reference(RMS, "raw"), rtol=2e-5, atol=2e-5)


@for_each("how", ["none", *KINDS])
@for_each("size", [1.0, 1e-2, 1e-5])
def test_the_backward_pass_agrees_with_finite_differences(how: Normalise, size: float) -> None:
    rng = np.random.default_rng(1)
    x, upstream, direction = (rng.standard_normal((3, 6)) for _ in range(3))
    x, step = size * x, 1e-5 * size

    def along(t: float) -> float:
        return float((upstream * normalised(x + t * direction, how)).sum())

    expected = (along(step) - along(-step)) / (2 * step)
    assert (normalised_backward(upstream, x, how) * direction).sum() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("how", KINDS)
def test_no_vector_is_too_small_for_the_backward_pass(how: Normalise) -> None:
    tiny = np.array([[0.0, 0.0], [1e-30, -1e-30], [1e-13, 0.0], [2.0, 2.0]], np.float32)
    with np.errstate(all="raise", under="ignore"):
        back = normalised_backward(np.ones_like(tiny), tiny, how)
    assert back.dtype == np.float32
    assert np.all(np.isfinite(back))
    assert np.all(back[0] == 0)


def test_ngpt_and_qwen3_start_from_the_same_logits() -> None:
    q, k = draw(6, 24), draw(9, 24)[::-1]
    setting = Setting(d_k=24)
    logits = [
        multiplier(name, setting)
        * normalised(q, SCALE_RULES[name].normalise)
        @ normalised(k, SCALE_RULES[name].normalise).T
        for name in ("rms_sqrt_d_k", "cosine_sqrt_d_k")
    ]
    assert np.allclose(*logits, rtol=1e-12)
