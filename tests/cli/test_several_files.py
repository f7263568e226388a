"""Several files, or a folder, for inspect, diagnose and check: each head names its file, options apply to all."""

import csv
import io
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures import heads as measuring
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import COMMAND, SAMPLE, WRONG, Captured, assert_refused, printed, refusal

COMMANDS = ("inspect", "diagnose", "check")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two files with as many heads; the logits of the second are ten times as large, and its tokens come first."""
    q = np.random.default_rng(0).normal(size=(2, 6, 4))
    names = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for factor, name in zip((1, 10), names, strict=True):
        np.savez(name, q=factor * q, k=q, schema="attn-tui/qk-2", scale=0.5, causal="true")
    return [str(name) for name in names]


def rows(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("command", ["inspect", "diagnose", "inspect --rules all"])
def test_the_heads_are_those_of_each_file_in_order(command: str, files: list[str], capsys: Captured) -> None:
    words = command.split()
    together = json.loads(printed([*words, *files, "--format", "json"], capsys))
    alone = [json.loads(printed([*words, file, "--format", "json"], capsys)) for file in files]
    assert together["heads"] == [head for each in alone for head in each["heads"]]
    assert together["files"] == [each["file"] for each in alone]
    assert [head["file"] for head in together["heads"]] == [files[0]] * 2 + [files[1]] * 2
    found = rows(printed([*words, *files, "--format", "csv"], capsys))
    assert found == [line for file in files for line in rows(printed([*words, file, "--format", "csv"], capsys))]
    assert list(dict.fromkeys(line["file"] for line in found)) == files


@for_each("command", [*COMMANDS, "inspect --rules all"])
@for_each("kind", ["table", "markdown"])
def test_tables_name_the_file(command: str, kind: str, files: list[str], capsys: Captured) -> None:
    limits = ("--max-logit", "0.1", "--min-file-entropy", "0") if command == "check" else ()
    words = [*command.split(), *files, "--format", kind, *limits]
    code, out = main(words), capsys.readouterr().out
    assert code == (1 if command == "check" else 0)
    assert out.index("a.npz") < out.index("b.npz")


def test_files_of_one_name_are_told_apart_by_their_folders(files: list[str], capsys: Captured) -> None:
    other = Path(files[0]).parent / "other"
    other.mkdir()
    np.savez(other / "a.npz", q=np.eye(3), k=np.eye(3))
    assert main(["inspect", files[0], str(other / "a.npz"), "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert f"| {files[0]} | 0 | 1 |" in out
    assert f"| {other / 'a.npz'} | 0 | 0 |" in out


def test_a_folder_may_be_among_them(files: list[str], capsys: Captured) -> None:
    folder = str(Path(files[0]).parent)
    heads = json.loads(printed(["inspect", folder, SAMPLE, "--format", "json", "--head", "0"], capsys))["heads"]
    assert list(dict.fromkeys(head["file"] for head in heads)) == [*files, SAMPLE]
    assert f"| {Path(folder).name}/a.npz | 0 |" in printed(
        ["inspect", folder, SAMPLE, "--format", "markdown"], capsys
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_file_is_named_before_any_work(
    command: str, files: list[str], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(measuring, "read_head")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    for bad, says in (("bad.npz", "not a readable"), ("gone.npz", "no such file"), ("a.npz", "is given twice")):
        assert_refused([command, *files, str(tmp_path / bad)], f"{tmp_path / bad}: … {says}", capsys)


def test_options_apply_to_all_files(files: list[str], tmp_path: Path, capsys: Captured) -> None:
    x = np.random.default_rng(0).normal(size=(6, 2, 4))
    for name in ("c.npz", "d.npz"):
        np.savez(tmp_path / name, q=x, k=x)
    words = ["inspect", str(tmp_path / "c.npz"), str(tmp_path / "d.npz"), "--axes", "token,head,d_k"]
    assert main([*words, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [head["head"] for head in json.loads(out)["heads"]] == [0, 1, 0, 1]
    notes = [f"attn-tui: note: {word}: " for word in words[1:3]]
    assert all(line.startswith((notes[0], notes[1])) for line in err.splitlines())
    assert main([*words[:3], "--layer", "7"]) == 2
    assert "c.npz: no layer 7" in capsys.readouterr().err.splitlines()[-1]


def test_the_worst_heads_are_those_of_all_files(capsys: Captured) -> None:
    found = json.loads(printed(["inspect", SAMPLE, WRONG, "--worst", "3", "--format", "json"], capsys))
    assert len(found["heads"]) == 3
    assert {head["file"] for head in found["heads"]} == {WRONG}  # whose evidence contradicts the scale
    alone = json.loads(printed(["inspect", WRONG, "--worst", "3", "--format", "json"], capsys))
    assert found["heads"] == alone["heads"]


@pytest.mark.parametrize("executor", ["serial", "threads:2"])
def test_the_worst_heads_have_their_reasons_wherever_files_are_named_from(
    executor: str, files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    words = ["--worst", "9", "--format", "json", "--executor", executor]
    absolute = json.loads(printed(["inspect", *files, *words], capsys))["heads"]
    monkeypatch.chdir(Path(files[0]).parent)
    relative = json.loads(printed(["inspect", "a.npz", "b.npz", *words], capsys))["heads"]
    assert [{**head, "file": str(Path(head["file"]).resolve())} for head in relative] == absolute
    assert len(relative) == 4


def test_a_file_may_be_given_beside_its_folder(files: list[str], capsys: Captured) -> None:
    words = ["inspect", str(Path(files[0]).parent), files[0], "--worst", "9", "--format", "json"]
    heads = json.loads(printed(words, capsys))["heads"]
    assert sorted((head["file"], head["head"]) for head in heads) == sorted(
        (file, head) for file in (files[0], *files) for head in (0, 1)
    )


def test_a_check_fails_if_one_file_fails(files: list[str], capsys: Captured) -> None:
    limit = ["--max-logit", "20", "--min-file-entropy", "0.5"]
    assert main(["check", files[0], *limit]) == 0
    assert main(["check", *files, *limit]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("2 files, 4 heads: ")
    assert "a.npz" not in out
    [block] = [each for each in out.split("\n\n") if "median entropy" in each]
    assert "b.npz" in block
    assert main(["check", *files, *limit, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {each["file"] for each in found["findings"]} == {files[1]}
    assert [head["file"] for head in found["heads"]] == [files[0]] * 2 + [files[1]] * 2
    assert main(["check", *files, *limit, "--format", "junit"]) == 1
    suites = [line for line in capsys.readouterr().out.splitlines() if "<testsuite " in line]
    assert ['failures="0"' in line for line in suites] == [True, False]
    assert main(["check", *files, *limit, "--format", "github"]) == 1
    assert all(line.startswith(f"::error file={files[1]},") for line in capsys.readouterr().out.splitlines())


def test_each_file_is_compared_with_the_baseline(files: list[str], capsys: Captured) -> None:
    assert main(["check", *files, "--baseline", files[0], "--max-logit", "1e9", "--min-file-entropy", "0"]) == 1
    out = capsys.readouterr().out
    assert re.findall(r"\w\.npz: layer 0, .*", out) == ["b.npz: layer 0, all 2 heads"]
    assert "is × 5 " in out  # 10 times as large as × 0.5


def test_a_finding_of_one_file_may_be_allowed(files: list[str], capsys: Captured) -> None:
    words = ["check", *files, "--max-logit", "20", "--min-file-entropy", "0", "--format", "json"]
    assert main(words) == 1
    rules = {each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]}
    allowed = [word for rule in rules for word in ("--allow", f"*:{rule}")]
    assert main([*words, *allowed]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["findings"] == 0


def test_the_app_and_code_take_one_file(files: list[str], capsys: Captured) -> None:
    assert_refused(files, f"unexpected argument {files[1]!r}: the app opens one file … `attn-tui inspect`", capsys)
    words = ["inspect", *files, "--layer", "0", "--head", "0", "--format", "python"]
    assert_refused(words, "--format: python prints one head of one file", capsys)


def test_a_head_that_cannot_be_read_is_left_out_and_said(tmp_path: Path, files: list[str], capsys: Captured) -> None:
    q = np.random.default_rng(0).normal(size=(2, 6, 4))
    q[1, 0, 0] = np.nan
    np.savez(tmp_path / "c.npz", q=q, k=np.ones((2, 6, 4)))
    assert main(["inspect", str(tmp_path / "c.npz"), files[0], "--format", "jsonl"]) == 2
    out, err = capsys.readouterr()
    first, *lines = map(json.loads, out.splitlines())
    assert (first["lines"], [(Path(line["file"]).name, line["head"]) for line in lines]) == (
        4,
        [("c.npz", 0), ("a.npz", 0), ("a.npz", 1)],
    )
    assert "NaN" in err
    assert err.splitlines()[-1].endswith("(1 of 4 heads are left out)")
    assert main(["inspect", str(tmp_path / "c.npz"), files[0], "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["complete"] is False


def test_parquet_names_the_file_of_each_row(files: list[str], tmp_path: Path, capsys: Captured) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    for command in ("inspect", "diagnose"):
        assert printed([command, *files, "-o", str(tmp_path / "x.parquet")], capsys) == ""
        found = parquet.read_table(tmp_path / "x.parquet").to_pylist()
        assert [row["file"] for row in found] == [
            line["file"] for line in rows(printed([command, *files, "--format", "csv"], capsys))
        ]
        assert {type(row["head"]) for row in found} == {int}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_heads_are_printed_as_they_finish_and_ctrl_c_keeps_them(kind: str, tmp_path: Path) -> None:
    q = np.random.default_rng(0).normal(size=(40, 700, 64)).astype(np.float32)
    for name in ("a.npz", "b.npz"):
        np.savez(tmp_path / name, q=q, k=q)
    words = ["inspect", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--format", kind, "--executor", "serial"]
    with subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        assert process.wait(300) == 130
        told = process.stderr.read().splitlines()[-1]
    assert all(line.endswith("\n") for line in lines)
    found = rows("".join(lines)) if kind == "csv" else [json.loads(line) for line in lines[1:]]
    heads = {(line["file"], line["head"]) for line in found}
    assert 0 < len(heads) < 80
    assert told == f"attn-tui: interrupted: kept {len(heads)} of 80 heads"


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
    assert re.findall(r"step.*: layer 0", table) == [f"{name}: layer 0" for name in FILES]
    assert main(["check", run, "--max-logit", "4"]) == 1
    found = capsys.readouterr().out
    assert "step-100.npz: layer 0, " in found
    assert "step-3.npz" not in found


def test_a_folder_without_captures_is_refused_in_a_line(tmp_path: Path, capsys: Captured) -> None:
    for command in ("inspect", "diagnose", "check"):
        assert "no .safetensors, .npz or .npy files in this folder" in refusal([command, str(tmp_path)], capsys)
