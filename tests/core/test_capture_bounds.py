"""Small files stay cheap: bounds on headers, metadata and decompression; masks that are never all in memory."""

from __future__ import annotations

import io
import itertools
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from attn_tui.core.attention.visibility import Visibility
from attn_tui.core.captures.axes import MOST_HEADS
from attn_tui.core.captures.axes import MOST_TEXTS as LARGEST_BATCH
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.files import LARGEST_HEADER
from attn_tui.core.captures.files.numpy_files import LARGEST_TEXT, MOST_TEXTS
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from capture_files import HEADS_FIRST, Array, assert_holds, layered, numbers, opened, pair, refusal, refused, save
from cases import for_each
from memory import peak_memory

MEGABYTE = 1 << 20


def tensors_file(path: Path, header: object, size: int = 0) -> Path:
    """A .safetensors file with this header, JSON or bytes, and this many bytes of tensors."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    return path


def entry(shape: list[Any], first: int, last: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def test_no_library_that_maps_files_is_loaded() -> None:
    code = (
        "import sys\nfrom attn_tui.core.captures.capture import sample_path\n"
        "from attn_tui.core.captures.head import read_head\nfrom attn_tui.core.captures.reader import open_capture\n"
        "capture = open_capture(sample_path())\nread_head(capture, capture.layers[0], 0)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert not {"safetensors", "mmap"} & {*loaded}


def test_a_file_that_shrinks_while_its_header_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "x.safetensors", layered(1), text="why " * 20_000)
    fstat = os.fstat

    def cut(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        os.truncate(path, 8_192)
        return status

    monkeypatch.setattr(os, "fstat", cut)
    assert "not a readable .safetensors file" in refusal(path)


Q, K = entry([1, 1, 2, 2], 0, 16), entry([1, 1, 2, 2], 16, 32)


@for_each(
    ("header", "reason"),
    [
        ([], "not a JSON object"),
        (b"{\xff}", "its header is not UTF-8"),
        (b'{"q": 1,}', "its header is not JSON: Expecting property name"),
        (b"[" * 100_000, "its header is nested deeper than 100 levels"),
        (b'{"q": ' + b"9" * 5000 + b"}", "its header has a whole number of more than 308 digits"),
        ({"q": Q, "k": K, "__metadata__": {"scale": 1}}, "metadata are not strings"),
        ({"q": Q, "k": K, "__metadata__": "x"}, "metadata are not strings"),
        ({"q": Q, "k": 1}, "'k' has no valid dtype, shape and data_offsets"),
        *(
            ({"q": Q, "k": K | wrong}, "'k' has no valid dtype, shape and data_offsets")
            for wrong in (
                {"dtype": 3}, {"shape": 4}, {"shape": [-1]}, {"shape": [1.0]}, {"shape": [True]}, {"shape": [1] * 65},
                {"shape": [10**30]}, {"data_offsets": [0]}, {"data_offsets": [0, 1, 2]}, {"data_offsets": "01"},
            )
        ),
        ({"q": Q, "k": entry([1, 1, 2, 3], 16, 32)}, "tensor 'k' of shape [1, 1, 2, 3] has 16 bytes"),
        ({"q": Q, "k": entry([1 << 62, 1 << 62], 16, 32)}, "has 16 bytes"),
        ({"q": Q, "k": entry([1, 1, 2, 2], 0, 16)}, "gap or overlap at byte"),
        ({"q": Q, "k": entry([1, 1, 2, 2], 20, 36)}, "gap or overlap at byte"),
        ({"q": Q}, "gap or overlap at byte"),
    ],
)  # fmt: skip
def test_a_safetensors_header_that_is_wrong_is_refused(tmp_path: Path, header: object, reason: str) -> None:
    message = refusal(tensors_file(tmp_path / "x.safetensors", header, 32))
    assert "not a readable .safetensors file: " in message
    assert reason in message


def test_tensors_of_unknown_types_and_in_any_order_are_allowed(tmp_path: Path) -> None:
    other = entry([3], 32, 36, "F4")
    path = tensors_file(tmp_path / "x.safetensors", {"k": K, "other": other, "q": Q, "none": entry([0], 0, 0)}, 36)
    assert open_capture(path).layers[0].sizes == (1, 1, 2, 2)


def test_a_header_and_metadata_are_bounded(tmp_path: Path) -> None:
    tokens = json.dumps(["ab"] * 2_000_000)
    path = tensors_file(tmp_path / "x.safetensors", {"q": Q, "k": K, "__metadata__": {"tokens": tokens}}, 32)
    assert "its header must have at most 8388608 bytes, not 1" in refusal(path)
    assert peak_memory(lambda: refusal(path), warm_up=False) < MEGABYTE
    q, k = pair()
    half = np.bytes_(b" " * (LARGEST_HEADER // 2 + 1))
    np.savez_compressed(tmp_path / "x.npz", q=q, k=k, text=half, model=half)
    assert "metadata must have at most 8388608 characters, not 8388610" in refusal(tmp_path / "x.npz")
    for text in (np.array(b"." * (LARGEST_TEXT + 1)), np.zeros(MOST_TEXTS + 1, "S1")):
        np.savez_compressed(tmp_path / "x.npz", q=q, k=k, tokens=text)
        assert f"tensor 'tokens' of shape {[*text.shape]} has {text.nbytes} bytes; must be" in refusal(
            tmp_path / "x.npz"
        )
    for text in (np.array(b"." * LARGEST_TEXT), np.zeros(MOST_TEXTS, "S1")):  # neither is more than an array may have
        np.savez_compressed(tmp_path / "x.npz", q=q, k=k, tokens=text)
        assert "of shape" not in (refused(tmp_path / "x.npz") or "")


def test_entries_of_many_layers_are_found_by_their_index(tmp_path: Path) -> None:
    count, entries = 300, [{"index": index, "scale": 2 + index} for index in reversed(range(300))]
    header: dict[str, Any] = {"__metadata__": {"layers": json.dumps(entries)}}
    for index in range(count):
        header |= {f"q.{index}": entry([1, 1, 1, 1], 8 * index, 8 * index + 4)}
        header |= {f"k.{index}": entry([1, 1, 1, 1], 8 * index + 4, 8 * index + 8)}
    capture = open_capture(tensors_file(tmp_path / "x.safetensors", header, 8 * count))
    assert [layer.scale for layer in capture.layers] == [2 + index for index in range(count)]


@pytest.mark.parametrize(
    ("shape", "words"), [((1, MOST_HEADS + 1, 1, 1), "heads"), ((LARGEST_BATCH + 1, 1, 1, 1), "texts")]
)
def test_heads_and_texts_are_bounded(tmp_path: Path, shape: tuple[int, ...], words: str) -> None:
    array = np.zeros(shape, np.float16)
    np.savez_compressed(tmp_path / "x.npz", q=array, k=array)
    assert f"must have at most {max(shape) - 1} {words}, not {max(shape)}" in refusal(tmp_path / "x.npz", HEADS_FIRST)


@pytest.mark.parametrize("large", ["q", "mask"])
def test_a_small_file_that_decompresses_to_a_large_array_is_refused(tmp_path: Path, large: str) -> None:
    keys = (1 << 20) + 1
    arrays: dict[str, Any] = {"q": np.zeros((1, 1, 64, 1), np.float16), "k": np.zeros((1, 1, keys, 1), np.float16)}
    arrays |= {"mask": np.zeros((64, keys), bool)} if large == "mask" else {"q": np.zeros((1, 1, 64, keys), "f2")}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    message = refusal(tmp_path / "x.npz", HEADS_FIRST)
    assert f"tensor '{large}' has {arrays[large].nbytes} bytes, compressed to " in message
    assert "; must be at most 67108864, or not compressed (numpy.savez)" in message
    assert peak_memory(lambda: refusal(tmp_path / "x.npz", HEADS_FIRST), warm_up=False) < 4 * MEGABYTE


def test_each_compressed_array_is_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = numbers(1, 64, 32, 16), numbers(1, 32, 32, 16, seed=1)
    mask = np.random.default_rng(0).random((1, 64, 32, 32)) < 0.9
    np.savez_compressed(tmp_path / "x.npz", q=q, k=k, mask=mask)
    capture = open_capture(tmp_path / "x.npz", HEADS_FIRST)
    started: list[object] = []
    inflate = zlib.decompressobj

    def count(*arguments: Any) -> Any:
        started.append(arguments)
        return inflate(*arguments)

    monkeypatch.setattr(zlib, "decompressobj", count)
    assert_holds(capture, q, k)
    assert len(started) == 3


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axes", [HEADS_FIRST, "batch,token,head,d_k"])
@pytest.mark.parametrize("most", [1, 700, 2_000, 1 << 20])
def test_heads_are_decompressed_in_groups_that_fit_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Literal["C", "F"], axes: str, most: int
) -> None:
    monkeypatch.setattr("attn_tui.core.captures.files.stored._AT_HAND", most)
    monkeypatch.setattr("attn_tui.core.captures.files.stored._BLOCK", 500)
    q, k = pair(heads=6, kv_heads=3)
    swapped = (0, 1, 2, 3) if axes == HEADS_FIRST else (0, 2, 1, 3)
    arrays: dict[str, Any] = {
        name: np.array(array.transpose(swapped), order=order) for name, array in (("q", q), ("k", k))
    }
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    capture = open_capture(tmp_path / "x.npz", axes)
    assert_holds(capture, q, k)
    assert sum(values.nbytes for _, values in capture.at_hand.values()) <= 2 * most
    last = read_head(capture, capture.layers[0], 5)
    np.testing.assert_array_equal(read_head(capture, capture.layers[0], 0).q, q[:, 0])
    np.testing.assert_array_equal(last.q, q[:, 5])


def test_only_one_layer_stays_decompressed(tmp_path: Path) -> None:
    tensors: dict[str, Any] = {**layered(8)}
    np.savez_compressed(tmp_path / "x.npz", **tensors)
    capture = open_capture(tmp_path / "x.npz", HEADS_FIRST)
    for layer in range(8):
        assert_holds(capture, *pair(), layer)
    assert len(capture.at_hand) <= 3


def write_archive(path: Path, method: int, names: list[str]) -> Path:
    stream = io.BytesIO()
    np.save(stream, numbers(1, 1, 2, 2))
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", stream.getvalue())
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_of_other_methods_are_refused(tmp_path: Path, method: int) -> None:
    """Their compression has no bound: a few bytes may stand for gigabytes."""
    message = refusal(write_archive(tmp_path / "x.npz", method, ["q", "k"]))
    assert f"tensor 'q' must be deflated or not compressed, not compressed by method {method}" in message


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for name in ("q", "text"):  # a tensor, and metadata
        path = write_archive(tmp_path / "x.npz", zipfile.ZIP_STORED, ["q", "k", "text", name])
        assert f"tensor '{name}' is there twice" in refusal(path)


def test_an_archive_s_directory_is_bounded(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.npz", zipfile.ZIP_STORED, ["q", "k"])
    content = bytearray(path.read_bytes())
    end = content.index(b"PK\x05\x06")
    start = int.from_bytes(content[end + 16 : end + 20], "little")
    entries = bytes(content[start:end])
    repeated = entries * (LARGEST_HEADER // len(entries) + 1)
    struct.pack_into("<I", content, end + 12, len(repeated))
    path.write_bytes(content[:start] + repeated + content[end:])
    assert f"the archive's directory must have at most 8388608 bytes, not {len(repeated)}" in refusal(path)
    few = entries * 3
    struct.pack_into("<I", content, end + 12, len(few))
    path.write_bytes(content[:start] + few + content[end:])
    assert "its members overlap" in refusal(path)


def test_a_causal_batch_needs_no_mask_in_memory(tmp_path: Path) -> None:
    """The masks of four texts would take 256 MiB."""
    q = np.ones((4, 1, 8_192, 1), np.float16)
    found = opened(tmp_path, {"q": q, "k": q}, causal="true", scale=1.0, lengths=[8_192, 1, 20, 300])

    def read() -> None:
        visible = read_head(found, found.layers[0], 0).visibility
        assert visible is not None
        hidden = visible.hidden(slice(3, 4), slice(200, 400))
        assert hidden.shape == (1, 200, 8_192)
        assert hidden[0, :100].sum(axis=1).tolist() == [8_192 - 201 - row for row in range(100)]
        assert hidden[0, 100:].all()

    assert peak_memory(read) < 8 * MEGABYTE


@pytest.mark.slow
def test_measuring_a_causal_batch_needs_no_more_memory_than_one_that_is_not(tmp_path: Path) -> None:
    q = np.random.default_rng(0).normal(size=(4, 1, 3_000, 8)).astype(np.float16)
    peaks: list[int] = []
    for causal in ("no", "true"):
        found = opened(tmp_path, {"q": q, "k": q}, causal=causal, scale=0.3)

        def measure() -> None:
            measure_head(found, found.layers[0], 0, [file_rule(found.layers[0])])  # noqa: B023

        peaks.append(peak_memory(measure, warm_up=False))
    assert peaks[1] - peaks[0] < 12 * MEGABYTE


@for_each("causal", [None, "top_left", "bottom_right"])
@for_each("queries", [1, 4, 6, 9])
@for_each("texts", [None, 1, 3])
@for_each("one_row", [True, False])
def test_hidden_keys_of_some_rows_are_those_of_a_whole_mask(
    causal: Literal["top_left", "bottom_right"] | None,
    queries: int,
    texts: int | None,
    one_row: bool,
) -> None:
    keys, mask = 6, None
    visible: Array = np.ones((3, queries, keys), np.bool_)
    if texts is not None:
        mask = np.random.default_rng(1).random((texts, 1 if one_row else queries, keys)) < 0.6
        visible = np.logical_and(visible, mask)
    if causal is not None:
        visible = np.logical_and(visible, np.tri(queries, keys, 0 if causal == "top_left" else keys - queries))
    first = keys - queries if causal == "bottom_right" else 0
    after = None if causal is None else 0
    found = Visibility(keys, first + np.arange(queries), mask, after=after, self_attention=queries == keys)
    hidden: Array = ~visible
    if queries == keys and mask is not None:
        tokens: Array = np.any(mask, axis=1, keepdims=True)
        hidden = np.logical_or(hidden, ~tokens.mT)
    for draws in (slice(0, 1), slice(1, 3)):
        for rows in (slice(0, 1), slice(queries // 2, queries)):
            sizes = draws.stop - draws.start, rows.stop - rows.start, keys
            for part, whole in ((found.of(draws, rows), visible), (found.hidden(draws, rows), hidden)):
                np.testing.assert_array_equal(np.broadcast_to(part, sizes), whole[draws, rows])
            outside = np.ones(keys, np.bool_)
            outside[found.edge(rows)] = False
            assert not hidden[draws, rows][..., outside].any()


def test_the_span_of_some_rows_is_from_their_first_visible_key_to_their_last() -> None:
    for before, after, chunk in itertools.product([None, 0, 2], [None, 0, 2], [None, 3]):
        found = Visibility(10, np.arange(10), None, before, after, chunk)
        for start, stop in itertools.combinations(range(11), 2):
            rows = slice(start, stop)
            shown = np.flatnonzero(found.of(slice(None), rows)[0].any(axis=0))
            assert found.span(rows) == slice(shown[0], shown[-1] + 1)


def test_the_sample_is_read_without_much_memory() -> None:
    assert peak_memory(lambda: open_capture(sample_path())) < MEGABYTE
