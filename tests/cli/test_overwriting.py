"""What -o may replace: a result by a result, and nothing that attn-tui did not write."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.files import check_replaceable
from attn_tui.core.lab import experiment
from attn_tui.core.learning.claims import catalogue
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SMALL, WRONG, assert_refused, printed

Captured = pytest.CaptureFixture[str]
RUN = str(Path(__file__).parents[1] / "data" / "run.jsonl")
ONE_HEAD = ("--layer", "1", "--head", "0")
# A small run of each command that writes a result.
RUNS = {
    "report": SMALL,
    "sweep": ("--d-k", "4", "--n-keys", "8", "--batch", "2"),
    "inspect": (WRONG, *ONE_HEAD),
    "diagnose": (WRONG, *ONE_HEAD),
    "compare": (WRONG, WRONG, *ONE_HEAD),
    "check": (WRONG,),
    "softmax": (),
    "rules": SMALL,
    "claims": (),
    "cost": (),
    "train": ("--d-k", "4", "--rules", "none", "--steps", "2", "--seeds", "1"),
    "learn": ("1",),
    "watch": (RUN, "--once"),
}
ENDINGS = {"csv": (".csv", ".parquet"), "svg": (".svg", ".png", ".pdf", ".eps")}


def written() -> Iterator[tuple[str, str, str]]:
    """Every command that writes a result, each of its formats, and the endings of files in this format."""
    for name, row in COMMANDS.items():
        for kind in row.load().formats:
            for ending in ENDINGS.get(kind, ("",)):
                yield name, kind, ending


@pytest.fixture(autouse=True)
def one_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", catalogue.CLAIMS[:1])


@pytest.mark.parametrize("command", dict.fromkeys(command for command, _, _ in written()))
def test_a_result_in_any_format_may_be_replaced(command: str, tmp_path: Path, capsys: Captured) -> None:
    for _, kind, ending in (each for each in written() if each[0] == command):
        file = tmp_path / f"{kind}{ending}"
        words = [command, *RUNS[command], "--format", kind, "-o", str(file)]
        assert main(words) in (0, 1), capsys.readouterr()
        assert file.stat().st_size
        check_replaceable(file)


def test_a_result_replaces_one_of_another_command(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "result"
    for words in (["cost", "--format", "csv"], ["report", *SMALL], ["cost", "--format", "json"]):
        printed([*words, "-o", str(file)], capsys)
    assert "cost" in file.read_text("utf-8")


@for_each(
    "text",
    [
        b"# A page about attn-tui 0.3.0\n" * 20,
        b'{"schema": "other/report-2"}',
        b'{"schema": "attn-tui/watch-1", "step": 1}',  # a run that somebody watches
        b'{"schema": "attn-tui/parts-2"}\n',  # of --resume
        b'{"schema": "attn-tui/plan-1", "mine": 1}',
        b"# My log\nsee the page: Written by attn-tui 0.3.0 after 9 bytes. It is nice.\n",
        b"step,layer,head,entropy\n1,0,0,2.5\n",
        b"file,layer,layer_name,head,comment\n",
        b"PAR1 and nothing more",
        b"PAR1" + b"\xff" * 8 + b"PAR1",
        b"\x89PNG\r\n\x1a\n",
        b"x",
    ],
)
def test_a_file_of_others_is_refused_and_stays(text: bytes, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "report"
    file.write_bytes(text)
    says = f"{file}: exists and is not a result of attn-tui; use another name, or --overwrite"
    assert_refused(["report", *SMALL, "-o", str(file)], says, capsys)
    assert file.read_bytes() == text
    printed(["report", *SMALL, "--overwrite", "-o", str(file)], capsys)
    assert file.read_text("utf-8").startswith("d_k 8")


def test_a_file_that_appears_while_a_result_is_computed_stays(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report"
    measure = experiment.stream

    def stream(*given: Any, **named: Any) -> Any:
        file.write_text("mine")
        return measure(*given, **named)

    monkeypatch.setattr(experiment, "stream", stream)
    assert_refused(["report", *SMALL, "--format", "json", "-o", str(file)], "is not a result of attn-tui", capsys)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("kind", ["table", "markdown", "python"])
def test_a_result_that_somebody_went_on_with_is_theirs(kind: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "report"
    words = ["report", *SMALL, "--format", kind, "-o", str(file)]
    printed(words, capsys)
    result = file.read_bytes()
    for text in (b"# My notes\n" + result, result + b"# My notes\n", result.replace(b"entropy", b"our entropy", 1)):
        file.write_bytes(text)
        assert_refused(words, "is not a result of attn-tui", capsys)
        assert file.read_bytes() == text
    file.write_bytes(result)
    printed(words, capsys)


def test_a_result_is_written_to_a_pipe_without_a_mark(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "attn_tui", "report", *SMALL]
    expected = subprocess.run(words, capture_output=True, check=True).stdout
    for path in ("/dev/stdout", "/proc/self/fd/1"):
        done = subprocess.run([*words, "-o", path], capture_output=True, check=True, cwd=tmp_path)
        assert done.stdout == expected
    assert not [*tmp_path.iterdir()]


def test_a_recording_is_no_result(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "heads.safetensors"
    shutil.copy(WRONG, file)
    assert_refused(["report", *SMALL, "-o", str(file)], "is not a result of attn-tui", capsys)
    assert file.read_bytes() == Path(WRONG).read_bytes()


def test_an_empty_file_has_nothing_to_lose(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "report"
    file.touch()
    assert printed(["report", *SMALL, "-o", str(file)], capsys) == ""
    assert file.stat().st_size
