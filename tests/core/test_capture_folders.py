"""Folders of captures, and captures in several files with an index: read in order, or left out with a note."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import read_evidence, read_head
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture, open_captures
from capture_files import Array, assert_holds, has_note, layered, numbers, opened, pair, refusal, save
from cases import for_each

TOLD: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "true", "scale": 0.5}


def steps(folder: Path, *numbers_of_steps: int, **told: object) -> dict[int, tuple[Array, Array]]:
    """Write a file a step; return the queries and keys of each."""
    written: dict[int, tuple[Array, Array]] = {}
    for step in numbers_of_steps:
        q, k = numbers(2, 4, 5, 8, seed=step), numbers(2, 4, 5, 8, seed=step + 1)
        save(folder / f"step-{step}.safetensors", {"layers.0.attn.q": q, "layers.0.attn.k": k}, **TOLD | told)
        written[step] = q, k
    return written


def test_every_file_is_read_in_the_order_of_its_number(tmp_path: Path) -> None:
    written = steps(tmp_path, 100, 20, 3, config={"num_attention_heads": 4})
    capture = open_capture(tmp_path)
    assert [layer.file for layer in capture.layers] == [f"step-{step}.safetensors" for step in (3, 20, 100)]
    assert [layer.name for layer in capture.layers] == [f"{layer.file}: layers.0.attn" for layer in capture.layers]
    assert [layer.position for layer in capture.layers] == [0, 1, 2]
    assert [layer.place for layer in capture.layers][1] == "step-20.safetensors: layer 0"
    for number, step in enumerate((3, 20, 100)):
        assert_holds(capture, *written[step], layer=number)
        layer, alone = capture.layers[number], open_capture(tmp_path / f"step-{step}.safetensors")
        here = measure_head(capture, layer, 1, [file_rule(layer)]).columns[0]
        there = measure_head(alone, alone.layers[0], 1, [file_rule(alone.layers[0])]).columns[0]
        assert here.measured == there.measured
    assert (capture.notes, capture.path, capture.step) == ((), tmp_path, None)
    assert capture.config == {"num_attention_heads": 4}
    assert {file.name for file in capture.files} == {f"step-{step}.safetensors" for step in (3, 20, 100)}


def test_what_files_say_differently_is_left_out_and_their_notes_have_their_names(tmp_path: Path) -> None:
    steps(tmp_path, 1, model="one", config={"n": 1})
    steps(tmp_path, 2, model="two", config={"n": 2})
    q, k = pair(queries=6)
    save(tmp_path / "b.safetensors", {"layers.0.attn.q": q, "layers.0.attn.k": k, "notes": q}, **TOLD)
    capture = open_capture(tmp_path)
    assert (capture.model, capture.config) == (None, None)
    assert has_note(capture, "configurations differ")
    assert has_note(capture, "b.safetensors: not used: 'notes'")
    assert capture.unused == ("b.safetensors: notes",)


def test_files_of_other_kinds_are_left_out_with_notes(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    arrays: dict[str, Any] = {"layers.3.attn.q": q, "layers.3.attn.k": k}
    np.savez(tmp_path / "a.npz", **arrays)
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    np.save(tmp_path / "bias.npy", numbers(4, 6, 6))
    np.save(tmp_path / "other.npy", numbers(3))
    save(tmp_path / "model.safetensors", {"layers.0.q_proj.weight": numbers(3, 3)})
    (tmp_path / "old.pt").write_bytes(b"PK")
    (tmp_path / "readme.md").write_text("")
    (tmp_path / "more.npz").mkdir()
    capture = open_capture(tmp_path)
    assert [(layer.file, layer.index, layer.bias) for layer in capture.layers] == [
        ("a.npz", 3, None),
        ("k.npy", 0, "bias"),
    ]
    assert has_note(capture, "pickles are never opened: 'old.pt'")
    assert has_note(capture, "other.npy is left out")
    assert has_note(capture, "model.safetensors is left out: it has no queries and keys")


def test_numbered_parts_and_indexed_files_are_one_capture_each(tmp_path: Path) -> None:
    whole = layered(2)
    for number, side in enumerate("qk", start=1):
        part = {name: array for name, array in whole.items() if name.endswith(side)}
        save(tmp_path / f"a-0000{number}-of-00002.safetensors", part, **TOLD)
        save(tmp_path / f"b-{side}.safetensors", part, **TOLD)
    places = {name: f"b-{name[-1]}.safetensors" for name in whole}
    (tmp_path / "b.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    capture = open_capture(tmp_path)
    assert [layer.file for layer in capture.layers] == [
        *["a-*.safetensors"] * 2,
        *["b.safetensors.index.json"] * 2,
    ]
    for layer in range(4):
        assert_holds(capture, *pair(), layer=layer)


def test_layers_of_several_captures_are_named_after_their_file_or_its_path(tmp_path: Path) -> None:
    for name in ("a/x", "a/y", "b/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        save(tmp_path / f"{name}.safetensors", layered(1))

    def files(*names: str) -> list[str | None]:
        return [each.layers[0].file for each in open_captures([tmp_path / f"{name}.safetensors" for name in names])]

    assert files("a/x") == [""]
    assert files("a/x", "a/y") == ["x.safetensors", "y.safetensors"]
    assert files("a/x", "b/x") == [f"{tmp_path}/{name}.safetensors" for name in ("a/x", "b/x")]
    with pytest.raises(CaptureError, match="is given twice"):
        files("a/x", "a/y", "a/x")


def test_a_folder_with_one_capture_is_that_capture(tmp_path: Path) -> None:
    save(tmp_path / "x.safetensors", layered(2), **TOLD)
    capture, alone = open_capture(tmp_path), open_capture(tmp_path / "x.safetensors")
    assert (capture.layers, capture.notes, capture.path) == (alone.layers, alone.notes, alone.path)


@pytest.mark.parametrize("content", ["nothing", "pickles", "weights", "damaged"])
def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    if content == "pickles":
        (tmp_path / "x.pt").write_bytes(pickle.dumps({}))
    elif content == "weights":
        save(tmp_path / "model.safetensors", {"layers.0.q_proj.weight": numbers(3, 3)})
    elif content == "damaged":
        steps(tmp_path, 1, 2)
        (tmp_path / "step-2.safetensors").write_bytes((tmp_path / "step-2.safetensors").read_bytes()[:-1])
    said = {
        "nothing": "no .safetensors, .npz or .npy files in this folder",
        "pickles": "pickles are never opened: 'x.pt'",
        "weights": "model.safetensors: has a model's weights",
        "damaged": "step-2.safetensors: not a readable .safetensors file",
    }
    assert said[content] in refusal(tmp_path)


@pytest.mark.parametrize("form", ["archive", "old"])
def test_a_pickle_is_refused_in_a_line_that_says_how_to_convert_it(tmp_path: Path, form: str) -> None:
    path = tmp_path / "heads.pt"
    if form == "archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("heads/data.pkl", pickle.dumps({}))
            archive.writestr("heads/data/0", b"")
    else:
        path.write_bytes(pickle.dumps({"q": [1.0]}))
    assert "is a pickle, which may run code and is never opened; save its tensors with safetensors" in refusal(path)


@pytest.mark.parametrize("known", [True, False])
def test_the_folder_of_the_model_debugger_of_transformers_is_read(tmp_path: Path, known: bool) -> None:
    """It writes a file for each tensor of each module; the model's configuration tells the number of heads."""
    sides = {
        "q_proj": numbers(1, 4, 5, 8),
        "k_proj": numbers(1, 2, 5, 8, seed=1),
        "v_proj": numbers(1, 2, 5, 8, seed=2),
    }
    for layer in (0, 11):
        module = f"LlamaForCausalLM.model.layers.{layer}.self_attn"
        for name, array in sides.items():
            flat = array.swapaxes(1, 2).reshape(1, 5, -1)
            save(tmp_path / f"{module}.{name}_outputs.safetensors", {"data": flat})
            save(tmp_path / f"{module}.{name}_inputs_args_0.safetensors", {"data": numbers(1, 5, 32)})
    (tmp_path / "LlamaForCausalLM_debug_tree_SUMMARY.json").write_text("{}")
    if not known:
        assert "add heads (and kv_heads) to the metadata" in refusal(tmp_path)
        return
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 4}))
    capture = open_capture(tmp_path)
    assert [layer.index for layer in capture.layers] == [0, 11]
    for layer in capture.layers:
        assert_holds(capture, sides["q_proj"], sides["k_proj"], layer=layer.position)
        np.testing.assert_array_equal(read_evidence(capture, layer, 3, "v"), sides["v_proj"][:, 1])
    assert has_note(capture, "before rotary") or has_note(capture, "rotary embedding and QK-norm")
    assert has_note(capture, "6 files of the model debugger are not used")


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


def entries(*of: int, scale: float = 0.25) -> str:
    return json.dumps([{"index": index, "scale": scale * (index + 1), "causal": True} for index in of])


def test_shards_may_each_list_their_own_layers(tmp_path: Path) -> None:
    tensors = layered(2)
    places: dict[str, str] = {}
    for name, layer in zip(NAMES, (1, 0), strict=True):
        part = {tensor: array for tensor, array in tensors.items() if tensor.startswith(f"layers.{layer}.")}
        save(tmp_path / name, part, schema="attn-tui/qk-2", layers=entries(layer))
        places |= dict.fromkeys(part, name)
    index = tmp_path / "a.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert [layer.scale for layer in open_capture(index).layers] == [0.25, 0.5]
    index.unlink()
    assert [layer.scale for layer in open_capture(tmp_path).layers] == [0.25, 0.5]


@for_each("second", [entries(0, 1, scale=0.5), entries(0, 1)[:-1], '[{"scale": 0.5}]', '{"index": 0}'])
def test_shards_that_list_a_layer_in_two_ways_are_refused(tmp_path: Path, second: str) -> None:
    for name, layer, layers in zip(NAMES, (0, 1), (entries(0, 1), second), strict=True):
        part = {tensor: array for tensor, array in layered(2).items() if tensor.startswith(f"layers.{layer}.")}
        save(tmp_path / name, part, schema="attn-tui/qk-2", layers=layers)
    assert "has other metadata 'layers'" in refusal(tmp_path)


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
