"""Files that cannot be read as a capture: not files, not captures, too large, changed or damaged."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.files import ENDINGS, CaptureError
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import every_head, layered, numbers, opened, pair, refusal, refused, save
from cases import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory import peak_memory
from safetensors.numpy import save as to_bytes

MEGABYTE = 1 << 20
CHANGED = "changed on disk since it was opened; open it again"


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz").endswith("none.npz: no such file")
    for name in ("a\0b.npz", "x" * 5_000):
        assert "cannot be read" in refusal(name)
    (tmp_path / "x.npz").symlink_to(tmp_path / "x.npz")
    assert "cannot be read" in refusal(tmp_path / "x.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs fifos")
def test_a_fifo_or_a_device_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    assert "not a regular file" in refusal(tmp_path / "x.npz")
    assert "not a regular file" in refusal("/dev/zero")


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "x.safetensors", layered(1))

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert refusal(path).endswith("cannot be read: Permission denied")


@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "x.npy", "x"])
def test_an_empty_file_or_a_text_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert f"the file is empty; must be a {ENDINGS} file" in refusal(tmp_path / name)
    (tmp_path / name).write_text("Why divide by the square root of the key dimension?")
    assert name in refusal(tmp_path / name)


def test_a_zip_archive_of_pickles_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")
    assert "is a pickle, which may run code and is never opened" in refusal(tmp_path / "model.pt")


@for_each("value", [np.nan, np.inf, -np.inf])
@for_each("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_a_head_with_numbers_that_are_not_finite_is_refused(tmp_path: Path, value: float, dtype: str) -> None:
    q, k = (array.astype(getattr(ml_dtypes, dtype, dtype)) for array in pair())
    k[1, 2, 3, :3] = value
    path = save(tmp_path / "x.safetensors", {"layers.7.attn.q": q, "layers.7.attn.k": k})
    capture = open_capture(path)
    assert read_head(capture, capture.layers[0], 1).k.shape == (2, 6, 8)
    assert "tensor 'layers.7.attn.k': layer 7, head 2 has 3 of 96 values that are NaN or infinite" in refusal(path)


def test_signalling_nans_cause_no_warning(tmp_path: Path) -> None:
    q = np.full((1, 1, 3, 4), 0x7C01, np.uint16).view(np.float16)
    assert "12 of 12 values" in refusal(save(tmp_path / "x.safetensors", {"q": q, "k": q}))


def write_header(path: Path, shape: list[int]) -> Path:
    """A .safetensors file with q and k of this shape, whose data is a hole in the file."""
    size = 4 * math.prod(shape)
    tensor = {"dtype": "F32", "shape": shape}
    sides = {"q": tensor | {"data_offsets": [0, size]}, "k": tensor | {"data_offsets": [size, 2 * size]}}
    header = json.dumps(sides).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 2 * size)
    return path


def test_a_head_with_too_many_scores_is_refused(tmp_path: Path) -> None:
    message = refusal(write_header(tmp_path / "x.safetensors", [1, 1, 1_000_000, 4]))
    assert "1000000 queries × 1000000 keys make 1000000000000 scores" in message
    assert "at most 17179869184" in message


def test_too_many_texts_of_wide_heads_are_refused_before_they_are_read(tmp_path: Path) -> None:
    assert "too many numbers" in refusal(write_header(tmp_path / "x.safetensors", [1 << 15, 1, 64, 128]))


def test_of_ten_gigabytes_only_one_head_is_read(tmp_path: Path) -> None:
    heads, tokens = 10_000, 2_250
    path = write_header(tmp_path / "x.safetensors", [1, heads, tokens, 64])
    assert path.stat().st_size > 10 << 30

    def read() -> None:
        capture = open_capture(path)
        head = read_head(capture, capture.layers[0], heads - 1)
        assert head.q.shape == (1, tokens, 64)
        assert not head.q.any()

    assert peak_memory(read) < 16 * MEGABYTE


@for_each("start", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x08\0\0\0\0\0\0\0{"])
@for_each("name", ["x.safetensors", "x.npz", "x.npy", "x"])
def test_ten_gigabytes_of_zeros_are_refused_without_being_read(tmp_path: Path, start: bytes, name: str) -> None:
    with open(tmp_path / name, "wb") as file:
        file.write(start)
        file.truncate(10 << 30)
    assert peak_memory(lambda: refusal(tmp_path / name), warm_up=False) < 16 * MEGABYTE


def replaced(path: Path) -> None:
    tensors = {"layers.0.attn.q": numbers(1, 2, 3, 4), "layers.0.attn.k": numbers(1, 2, 3, 4)}
    save(path.with_name("other"), tensors).replace(path)


def rewritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-4] + bytes(4))
    os.utime(path, ns=(0, 0))


def shortened(path: Path) -> None:
    os.truncate(path, 1_000)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replaced, rewritten, shortened, removed])
def test_reading_a_file_that_changed_after_it_was_opened_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    capture = opened(tmp_path, layered(1))
    assert len(every_head(capture)) == 4
    change(capture.path)
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


def test_a_change_of_the_other_file_of_a_pair_is_noticed(tmp_path: Path) -> None:
    q, k = pair()
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    capture = open_capture(tmp_path / "q.npy")
    np.save(tmp_path / "k.npy", k[:, :, :1])
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


def test_truncation_during_reading_is_an_error_and_not_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = opened(tmp_path, {"q": numbers(1, 1, 9_000, 64), "k": numbers(1, 1, 90, 64)})
    fstat = os.fstat

    def cut(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        os.truncate(capture.path, 8_192)
        return status

    monkeypatch.setattr(os, "fstat", cut)
    with pytest.raises(CaptureError, match=CHANGED):
        read_head(capture, capture.layers[0], 0)


def valid_files() -> dict[str, bytes]:
    """A small valid file of each kind, with a mask and metadata if the kind can hold them."""

    def written(write: Callable[..., None], *arrays: Any, **named: Any) -> bytes:
        stream = io.BytesIO()
        write(stream, *arrays, **named)
        return stream.getvalue()

    q, k = numbers(1, 2, 3, 4, dtype=np.float16), numbers(1, 1, 3, 4)
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "mask": np.ones((1, 3), bool)}
    metadata = {"scale": "0.5", "causal": "true", "tokens": '["a", "b", "c"]', "layers": '[{"softcap": 5}]'}
    return {
        "x.npz": written(np.savez, **tensors, **metadata),
        "y.npz": written(np.savez_compressed, **tensors, **metadata),
        "x.npy": written(np.save, numbers(2, 3, 4)),
        "x.safetensors": to_bytes(tensors, metadata),
    }


VALID = valid_files()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A valid file with bytes changed, inserted, removed or cut off, most often near its headers."""
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


@settings(max_examples=6 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_a_damaged_file_is_either_read_or_refused_in_one_line(tmp_path: Path, file: tuple[str, bytes]) -> None:
    name, content = file
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name)  # raises nothing but CaptureError


@pytest.mark.parametrize("name", sorted(VALID))
def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path, name: str) -> None:
    for length in range(0, len(VALID[name]), 3):
        (tmp_path / name).write_bytes(VALID[name][:length])
        refusal(tmp_path / name)


@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=64), st.sampled_from([b"", b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06"]))
def test_arbitrary_bytes_are_refused(tmp_path: Path, content: bytes, start: bytes) -> None:
    (tmp_path / "x").write_bytes(start + content)
    refusal(tmp_path / "x")
