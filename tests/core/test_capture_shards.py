"""Captures in several .safetensors files with an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from capture_files import layered, opened, refusal, save
from cases import for_each

NAMES = ("a-00001-of-00002.safetensors", "a-00002-of-00002.safetensors")
SAYS: dict[str, Any] = {"schema": "attn-tui/qk-2", "scale": 0.5, "causal": True}


def sharded(folder: Path, weight_map: object = None, **second: object) -> Path:
    """Two layers in two files, the last of which may have other metadata; queries and keys of a layer are apart."""
    tensors = layered(2)
    parts = [{name: tensors[name] for name in sorted(tensors) if name.endswith(side)} for side in "qk"]
    for name, part, says in zip(NAMES, parts, (SAYS, SAYS | second), strict=True):
        save(folder / name, part, **says)
    places = {tensor: name for name, part in zip(NAMES, parts, strict=True) for tensor in part}
    index = folder / "a.safetensors.index.json"
    index.write_text(
        json.dumps({"metadata": {"total_size": 7}, "weight_map": places if weight_map is None else weight_map})
    )
    return index


def test_shards_are_one_capture(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    found, whole = open_capture(path), opened(tmp_path, layered(2), **SAYS)
    assert found.layers == whole.layers
    assert (found.notes, found.unused) == (whole.notes, whole.unused)
    assert {file.name for file in found.files} == {path.name, *NAMES}
    for layer in found.layers:
        one, other = (measure_head(capture, layer, 3, [file_rule(layer)]).columns[0] for capture in (found, whole))
        assert one.measured == other.measured


def test_a_shard_that_changes_while_it_is_open_is_refused(tmp_path: Path) -> None:
    capture = open_capture(sharded(tmp_path))
    save(tmp_path / NAMES[1], layered(1))
    with pytest.raises(ValueError, match="changed on disk"):
        read_head(capture, capture.layers[0], 0)


@for_each(
    ("weight_map", "reason"),
    [
        ({"layers.0.attn.q": "../b.safetensors"}, "must be .safetensors files beside it"),
        ({"layers.0.attn.q": "/etc/passwd"}, "must be .safetensors files beside it"),
        ({"layers.0.attn.q": "none.safetensors"}, "no such file"),
        ({"layers.9.attn.q": NAMES[0]}, "tensor 'layers.9.attn.q' is not in"),
        ({"layers.0.attn.q": NAMES[1]}, "tensor 'layers.0.attn.q' is not in"),
        ({"layers.0.attn.q": 3}, "not an index of .safetensors files"),
        ([], "not an index of .safetensors files"),
        ({str(i): f"{i}.safetensors" for i in range(1025)}, "must name at most 1024 files, not 1025"),
    ],
)
def test_an_index_that_is_wrong_is_refused(tmp_path: Path, weight_map: object, reason: str) -> None:
    assert reason in refusal(sharded(tmp_path, weight_map))


def test_files_of_different_metadata_or_with_one_tensor_twice_are_refused(tmp_path: Path) -> None:
    assert "other metadata 'scale' than the files it belongs to" in refusal(sharded(tmp_path, scale=0.25))
    path = sharded(tmp_path)
    save(tmp_path / NAMES[1], layered(2), **SAYS)
    assert "tensor 'layers.0.attn.q' is in 'a-00001-of-00002.safetensors', too" in refusal(path)


@pytest.mark.parametrize("text", ["{", "{}", '{"weight_map": 3}', "{" + " " * (1 << 23)])
def test_json_that_is_no_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.index.json").write_text(text)
    assert "x.index.json: " in refusal(tmp_path / "x.index.json")
