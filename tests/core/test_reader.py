"""Files of captured queries and keys: everything that is read, assumed and refused."""

from __future__ import annotations

import io
import json
import os
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.reader import (
    Capture,
    CaptureError,
    Head,
    open_capture,
    read_head,
    sample_path,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

PADDED = Path(__file__).parents[1] / "data" / "minilm-sample-padded.safetensors"
HEADS_FIRST = "batch,head,token,d_k"


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Values that every format here holds exactly: multiples of 1/4 from −2 to 2."""
    values = np.random.default_rng(seed).integers(-8, 9, shape) / 4
    return np.ascontiguousarray(values.astype(dtype))


def save(path: Path, tensors: dict[str, np.ndarray], **metadata: Any) -> Path:
    text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path, text or None)
    return path


def pair(batch: int = 2, heads: int = 4, kv_heads: int = 4, queries: int = 5, keys: int = 6, d_k: int = 8) -> Any:
    return numbers(batch, heads, queries, d_k), numbers(batch, kv_heads, keys, d_k, seed=1)


def every_head(capture: Capture, layer: int = 0) -> list[Head]:
    return [read_head(capture, capture.layers[layer], head) for head in range(capture.layers[layer].heads)]


def assert_holds(capture: Capture, q: np.ndarray, k: np.ndarray, layer: int = 0) -> None:
    """The layer's heads are those of q [batch, heads, queries, d_k] and k [batch, kv_heads, keys, d_k]."""
    assert capture.layers[layer].sizes == (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    assert (capture.layers[layer].kv_heads, capture.layers[layer].d_k) == (k.shape[1], q.shape[3])
    group = q.shape[1] // k.shape[1]
    for head, read in enumerate(every_head(capture, layer)):
        np.testing.assert_array_equal(read.q, q[:, head].astype(read.q.dtype))
        np.testing.assert_array_equal(read.k, k[:, head // group].astype(read.k.dtype))


def read_everything(path: Path | str, axes: str | None = None) -> None:
    capture = open_capture(path, axes)
    for layer in range(len(capture.layers)):
        every_head(capture, layer)


def refusal(path: Path | str, axes: str | None = None) -> str:
    """The one line that refuses the file, in its headers or in any of its heads."""
    with pytest.raises(CaptureError) as caught:
        read_everything(path, axes)
    message = str(caught.value)
    assert message.isprintable()  # so it holds no newline
    assert len(message) < 600 + len(str(path))
    return message


# --- the shipped sample ---------------------------------------------------------------------------------------


def test_the_shipped_sample_says_what_it_is() -> None:
    capture = open_capture(sample_path())
    assert capture.model == "sentence-transformers/all-MiniLM-L6-v2"
    assert capture.licence == "Apache-2.0"
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


def test_the_shipped_sample_reads_as_the_library_reads_it() -> None:
    tensors = load_file(sample_path())
    capture = open_capture(sample_path())
    for index in range(6):
        assert_holds(capture, tensors[f"layers.{index}.attn.q"], tensors[f"layers.{index}.attn.k"], index)
    assert every_head(capture)[0].visible is None


def test_the_sample_has_its_attribution_beside_it() -> None:
    text = sample_path().with_suffix(".md").read_text("utf-8")
    assert "Apache-2.0" in text
    assert "all-MiniLM-L6-v2" in text


def test_the_padded_sample_hides_the_padding_keys() -> None:
    capture = open_capture(PADDED)
    assert capture.lengths == (70, 21)
    assert capture.text is not None
    assert len(capture.text) == 2
    assert capture.layers[0].mask == "mask"
    head = read_head(capture, capture.layers[0], 0)
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible, np.broadcast_to(
        np.arange(70) < np.array([70, 21])[:, None, None], (2, 70, 70)))  # fmt: skip


# --- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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
    capture = open_capture(save(tmp_path / "x.safetensors", {q_name: q, k_name: k}))
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
    tensors = {q_name: q.swapaxes(1, 2), k_name: k.swapaxes(1, 2)}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors))
    assert_holds(capture, q, k)
    assert capture.layers[0].index == 1
    assert any(maker in note and "[batch, token, head, d_k]" in note for note in capture.notes)


def test_rotated_queries_are_preferred(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {f"blocks.0.attn.hook_{name}": array.swapaxes(1, 2) for name, array in
               {"q": q + 1, "k": k + 1, "rot_q": q, "rot_k": k}.items()}  # fmt: skip
    assert_holds(open_capture(save(tmp_path / "x.safetensors", tensors)), q, k)


def test_rotated_queries_are_never_mixed_with_plain_keys(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {f"blocks.0.attn.hook_{name}": array.swapaxes(1, 2) for name, array in
               {"q": q, "k": k, "rot_q": q + 1}.items()}  # fmt: skip
    capture = open_capture(save(tmp_path / "x.safetensors", tensors))
    assert_holds(capture, q, k)
    assert any("hook_rot_q' is left out" in note for note in capture.notes)


def test_layers_stand_in_order_of_their_number(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {f"layers.{i}.attn.{word}": array + i for i in (10, 9, 0) for word, array in (("q", q), ("k", k))}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors))
    assert [layer.index for layer in capture.layers] == [0, 9, 10]
    for place, index in enumerate((0, 9, 10)):
        assert_holds(capture, q + index, k + index, place)


def test_half_a_pair_is_left_out_aloud(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.1.attn.q": q}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors))
    assert len(capture.layers) == 1
    assert "'layers.1.attn.q' is left out: there is no 'layers.1.attn.k'" in capture.notes


# --- kinds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_holds_layers_and_metadata(tmp_path: Path, write: Any) -> None:
    q, k = pair(kv_heads=2)
    metadata = {"model": "tiny", "scale": np.float64(0.25), "causal": np.array(True), "tokens": list("abcdef")}
    write(tmp_path / "x.npz", **{"layers.0.attn.q": q, "layers.0.attn.k": k, **metadata})
    capture = open_capture(tmp_path / "x.npz", axes=HEADS_FIRST)
    assert_holds(capture, q, k)
    assert (capture.model, capture.layers[0].scale, capture.layers[0].causal) == ("tiny", 0.25, "top_left")
    assert capture.tokens is None  # one text of names for a batch of two


def test_npz_metadata_may_be_bytes(tmp_path: Path) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, model=np.bytes_("tïny".encode()), heads=np.int64(4))
    assert open_capture(tmp_path / "x.npz").model == "tïny"


@pytest.mark.parametrize("order", "<>")
def test_npz_metadata_that_is_no_text_is_refused(tmp_path: Path, order: str) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, model=np.array([0x110000], f"{order}u4").view(f"{order}U1"))
    np.savez(tmp_path / "y.npz", q=q, k=k, model=np.bytes_(b"\xff"))
    np.savez(tmp_path / "z.npz", q=q, k=k, model=np.array(["tïny", "𝕏"], f"{order}U4"))
    assert "tensor 'model' is not readable text" in refusal(tmp_path / "x.npz")
    assert "tensor 'model' is not readable text" in refusal(tmp_path / "y.npz")
    assert open_capture(tmp_path / "z.npz").model is not None


@pytest.mark.parametrize("name", ["{}", "layers.4.{}", "run.layers.4.attn.{}", "{}.4"])
def test_npy_files_stand_in_pairs(tmp_path: Path, name: str) -> None:
    q, k = pair(kv_heads=2)
    np.save(tmp_path / f"{name.format('q')}.npy", q)
    np.save(tmp_path / f"{name.format('k')}.npy", k)
    for word in "qk":
        capture = open_capture(tmp_path / f"{name.format(word)}.npy")
        assert_holds(capture, q, k)
        assert capture.layers[0].index == (4 if "4" in name else 0)


def test_npy_pairs_take_the_mask_beside_them(tmp_path: Path) -> None:
    q, k = pair()
    hidden = np.arange(6) < np.array([6, 2])[:, None]
    for name, array in {"q": q, "k": k, "mask": hidden}.items():
        np.save(tmp_path / f"{name}.npy", array)
    head = every_head(open_capture(tmp_path / "q.npy"))[0]
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible, np.broadcast_to(hidden[:, None], (2, 5, 6)))


@pytest.mark.parametrize("shape", [(3, 4, 5, 8), (4, 5, 8), (5, 8)])
def test_one_npy_holds_q_and_k_stacked(tmp_path: Path, shape: tuple[int, ...]) -> None:
    stacked = numbers(2, *shape)
    np.save(tmp_path / "heads.npy", stacked)
    q, k = (part.reshape((1,) * (4 - part.ndim) + part.shape) for part in stacked)
    assert_holds(open_capture(tmp_path / "heads.npy"), q, k)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axes", [HEADS_FIRST, "batch,token,head,d_k", "token,d_k,head,batch"])
def test_numpy_arrays_in_either_order(tmp_path: Path, order: Any, axes: str) -> None:
    q, k = pair(kv_heads=2)
    places = [HEADS_FIRST.split(",").index(axis) for axis in axes.split(",")]
    arrays = {name: np.array(array.transpose(places), order=order) for name, array in (("q", q), ("k", k))}
    np.savez(tmp_path / "x.npz", **arrays)
    np.savez_compressed(tmp_path / "y.npz", **arrays)
    for name in ("x.npz", "y.npz"):
        assert_holds(open_capture(tmp_path / name, axes), q, k)


def test_the_kind_is_told_by_the_content(tmp_path: Path) -> None:
    q, k = pair()
    save(tmp_path / "a.bin", {"q": q, "k": k})
    np.savez(tmp_path / "b.npz", q=q, k=k)
    (tmp_path / "b.npz").rename(tmp_path / "b.safetensors")
    for name in ("a.bin", "b.safetensors"):
        assert_holds(open_capture(tmp_path / name), q, k)


def test_a_long_strided_head_is_read_in_blocks(tmp_path: Path) -> None:
    q = numbers(2, 30_000, 3, 64)
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": q[:, :100]}), axes="b,t,h,d")
    for head in range(3):
        np.testing.assert_array_equal(read_head(capture, capture.layers[0], head).q, q[:, :, head])


# --- types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
)  # fmt: skip
def test_safetensors_of_every_type(tmp_path: Path, dtype: str) -> None:
    stored = np.dtype(getattr(ml_dtypes, dtype, dtype))
    q, k = (array.astype(stored) for array in pair(kv_heads=2))
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}))
    assert capture.layers[0].dtype == dtype
    assert_holds(capture, q, k)
    head = every_head(capture)[0]
    assert head.q.dtype == head.k.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert head.q.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
def test_numpy_files_of_every_type(tmp_path: Path, dtype: str) -> None:
    q, k = (array.astype(dtype) for array in pair())
    np.savez(tmp_path / "x.npz", q=q, k=k)
    capture = open_capture(tmp_path / "x.npz")
    assert capture.layers[0].dtype == np.dtype(dtype).name
    assert_holds(capture, q, k)


def test_either_of_q_and_k_in_float64_makes_both_float64(tmp_path: Path) -> None:
    q, k = pair()
    head = every_head(open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k.astype(np.float64)})))[0]
    assert head.q.dtype == head.k.dtype == np.float64


@pytest.mark.parametrize("dtype", ["int32", "complex64", "bool", "uint8"])
def test_other_types_are_refused(tmp_path: Path, dtype: str) -> None:
    q, k = (array.astype(dtype) for array in pair())
    np.savez(tmp_path / "x.npz", q=q, k=k)
    assert f"'q' holds {dtype}; float16, float32, float64, bfloat16" in refusal(tmp_path / "x.npz")


def test_bfloat16_in_npz_has_lost_its_type(tmp_path: Path) -> None:
    q, k = (array.astype(ml_dtypes.bfloat16).view("V2") for array in pair())
    np.savez(tmp_path / "x.npz", q=q, k=k)
    assert "save it as .safetensors" in refusal(tmp_path / "x.npz")


def test_object_arrays_are_refused(tmp_path: Path) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q.astype(object), k=k)
    np.save(tmp_path / "x.npy", numbers(2, 3, 4).astype(object))
    np.savez(tmp_path / "y.npz", q=q, k=k, tokens=np.array(["a", 1], dtype=object))
    assert "no pickle" in refusal(tmp_path / "x.npz")
    assert "no pickle" in refusal(tmp_path / "x.npy")
    assert "tensor 'tokens' holds object; text" in refusal(tmp_path / "y.npz")


def test_structured_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", q=np.zeros((2, 3), [("a", "f4")]), k=numbers(2, 3))
    assert "structured" in refusal(tmp_path / "x.npz")


# --- axes -----------------------------------------------------------------------------------------------------


def test_grouped_shapes_tell_the_head_axis(tmp_path: Path) -> None:
    q, k = pair(heads=8, kv_heads=2, queries=6, keys=6)
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q.swapaxes(1, 2), "k": k.swapaxes(1, 2)}))
    assert_holds(capture, q, k)
    assert any("8 query heads can share 2 key heads" in note for note in capture.notes)


def test_the_number_of_heads_tells_the_head_axis(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    tensors = {"q": q.swapaxes(1, 2), "k": k.swapaxes(1, 2)}
    assert_holds(open_capture(save(tmp_path / "x.safetensors", tensors, heads="4")), q, k)


def test_axes_that_nothing_tells_are_assumed_aloud(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}))
    assert_holds(capture, q, k)
    assert "axes taken as [batch, head, token, d_k]; --axes overrides" in capture.notes


@pytest.mark.parametrize(
    "axes", ["batch,token,head,d_k", "b, t, h, d", "[batch, tokens, heads, d]", "batch,SEQ,heads,head_dim"]
)
def test_axes_are_named_by_argument_or_by_metadata(tmp_path: Path, axes: str) -> None:
    q, k = pair()
    tensors = {"q": q.swapaxes(1, 2), "k": k.swapaxes(1, 2)}
    for capture in (
        open_capture(save(tmp_path / "x.safetensors", tensors), axes),
        open_capture(save(tmp_path / "y.safetensors", tensors, axes=axes)),
        open_capture(save(tmp_path / "z.safetensors", tensors, axes=HEADS_FIRST), axes),
    ):
        assert_holds(capture, q, k)
        assert not any("axes" in note for note in capture.notes)


def test_the_schema_names_the_axes(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors, schema="attn-tui/qk-1", causal=False, scale=1))
    assert_holds(capture, q, k)
    assert capture.notes == ()


@pytest.mark.parametrize("ndim", [2, 3])
def test_fewer_axes_are_one_text_and_one_head(tmp_path: Path, ndim: int) -> None:
    q, k = (array.reshape(array.shape[-ndim:]) for array in pair(1, 4 if ndim == 3 else 1, 4 if ndim == 3 else 1))
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}))
    assert_holds(capture, *(array.reshape((1,) * (4 - ndim) + array.shape) for array in (q, k)))
    assert any("axes taken as" in note for note in capture.notes)


def test_three_axes_may_be_texts_of_one_head(tmp_path: Path) -> None:
    q, k = pair(heads=1, kv_heads=1)
    path = save(tmp_path / "x.safetensors", {"q": q[:, 0], "k": k[:, 0]})
    assert_holds(open_capture(path, axes="batch,token,d_k"), q, k)


def flat(array: np.ndarray) -> np.ndarray:
    batch, heads, tokens, d_k = array.shape
    return array.swapaxes(1, 2).reshape(batch, tokens, heads * d_k)


@pytest.mark.parametrize("said", [{"heads": 4}, {"heads": 4, "kv_heads": 2}, {"heads": 4, "kv_heads": 2, "d_k": 8}])
def test_projections_are_split_into_the_heads_of_the_metadata(tmp_path: Path, said: dict[str, int]) -> None:
    q, k = pair(kv_heads=2)
    names = ("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj")
    tensors = dict(zip(names, (flat(q), flat(k)), strict=True))
    capture = open_capture(save(tmp_path / "x.safetensors", tensors, **said))
    assert_holds(capture, q, k)
    assert any("rotary" in note for note in capture.notes)


def test_flat_tensors_are_split_where_axes_say_so(tmp_path: Path) -> None:
    q, k = pair(kv_heads=2)
    for order in "CF":
        np.savez(tmp_path / "x.npz", q=np.array(flat(q), order=order), k=np.array(flat(k), order=order), heads=4)
        assert_holds(open_capture(tmp_path / "x.npz", axes="batch,token,head*d_k"), q, k)


def test_a_projection_without_heads_says_what_to_add(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {"encoder.layer.0.attention.self.query": flat(q), "encoder.layer.0.attention.self.key": flat(k)}
    path = save(tmp_path / "x.safetensors", tensors)
    assert "add heads (and kv_heads) to the metadata" in refusal(path)
    assert "add heads (and kv_heads) to the metadata" in refusal(path, "batch,token,head*d_k")


@pytest.mark.parametrize(
    "axes", ["", "batch", "batch,head,token", "batch,head,token,d_k,d_k", "a,b,c,d", "batch,head,token,d_k,x",
             "head,token,head*d_k", "batch;head;token;d_k"]
)  # fmt: skip
def test_axes_that_are_none_are_refused(tmp_path: Path, axes: str) -> None:
    q, k = pair()
    message = refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}), axes)
    assert "are not axes; batch, head, token, d_k or head*d_k" in message
    refusal(save(tmp_path / "y.safetensors", {"q": q, "k": k}, axes=axes))


def test_axes_must_name_every_axis(tmp_path: Path) -> None:
    q, k = pair()
    assert "does not name" in refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}), "head,token,d_k")


# --- grouped queries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_query_heads_share_key_heads(tmp_path: Path, kv_heads: int) -> None:
    q, k = pair(kv_heads=kv_heads)
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors, axes=HEADS_FIRST, kv_heads=kv_heads))
    assert capture.layers[0].kv_heads == kv_heads
    assert_holds(capture, q, k)


def test_keys_that_were_repeated_already_are_read_as_they_are(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}, kv_heads=2))
    assert_holds(capture, q, k)
    assert "k has 4 heads where the metadata says 2; read as it is" in capture.notes


def test_heads_that_cannot_be_shared_are_refused(tmp_path: Path) -> None:
    q, k = pair(kv_heads=3)
    message = refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}, axes=HEADS_FIRST))
    assert "4 query heads cannot share 3 key heads" in message


def test_a_head_that_is_not_there_is_refused(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}))
    for head in (-1, 4):
        with pytest.raises(CaptureError, match="heads 0 to 3"):
            read_head(capture, capture.layers[0], head)


# --- masks ----------------------------------------------------------------------------------------------------

VISIBLE = np.arange(6) < np.array([6, 2])[:, None]  # [batch, keys]
LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize("shape", [(2, 6), (2, 1, 1, 6), (2, 1, 6), (2, 1, 5, 6), (2, 5, 6), (2, 4, 5, 6)])
@pytest.mark.parametrize(
    ("hidden", "shown", "dtype"),
    [
        (False, True, "bool"), (0, 1, "int64"), (0, 1, "uint8"), (0, 1, "float32"),
        (-np.inf, 0, "float32"), (-np.inf, 0, "float16"), (LOWEST, 0, "float32"), (LOWEST, 0, "float64"),
        (-65504, 0, "float16"), (-1e9, 0, "float32"), (-10_000, 0, "float32"),
    ],
)  # fmt: skip
def test_masks_of_every_form(tmp_path: Path, shape: tuple[int, ...], hidden: Any, shown: Any, dtype: str) -> None:
    q, k = pair()
    visible = np.broadcast_to(VISIBLE.reshape(2, *(1,) * (len(shape) - 2), 6), shape)
    mask = np.where(visible, shown, hidden).astype(dtype)
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.0.attn.mask": mask}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors))
    assert capture.layers[0].mask == "layers.0.attn.mask"
    for head in every_head(capture):
        assert head.visible is not None
        np.testing.assert_array_equal(head.visible, np.broadcast_to(VISIBLE[:, None], (2, 5, 6)))


def test_a_mask_of_keys_alone_holds_for_every_text(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": VISIBLE[1]}))
    head = every_head(capture)[0]
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible, np.broadcast_to(VISIBLE[1], (1, 5, 6)))


def test_a_mask_may_be_bfloat16(tmp_path: Path) -> None:
    q, k = pair()
    mask = np.where(VISIBLE, 0, float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)).astype(ml_dtypes.bfloat16)
    head = every_head(open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": mask})))[0]
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible[:, 0], VISIBLE)


@pytest.mark.parametrize("order", ["C", "F"])
def test_each_head_has_its_own_mask(tmp_path: Path, order: Any) -> None:
    q, k = pair()
    mask = np.random.default_rng(0).random((2, 4, 5, 6)) < 0.5
    np.savez(tmp_path / "x.npz", q=q, k=k, mask=np.array(mask, order=order))
    for index, head in enumerate(every_head(open_capture(tmp_path / "x.npz"))):
        assert head.visible is not None
        np.testing.assert_array_equal(head.visible, mask[:, index])


def test_a_mask_of_heads_without_a_batch(tmp_path: Path) -> None:
    q, k = pair()
    mask = np.random.default_rng(0).random((4, 5, 6)) < 0.5
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": mask}))
    for index, head in enumerate(every_head(capture)):
        assert head.visible is not None
        np.testing.assert_array_equal(head.visible, mask[None, index])


def test_the_metadata_names_each_layers_mask(tmp_path: Path) -> None:
    q, k = pair()
    tensors = {f"layers.{i}.attn.{word}": array for i in range(3) for word, array in (("q", q), ("k", k))}
    tensors |= {"local": np.tri(5, 6, dtype=bool), "mask": VISIBLE}
    path = save(tmp_path / "x.safetensors", tensors, layers=[{"mask": "local"}, {"mask": None}, {}])
    capture = open_capture(path)
    assert [layer.mask for layer in capture.layers] == ["local", None, "mask"]
    local, none, shared = (every_head(capture, layer)[0].visible for layer in range(3))
    assert none is None
    assert local is not None
    assert shared is not None
    np.testing.assert_array_equal(local, np.tri(5, 6, dtype=bool)[None])
    np.testing.assert_array_equal(shared[:, 0], VISIBLE)
    assert any("'mask' is taken as the mask of every layer" in note for note in capture.notes)


def test_lengths_hide_padding_where_there_is_no_mask(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}, lengths=[6, 2]))
    head = every_head(capture)[0]
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible, np.broadcast_to(VISIBLE[:, None], (2, 5, 6)))
    assert any("padding" in note for note in capture.notes)


def test_a_mask_that_hides_nothing_is_none(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": np.zeros((2, 6), np.float32)}))
    assert every_head(capture)[0].visible is None


def test_a_row_may_be_hidden_altogether(tmp_path: Path) -> None:
    q, k = pair()
    mask = np.full((5, 6), -np.inf, np.float32)
    head = every_head(open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": mask})))[0]
    assert head.visible is not None
    assert not head.visible.any()


def test_the_axes_of_an_ambiguous_mask_are_said_aloud(tmp_path: Path) -> None:
    q, k = pair(batch=5)
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": np.ones((5, 6), bool)}))
    assert "'mask': axes taken as [batch, keys]" in capture.notes


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (numbers(2, 6), "biases are not"),
        (np.full((2, 6), np.nan, np.float32), "other values"),
        (np.full((2, 6), 2, np.int32), "other values"),
        (np.ones((2, 7), bool), "here [2, 4, 5, 6]"),
        (np.ones((3, 6), bool), "here [2, 4, 5, 6]"),
        (np.ones((2, 3, 5, 6), bool), "here [2, 4, 5, 6]"),
        (np.ones((1, 2, 4, 5, 6), bool), "here [2, 4, 5, 6]"),
        (np.ones((), bool), "here [2, 4, 5, 6]"),
        (np.ones((2, 6), np.complex64), "holds complex64"),
    ],
)
def test_masks_that_are_none_are_refused(tmp_path: Path, mask: np.ndarray, reason: str) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, mask=mask)
    assert reason in refusal(tmp_path / "x.npz")


def test_a_mask_that_is_not_there_is_refused(tmp_path: Path) -> None:
    q, k = pair()
    path = save(tmp_path / "x.safetensors", {"q": q, "k": k}, layers=[{"mask": "padding"}])
    assert "names the mask 'padding', which the file does not hold" in refusal(path)


# --- causal ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "corner"),
    [
        ("top-left", "top_left"), ("upper_left", "top_left"), ("Bottom-Right", "bottom_right"),
        ("lower right", "bottom_right"), ("false", None), (False, None), ("none", None),
    ],
)  # fmt: skip
def test_causal_alignments(tmp_path: Path, said: Any, corner: str | None) -> None:
    q, k = pair(queries=3, keys=6)
    for metadata in ({"causal": said}, {"layers": [{"causal": said}]}):
        capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}, **metadata))
        assert capture.layers[0].causal == corner
        head = every_head(capture)[0]
        if corner is None:
            assert head.visible is None
            continue
        offset = 0 if corner == "top_left" else 3
        assert head.visible is not None
        np.testing.assert_array_equal(head.visible, np.tri(3, 6, offset, dtype=bool)[None])


def test_causal_on_a_square_has_one_alignment(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}, causal="true"))
    assert capture.layers[0].causal == "top_left"
    assert not any("causal" in note for note in capture.notes)


def test_causal_on_a_rectangle_is_taken_as_top_left_aloud(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k}, causal=True))
    assert capture.layers[0].causal == "top_left"
    assert any("taken as top-left" in note for note in capture.notes)


def test_causal_and_padding_hide_together(tmp_path: Path) -> None:
    q, k = pair()
    capture = open_capture(save(tmp_path / "x.safetensors", {"q": q, "k": k, "mask": VISIBLE}, causal="top-left"))
    head = every_head(capture)[0]
    assert head.visible is not None
    np.testing.assert_array_equal(head.visible, VISIBLE[:, None] & np.tri(5, 6, dtype=bool))


# --- metadata -------------------------------------------------------------------------------------------------


def layered(count: int) -> dict[str, np.ndarray]:
    q, k = pair()
    return {f"layers.{i}.attn.{word}": array for i in range(count) for word, array in (("q", q), ("k", k))}


def test_each_layer_has_its_own_word_before_the_files(tmp_path: Path) -> None:
    layers = [{"name": "local", "scale": 0.5, "softcap": 50}, {"causal": True, "softcap": 0}, {"scale": "0.125"}]
    path = save(tmp_path / "x.safetensors", layered(3), scale="0.25", causal="bottom-right", layers=layers)
    capture = open_capture(path)
    assert [layer.scale for layer in capture.layers] == [0.5, 0.25, 0.125]
    assert [layer.softcap for layer in capture.layers] == [50, None, None]
    assert [layer.causal for layer in capture.layers] == ["bottom_right", "top_left", "bottom_right"]
    assert [layer.name for layer in capture.layers] == ["local", "layers.1.attn", "layers.2.attn"]


def test_layers_are_matched_by_their_own_index(tmp_path: Path) -> None:
    layers = [{"index": 2, "scale": 2}, {"index": 0, "scale": 1}]
    capture = open_capture(save(tmp_path / "x.safetensors", layered(3), layers=layers))
    assert [layer.scale for layer in capture.layers] == [1, None, 2]
    assert any("the scale of layer 1; 1/√d_k is assumed" in note for note in capture.notes)


def test_some_layers_of_a_model_find_their_entries_by_number(tmp_path: Path) -> None:
    tensors = {name: array for name, array in layered(3).items() if ".1." not in name}
    capture = open_capture(save(tmp_path / "x.safetensors", tensors, layers=[{"scale": 1 + i} for i in range(3)]))
    assert [layer.scale for layer in capture.layers] == [1, 3]


def test_entries_that_match_no_layer_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", layered(3), layers=[{"scale": 1}, {"scale": 2}])
    assert "'layers' has 2 entries for 3 layers" in refusal(path)


def test_a_file_without_metadata_says_so(tmp_path: Path) -> None:
    capture = open_capture(save(tmp_path / "x.safetensors", layered(1)))
    layer = capture.layers[0]
    assert (layer.scale, layer.causal, layer.softcap, layer.mask) == (None, None, None, None)
    assert (capture.model, capture.text, capture.tokens, capture.lengths) == (None, None, None, None)
    assert "the file does not say the scale; 1/√d_k is assumed where one is needed" in capture.notes
    assert any("whether attention is causal" in note for note in capture.notes)


def test_tokens_and_texts_of_a_batch(tmp_path: Path) -> None:
    tokens = [list("abcdef"), list("uvwxyz")]
    capture = open_capture(save(tmp_path / "x.safetensors", layered(1), tokens=tokens, text=["one", "two"]))
    assert capture.tokens == (tuple("abcdef"), tuple("uvwxyz"))
    assert capture.text == ("one", "two")


def test_tokens_of_another_length_are_left_out_aloud(tmp_path: Path) -> None:
    capture = open_capture(save(tmp_path / "x.safetensors", layered(1), tokens=["a", "b"], lengths=[7, 7]))
    assert capture.tokens is None
    assert capture.lengths is None
    assert sum("left out" in note for note in capture.notes) == 2


def test_a_text_may_begin_with_a_bracket(tmp_path: Path) -> None:
    assert open_capture(save(tmp_path / "x.safetensors", layered(1), text="[CLS] why")).text == ("[CLS] why",)


def test_nothing_in_a_file_reaches_the_terminal_as_an_escape(tmp_path: Path) -> None:
    evil = "\x1b]0;gone\x07\n"
    layers = [{"name": evil}]
    capture = open_capture(
        save(tmp_path / "x.safetensors", layered(1), model=evil, text=evil, tokens=[[evil] * 6] * 2, layers=layers)
    )
    assert capture.tokens is not None
    shown = [capture.model, *(capture.text or ()), capture.layers[0].name, *capture.tokens[0]]
    assert all(text == r"\x1b]0;gone\x07\n" for text in shown)
    q, k = pair()
    assert r"\x1b]0;gone" in refusal(save(tmp_path / "y.safetensors", {evil + ".q": q[..., :7], evil + ".k": k}))


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("scale", "1/sqrt(d_k)", "a positive number"), ("scale", "0", "a positive number"),
        ("scale", "-0.1", "a positive number"), ("scale", "nan", "a positive number"),
        ("scale", "inf", "a positive number"), ("scale", "", "a positive number"),
        ("softcap", "-1", "a positive number"), ("softcap", "x", "a positive number"),
        ("causal", "maybe", "true, false, top-left or bottom-right"),
        ("heads", "0", "a positive whole number"), ("heads", "4.5", "a positive whole number"),
        ("kv_heads", "two", "a positive whole number"), ("d_k", "-8", "a positive whole number"),
        ("layers", "[", "not JSON"), ("layers", "{}", "a JSON list of objects"), ("layers", "[1]", "list of objects"),
        ("layers", "[" * 100_000, "not JSON"), ("layers", '[{"scale": true}]', "a positive number"),
        ("layers", '[{"scale": 1e999}]', "a positive number"), ("layers", '[{"scale": [1]}]', "a positive number"),
        ("layers", '[{"mask": 3}]', "the name of a tensor"), ("layers", '[{"heads": {}}]', "a positive whole number"),
        ("tokens", "a b c", "not JSON"), ("tokens", "[1, 2]", "list of strings"), ("tokens", "{}", "list of strings"),
        ("tokens", '[["a"], 1]', "list of strings"), ("lengths", "[0]", "positive whole numbers"),
        ("lengths", "6", "positive whole numbers"), ("lengths", "x", "not JSON"),
    ],
)  # fmt: skip
def test_malformed_metadata_is_refused_by_its_key(tmp_path: Path, key: str, value: str, accepted: str) -> None:
    message = refusal(save(tmp_path / "x.safetensors", layered(1), **{key: value}))
    assert accepted in message
    assert "metadata '" in message
    assert f"'{key}'" in message or key == "layers"


def test_metadata_that_contradicts_the_shape_is_refused(tmp_path: Path) -> None:
    assert "has 4 heads where the metadata says 5" in refusal(save(tmp_path / "x.safetensors", layered(1), heads=5))
    assert "has 8 d_k where the metadata says 16" in refusal(save(tmp_path / "y.safetensors", layered(1), d_k=16))


# --- refusals -------------------------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz").endswith("none.npz: no such file")
    assert "cannot be read" in refusal("a\0b.npz")
    assert "cannot be read" in refusal("x" * 5_000)


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs fifos")
def test_a_fifo_or_a_device_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    assert "not a regular file" in refusal(tmp_path / "x.npz")
    assert "not a regular file" in refusal("/dev/zero")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "x.safetensors", layered(1))

    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert refusal(path).endswith("cannot be read: Permission denied")


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "x.npz").symlink_to(tmp_path / "x.npz")
    assert "cannot be read" in refusal(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "x.npy", "x"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "the file is empty; a .safetensors, .npz or .npy file is accepted" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "x.npy", "x.txt"])
def test_a_file_that_holds_no_tensors(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("Why divide by the square root of the key dimension?")
    assert "not a" in refusal(tmp_path / name)


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")
    assert "without .npy arrays (pickled tensors are refused)" in refusal(tmp_path / "model.pt")


def test_files_without_a_pair_list_what_they_hold(tmp_path: Path) -> None:
    tensors = {f"tensor{i}": numbers(2, 3) for i in range(7)}
    message = refusal(save(tmp_path / "x.safetensors", tensors))
    assert "'tensor0', 'tensor1', 'tensor2', 'tensor3', 'tensor4', …; tensors named" in message
    assert "Qcur-N/Kcur-N" in message
    assert "no tensors" in refusal(save(tmp_path / "y.safetensors", {}))


def test_a_models_weights_are_not_its_queries(tmp_path: Path) -> None:
    tensors = {"encoder.layer.0.attention.self.query.weight": numbers(8, 8)}
    assert "holds a model's weights" in refusal(save(tmp_path / "x.safetensors", tensors))


def test_one_npy_that_cannot_be_a_pair(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", numbers(2, 4, 5, 8))
    assert "holds 'q' without its 'k'" in refusal(tmp_path / "q.npy")
    for array in (numbers(3, 4, 5, 8), numbers(2, 8), np.asfortranarray(numbers(2, 3, 4))):
        np.save(tmp_path / "x.npy", array)
        assert "cannot hold both q and k" in refusal(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("q", "k", "reason"),
    [
        ((2, 4, 5, 8), (2, 4, 5, 9), "8 and 9 numbers a vector (d_k)"),
        ((2, 4, 5, 8), (3, 4, 5, 8), "2 and 3 batch elements"),
        ((2, 4, 0, 8), (2, 4, 5, 8), "is empty"),
        ((2, 4, 5, 0), (2, 4, 5, 0), "is empty"),
        ((2, 4, 5, 8), (4, 5, 8), "is accepted"),
        ((8,), (8,), "is accepted"),
        ((), (), "is accepted"),
        ((1, 2, 4, 5, 8), (1, 2, 4, 5, 8), "is accepted"),
    ],
)
def test_shapes_that_make_no_pair(tmp_path: Path, q: tuple[int, ...], k: tuple[int, ...], reason: str) -> None:
    assert reason in refusal(save(tmp_path / "x.safetensors", {"q": np.ones(q), "k": np.ones(k)}))
    np.savez(tmp_path / "x.npz", q=np.ones(q), k=np.ones(k))
    assert reason in refusal(tmp_path / "x.npz")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_numbers_that_are_not_finite(tmp_path: Path, value: float, dtype: str) -> None:
    q, k = (array.astype(getattr(ml_dtypes, dtype, dtype)) for array in pair())
    k[1, 2, 3, :3] = value
    path = save(tmp_path / "x.safetensors", {"layers.7.attn.q": q, "layers.7.attn.k": k})
    capture = open_capture(path)
    assert read_head(capture, capture.layers[0], 1).k.shape == (2, 6, 8)
    message = refusal(path)
    assert "tensor 'layers.7.attn.k': layer 7, head 2 holds 3 of 96 values that are NaN or infinite" in message


def test_signalling_nans_make_no_warning(tmp_path: Path) -> None:
    q = np.full((1, 1, 3, 4), 0x7C01, np.uint16).view(np.float16)
    assert "12 of 12 values" in refusal(save(tmp_path / "x.safetensors", {"q": q, "k": q}))


# --- large files ----------------------------------------------------------------------------------------------


def write_header(path: Path, q: list[int], k: list[int]) -> Path:
    """A .safetensors file whose data is one hole."""
    sizes = [4 * int(np.prod(shape)) for shape in (q, k)]
    header = json.dumps({
        "q": {"dtype": "F32", "shape": q, "data_offsets": [0, sizes[0]]},
        "k": {"dtype": "F32", "shape": k, "data_offsets": [sizes[0], sum(sizes)]},
    }).encode()  # fmt: skip
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + sum(sizes))
    return path


def test_a_million_tokens_are_refused_by_their_scores(tmp_path: Path) -> None:
    path = write_header(tmp_path / "x.safetensors", [1, 1, 1_000_000, 4], [1, 1, 1_000_000, 4])
    message = refusal(path)
    assert (
        "1000000 queries × 1000000 keys make 1000000000000 scores a head; at most 268435456 are accepted" in message
    )


def test_ten_gigabytes_are_answered_at_once(tmp_path: Path) -> None:
    heads, tokens = 10_000, 2_250
    path = write_header(tmp_path / "x.safetensors", [1, heads, tokens, 64], [1, heads, tokens, 64])
    assert path.stat().st_size > 10 << 30
    start = time.perf_counter()
    capture = open_capture(path)
    head = read_head(capture, capture.layers[0], heads - 1)
    assert time.perf_counter() - start < 2
    assert head.q.shape == (1, tokens, 64)
    assert not head.q.any()


@pytest.mark.parametrize("start", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x08\0\0\0\0\0\0\0{"])
@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "x.npy", "x"])
def test_ten_gigabytes_of_nothing_are_refused_at_once(tmp_path: Path, start: bytes, name: str) -> None:
    with open(tmp_path / name, "wb") as file:
        file.write(start)
        file.truncate(10 << 30)
    begun = time.perf_counter()
    refusal(tmp_path / name)
    assert time.perf_counter() - begun < 2


def test_many_texts_of_wide_heads_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = write_header(tmp_path / "x.safetensors", [1 << 20, 1, 2, 128], [1 << 20, 1, 2, 128])
    assert "too many numbers" in refusal(path)


# --- files that change ----------------------------------------------------------------------------------------

CHANGED = "changed on disk since it was opened; open it again"


def replaced(path: Path) -> None:
    other = save(
        path.with_name("other"), {"layers.0.attn.q": numbers(1, 2, 3, 4), "layers.0.attn.k": numbers(1, 2, 3, 4)}
    )
    other.replace(path)


def rewritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-4] + bytes(4))
    os.utime(path, ns=(0, 0))


def shortened(path: Path) -> None:
    os.truncate(path, 1_000)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replaced, rewritten, shortened, removed])
def test_a_file_that_changed_since_it_was_opened(tmp_path: Path, change: Any) -> None:
    path = save(tmp_path / "x.safetensors", layered(1))
    capture = open_capture(path)
    assert len(every_head(capture)) == 4
    change(path)
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


def test_the_other_file_of_a_pair_is_watched_too(tmp_path: Path) -> None:
    q, k = pair()
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    capture = open_capture(tmp_path / "q.npy")
    np.save(tmp_path / "k.npy", k[:, :, :1])
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


def test_a_file_cut_short_while_it_is_read_is_an_error_and_not_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "x.safetensors", {"q": numbers(1, 1, 9_000, 64), "k": numbers(1, 1, 90, 64)})
    capture = open_capture(path)
    fstat = os.fstat

    def cut(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        os.truncate(path, 8_192)
        return status

    monkeypatch.setattr(os, "fstat", cut)
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


# --- damage ---------------------------------------------------------------------------------------------------


def valid_files() -> dict[str, bytes]:
    """A small valid file of each kind, with a mask and metadata where it can hold them."""
    q, k = numbers(1, 2, 3, 4, dtype=np.float16), numbers(1, 1, 3, 4)
    arrays: dict[str, Any] = {"layers.0.attn.q": q, "layers.0.attn.k": k, "mask": np.ones((1, 3), bool)}
    said = {"scale": "0.5", "causal": "true", "tokens": '["a", "b", "c"]', "layers": '[{"softcap": 5}]'}
    files: dict[str, bytes] = {}
    for name, write in (("x.npz", np.savez), ("y.npz", np.savez_compressed)):
        stream = io.BytesIO()
        write(stream, **arrays, **said)
        files[name] = stream.getvalue()
    stream = io.BytesIO()
    np.save(stream, numbers(2, 3, 4))
    files["x.npy"] = stream.getvalue()
    from safetensors.numpy import save as to_bytes

    files["x.safetensors"] = to_bytes(arrays, said)
    return files


VALID = valid_files()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A valid file cut short, with bytes changed, inserted or removed, most often where its headers are."""
    name = draw(st.sampled_from(sorted(VALID)))
    content = bytearray(VALID[name])
    for _ in range(draw(st.integers(1, 4))):
        near = draw(st.integers(0, min(200, len(content))))
        place = draw(st.sampled_from([near, len(content) - near, draw(st.integers(0, len(content)))]))
        change = draw(st.sampled_from(["set", "insert", "delete", "cut"]))
        value = draw(st.one_of(st.integers(0, 255), st.sampled_from(list(b"0123456789{}[]()\"'\\,-.OVUSfi<>|"))))
        if change == "set" and place < len(content):
            content[place] = value
        elif change == "insert":
            content.insert(place, value)
        elif change == "delete":
            del content[place : place + 1 + value % 8]
        elif change == "cut":
            del content[place:]
    return name, bytes(content)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path, file: tuple[str, bytes]) -> None:
    name, content = file
    (tmp_path / name).write_bytes(content)
    message = ""
    try:
        read_everything(tmp_path / name)
    except CaptureError as error:
        message = str(error)
    assert len(message) < 600 + len(str(tmp_path))


@pytest.mark.parametrize("name", sorted(VALID))
def test_files_cut_at_any_byte_are_refused(tmp_path: Path, name: str) -> None:
    for length in range(len(VALID[name])):
        (tmp_path / name).write_bytes(VALID[name][:length])
        refusal(tmp_path / name)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=64), st.sampled_from([b"", b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06"]))
def test_arbitrary_bytes_are_refused(tmp_path: Path, content: bytes, start: bytes) -> None:
    (tmp_path / "x").write_bytes(start + content)
    refusal(tmp_path / "x")
