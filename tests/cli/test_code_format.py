"""--format python and torch: a program, or one line that says which formats there are."""

import subprocess
import sys
from pathlib import Path

import pytest
from attn_tui.core.learning.bug_evidence import write_capture
from attn_tui.core.learning.bugs import BUGS
from attn_tui.core.watching.snapshot import sample_run
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, Captured, assert_refused, printed

SAMPLE_RUN = str(sample_run())
SMALL = ("--n-keys", "16", "--n-queries", "4", "--batch", "4")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("report", "--d-k", "8", *SMALL),
        ("sweep", "--d-k", "4,8", *SMALL),
        ("rules", "--d-k", "8", *SMALL),
        ("rules", "--mechanisms", *SMALL),
        ("softmax", "--scores", "1,2"),
        ("learn", "1"),
        ("train", "--d-k", "4,8", "--steps", "12", "--seeds", "2"),
        ("cost", "--heads", "4"),
        ("inspect", SAMPLE, "--layer", "1", "--head", "2"),
        ("compare", SAMPLE, SAMPLE),
        ("watch", SAMPLE_RUN, "--max-logit", "1000"),
    ],
    ids=str,
)
def test_a_printed_program_runs_in_a_process_of_its_own(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "numbers.py"
    assert main([*words, "--format", "python", "-o", str(path)]) == 0
    text = path.read_text("utf-8")
    assert text.startswith(f"# attn-tui {words[0]}")
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-I", str(path)], capture_output=True, text=True, encoding="utf-8", check=True
    )
    *numbers, mark = text.partition("# expected")[2].splitlines()[1:]
    assert mark.startswith("# Written by attn-tui")
    names = [line[2:].split("  ")[0] for line in numbers]
    assert names
    assert [line[: len(name)] for line, name in zip(done.stdout.splitlines(), names, strict=True)] == names


def test_the_code_of_a_diagnosis_is_that_of_one_head(tmp_path: Path, capsys: Captured) -> None:
    write_capture(BUGS[0], tmp_path / "x.safetensors")
    words = ["diagnose", str(tmp_path / "x.safetensors"), "--layer", "0", "--head", "0", "--format", "torch"]
    assert "def away(scale)" in printed(words, capsys)


def test_a_program_for_pytorch_is_another_one(capsys: Captured) -> None:
    numpy, torch = (printed(["softmax", "--format", each], capsys) for each in ("python", "torch"))
    assert "import torch" in torch
    assert "import torch" not in numpy


def test_a_program_can_be_plain_ascii(capsys: Captured) -> None:
    assert printed(["report", "--d-k", "8", *SMALL, "--format", "python", "--ascii"], capsys).isascii()


@for_each(
    ("words", "pieces"),
    [
        (("learn",), "--format: … one step or question"),
        (("learn", "b1"), "--format: … one step or question"),
        (("diagnose", SAMPLE), "--format: … one head … --layer and --head"),
        (("diagnose", SAMPLE, "--layer", "1", "--head", "2"), "No code: q and k alone"),
        (("inspect", SAMPLE), "--format: … one head … --layer and --head"),
        (("inspect", SAMPLE, "--layer", "1", "--head", "2", "--rules", "all"), "--format: … one head … --rules"),
        (("sweep", "--d-k", "4", "--stderr", "0.5", *SMALL), "No code … --stderr"),
    ],
)
def test_where_there_is_no_program_one_line_says_so(words: tuple[str, ...], pieces: str, capsys: Captured) -> None:
    assert_refused([*words, "--format", "python"], pieces, capsys)
