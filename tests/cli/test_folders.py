"""A folder of captures as the file of inspect, diagnose and check: each file is read in order, and named."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from attn_tui.tui.cli.main import main
from cli_runner import Captured, printed, refusal

FILES = ("step-3.npz", "step-20.npz", "step-100.npz")


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Three steps of a training run, with as many heads, and logits that grow."""
    q = np.random.default_rng(0).normal(size=(2, 6, 4))
    for factor, name in enumerate(FILES, start=1):
        np.savez(tmp_path / name, q=factor * q, k=q, schema="attn-tui/qk-2", scale=0.5, causal="true")
    return str(tmp_path)


def test_inspect_names_the_file_of_every_head(run: str, capsys: Captured) -> None:
    heads = json.loads(printed(["inspect", run, "--format", "json"], capsys))["heads"]
    names = [f"{name}: layer 0" for name in FILES for _ in range(2)]
    assert [head["layer_name"] for head in heads] == names
    spread = [head["measured"]["logit_std"]["value"] for head in heads]
    assert spread[4] == pytest.approx(3 * spread[0])
    table = printed(["inspect", run], capsys)
    assert [line.split()[0] for line in table.splitlines() if line.startswith("step-")] == [
        name for name in FILES for _ in range(2)
    ]
    rows = list(csv.DictReader(io.StringIO(printed(["inspect", run, "--format", "csv"], capsys))))
    assert list(dict.fromkeys(row["layer_name"] for row in rows)) == list(dict.fromkeys(names))
    markdown = printed(["inspect", run, "--format", "markdown"], capsys)
    assert "| step-20.npz | 0 | 1 | 4 | 0.5 |" in markdown


def test_a_layer_of_one_file_is_chosen_by_its_name(run: str, capsys: Captured) -> None:
    [of_file, *_] = json.loads(
        printed(["inspect", run, "--layer", "step-20.npz: layer 0", "--head", "1", "--format", "json"], capsys)
    )["heads"]
    assert of_file["layer_name"] == "step-20.npz: layer 0"


def test_diagnose_and_check_name_the_file_of_every_head(run: str, capsys: Captured) -> None:
    table = printed(["diagnose", run], capsys)
    assert [line.split(",")[0] for line in table.splitlines() if line.startswith("step-")] == [
        f"{name}: layer 0" for name in FILES
    ]
    assert main(["check", run, "--max-logit", "4"]) == 1
    found = capsys.readouterr().out
    assert "step-100.npz: layer 0 head" in found
    assert "step-3.npz: layer 0 head 0: largest" not in found


def test_a_folder_without_captures_is_refused_in_a_line(tmp_path: Path, capsys: Captured) -> None:
    for command in ("inspect", "diagnose", "check"):
        assert "no .safetensors, .npz or .npy files in this folder" in refusal([command, str(tmp_path)], capsys)
