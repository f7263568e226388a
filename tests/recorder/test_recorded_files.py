"""Recorded files are valid, and what reads captures finds nothing wrong with them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from architectures import ARCHITECTURES, build, run
from attn_tui.core.recorder.files.folder import write
from attn_tui.tui.cli.main import main
from pytorch import torch
from replay import load
from written import N, recorded, vectors

pytestmark = pytest.mark.filterwarnings("default")

HEALTHY = (
    "Llama",
    "Mistral",
    "Gemma2",
    "OPT",
    "Bloom",
    "T5",
    "Bert",
    "DeepseekV3",
    "GptOss",
    "Whisper",
    "Llama4ForCausalLM",
)


def test_files_are_what_the_safetensors_library_reads(tmp_path: Path) -> None:
    types = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
    tensors = {f"t{i}": (torch.arange(6).reshape(2, 3) > 2).to(dtype) for i, dtype in enumerate(types)}
    tensors["turned"] = torch.arange(6.0).reshape(2, 3).t()
    tensors["none"] = torch.zeros(0, 4)
    write(tmp_path / "a.safetensors", tensors, {"layers": "[]", "text": 'ä "\n'})
    held, metadata = load(tmp_path / "a.safetensors")
    assert metadata["text"] == 'ä "\n'
    assert held.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert held[name].dtype == tensor.dtype
        assert torch.equal(held[name], tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").mkdir()
    with pytest.raises(OSError, match=r"a\.safetensors"):
        write(tmp_path / "a.safetensors", {"t": torch.zeros(2)}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_no_link_waits_under_the_temporary_name(tmp_path: Path) -> None:
    """A name that can be foreseen, such as that of the process, could be a link to any file of the user."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = tmp_path / "a.safetensors"
    for name in (f".{path.name}.{os.getpid()}.part", f".{path.name}.part"):
        (tmp_path / name).symlink_to(victim)
    write(path, {"t": torch.zeros(2)}, {"layers": "[]"})
    assert victim.read_text() == "mine"
    assert load(path)[0].keys() == {"t"}


class Config:
    """A configuration of a model, as transformers have one."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def endless() -> Any:
    config = Config(hidden_size=32)
    config.__dict__["parent"] = config.__dict__
    return config


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (endless(), "Circular reference"),
        (Config(words=["a" * 100] * 500_000), "more than"),
        (Config(nested={(1, 2): 3}), "keys must be"),
    ],
    ids=["circular", "large", "keys"],
)
def test_a_configuration_that_cannot_be_recorded_is_left_out_with_a_note(
    config: Any, why: str, tmp_path: Path
) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    model: Any = Model()
    model.config = config
    with attn_tui.record(model, tmp_path / "a.safetensors"):
        model(torch.ones(1, 2, 4, 8))
    _, metadata = load(tmp_path / "a.safetensors")
    assert "config" not in metadata
    assert why in metadata["notes"]


def test_a_file_of_others_is_replaced_only_if_asked(tmp_path: Path) -> None:
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x, path, run = torch.ones(1, 4, 8), tmp_path / "a.safetensors", tmp_path / "run"
    run.mkdir()
    for file in (path, run / "step-000000.safetensors"):
        file.write_text("weights")
    for place, every in ((path, None), (run, 1)):
        with pytest.raises(ValueError, match=r"exists and is not a recording; .* overwrite=True"):
            attn_tui.record(model, place, every=every)
    assert path.read_text() == "weights"
    for _ in range(2):
        with attn_tui.record(model, path, overwrite=True):
            assert path.read_bytes()[:7] == b"weights" or len(load(path)[1]["layers"]) == 1
            model(x, x, x)
        assert len(load(path)[1]["layers"]) == 1


@pytest.mark.slow
def test_a_long_pass_leaves_the_file_of_an_earlier_recording_until_it_ends(tmp_path: Path) -> None:
    """Without such a file, a first part is there after two seconds, in case the program is killed."""
    path, seen = tmp_path / "a.safetensors", list[bytes | None]()

    class Slow(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = torch.nn.functional.scaled_dot_product_attention(x, x, x)
                time.sleep(2.1)
            seen.append(path.read_bytes() if path.exists() else None)
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    model = Slow()
    for _ in range(2):
        with attn_tui.record(model, path):
            model(torch.ones(1, 2, 4, 8))
        assert len(load(path)[1]["layers"]) == 3
    assert seen[0] is not None
    assert seen[1] is not None
    assert len(seen[1]) == path.stat().st_size > len(seen[0])


def test_nothing_recorded_leaves_the_file_of_an_earlier_recording(tmp_path: Path) -> None:
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x, path = torch.ones(1, 4, 8), tmp_path / "a.safetensors"
    with attn_tui.record(model, path):
        model(x, x, x)
    before = path.read_bytes()
    with pytest.warns(RuntimeWarning, match="nothing recorded: .* was there before and is unchanged"):
        attn_tui.record(model, path).close()
    assert path.read_bytes() == before


def test_a_folder_that_is_lost_is_an_error_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.ones(1, 4, 8)
    recorder = attn_tui.record(model, folder / "a.safetensors")
    folder.rmdir()
    model(x, x, x)
    with pytest.warns(RuntimeWarning, match="No such file or directory"):
        recorder.close()
    assert not folder.exists()


def test_rows_and_texts_are_limited(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    q, k, v = vectors(n=N, m=N)
    _, layer, held, _ = recorded(tmp_path, function, q, k, v, rows=5, batch=1)
    rows = held["layers.0.attn.rows"]
    assert rows.tolist() == [0, 3, 6, 8, 11]
    assert torch.equal(held["layers.0.attn.q"], q[:1, :, rows])
    assert torch.equal(held["layers.0.attn.k"], k[:1])
    assert layer["causal"] is True


def test_layers_are_chosen_by_number_or_name(tmp_path: Path) -> None:
    llama = next(each for each in ARCHITECTURES if each.model == "Llama")
    pytest.importorskip("transformers", reason="needs transformers: make test-torch")
    model = build(llama, "sdpa")
    for layers in ("1", r"layers\.1\."):
        with attn_tui.record(model, tmp_path / "a.safetensors", layers=layers):
            run(model, "ids")
        found = load(tmp_path / "a.safetensors")[1]["layers"]
        assert [(layer["index"], layer["name"]) for layer in found] == [(1, "layers.1.self_attn")]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
def test_a_recorded_model_is_not_accused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="needs transformers: make test-torch")
    architecture = next(each for each in ARCHITECTURES if each.model == name)
    model = build(architecture, "eager")
    path = tmp_path / "a.safetensors"
    with attn_tui.record(model, path, values=True):
        run(model, architecture.inputs)
    capsys.readouterr()
    assert main(["diagnose", str(path), "--format", "json"]) == 0
    out, _ = capsys.readouterr()
    heads = json.loads(out)["heads"]
    assert len(heads) == sum(layer["heads"] for layer in load(path)[1]["layers"])
    assert {head["verdict"] for head in heads} <= {"healthy", "undecided"}
    assert main(["inspect", str(path)]) == 0
