"""Files that say what changes attention in forms that are easy to misread, or in words that are not understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, has_note, layered, numbers, opened, pair
from cases import for_each

BATCH, HEADS, TOKENS = 2, 4, 6
Q, K = pair(queries=TOKENS)
TOLD: dict[str, Any] = {"schema": "attn-tui/qk-2", "scale": 0.5, "causal": "false", "attention": "self"}
SLOPES = [0.5, 0.25, 0.125, 0.0625]
DISTANCES = np.abs(np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS)))


def scores(head: int) -> Array:
    """The scaled scores of a head."""
    return 0.5 * Q[:, head].astype(float) @ K[:, head].astype(float).mT


def beside(prefix: str, **tensors: Array) -> dict[str, Array]:
    return {prefix + name: array for name, array in ({"q": Q, "k": K} | tensors).items()}


def archive(folder: Path, **arrays: object) -> CaptureFile:
    """Write an .npz file and open it."""
    np.savez(folder / "x.npz", **({"q": Q, "k": K} | TOLD | arrays))  # pyright: ignore[reportArgumentType]
    return open_capture(folder / "x.npz")


@pytest.mark.parametrize("order", ["C", "F"])
def test_batch_and_heads_may_be_one_axis_of_a_bias(tmp_path: Path, order: Any) -> None:
    bias = numbers(BATCH * HEADS, TOKENS, TOKENS, seed=3)
    capture = archive(tmp_path, bias=np.asarray(bias, order=order))
    for head in range(HEADS):
        own = bias.reshape(BATCH, HEADS, TOKENS, TOKENS)[:, head]
        assert_measured(capture, head, Expected(scores(head) + own))


def test_a_bias_whose_first_axis_may_be_of_texts_or_heads_is_noted(tmp_path: Path) -> None:
    tensors = {f"layers.0.attn.{side}": each[:, :2] for side, each in (("q", Q), ("k", K))}
    words = ("layers.0.attn.bias", "axes assumed to be [head, queries, keys]")
    for shape, noted in (((2, 6, 6), True), ((1, 2, 6, 6), False), ((4, 6, 6), False), ((6, 6), False)):
        bias = numbers(*shape)
        capture = opened(tmp_path, tensors | {"layers.0.attn.bias": bias}, **TOLD)
        assert has_note(capture, *words) == noted
        own = bias.reshape(2, 2, 6, 6)[:, 1] if shape == (4, 6, 6) else np.broadcast_to(bias, (2, 2, 6, 6))[:, 1]
        assert_measured(capture, 1, Expected(scores(1) + own))


def test_a_bias_of_two_axes_is_never_of_texts(tmp_path: Path) -> None:
    q, k, bias = numbers(5, 1, 5, 8), numbers(5, 1, 5, 8, seed=1), numbers(5, 5, seed=2)
    capture = opened(
        tmp_path, {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.0.attn.bias": bias}, **TOLD | {"scale": 0.5}
    )
    assert_measured(capture, 0, Expected(0.5 * q[:, 0] @ k[:, 0].mT + bias))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("added", [False, True])
def test_batch_and_heads_may_be_one_axis_of_a_mask(tmp_path: Path, order: Any, added: bool) -> None:
    """nn.MultiheadAttention's attn_mask: (N·num_heads, L, S), PyTorch torch/nn/modules/activation.py."""
    shown = (numbers(BATCH * HEADS, TOKENS, TOKENS, seed=4) > 0) | np.eye(TOKENS, dtype=bool)
    mask = np.where(shown, 0, -np.inf).astype(np.float32) if added else ~shown
    capture = archive(tmp_path, attn_mask=np.asarray(mask, order=order), mask_true="hidden")
    for head in range(HEADS):
        own = shown.reshape(BATCH, HEADS, TOKENS, TOKENS)[:, head]
        assert_measured(capture, head, Expected(np.where(own, scores(head), -np.inf)))


@for_each("key", ["alibi_slopes", "alibi", "slopes"])
@for_each("of_layer", [False, True])
def test_slopes_may_be_lists_of_the_metadata(tmp_path: Path, key: str, of_layer: bool) -> None:
    more = {"layers": [{"index": 0, key: SLOPES}]} if of_layer else {key: SLOPES}
    capture = opened(tmp_path, beside("layers.0.attn."), **TOLD, **more)
    assert capture.unused == ()
    for head, slope in enumerate(SLOPES):
        assert_measured(capture, head, Expected(scores(head) - slope * DISTANCES))


def test_two_lists_of_slopes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has both '(alibi|slopes)' and"):
        opened(tmp_path, beside("layers.0.attn."), **TOLD, alibi=SLOPES, slopes=SLOPES)


@pytest.mark.parametrize("window", [{"sliding_window": 3}, {"window_size": np.array([2, 0])}])
def test_arrays_with_another_name_of_a_key_are_metadata(tmp_path: Path, window: dict[str, Any]) -> None:
    capture = archive(tmp_path, causal="true", **window)
    shown = np.tri(TOKENS, dtype=bool) & (DISTANCES < 3)
    assert capture.unused == ()
    assert_measured(capture, 1, Expected(np.where(shown, scores(1), -np.inf)))


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", 0.7), ("softmax", "none"), ("attention_type", "sigmoid")]
)
def test_texts_and_single_numbers_of_an_archive_are_metadata(tmp_path: Path, name: str, value: object) -> None:
    capture = archive(tmp_path, **{name: value})
    assert capture.unused == (name,)
    assert bool(capture.layers[0].refusal) is (value != "none")
    assert f"metadata '{name}' may change attention" in capture.layers[0].refusal or value == "none"


FLOATS = [
    (TOKENS,),
    (1, 1, TOKENS, 1),
    (HEADS, TOKENS),
    (BATCH, TOKENS),
    (BATCH, HEADS, TOKENS),
    (1, HEADS, TOKENS, 1),
]


@for_each("prefix", ["layers.0.attn.", ""])
@for_each("shape", FLOATS)
def test_a_number_for_each_query_may_change_attention(tmp_path: Path, prefix: str, shape: tuple[int, ...]) -> None:
    capture = opened(tmp_path, beside(prefix, r=numbers(*shape)), **TOLD)
    assert f"tensor '{prefix}r' of shape {[*shape]} may change attention" in capture.layers[0].refusal
    for harmless in ("row_max", "position_ids", "cos", "entropy"):
        assert opened(tmp_path, beside(prefix, **{harmless: numbers(*shape)}), **TOLD).layers[0].refusal == ""


@for_each("prefix", ["layers.0.attn.", ""])
@for_each("shape", [(TOKENS,), (BATCH, TOKENS), (BATCH, 1, 1, TOKENS), (TOKENS, TOKENS)])
def test_booleans_of_keys_may_hide_them(tmp_path: Path, prefix: str, shape: tuple[int, ...]) -> None:
    capture = opened(tmp_path, beside(prefix, keep=numbers(*shape) > 0), **TOLD)
    assert f"tensor '{prefix}keep'" in capture.layers[0].refusal


def test_a_tensor_of_no_layer_with_a_number_for_each_score_may_belong_to_all(tmp_path: Path) -> None:
    capture = opened(tmp_path, layered(2) | {"adjacency": numbers(5, 6)}, **TOLD)
    assert all("tensor 'adjacency' of shape [5, 6]" in layer.refusal for layer in capture.layers)
    capture = opened(tmp_path, layered(2) | {"attention_rollout": numbers(5, 6)}, **TOLD)
    assert [layer.refusal for layer in capture.layers] == ["", ""]


@for_each("name", ["key_padding", "valid", "is_pad", "document_ids", "seq_ids", "topk_indices", "logn"])
def test_names_of_what_hides_keys_or_joins_texts(tmp_path: Path, name: str) -> None:
    capture = opened(tmp_path, beside("layers.0.attn.", **{name: np.ones((1, 3), np.int64)}), **TOLD)
    assert f"tensor 'layers.0.attn.{name}' may change attention" in capture.layers[0].refusal


@for_each(
    ("key", "value"),
    [
        *[("attention_type", "sigmoid"), ("attention_type", "block_sparse"), ("position_bias_kind", "t5")],
        *[("position_embedding_type", "relative_key"), ("attn_activation", "relu")],
        *[("softmax", "off_by_one"), ("softmax_one", "true"), ("add_zero_attn", "true"), ("weighting", "entmax")],
        *[("use_logn_attn", "true"), ("divisor", "8"), ("global_tokens", "2"), ("prefix_length", "3")],
    ],
)  # fmt: skip
def test_metadata_of_another_kind_of_attention_is_refused(tmp_path: Path, key: str, value: str) -> None:
    capture = opened(tmp_path, beside("layers.0.attn."), **TOLD, **{key: value})
    assert f"metadata '{key}' may change attention" in capture.layers[0].refusal
    assert capture.unused == (key,)


@for_each(
    ("key", "value"),
    [
        *[("attention_type", "full"), ("position_embedding_type", "absolute"), ("attn_implementation", "sdpa")],
        *[("softmax_dtype", "float32"), ("padding_side", "left"), ("pad_token_id", "0"), ("global_step", "400")],
        *[("lr_scheduler", "cosine"), ("model_type", "t5"), ("comment", "sigmoid"), ("max_positions", "512")],
    ],
)  # fmt: skip
def test_metadata_that_only_sounds_like_it_is_named(tmp_path: Path, key: str, value: str) -> None:
    capture = opened(tmp_path, beside("layers.0.attn."), **TOLD, **{key: value})
    assert (capture.layers[0].refusal, capture.unused) == ("", (key,))


@pytest.mark.parametrize("name", ["position_bias", "relative_position_bias", "alibi_slopes"])
def test_a_bias_of_positions_in_one_layer_may_belong_to_all(tmp_path: Path, name: str) -> None:
    """T5's relative_attention_bias is in its first block, whose result all blocks add."""
    bias = numbers(HEADS, seed=5) ** 2 if name == "alibi_slopes" else numbers(1, HEADS, TOKENS, TOKENS, seed=5)
    stack = beside("encoder.block.0.attn.") | beside("encoder.block.1.attn.")
    others = beside("decoder.block.0.attn.") | beside("encoder.block.1.encoder_attn.")
    capture = opened(tmp_path, stack | others | {f"encoder.block.0.attn.{name}": bias}, scale=0.5, causal=False)
    refused = {layer.name: layer.refusal for layer in capture.layers if layer.refusal}
    said = f"tensor 'encoder.block.0.attn.{name}' may belong to this layer too"
    assert [name for name, why in refused.items() if why.startswith(said)] == ["encoder.block.1.attn"] == [*refused]
    assert not any(layer.refusal for layer in opened(tmp_path, stack | {name: bias}, **TOLD).layers)
    cross = "decoder.block.0.layer.1.EncDecAttention."
    capture = opened(tmp_path, stack | beside(cross) | {name: bias}, **TOLD)
    assert [layer.bias for layer in capture.layers] == [
        None if "EncDec" in layer.name else name for layer in capture.layers
    ]
    each = {f"encoder.block.{i}.attn.{name}": bias for i in range(2)}
    assert not any(layer.refusal for layer in opened(tmp_path, stack | each, **TOLD).layers)


@pytest.mark.parametrize("kind", ["linear_attention", "block_sparse", "mamba"])
def test_a_layer_of_an_unknown_type_is_refused(tmp_path: Path, kind: str) -> None:
    capture = opened(tmp_path, layered(2), **TOLD, layers=[{"layer_type": kind}, {"layer_type": "full_attention"}])
    said = f"metadata 'layer_type' is '{kind}', which attn-tui does not know"
    assert [layer.refusal for layer in capture.layers] == [said, ""]
