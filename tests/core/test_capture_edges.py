"""Files that nearly say what changes attention: nothing in them is measured as if it were absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.capture import HeadContext
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.errors import InputError
from capture_files import Array, has_note, layered, numbers, opened, save, visible
from cases import for_each

CAUSAL = np.tri(6, dtype=bool)
PADDED = np.arange(6) < np.array([[5], [4]])  # [batch, keys], True where a token is real


def refusals(folder: Path, tensors: dict[str, Array], count: int = 1, **metadata: object) -> list[str]:
    """Why each layer is refused, or empty; a layer that is not refused can be read."""
    capture = opened(folder, layered(count) | tensors, **metadata)
    for layer in capture.layers:
        if layer.refusal:
            with pytest.raises(CaptureError):
                read_head(capture, layer, 0)
        else:
            read_head(capture, layer, 0)
    return [layer.refusal for layer in capture.layers]


def square(prefix: str = "layers.0.attn.", **tensors: Array) -> dict[str, Array]:
    """q and k of two texts of six tokens, and further tensors."""
    q, k = numbers(2, 3, 6, 4), numbers(2, 3, 6, 4, seed=1)
    return {f"{prefix}q": q, f"{prefix}k": k} | {prefix + name: array for name, array in tensors.items()}


@for_each(
    "name", ["tau", "rpb", "gain", "q_descale", "cu_seqlens", "q_pe", "k_rope_scale", "headMask", "causal_table"]
)
def test_more_names_of_tensors_that_may_change_attention(tmp_path: Path, name: str) -> None:
    first, second = refusals(tmp_path, {f"layers.0.attn.{name}": np.ones((3, 3), np.float32)}, 2)
    assert f"'layers.0.attn.{name}' may change attention" in first
    assert not second


@pytest.mark.parametrize("shape", [(4,), (1, 4, 1, 1), (4, 5, 6), (2, 4, 5, 6), (5, 6)])
def test_a_tensor_shaped_like_scores_or_heads_may_change_attention(tmp_path: Path, shape: tuple[int, ...]) -> None:
    for name in ("r", "beta"):
        first, second = refusals(tmp_path, {f"layers.0.attn.{name}": numbers(*shape)}, 2)
        assert f"'layers.0.attn.{name}' of shape {[*shape]} may change attention" in first
        assert not second


@pytest.mark.parametrize("name", ["attn_scores", "probs", "in_proj_bias", "v_scale", "q_bias"])
def test_results_and_applied_biases_are_named_only(tmp_path: Path, name: str) -> None:
    shape = (3,) if name.endswith(("bias", "scale")) else (2, 4, 5, 6)
    assert refusals(tmp_path, {f"layers.0.attn.{name}": numbers(*shape)}) == [""]
    assert open_capture(tmp_path / "opened.safetensors").unused == (f"layers.0.attn.{name}",)


@pytest.mark.parametrize(
    ("metadata", "named", "hint"),
    [
        ({"sacle": 0.5}, "sacle", "scale"), ({"casual": True}, "casual", "causal"),
        ({"sliding_windw": 3}, "sliding_windw", "sliding_window"), ({"prescale": [1, 1]}, "prescale", "prescaled"),
        ({"layers": [{"scal": 0.5}]}, "layers[].scal", "scale"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, metadata: dict[str, Any], named: str, hint: str
) -> None:
    [reason] = refusals(tmp_path, {}, **metadata)
    assert f"did you mean '{hint}'?" in reason
    assert named in open_capture(tmp_path / "opened.safetensors").unused


@for_each("nothing", [None, "none", False, "off", "", 0])
def test_keys_that_say_that_there_is_nothing_are_named_only(tmp_path: Path, nothing: object) -> None:
    assert refusals(tmp_path, {}, alibi=nothing, layers=[{"attn_bias": nothing}]) == [""]
    assert set(open_capture(tmp_path / "opened.safetensors").unused) == {"alibi", "layers[].attn_bias"}


@pytest.mark.parametrize(
    "entries",
    [
        [{"index": 0, "scale": 1}, {"index": 4, "scale": 2}],
        [{"index": 1, "name": "layers.0.attn"}, {"index": 0, "name": "layers.1.attn"}],
        [{"name": "layers.1.attn"}, {"name": "layers.0.attn"}],
    ],
    ids=["no layer has the index", "another layer has the name", "they are in another order"],
)
def test_entries_of_no_layer_or_of_another_one_are_refused(tmp_path: Path, entries: list[dict[str, object]]) -> None:
    with pytest.raises(CaptureError, match=r"metadata 'layers'.*index"):
        opened(tmp_path, layered(2), layers=entries)


def test_the_only_entry_belongs_to_the_only_layer_without_a_number(tmp_path: Path) -> None:
    capture = opened(tmp_path, square(""), layers=[{"index": 7, "scale": 0.5}], causal=True)
    layer = capture.layers[0]
    assert (layer.index, layer.numbered, layer.scale, capture.unused) == (7, True, 0.5, ())


@pytest.mark.parametrize(
    ("kind", "metadata", "missing"),
    [
        ("sliding_attention", {}, "window"), ("chunked_attention", {}, "chunk"), ("full_attention", {}, ""),
        ("sliding_attention", {"window": 3}, ""), ("chunked_attention", {"chunk": 3}, ""),
    ],
)  # fmt: skip
def test_a_layer_of_a_type_that_needs_a_window_has_one(
    tmp_path: Path, kind: str, metadata: dict[str, Any], missing: str
) -> None:
    [reason] = refusals(tmp_path, {}, causal=True, layers=[{"layer_type": kind, **metadata}])
    assert reason == (f"metadata 'layer_type' is '{kind}', but '{missing}' is missing" if missing else "")


@pytest.mark.parametrize("lowest", [-1e4, -1e9, -np.inf])
def test_a_mask_that_has_been_added_to_a_bias_hides_keys(tmp_path: Path, lowest: float) -> None:
    bias = np.random.default_rng(2).normal(size=(3, 6, 6)).astype("f4")
    bias[:, 5, 0] = -4_000
    tensors = square(position_bias=bias + np.where(CAUSAL, 0, lowest).astype("f4"))
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", scale=0.5, causal=False)
    q, k = (tensors[f"layers.0.attn.{side}"].astype(float) for side in "qk")
    for head in range(3):
        logits = np.where(CAUSAL, 0.5 * q[:, head] @ k[:, head].mT + bias[head], -np.inf)
        assert_measured(capture, head, Expected(logits))


@pytest.mark.parametrize("values", [np.linspace(0, 30_000, 6), np.array([0, 4e3, 5e3, 1e4, 15e3, 2e4])])
def test_the_large_numbers_of_a_long_alibi_hide_no_keys(tmp_path: Path, values: Array) -> None:
    bias = -np.broadcast_to(values, (1, 6, 6))
    tensors = square(alibi=bias)
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", scale=0.5, causal=False)
    assert read_head(capture, capture.layers[0], 0).visibility is None
    q, k = (tensors[f"layers.0.attn.{side}"].astype(float) for side in "qk")
    assert_measured(capture, 1, Expected(0.5 * q[:, 1] @ k[:, 1].mT + bias))


@for_each("name", ["mask", "attention_mask"])
@for_each("mask", [~CAUSAL, np.zeros((6, 6), bool), ~np.eye(6, dtype=bool)])
def test_a_mask_that_would_hide_too_much_is_asked_about(tmp_path: Path, name: str, mask: Array) -> None:
    path = save(tmp_path / "x.safetensors", square("layers.0.attn.", **{name: mask}))
    capture = open_capture(path)
    with pytest.raises(CaptureError, match="--mask-true visible or hidden"):
        read_head(capture, capture.layers[0], 0)
    np.testing.assert_array_equal(visible(open_capture(path, mask_true="hidden"))[0], ~mask) if mask.any() else None


def test_the_mask_of_a_single_query_may_hide_its_own_key(tmp_path: Path) -> None:
    tensors = square("layers.0.attn.", mask=np.arange(6) != 5)
    tensors["layers.0.attn.q"] = tensors["layers.0.attn.q"][:, :, -1:]
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", causal="bottom-right")
    np.testing.assert_array_equal(visible(capture)[0], [[True] * 5 + [False]])


@pytest.mark.parametrize("mask", [~np.eye(6, dtype=bool), np.eye(6, dtype=bool), PADDED])
def test_an_attn_mask_with_two_possible_meanings_is_asked_about(tmp_path: Path, mask: Array) -> None:
    for stored in (mask, ~mask):
        capture = opened(tmp_path, square(attn_mask=stored))
        with pytest.raises(CaptureError, match="--mask-true visible or hidden"):
            read_head(capture, capture.layers[0], 0)


def test_the_name_of_a_layer_may_say_that_it_is_cross_attention(tmp_path: Path) -> None:
    for name, cross in (("decoder.layer.0.crossattention.self", True), ("encoder.layer.0.attention.self", False)):
        capture = opened(tmp_path, square(mask=PADDED), causal=False, layers=[{"name": name}])
        assert capture.layers[0].cross == cross
        assert not has_note(capture, "self-attention")
    assert has_note(opened(tmp_path, square(mask=PADDED), causal=False), "taken as self-attention")


def test_a_position_that_the_file_does_not_say_is_asked_for(tmp_path: Path) -> None:
    layer = opened(tmp_path, layered(1), causal=False).layers[0]
    with pytest.raises(InputError, match="does not say where queries stand; give --position"):
        named_rule("llama4_position", layer)
    assert named_rule("llama4_position", layer, told=HeadContext(position=3)).multiplier > 0


def test_the_gain_of_query_key_normalization_is_one_for_all_rows(tmp_path: Path) -> None:
    """Its n is a length of the training texts, not the number of keys that a row sees."""
    tensors = square()
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", scale=0.5, causal=True)
    layer = capture.layers[0]
    [column] = measure_head(capture, layer, 0, [named_rule("cosine_log2_n", layer)]).columns
    q, k = (tensors[f"layers.0.attn.{side}"][:, 0].astype(float) for side in "qk")
    q, k = (side / np.linalg.norm(side, axis=-1, keepdims=True) for side in (q, k))
    logits = np.where(CAUSAL, np.log2(6**2 - 6) * q @ k.mT, -np.inf)
    for name, value in Expected(logits).statistics().items():
        assert column.measured[name].value == pytest.approx(value, rel=1e-9), name
