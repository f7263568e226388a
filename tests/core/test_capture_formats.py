"""The kinds of files that hold a capture, and the number formats in them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import HEADS_FIRST, Array, assert_holds, every_head, numbers, opened, pair, refusal, save, visible
from cases import for_each


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_holds_layers_and_metadata(tmp_path: Path, write: Callable[..., None]) -> None:
    q, k = pair(kv_heads=2)
    metadata = {"model": "tiny", "scale": np.float64(0.25), "causal": np.array(True), "tokens": list("abcdef")}
    write(tmp_path / "x.npz", **{"layers.0.attn.q": q, "layers.0.attn.k": k, **metadata})
    capture = open_capture(tmp_path / "x.npz", axes=HEADS_FIRST)
    assert_holds(capture, q, k)
    assert (capture.model, capture.layers[0].scale, capture.layers[0].causal) == ("tiny", 0.25, "top_left")
    assert capture.tokens is None  # the tokens of one text cannot name those of two


@pytest.mark.parametrize(
    ("model", "read"),
    [
        (np.bytes_("tïny".encode()), "tïny"),
        (np.array(["tïny", "𝕏"], "<U4"), r'["t\u00efny", "\ud835\udd4f"]'),
        (np.array(["tïny", "𝕏"], ">U4"), r'["t\u00efny", "\ud835\udd4f"]'),
        (np.array("\U0010ffff"), r"\U0010ffff"),
    ],
    ids=["UTF-8", "little-endian", "big-endian", "last character"],
)
def test_npz_metadata_may_be_bytes_or_text_in_either_byte_order(tmp_path: Path, model: Array, read: str) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, model=model, heads=np.int64(4))
    assert open_capture(tmp_path / "x.npz").model == read


@pytest.mark.parametrize(
    "model",
    [np.array([0x110000], "<u4").view("<U1"), np.array([0x110000], ">u4").view(">U1"), np.bytes_(b"\xff")],
    ids=["little-endian", "big-endian", "bytes"],
)
def test_npz_metadata_that_is_not_text_is_refused(tmp_path: Path, model: Array) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, model=model)
    assert "tensor 'model' is not readable text" in refusal(tmp_path / "x.npz")


@for_each("scale", [np.ones((2, 2), order="F"), np.complex64(1), np.array([None])])
def test_npz_metadata_of_other_types_is_refused(tmp_path: Path, scale: Array) -> None:
    q, k = pair()
    np.savez(tmp_path / "x.npz", q=q, k=k, softcap=np.asarray(scale))
    assert "tensor 'softcap' holds" in refusal(tmp_path / "x.npz")


@for_each(
    ("shape", "damaged"), [("1, " * 64, False), ("1, " * 65, True), ("1" + "0" * 17, False), ("1" + "0" * 18, True)]
)
def test_the_header_of_an_array_has_at_most_64_axes_of_18_digits(tmp_path: Path, shape: str, damaged: bool) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
    assert ("damaged .npy header" in refusal(tmp_path / "x.npy")) == damaged


def test_a_deflated_array_that_is_shorter_than_its_header_says_is_refused(tmp_path: Path) -> None:
    q, _ = pair()
    stream = io.BytesIO()
    np.save(stream, q)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", stream.getvalue()[:-1])
        archive.writestr("k.npy", stream.getvalue())
    assert "tensor 'q' ends before its last element" in refusal(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["{}", "layers.4.{}", "run.layers.4.attn.{}", "{}.4"])
def test_either_npy_file_of_a_pair_opens_both(tmp_path: Path, name: str) -> None:
    q, k = pair(kv_heads=2)
    np.save(tmp_path / f"{name.format('q')}.npy", q)
    np.save(tmp_path / f"{name.format('k')}.npy", k)
    for side in "qk":
        capture = open_capture(tmp_path / f"{name.format(side)}.npy")
        assert_holds(capture, q, k)
        assert capture.layers[0].index == (4 if "4" in name else 0)


def test_npy_pairs_take_the_mask_beside_them(tmp_path: Path) -> None:
    q, k = pair()
    shown = np.arange(6) < np.array([6, 2])[:, np.newaxis]
    for name, array in {"q": q, "k": k, "mask": shown}.items():
        np.save(tmp_path / f"{name}.npy", array)
    found = visible(open_capture(tmp_path / "q.npy"))
    np.testing.assert_array_equal(found, np.broadcast_to(shown[:, np.newaxis], (2, 5, 6)))


@pytest.mark.parametrize("prefix", ["", "layers.0.attn."])
@pytest.mark.parametrize("name", ["temperature", "softcap", "lengths", "k_cache"])
def test_npy_pairs_are_refused_beside_what_may_change_their_attention(tmp_path: Path, prefix: str, name: str) -> None:
    q, k = pair()
    for word, array in (("q", q), ("k", k), ("embedding", q), ("x.temperature", q), (f"other.{name}", q)):
        np.save(tmp_path / f"{prefix}{word}.npy", array)
    capture = open_capture(tmp_path / f"{prefix}q.npy")
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""], ())
    np.save(tmp_path / f"{prefix}{name}.npy", np.ones(3))
    capture = open_capture(tmp_path / f"{prefix}q.npy")
    assert (f"tensor '{prefix}{name}' may change attention" in capture.layers[0].refusal, capture.unused) == (
        True,
        (prefix + name,),
    )


@pytest.mark.parametrize("shape", [(3, 4, 5, 8), (4, 5, 8), (5, 8)])
def test_one_npy_holds_q_and_k_stacked(tmp_path: Path, shape: tuple[int, ...]) -> None:
    stacked = numbers(2, *shape)
    np.save(tmp_path / "heads.npy", stacked)
    q, k = (part.reshape((1,) * (4 - part.ndim) + part.shape) for part in stacked)
    assert_holds(open_capture(tmp_path / "heads.npy"), q, k)


def test_one_npy_that_cannot_hold_a_pair_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", numbers(2, 4, 5, 8))
    assert "has 'q' but not 'k'" in refusal(tmp_path / "q.npy")
    for array in (numbers(3, 4, 5, 8), numbers(2, 8), np.asfortranarray(numbers(2, 3, 4))):
        np.save(tmp_path / "x.npy", array)
        assert "cannot hold both q and k" in refusal(tmp_path / "x.npy")


@for_each("order", ["C", "F"])
@for_each("axes", [HEADS_FIRST, "batch,token,head,d_k", "token,d_k,head,batch"])
def test_numpy_arrays_in_either_order(tmp_path: Path, order: Literal["C", "F"], axes: str) -> None:
    q, k = pair(kv_heads=2)
    usual = HEADS_FIRST.split(",")
    places = [usual.index(axis) for axis in axes.split(",")]
    arrays: dict[str, Any] = {
        name: np.array(array.transpose(places), order=order) for name, array in (("q", q), ("k", k))
    }
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", **arrays)
        assert_holds(open_capture(tmp_path / "x.npz", axes), q, k)


def test_the_kind_of_a_file_is_told_by_its_content(tmp_path: Path) -> None:
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


@for_each("dtype", ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_safetensors_of_every_number_format(tmp_path: Path, dtype: str) -> None:
    stored = np.dtype(getattr(ml_dtypes, dtype, dtype))
    q, k = (array.astype(stored) for array in pair(kv_heads=2))
    capture = opened(tmp_path, {"q": q, "k": k})
    assert capture.layers[0].dtype == dtype
    assert_holds(capture, q, k)
    head = every_head(capture)[0]
    assert head.q.dtype == head.k.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert head.q.flags.c_contiguous


@for_each("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
def test_numpy_files_of_every_number_format(tmp_path: Path, dtype: str) -> None:
    q, k = (array.astype(dtype) for array in pair())
    np.savez(tmp_path / "x.npz", q=q, k=k)
    capture = open_capture(tmp_path / "x.npz")
    assert capture.layers[0].dtype == np.dtype(dtype).name
    assert_holds(capture, q, k)


def test_either_of_q_and_k_in_float64_makes_both_float64(tmp_path: Path) -> None:
    q, k = pair()
    head = every_head(opened(tmp_path, {"q": q, "k": k.astype(np.float64)}))[0]
    assert head.q.dtype == head.k.dtype == np.float64


ACCEPTED = "float16, float32, float64, bfloat16"


@for_each(
    ("dtype", "message"),
    [
        *((name, f"'q' holds {name}; must be one of {ACCEPTED}") for name in ("int32", "complex64", "bool", "uint8")),
        ("bfloat16", "save it as .safetensors"),  # NumPy saves it as bytes without a type
        ("object", "pickled Python objects"),
    ],
)
def test_other_types_are_refused(tmp_path: Path, dtype: str, message: str) -> None:
    q, k = (array.astype(getattr(ml_dtypes, dtype, dtype)) for array in pair())
    np.savez(tmp_path / "x.npz", q=q, k=k)
    assert message in refusal(tmp_path / "x.npz")


def test_pickled_and_structured_arrays_are_refused(tmp_path: Path) -> None:
    q, k = pair()
    np.save(tmp_path / "x.npy", numbers(2, 3, 4).astype(object))
    assert "pickled Python objects" in refusal(tmp_path / "x.npy")
    np.savez(tmp_path / "y.npz", q=q, k=k, tokens=np.array(["a", 1], dtype=object))
    assert "tensor 'tokens' holds object; must be text" in refusal(tmp_path / "y.npz")
    np.savez(tmp_path / "z.npz", q=np.zeros((2, 3), [("a", "f4")]), k=numbers(2, 3))
    assert "structured" in refusal(tmp_path / "z.npz")
