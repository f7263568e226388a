"""The names by which the queries and keys of a file are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, assert_holds, every_head, has_note, layered, opened, pair, refusal, save, visible
from cases import for_each
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

PADDED = Path(__file__).parents[1] / "data" / "minilm-sample-padded.safetensors"


def test_the_shipped_sample_declares_its_model_text_and_layers() -> None:
    capture = open_capture(sample_path())
    assert (capture.model, capture.licence) == ("sentence-transformers/all-MiniLM-L6-v2", "Apache-2.0")
    assert capture.text is not None
    assert capture.text[0].startswith("Why divide by the square root")
    assert capture.tokens is not None
    assert (len(capture.tokens), len(capture.tokens[0]), capture.tokens[0][0]) == (1, 70, "[CLS]")
    assert capture.notes == ()
    assert [layer.index for layer in capture.layers] == list(range(6))
    layer = capture.layers[3]
    assert layer.sizes == (1, 12, 70, 70)
    assert (layer.name, layer.d_k, layer.dtype) == ("encoder.layer.3.attention.self", 32, "float16")
    assert layer.scale == pytest.approx(32**-0.5)
    assert (layer.causal, layer.softcap, layer.mask) == (None, None, None)


def test_the_shipped_sample_holds_what_the_safetensors_library_reads() -> None:
    tensors = load_file(sample_path())
    capture = open_capture(sample_path())
    for index in range(6):
        assert_holds(capture, tensors[f"layers.{index}.attn.q"], tensors[f"layers.{index}.attn.k"], index)
    assert every_head(capture)[0].visibility is None


def test_the_shipped_sample_has_its_attribution_beside_it() -> None:
    text = sample_path().with_suffix(".md").read_text("utf-8")
    assert "Apache-2.0" in text
    assert "all-MiniLM-L6-v2" in text


def test_the_mask_of_the_padded_sample_hides_the_padding_keys() -> None:
    capture = open_capture(PADDED)
    assert capture.lengths == (70, 21)
    assert capture.text is not None
    assert len(capture.text) == 2
    assert capture.layers[0].mask == "mask"
    lengths = np.array([70, 21])[:, np.newaxis, np.newaxis]
    np.testing.assert_array_equal(visible(capture), np.broadcast_to(np.arange(70) < lengths, (2, 70, 70)))


@for_each(
    ("q_name", "k_name", "index", "name"),
    [
        ("layers.3.attn.q", "layers.3.attn.k", 3, "layers.3.attn"),
        ("layers.3.self_attn.q", "layers.3.self_attn.k", 3, "layers.3.self_attn"),
        ("model.layers.12.self_attn.q_proj", "model.layers.12.self_attn.k_proj", 12, "model.layers.12.self_attn"),
        ("encoder.layer.2.attention.self.query", "encoder.layer.2.attention.self.key", 2,
         "encoder.layer.2.attention.self"),
        ("transformer.h.7.attn.q", "transformer.h.7.attn.k", 7, "transformer.h.7.attn"),
        ("q.5", "k.5", 5, "layer 5"),
        ("q", "k", 0, "layer 0"),
        ("Q", "K", 0, "layer 0"),
        ("query", "key", 0, "layer 0"),
    ],
)  # fmt: skip
def test_names_with_heads_before_tokens(tmp_path: Path, q_name: str, k_name: str, index: int, name: str) -> None:
    q, k = pair(kv_heads=2)
    capture = opened(tmp_path, {q_name: q, k_name: k})
    assert_holds(capture, q, k)
    assert (capture.layers[0].index, capture.layers[0].name) == (index, name)


@pytest.mark.parametrize(
    ("q_name", "k_name", "maker"),
    [
        ("blocks.1.attn.hook_q", "blocks.1.attn.hook_k", "TransformerLens"),
        ("blocks.1.attn.hook_rot_q", "blocks.1.attn.hook_rot_k", "TransformerLens"),
        ("Qcur-1", "Kcur-1", "llama.cpp"),
    ],
)
def test_names_with_tokens_before_heads(tmp_path: Path, q_name: str, k_name: str, maker: str) -> None:
    q, k = pair()
    capture = opened(tmp_path, {q_name: q.swapaxes(1, 2), k_name: k.swapaxes(1, 2)})
    assert_holds(capture, q, k)
    assert capture.layers[0].index == 1
    assert has_note(capture, maker, "[batch, token, head, d_k]")


def hooks(**sides: Array) -> dict[str, Array]:
    """Tensors as TransformerLens names them and lays them out."""
    return {f"blocks.0.attn.hook_{side}": array.swapaxes(1, 2) for side, array in sides.items()}


def test_rotated_queries_and_keys_are_preferred(tmp_path: Path) -> None:
    q, k = pair()
    assert_holds(opened(tmp_path, hooks(q=q + 1, k=k + 1, rot_q=q, rot_k=k)), q, k)


def test_rotated_queries_are_never_paired_with_plain_keys(tmp_path: Path) -> None:
    q, k = pair()
    capture = opened(tmp_path, hooks(q=q, k=k, rot_q=q + 1))
    assert_holds(capture, q, k)
    assert has_note(capture, "hook_rot_q' is ignored")


def test_layers_are_sorted_by_their_number(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {f"layers.{i}.attn.{side}": array + i for i in (10, 9, 0) for side, array in (("q", q), ("k", k))}
    capture = opened(tmp_path, tensors)
    assert [layer.index for layer in capture.layers] == [0, 9, 10]
    for position, index in enumerate((0, 9, 10)):
        assert_holds(capture, q + index, k + index, position)


def test_a_query_tensor_without_keys_is_left_out_with_a_note(tmp_path: Path) -> None:
    capture = opened(tmp_path, layered(1) | {"layers.1.attn.q": pair()[0]})
    assert len(capture.layers) == 1
    assert "'layers.1.attn.q' is ignored: there is no 'layers.1.attn.k'" in capture.notes


def test_a_file_without_a_pair_is_refused_with_the_names_that_it_holds(tmp_path: Path) -> None:
    tensors = {f"tensor{i}": np.ones((2, 3)) for i in range(7)}
    message = refusal(save(tmp_path / "x.safetensors", tensors))
    assert "'tensor0', 'tensor1', 'tensor2', 'tensor3', 'tensor4', …; tensors must be named" in message
    assert "--tensor" in message
    assert "in an empty file" in refusal(save(tmp_path / "y.safetensors", {}))


def test_the_weights_of_a_model_are_not_taken_for_queries(tmp_path: Path) -> None:
    tensors = {"encoder.layer.0.attention.self.query.weight": np.ones((8, 8))}
    assert "has a model's weights" in refusal(save(tmp_path / "x.safetensors", tensors))
