"""Which tensors are queries and keys, which axis is which, and which key head each query head reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import (
    HEADS_FIRST,
    Array,
    assert_holds,
    every_head,
    has_note,
    layered,
    numbers,
    opened,
    pair,
    refusal,
    save,
    visible,
)
from cases import for_each
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]


def tokens_first(q: Array, k: Array) -> dict[str, Array]:
    return {"q": q.swapaxes(1, 2), "k": k.swapaxes(1, 2)}


def test_grouped_shapes_reveal_the_head_axis(tmp_path: Path) -> None:
    q, k = pair(heads=8, kv_heads=2, queries=6, keys=6)
    capture = opened(tmp_path, tokens_first(q, k))
    assert_holds(capture, q, k)
    assert has_note(capture, "8 query heads can share 2 key heads")


def test_the_number_of_heads_reveals_the_head_axis(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    assert_holds(opened(tmp_path, tokens_first(q, k), heads="4"), q, k)


@for_each(
    ("names", "shape", "heads", "sizes"),
    [
        ("qk", (4, 6, 8), 4, (1, 4, 6, 8)), ("qk", (2, 2, 4, 8), 4, (2, 4, 2, 8)),
        ("qk", (2, 4, 4, 8), 4, (2, 4, 4, 8)),
        ("self_attn.q_proj self_attn.k_proj", (6, 32), None, (1, 1, 6, 32)),
        ("self_attn.q_proj self_attn.k_proj", (2, 4, 6, 8), None, (2, 4, 6, 8)),
        ("self_attn.q_proj self_attn.k_proj", (4, 6, 8), 4, (1, 4, 6, 8)),
        ("q_proj k_proj", (2, 6, 32), None, (1, 2, 6, 32)),
        ("self_attn.q self_attn.k", (2, 6, 32), None, (1, 2, 6, 32)),
    ],
)  # fmt: skip
def test_sizes_are_those_of_the_names_the_shape_and_the_number_of_heads(
    tmp_path: Path, names: str, shape: tuple[int, ...], heads: int | None, sizes: tuple[int, ...]
) -> None:
    q, k = names.split() if " " in names else names
    layer = opened(tmp_path, {q: numbers(*shape), k: numbers(*shape)}, **({"heads": heads} if heads else {})).layers[
        0
    ]
    assert (layer.batch, layer.heads, layer.queries, layer.d_k) == sizes


def test_axes_that_nothing_reveals_are_assumed_with_a_note(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    capture = opened(tmp_path, {"q": q, "k": k})
    assert_holds(capture, q, k)
    assert "axes assumed to be [batch, head, token, d_k]; override with --axes" in capture.notes


@pytest.mark.parametrize(
    "axes", ["batch,token,head,d_k", "b, t, h, d", "[batch, tokens, heads, d]", "batch,SEQ,heads,head_dim"]
)
def test_axes_are_named_by_argument_or_by_metadata(tmp_path: Path, axes: str) -> None:
    q, k = pair()
    tensors = tokens_first(q, k)
    for capture in (
        open_capture(save(tmp_path / "x.safetensors", tensors), axes),
        open_capture(save(tmp_path / "y.safetensors", tensors, axes=axes)),
        open_capture(save(tmp_path / "z.safetensors", tensors, axes=HEADS_FIRST), axes),
    ):
        assert_holds(capture, q, k)
        assert not has_note(capture, "axes")


def test_the_schema_names_the_axes(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k}
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-1", causal=False, scale=1)
    assert_holds(capture, q, k)
    assert capture.notes == ()


@pytest.mark.parametrize("ndim", [2, 3])
def test_tensors_with_fewer_axes_have_one_text_or_one_head(tmp_path: Path, ndim: int) -> None:
    heads = 4 if ndim == 3 else 1
    q, k = (array.reshape(array.shape[-ndim:]) for array in pair(1, heads, heads))
    capture = opened(tmp_path, {"q": q, "k": k})
    q, k = (array.reshape((1,) * (4 - ndim) + array.shape) for array in (q, k))
    assert_holds(capture, q, k)
    assert has_note(capture, "axes assumed to be")


def test_three_axes_may_be_texts_of_one_head(tmp_path: Path) -> None:
    q, k = pair(heads=1, kv_heads=1)
    path = save(tmp_path / "x.safetensors", {"q": q[:, 0], "k": k[:, 0]})
    assert_holds(open_capture(path, axes="batch,token,d_k"), q, k)


def flat(array: Array) -> Array:
    """Heads side by side in one axis, as a projection has them."""
    batch, heads, tokens, d_k = array.shape
    return array.swapaxes(1, 2).reshape(batch, tokens, heads * d_k)


@pytest.mark.parametrize("sizes", [{"heads": 4}, {"heads": 4, "kv_heads": 2}, {"heads": 4, "kv_heads": 2, "d_k": 8}])
def test_projections_are_split_into_the_heads_of_the_metadata(tmp_path: Path, sizes: dict[str, int]) -> None:
    q, k = pair(kv_heads=2)
    names = ("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj")
    capture = opened(tmp_path, dict(zip(names, (flat(q), flat(k)), strict=True)), **sizes)
    assert_holds(capture, q, k)
    assert has_note(capture, "rotary")


def test_flat_tensors_are_split_if_the_axes_ask_for_it(tmp_path: Path) -> None:
    q, k = pair(kv_heads=2)
    for order in ("C", "F"):
        np.savez(tmp_path / "x.npz", q=np.array(flat(q), order=order), k=np.array(flat(k), order=order), heads=4)
        assert_holds(open_capture(tmp_path / "x.npz", axes="batch,token,head*d_k"), q, k)


def test_the_refusal_of_a_projection_says_what_to_add(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {"encoder.layer.0.attention.self.query": flat(q), "encoder.layer.0.attention.self.key": flat(k)}
    path = save(tmp_path / "x.safetensors", tensors)
    for axes in (None, "batch,token,head*d_k"):
        assert "add heads (and kv_heads) to the metadata" in refusal(path, axes)


@for_each(
    "axes", ["", "batch", "batch,head,token", "batch,head,token,d_k,d_k", "a,b,c,d", "batch,head,token,d_k,x",
             "head,token,head*d_k", "batch;head;token;d_k"]
)  # fmt: skip
def test_invalid_axes_are_refused(tmp_path: Path, axes: str) -> None:
    q, k = pair()
    message = refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}), axes)
    assert "are invalid; must be batch, head, token, d_k or head*d_k" in message
    refusal(save(tmp_path / "y.safetensors", {"q": q, "k": k}, axes=axes))


def test_axes_must_name_every_axis(tmp_path: Path) -> None:
    q, k = pair()
    assert "names only 3 axes" in refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}), "head,token,d_k")


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_query_heads_share_key_heads(tmp_path: Path, kv_heads: int) -> None:
    q, k = pair(kv_heads=kv_heads)
    capture = opened(tmp_path, {"layers.0.attn.q": q, "layers.0.attn.k": k}, axes=HEADS_FIRST, kv_heads=kv_heads)
    assert_holds(capture, q, k)


def test_keys_already_repeated_for_every_query_head_are_read_as_they_are(tmp_path: Path) -> None:
    q, k = pair()
    capture = opened(tmp_path, {"q": q, "k": k}, kv_heads=2)
    assert_holds(capture, q, k)
    assert "k has 4 heads, but the metadata says 2; using 4" in capture.notes


def test_key_heads_that_cannot_be_shared_are_refused(tmp_path: Path) -> None:
    q, k = pair(kv_heads=3)
    message = refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}, axes=HEADS_FIRST))
    assert "4 query heads cannot share 3 key heads" in message


@pytest.mark.parametrize("head", [-1, 4])
def test_reading_a_head_out_of_range_is_refused(tmp_path: Path, head: int) -> None:
    q, k = pair()
    capture = opened(tmp_path, {"q": q, "k": k})
    with pytest.raises(CaptureError, match="heads 0 to 3"):
        read_head(capture, capture.layers[0], head)


@for_each(
    ("q", "k", "reason"),
    [
        ((2, 4, 5, 8), (2, 4, 5, 9), "8 and 9 numbers per vector (d_k)"),
        ((2, 4, 5, 8), (3, 4, 5, 8), "2 and 3 batch elements"),
        ((2, 4, 0, 8), (2, 4, 5, 8), "is empty"),
        ((2, 4, 5, 0), (2, 4, 5, 0), "is empty"),
        ((2, 4, 5, 8), (4, 5, 8), "must be"),
        ((8,), (8,), "must be"),
        ((), (), "must be"),
        ((1, 2, 4, 5, 8), (1, 2, 4, 5, 8), "must be"),
    ],
)
def test_shapes_that_do_not_make_a_pair_are_refused(
    tmp_path: Path, q: tuple[int, ...], k: tuple[int, ...], reason: str
) -> None:
    assert reason in refusal(save(tmp_path / "x.safetensors", {"q": np.ones(q), "k": np.ones(k)}))
    np.savez(tmp_path / "x.npz", q=np.ones(q), k=np.ones(k))
    assert reason in refusal(tmp_path / "x.npz")


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
