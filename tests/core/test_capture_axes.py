"""Which axis of a tensor is which, and which key head each query head reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import HEADS_FIRST, Array, assert_holds, has_note, opened, pair, refusal, save
from cases import for_each


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
