"""What the command line refuses: one line on stderr that says what, where and what is accepted; exit code 2."""

import argparse
import os
from pathlib import Path
from typing import NoReturn

import pytest
from attn_tui.core.captures.files import ENDINGS
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, Captured, assert_refused, refusal


@for_each(
    ("words", "says"),
    [
        (["reprot"], f"the commands are {', '.join(COMMANDS)}"),
        (["--d-k", "8", "report"], "attn-tui report"),
        (["report", "--dk", "8"], "--dk … --d-k … attn-tui report --help"),
        (["report", "--dk=8"], "--dk … --d-k?"),
        (["report", "--n-key", "8"], "--n-key"),
        (["--frobnicate"], "--frobnicate … attn-tui --help"),
        (["report", "--x\ny\x1b[31m"], r"--x\ny\x1b[31m"),
        (["report", "extra"], "'extra'"),
        (["report", "--d-k"], "--d-k: must have a value … attn-tui report --help"),
        (["report", "--d-k=--"], "--d-k: … '--' … attn-tui report --help"),
        (["cost", "--d-model=--"], "--d-model: … '--'"),
        (["report", "-o--"], "-o: … '--'"),
        (["--theme=--", "--", "x.npz"], "--theme: … '--'"),
        (["--", "--d-k=--"], "--d-k=-- is neither a file nor a command"),
        (["report", "--d-k", "0"], "--d-k: … '0' … from 1 to 16384"),
        (["--d-k", "0"], "--d-k: … '0' … from 1 to 16384"),
        (["report", "--d-k", "1e9"], "--d-k: … '1e9'"),
        (["report", "--d-k", ""], "--d-k: … ''"),
        (["report", "--d-k", "9" * 5000], "--d-k: … from 1 to 16384"),
        (["report", "--std-q", "-1"], "--std-q: … '-1'"),
        (["report", "--std-q", "-inf"], "--std-q: … '-inf'"),
        (["report", "--mean-q", "nan"], "--mean-q: … 'nan' … from -100 to 100"),
        (["report", "--components", "Normal"], "--components: … 'Normal' … normal, uniform, laplace, "),
        (["report", "--scale", "sqrt"], "--scale: … 'sqrt' … none, sqrt_d_k, d_k, log_d_k, "),
        (["report", "--scale", "nan"], "--scale: … 'nan'"),
        (["report", "--scale", "0.5", "--multiplier", "2"], "--scale … --multiplier"),
        (["report", "--scale", "log_d_k", "--d-k", "1"], "1/ln d_k … d_k = 1"),
        (["report", "--arithmetic", "exact"], "--arithmetic: … one of eager, fused … 'exact'"),
        (["report", "--arithmetic", "eager", "--precision", "float8_e5m2"], "arithmetic: … fused … float8 e5m2"),
        (
            ["sweep", "--arithmetic", "eager", "--vary", "precision=float16,float8_e5m2"],
            "arithmetic: … fused … float8",
        ),
        (["rules", "--arithmetic", "eager", "--precision", "float8_e4m3fn"], "arithmetic: … fused … float8 e4m3"),
        (["report", "--format", "xml"], "--format: … one of table, json, csv, markdown … 'xml'"),
        (["report", "-o", "."], ".: … directory"),
        (["report", "-o", ""], "-o: must have a value"),
        (["report", "-o", "no/such/report.json"], "directory"),
        (["report", "-o", "/proc/attn-tui.json"], "cannot be written"),
        (["inspect"], "FILE; see attn-tui inspect --help"),
        (["inspect", "missing.npz"], "missing.npz: no such file"),
        (["missing.npz"], "missing.npz: no such file"),
        (["inspect", "."], ".: … no .safetensors, .npz or .npy files in this folder"),
        (["inspect", __file__], ENDINGS),
        (["inspect", SAMPLE, "--layer", "6"], "layer 6 … 0 to 5"),
        (["inspect", SAMPLE, "--layer", "x"], "layer x … 0 to 5"),
        (["inspect", SAMPLE, "--layer", "2", "--head", "12"], "head 12 … layer 2 … 0 to 11"),
        (["inspect", SAMPLE, "--head", "12"], "head 12 … 0 to 11"),
        (["inspect", SAMPLE, "--head", "-1"], "--head: … '-1'"),
        (["inspect", SAMPLE, "--head", "9" * 5000], "--head"),
        (["inspect", SAMPLE, "--scale", "sqrt"], "--scale: … 'sqrt' … file, none, sqrt_d_k"),
        (["inspect", SAMPLE, "--axes", "a,b"], "'a,b'"),
        (["inspect", SAMPLE, "-o", SAMPLE], f"{SAMPLE}: "),
        (["inspect", SAMPLE, "--d-k", "8"], "--d-k"),
    ],
)
def test_a_mistake_is_refused_in_one_line(words: list[str], says: str, capsys: Captured) -> None:
    assert_refused(words, says, capsys)


@pytest.mark.parametrize("words", [["report", "--mask", "x" * 10_000], ["inspect", "x" * 10_000 + ".npz"]])
def test_a_very_long_word_is_shortened(words: list[str], capsys: Captured) -> None:
    line = refusal(words, capsys)
    assert len(line) < 400
    assert f"{'x' * 50}…{'x' * 50}" in line


@for_each("content", [b"", b"\0" * 64, b"PK\3\4 no archive", b"\xff" * 9, b'{"a": 1}'])
@for_each("suffix", [".npz", ".npy", ".safetensors", ""])
def test_a_file_of_garbage_is_refused_in_one_line(
    content: bytes, suffix: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / f"garbage{suffix}"
    file.write_bytes(content)
    assert str(file) in refusal(["inspect", str(file)], capsys)


def test_control_characters_in_names_of_files_are_escaped(tmp_path: Path, capsys: Captured) -> None:
    assert r"a\nb\x1b[31m.npz" in refusal(["inspect", str(tmp_path / "a\nb\x1b[31m.npz")], capsys)
    assert r"\udcff.npz" in refusal(["inspect", os.fsdecode(b"\xff.npz")], capsys)


def test_a_missing_argument_is_named_however_python_reports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect"]) == 2
    said = capsys.readouterr().err

    def raising(*_: object) -> NoReturn:  # as from Python 3.13 on
        raise argparse.ArgumentError(None, "the following arguments are required: FILE")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", raising)
    assert main(["inspect"]) == 2
    assert capsys.readouterr().err == said
    assert "FILE" in said
    assert "None" not in said
