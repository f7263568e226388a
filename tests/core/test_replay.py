"""Every scale rule replayed on a captured head."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile, read_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.replay import replay
from attn_tui.core.diagnosis.results import Replay, RuleReplay
from attn_tui.core.scales import SCALE_RULES
from cases import for_each
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

Array = npt.NDArray[Any]


def weights(z: Array, seen: Array) -> Array:
    e = np.exp(np.where(seen, z - z.max(axis=-1, keepdims=True), -np.inf))
    return e / e.sum(axis=-1, keepdims=True)


def divergence(p: Array, r: Array) -> float:
    return float((p * np.log(np.where(p > 0, p / np.where(r > 0, r, 1), 1))).sum(axis=-1).mean())


@pytest.mark.parametrize("head", [0, 5])
def test_divergence_and_entropy_are_those_of_the_weights(head: int) -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[1]
    data = read_head(capture, layer, head)
    s = data.q[0].astype(np.float64) @ data.k[0].astype(np.float64).T
    found = replay(capture, layer, head, rows=layer.queries)
    everything = np.ones_like(s, np.bool_)
    p = weights(s / np.sqrt(32), everything)
    for rule, multiplier in (("none", 1.0), ("d_k", 1 / 32), ("log_d_k", 1 / np.log(32)), ("gemma", 1 / 16)):
        r = weights(multiplier * s, everything)
        [one] = [each for each in found.replayed if rule in each.rules]
        assert one.multiplier == pytest.approx(multiplier)
        assert one.divergence == pytest.approx(divergence(p, r), rel=1e-6, abs=1e-7)
        entropy = float(-(r * np.log(np.where(r > 0, r, 1))).sum(axis=-1).mean())
        assert one.entropy == pytest.approx(entropy, rel=1e-6, abs=1e-7)
        assert one.one_hot_rows == float((r.max(axis=-1) > 0.95).mean())


def test_the_original_comes_first_and_equal_rules_are_merged() -> None:
    capture = open_capture(sample_path())
    found = replay(capture, capture.layers[0], 3)
    assert found.replayed[0].rules[:2] == ("file", "sqrt_d_k")
    assert (found.replayed[0].divergence, found.replayed[0].entropy_change) == (0, 0)
    named = [rule for each in found.replayed for rule in each.rules]
    assert sorted([*named, *found.left_out]) == sorted(["file", *(name for name in SCALE_RULES if name != "custom")])


def test_rms_and_unit_vectors_with_the_same_logits_are_merged_at_any_width(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(1, 1, 30, 48)).astype(np.float16) for _ in "qk")
    np.savez(tmp_path / "48.npz", q=q, k=k)
    capture = open_capture(tmp_path / "48.npz")
    found = replay(capture, capture.layers[0], 0)
    assert ("rms_sqrt_d_k", "cosine_sqrt_d_k") in [each.rules for each in found.replayed]


def test_a_vector_that_all_keys_share_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    q, k = (rng.integers(-8, 9, size=(1, 1, 30, 16)) / 4 for _ in "qk")
    found: list[list[float]] = []
    for name, shared in (("plain", 0.0), ("moved", 64.0)):  # exact in float16, too
        file = tmp_path / f"{name}.npz"
        np.savez(file, q=q.astype(np.float16), k=(k + shared).astype(np.float16))
        capture = open_capture(file)
        every = replay(capture, capture.layers[0], 0).replayed
        of = {rule: each for each in every for rule in each.rules}
        found.append(
            [number for name in ("sqrt_d_k", "none", "d_k") for number in (of[name].entropy, of[name].divergence)]
        )
    assert found[0] == pytest.approx(found[1], rel=1e-5, abs=1e-6)


def test_a_saturated_head_is_remedied_by_the_nearest_rule() -> None:
    capture = open_capture(sample_path())
    saturated, healthy = replay(capture, capture.layers[0], 2), replay(capture, capture.layers[0], 0)
    assert healthy.remedy is None
    assert saturated.remedy is not None
    able = [each for each in saturated.replayed if each.saturation is not None and each.saturation < 0.5**0.5]
    assert saturated.remedy.divergence == min(each.divergence for each in able)


def test_sampled_rows_are_near_all_rows() -> None:
    capture = open_capture(sample_path())
    some, every = (replay(capture, capture.layers[2], 4, rows=rows) for rows in (32, 70))
    for a, b in zip(some.replayed, every.replayed, strict=True):
        assert a.rules == b.rules
        assert a.entropy == pytest.approx(b.entropy, abs=0.3)


def test_with_a_sink_its_share_is_part_of_the_divergence(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    q, k, sink = rng.normal(size=(1, 1, 12, 16)), rng.normal(size=(1, 1, 20, 16)), 1.5
    np.savez(tmp_path / "sink.npz", q=q, k=k, sinks=np.array([sink]), scale=0.25)
    capture = open_capture(tmp_path / "sink.npz")
    found = replay(capture, capture.layers[0], 0)
    s, everything = q[0, 0] @ k[0, 0].T, np.ones((12, 21), np.bool_)

    def with_sink(multiplier: float) -> Array:
        return weights(np.hstack([multiplier * s, np.full((12, 1), sink)]), everything)

    for rule, multiplier in (("none", 1.0), ("d_k", 1 / 16), ("two_sqrt_d_k", 0.125)):
        [one] = [each for each in found.replayed if rule in each.rules]
        assert one.divergence == pytest.approx(divergence(with_sink(0.25), with_sink(multiplier)), rel=1e-6)


def test_masks_soft_caps_biases_sinks_and_stored_factors_stay(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    q, k, bias = rng.normal(size=(1, 1, 12, 16)), rng.normal(size=(1, 1, 12, 16)), rng.normal(size=(1, 1, 12, 12))
    stored = {"q": q / 4, "k": k, "bias": bias, "sinks": np.array([0.5])}
    metadata = {
        "schema": "attn-tui/qk-2", "causal": "true", "softcap": "3", "prescaled": json.dumps([0.25, 1]), "scale": "1"
    }  # fmt: skip
    file = tmp_path / "capture.safetensors"
    save_file(
        {f"layers.0.attn.{name}": np.ascontiguousarray(array) for name, array in stored.items()}, file, metadata
    )
    capture = open_capture(file)
    found = replay(capture, capture.layers[0], 0)
    seen = np.tri(12, dtype=np.bool_)

    def softmax(multiplier: float) -> tuple[Array, Array]:
        z = 3 * np.tanh(multiplier * (q[0, 0] @ k[0, 0].T) / 3) + bias[0, 0]
        e = np.where(seen, np.exp(z), 0)
        total = e.sum(axis=-1, keepdims=True) + np.exp(0.5)
        return e / total, np.exp(0.5) / total[:, 0]

    (p, p_sink), (r, r_sink) = softmax(1 / 4), softmax(1.0)
    [one] = [each for each in found.replayed if "none" in each.rules]
    with_sink = divergence(p, r) + float((p_sink * np.log(p_sink / r_sink)).mean())
    assert one.divergence == pytest.approx(with_sink, abs=1e-9)
    assert "sqrt_d_k" in found.replayed[0].rules


def saved(folder: Path, **arrays: Any) -> CaptureFile:
    told = {"scale": 0.5, "causal": False, "attention": "cross"} | arrays
    np.savez(folder / "x.npz", **told)  # pyright: ignore[reportArgumentType]
    return open_capture(folder / "x.npz")


def test_rows_whose_bias_hides_every_key_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=(1, 1, 6, 8)) for _ in "qk")
    bias = rng.normal(size=(6, 6))
    bias[2:] = -np.inf
    capture = saved(tmp_path, q=q, k=k, bias=bias)
    [one] = [each for each in replay(capture, capture.layers[0], 0).replayed if "d_k" in each.rules]
    z, everything = (q @ k.mT)[0, 0, :2], np.ones((2, 6), np.bool_)
    p, r = (weights(scale * z + bias[:2], everything) for scale in (0.5, 1 / 8))
    assert one.divergence == pytest.approx(divergence(p, r))


@pytest.mark.parametrize("name", ["bias", "mask"])
def test_a_head_without_visible_keys_is_refused(tmp_path: Path, name: str) -> None:
    side = np.ones((1, 2, 6, 8))
    hidden = np.full((1, 2, 6, 6), -np.inf)
    hidden[:, 0] = 0
    capture = saved(tmp_path, q=side, k=side, **{name: hidden})
    assert replay(capture, capture.layers[0], 0).replayed
    with pytest.raises(CaptureError, match="head 1: no query sees a key"):
        replay(capture, capture.layers[0], 1)


def test_one_hot_rows_are_counted_among_rows_that_see_two_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    q, k = (0.1 * rng.normal(size=(1, 1, 5, 8)) for _ in "qk")
    capture = saved(tmp_path, q=q, k=k, causal=True)
    assert replay(capture, capture.layers[0], 0).replayed[0].one_hot_rows == 0
    q[..., -1, :], k[..., -1, :] = 100, 100
    capture = saved(tmp_path, q=q, k=k, causal=True)
    assert replay(capture, capture.layers[0], 0).replayed[0].one_hot_rows == 1 / 4


def test_padding_far_from_the_other_keys_costs_no_digits(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(1, 1, 32, 32)), rng.normal(0, 0.1, (1, 1, 32, 32))
    k[:, :, 8:] += 30 * np.sign(rng.normal(size=32))
    shown = np.arange(32) < 8
    found: list[float] = []
    for dtype in (np.float16, np.float64):
        sides = (side.astype(np.float16).astype(dtype) for side in (q, k))
        capture = saved(tmp_path, **dict(zip("qk", sides, strict=True)), mask=shown, scale=0.01)
        ratio = replay(capture, capture.layers[0], 0).replayed[0].saturation
        assert ratio
        found.append(ratio)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@for_each(
    ("saturations", "divergences", "remedy"),
    [
        ((1.0, 0.7, 0.6), (0, 0.3, 0.2), 2), ((1.0, 0.6, 0.7), (0, 0.3, 0.4), 1),
        ((0.99, 0.5, 0.5), (0, 0.1, 0.1), None),
        ((1.0, 0.8, None), (0, 0.1, 0.1), None), ((None, 0.5, 0.5), (0, 0.1, 0.1), None), ((2.0,), (0,), None),
        ((1.0, math.sqrt(0.5), 0.6), (0, 0.1, 0.2), 2),
    ],
)  # fmt: skip
def test_the_remedy_is_the_nearest_rule_under_which_a_saturated_head_is_healthy(
    saturations: tuple[float | None, ...], divergences: tuple[float, ...], remedy: int | None
) -> None:
    rows = [RuleReplay(("x",), 1, kl, 1, 0, 0, each) for each, kl in zip(saturations, divergences, strict=True)]
    found = Replay(open_capture(sample_path()).layers[0], 0, tuple(rows), ()).remedy
    assert found is (None if remedy is None else rows[remedy])
