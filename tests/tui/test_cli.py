"""The command line as people and scripts meet it: in this process where that is enough, else in one of its own."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.reader import sample_path
from attn_tui.core.export.formats import version
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.cli import main
from attn_tui.tui.settings import SETTINGS

COMMAND = [sys.executable, "-m", "attn_tui.tui"]
SAMPLE = str(sample_path())
SMALL = ["--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2"]
FOREVER = ["--n-keys", "8192", "--n-queries", "8192", "--batch", "4096"]
NAMES = [statistic.name for statistic in STATISTICS]

Captured = pytest.CaptureFixture[str]


def attn(*words: str, env: Mapping[str, str] | None = None, **settings: object) -> subprocess.CompletedProcess[bytes]:
    """attn-tui in a process of its own, with a locale that shows Unicode unless `env` says otherwise."""
    clean = {k: v for k, v in os.environ.items() if k not in ("LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "COLUMNS")}
    return subprocess.run(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output="stdout" not in settings,
        env=clean | {"LANG": "C.UTF-8"} | dict(env or {}),
        timeout=60,
        check=False,
        **settings,  # type: ignore[call-overload]
    )


def refusal(words: Sequence[str], captured: Captured) -> str:
    """The one line with which these words are refused."""
    assert main([*words]) == 2
    out, err = captured.readouterr()
    assert out == ""
    assert err.startswith("attn-tui: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("attn-tui: ").strip()


def printed(words: Sequence[str], captured: Captured) -> str:
    """What these words print, without a word on stderr."""
    assert main([*words]) == 0
    out, err = captured.readouterr()
    assert err == ""
    return out


def on_terminal(
    words: Sequence[str],
    act: Callable[[subprocess.Popen[bytes], int], object] | None = None,
    when: bytes = b"",
    stdin: bool = True,
    stdout: bool = True,
    **env: str,
) -> tuple[int, str]:
    """The exit code and everything written to a terminal of 100 columns; `act` is called once `when` is seen."""
    ours, theirs = pty.openpty()
    environment = dict(os.environ) | {"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": "100", "LINES": "24"}
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdin=theirs if stdin else subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.DEVNULL,
        stderr=theirs,
        env=environment | env,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen, end = b"", time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:  # nobody holds the other side any more
                break
            if not data:
                break
            seen += data
        if act is not None and when in seen:
            act(process, ours)
            act = None
    os.close(ours)
    try:
        return process.wait(10), seen.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()


def capture_file(folder: Path, q: object) -> str:
    """A file of these queries, [head, token, d_k], and as many keys."""
    file = folder / "capture.npz"
    np.savez(file, q=np.asarray(q), k=np.ones_like(np.asarray(q)))
    return str(file)


# Results


def test_report_says_the_same_in_every_format(capsys: Captured) -> None:
    columns = json.loads(printed(["report", *SMALL, "--format", "json"], capsys))["columns"]
    rows = list(csv.DictReader(io.StringIO(printed(["report", *SMALL, "--format", "csv"], capsys))))
    markdown = printed(["report", *SMALL, "--format", "markdown"], capsys)
    table = printed(["report", *SMALL], capsys)
    assert [c["scale"]["rule"] for c in columns] == ["none", "sqrt_d_k"]
    assert len(rows) == 2 * len(NAMES)
    for statistic in STATISTICS:
        label = re.escape(statistic.label)
        in_markdown = re.search(rf"^\| {label} \| (\S+).*? \|.*?\| (\S+).*?\|.*?\|$", markdown, re.M)
        in_table = re.search(rf"^ {label} +(\S+).*$", table, re.M)
        assert in_markdown, statistic.label
        assert in_table, statistic.label
        for index, column in enumerate(columns):
            value = column["measured"][statistic.name]["value"]
            csv_row = next(
                r for r in rows if r["scale"] == column["scale"]["rule"] and r["statistic"] == statistic.name
            )
            assert float(csv_row["value"]) == value
            factor = 100 if statistic.unit == "share" else 1
            assert float(in_markdown[index + 1]) == pytest.approx(factor * value, rel=1e-3)
        unscaled = columns[0]["measured"][statistic.name]["value"] * (100 if statistic.unit == "share" else 1)
        assert float(in_table[1].replace("−", "-")) == pytest.approx(unscaled, rel=1e-2, abs=1e-5)


def test_report_table_has_title_sentence_and_histograms(capsys: Captured) -> None:
    table = printed(["report", *SMALL, "--components", "uniform", "--std-q", "2"], capsys)
    assert table.startswith("d_k 8 · keys 16 · queries 4 · batch 2 · scale 1/√d_k · components uniform")
    assert "std of q 2" in table
    assert "Unscaled, logits have standard deviation" in table
    assert "attention weights" in table
    assert re.search(r"unscaled × 1 +theory +scaled × 0.354 \(1/√d_k\) +theory", table)
    assert all(line == line.rstrip() for line in table.splitlines())


def test_a_narrow_terminal_has_no_room_for_theory() -> None:
    wide, narrow = (on_terminal(["report", *SMALL], NO_COLOR="1", COLUMNS=columns)[1] for columns in ("120", "80"))
    assert "theory" in wide
    assert "theory" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80


def test_without_a_terminal_the_app_prints_the_report(capsys: Captured) -> None:
    assert printed(SMALL, capsys) == printed(["report", *SMALL], capsys)


def test_without_a_terminal_a_file_is_inspected(capsys: Captured) -> None:
    assert printed([SAMPLE], capsys) == printed(["inspect", SAMPLE], capsys)


def test_parameters_arrive(capsys: Captured) -> None:
    words = ["--components", "student_t", "--degrees-of-freedom", "7", "--mean-q", "-1e-3", "--correlation", "-.5"]
    words += ["--mask", "causal", "--seed=9", "--scale", "d_k"]
    parameters = json.loads(printed(["report", *SMALL, *words, "--format", "json"], capsys))["parameters"]
    expected = {"components": "student_t", "degrees_of_freedom": 7, "mean_q": -0.001, "correlation": -0.5, "seed": 9}
    assert parameters.items() >= (expected | {"mask": "causal", "scale": "d_k", "d_k": 8, "batch": 2}).items()


@pytest.mark.parametrize(
    "words", [["--scale", "0.05"], ["--scale", "custom", "--multiplier", "0.05"], ["--multiplier", "0.05"]]
)
@pytest.mark.parametrize("command", [["report", *SMALL], ["inspect", SAMPLE, "--layer", "1", "--head", "2"]])
def test_a_number_is_a_scale(command: list[str], words: list[str], capsys: Captured) -> None:
    found = json.loads(printed([*command, *words, "--format", "json"], capsys))
    scales = [entry["scale"] for entry in found.get("columns", found.get("heads"))]
    assert {"rule": "custom", "multiplier": 0.05} in scales


def test_inspect_lists_every_head_in_every_format(capsys: Captured) -> None:
    heads = json.loads(printed(["inspect", SAMPLE, "--format", "json"], capsys))["heads"]
    rows = list(csv.DictReader(io.StringIO(printed(["inspect", SAMPLE, "--format", "csv"], capsys))))
    table = printed(["inspect", SAMPLE], capsys)
    markdown = printed(["inspect", SAMPLE, "--format", "markdown"], capsys)
    assert [(h["layer"], h["head"]) for h in heads] == [(layer, head) for layer in range(6) for head in range(12)]
    assert {h["scale"]["rule"] for h in heads} == {"file"}
    assert len(rows) == 72 * len(NAMES)
    lines = [line.split() for line in table.splitlines() if re.match(r" +\d+ +\d+ ", line)]
    cells = [line.split("|") for line in markdown.splitlines() if re.match(r"\| \d", line)]
    for head, line, cell in zip(heads, lines, cells, strict=True):
        std = head["measured"]["logit_std"]["value"]
        dead = head["measured"]["dead_rows"]["value"]
        assert [int(line[0]), int(line[1])] == [int(cell[1]), int(cell[2])] == [head["layer"], head["head"]]
        assert float(line[2]) == pytest.approx(std, abs=0.005)
        assert float(cell[5]) == pytest.approx(std, rel=1e-3)
        assert float(line[8]) == pytest.approx(100 * dead, abs=0.05)
    assert lines[2][-1] == "one-hot"
    assert lines[12][-1] == "sink"
    assert "sentence-transformers/all-MiniLM-L6-v2" in table


def test_inspect_shows_one_head_as_the_app_does(capsys: Captured) -> None:
    table = printed(["inspect", SAMPLE, "--layer", "3", "--head", "5"], capsys)
    assert re.search(r"unscaled × 1 +the file's × 0.177", table)
    assert "attention weights" in table
    heads = json.loads(printed(["inspect", SAMPLE, "--layer", "3", "--head", "5", "--format", "json"], capsys))[
        "heads"
    ]
    assert [(h["layer"], h["head"], h["scale"]["rule"]) for h in heads] == [(3, 5, "none"), (3, 5, "file")]


def test_inspect_takes_one_layer_by_number_or_name_and_one_head_of_each(capsys: Captured) -> None:
    number = printed(["inspect", SAMPLE, "--layer", "3", "--format", "csv"], capsys)
    assert (
        printed(["inspect", SAMPLE, "--layer", "encoder.layer.3.attention.self", "--format", "csv"], capsys) == number
    )
    assert {row["layer"] for row in csv.DictReader(io.StringIO(number))} == {"3"}
    heads = json.loads(printed(["inspect", SAMPLE, "--head", "5", "--format", "json"], capsys))["heads"]
    assert [(h["layer"], h["head"]) for h in heads] == [(layer, 5) for layer in range(6)]


def test_inspect_replaces_the_scale_of_a_list(capsys: Captured) -> None:
    heads = json.loads(printed(["inspect", SAMPLE, "--scale", "none", "--format", "json"], capsys))["heads"]
    assert {h["scale"]["multiplier"] for h in heads} == {1.0}
    assert "scale: unscaled × 1" in printed(["inspect", SAMPLE, "--scale", "none"], capsys)


def test_a_file_of_one_head_is_shown_in_full_and_its_gaps_are_noted(tmp_path: Path, capsys: Captured) -> None:
    file = capture_file(tmp_path, np.linspace(-1, 1, 24, dtype="f4").reshape(1, 6, 4))
    assert main(["inspect", file]) == 0
    out, err = capsys.readouterr()
    assert "unscaled × 1" in out
    assert "does not say the scale" in err
    assert all(line.startswith("attn-tui: note: ") for line in err.splitlines())


def test_axes_are_taken_with_and_without_the_command(tmp_path: Path, capsys: Captured) -> None:
    file = capture_file(tmp_path, np.linspace(-1, 1, 24, dtype="f4").reshape(1, 6, 4))
    for command in ([], ["inspect"]):
        assert main([*command, file, "--axes", "token,head,d_k"]) == 0
        assert len(re.findall(r"^ +0 +\d ", capsys.readouterr().out, re.M)) == 6


def test_heads_that_cannot_be_read_do_not_hide_the_others(tmp_path: Path, capsys: Captured) -> None:
    q = np.ones((3, 6, 4), dtype="f4")
    q[1, 2, 3] = np.nan
    assert main(["inspect", capture_file(tmp_path, q), "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert [h["head"] for h in json.loads(out)["heads"]] == [0, 2]
    assert "NaN" in err.splitlines()[-1]
    assert "1 of 3 heads are left out" in err.splitlines()[-1]


def test_options_without_effect_are_noted(capsys: Captured) -> None:
    assert main(["report", *SMALL, "--degrees-of-freedom", "7", "--scale", "d_k", "--multiplier", "2"]) == 0
    err = capsys.readouterr().err
    assert "note: --degrees-of-freedom has no effect" in err
    assert "note: --multiplier has no effect" in err


# Refusals


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["reprot"], "neither a file nor a command; the commands are report, sweep, "),
        (["--d-k", "8", "report"], "report comes first"),
        (["report", "--dk", "8"], "there is no option --dk (did you mean --d-k?); see attn-tui report --help"),
        (["report", "--dk=8"], "did you mean --d-k?"),
        (["report", "--n-key", "8"], "there is no option --n-key"),
        (["--frobnicate"], "there is no option --frobnicate; see attn-tui --help"),
        (["report", "--x\ny\x1b[31m"], r"--x\ny\x1b[31m"),
        (["report", "extra"], "'extra' is one word too many"),
        (["report", "--d-k"], "--d-k: expected one argument"),
        (["report", "--d-k", "0"], "--d-k: '0' is not accepted; it takes a whole number from 1 to 16384"),
        (["--d-k", "0"], "--d-k: '0' is not accepted"),
        (["report", "--d-k", "1e9"], "whole number from 1 to 16384"),
        (["report", "--d-k", ""], "--d-k: ''"),
        (["report", "--d-k", "9" * 5000], "whole number from 1 to 16384"),
        (["report", "--std-q", "-1"], "--std-q: '-1'"),
        (["report", "--std-q", "-inf"], "--std-q: '-inf'"),
        (["report", "--mean-q", "nan"], "--mean-q: 'nan' is not accepted; it takes a number from -100 to 100"),
        (["report", "--components", "Normal"], "one of normal, uniform, laplace, rademacher, student_t"),
        (["report", "--scale", "sqrt"], "one of none, sqrt_d_k, d_k, log_d_k, two_sqrt_d_k, mup, "),
        (["report", "--scale", "nan"], "--scale: 'nan'"),
        (["report", "--scale", "0.5", "--multiplier", "2"], "is a multiplier already"),
        (["report", "--scale", "log_d_k", "--d-k", "1"], "1/ln d_k has no value at d_k = 1"),
        (["report", "--format", "xml"], "markdown"),
        (["report", "-o", "."], "is a directory"),
        (["report", "-o", "no/such/report.json"], "there is no directory"),
        (["report", "-o", "/proc/attn-tui.json"], "cannot be written"),
        (["inspect"], "required: FILE; see attn-tui inspect --help"),
        (["inspect", "missing.npz"], "missing.npz: no such file"),
        (["missing.npz"], "missing.npz: no such file"),
        (["inspect", "."], "is a directory"),
        (["inspect", __file__], "a .safetensors, .npz or .npy file is accepted"),
        (["inspect", SAMPLE, "--layer", "6"], "there is no layer 6; it has layers 0 to 5"),
        (["inspect", SAMPLE, "--layer", "x"], "there is no layer x; it has layers 0 to 5"),
        (["inspect", SAMPLE, "--layer", "2", "--head", "12"], "there is no head 12; layer 2 has heads 0 to 11"),
        (["inspect", SAMPLE, "--head", "12"], "there is no head 12; its layers have heads 0 to 11"),
        (["inspect", SAMPLE, "--head", "-1"], "--head: '-1' is not accepted"),
        (["inspect", SAMPLE, "--head", "9" * 5000], "--head"),
        (["inspect", SAMPLE, "--scale", "sqrt"], "one of file, none, sqrt_d_k"),
        (["inspect", SAMPLE, "--axes", "a,b"], "'a,b' are not axes"),
        (["inspect", SAMPLE, "-o", SAMPLE], "is the capture itself"),
        (["inspect", SAMPLE, "--d-k", "8"], "there is no option --d-k"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_nonsense_is_refused_in_one_line(words: list[str], says: str, capsys: Captured) -> None:
    assert says in refusal(words, capsys)


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"PK\3\4 no archive", b"\xff" * 9, b'{"a": 1}'])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".safetensors", ""])
def test_garbage_is_refused_in_one_line(content: bytes, suffix: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / f"garbage{suffix}"
    file.write_bytes(content)
    assert str(file) in refusal(["inspect", str(file)], capsys)


def test_names_of_files_are_made_safe(tmp_path: Path, capsys: Captured) -> None:
    assert r"a\nb\x1b[31m.npz" in refusal(["inspect", str(tmp_path / "a\nb\x1b[31m.npz")], capsys)
    assert r"\udcff.npz" in refusal(["inspect", os.fsdecode(b"\xff.npz")], capsys)


# Files


@pytest.mark.parametrize("kind", ["table", "json", "csv", "markdown"])
def test_o_writes_what_stdout_would_get(kind: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "übersicht"
    assert printed(["report", *SMALL, "--format", kind, "-o", str(file)], capsys) == ""
    assert file.read_text("utf-8") == printed(["report", *SMALL, "--format", kind], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["übersicht"]


def test_o_replaces_a_file_and_keeps_its_mode_and_its_links(tmp_path: Path, capsys: Captured) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    printed(["report", *SMALL, "--format", "json", "-o", str(link)], capsys)
    assert link.is_symlink()
    assert json.loads(file.read_text())["schema"] == "attn-tui/report-1"
    assert file.stat().st_mode & 0o777 == 0o640


def test_o_leaves_the_old_file_when_writing_fails(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert "No space left on device" in refusal(["report", *SMALL, "-o", str(file)], capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]


def test_o_takes_a_device_and_a_dash(capsys: Captured) -> None:
    assert printed(["report", *SMALL, "-o", "/dev/null"], capsys) == ""
    assert printed(["report", *SMALL, "-o", "-"], capsys) == printed(["report", *SMALL], capsys)


def test_a_file_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    assert attn("report", *SMALL, "-o", str(file), env={"LC_ALL": "C"}).returncode == 0
    assert "√d_k" in file.read_text("utf-8")


# Pipes, signals, locales, terminals


@pytest.mark.parametrize("words", [["report", *SMALL], ["inspect", SAMPLE, "--format", "json"], ["--help"]])
def test_a_reader_that_leaves_ends_it_quietly(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = attn(*words, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert result.returncode in ((0, 141) if "--help" in words else (141,))  # argparse forgives a reader that left
    assert result.stderr == b""


def test_what_was_written_before_a_failure_is_not_lost() -> None:
    fails = "print('written'); raise cli.InputError('enough')"
    program = f"from attn_tui.tui import cli\ndef run(*_): {fails}\ncli._run = run\ncli.program()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "written\n", "attn-tui: enough\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        result = attn("report", *SMALL, stdout=full, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr) == (2, b"attn-tui: stdout: No space left on device\n")


def test_the_readme_shows_what_its_reports_print(capsys: Captured) -> None:
    asked = ["report", "--n-keys", "10", "--format", "markdown", "--d-k"]
    lines = [line for d_k in ("16", "64", "256") for line in printed([*asked, d_k], capsys).splitlines()]
    shown = re.findall(r"^\| entropy \|.*$", (Path(__file__).parents[2] / "README.md").read_text(), re.M)
    assert shown == [line for line in lines if line.startswith("| entropy |")]
    assert len(shown) == 3


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [(1, ["report", *SMALL], 2), (1, ["report", *SMALL, "-o", "/dev/null"], 0), (2, ["report", "--d-k", "0"], 2)],
)
def test_closed_streams_are_no_surprise(closed: int, words: list[str], code: int) -> None:
    result = attn(*words, preexec_fn=lambda: os.close(closed))
    assert result.returncode == code
    assert b"Traceback" not in result.stderr


def test_a_long_run_says_how_far_it_is_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    def interrupt(process: subprocess.Popen[bytes], _: int) -> None:
        process.send_signal(signal.SIGINT)

    words = ["report", *FOREVER, "-o", str(tmp_path / "report.txt")]
    code, seen = on_terminal(words, interrupt, b"computing", stdout=False)
    assert code == 130
    assert re.fullmatch(r"(\rcomputing +\d+ %)+\r +\r", seen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["table", "markdown", "csv", "json"])
@pytest.mark.parametrize(
    "command", [["report", *SMALL], ["inspect", SAMPLE], ["inspect", SAMPLE, "--head", "1", "--layer", "1"]]
)
def test_ascii_is_ascii(command: list[str], kind: str, capsys: Captured) -> None:
    assert printed([*command, "--ascii", "--format", kind], capsys).isascii()


@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C"},
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
    ],
    ids=str,
)
@pytest.mark.parametrize("words", [["report", *SMALL], ["inspect", SAMPLE], ["--help"], ["report", "--help"]])
def test_a_locale_without_unicode_gets_ascii(words: list[str], env: dict[str, str]) -> None:
    result = attn(*words, env=env)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii()


def test_nothing_but_text_reaches_a_pipe() -> None:
    result = attn("report", *SMALL, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    assert b"\x1b" not in result.stdout
    assert "√d_k" in result.stdout.decode()


def test_a_terminal_gets_colours_unless_it_wants_none() -> None:
    assert "\x1b[" in on_terminal(["report", *SMALL])[1]
    assert "\x1b" not in on_terminal(["report", *SMALL], NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(["report", *SMALL], TERM="dumb")[1]


def test_a_dumb_terminal_gets_the_report() -> None:
    code, seen = on_terminal(SMALL, TERM="dumb")
    assert code == 0
    assert "unscaled × 1" in seen


def test_the_app_wants_a_keyboard() -> None:
    code, seen = on_terminal([], stdin=False)
    assert code == 2
    assert re.fullmatch(r"attn-tui: the app reads its keys from a terminal[^\n]*\r\n", seen)


def test_the_app_says_what_is_wrong_before_it_opens() -> None:
    for words in (["missing.npz"], [__file__], ["--theme", "none"], ["--d-k", "0"]):
        code, seen = on_terminal(words)
        assert (code, seen.count("\n")) == (2, 1)
        assert "\x1b" not in seen


@pytest.mark.parametrize("words", [[], ["--ascii", "--d-k", "8"], [SAMPLE], ["--theme", "attn-light"]])
def test_the_app_opens_and_q_leaves_it(words: list[str]) -> None:
    code, seen = on_terminal([*words, "--no-mouse"], lambda _, terminal: os.write(terminal, b"q"), b"d_k")
    assert code == 0
    assert seen.rindex("\x1b[?1049l") > seen.index("\x1b[?1049h")
    assert "\x1b[?1000h" not in seen


# Help


@pytest.mark.parametrize("words", [[], ["report"], ["inspect"]])
def test_help_teaches(words: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = printed([*words, "--help"], capsys)
    assert shown == printed([*words, "-h"], capsys)
    assert "examples:" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    for example in re.findall(r"^  (attn-tui .*?)(?:   .*| \|.*)?$", shown.partition("examples:")[2], re.M):
        assert example.split()[0] == "attn-tui"


@pytest.mark.parametrize("words", [[], ["report"]])
def test_help_has_every_parameter(words: list[str], capsys: Captured) -> None:
    shown = " ".join(printed([*words, "--help"], capsys).split())
    for option in ("--d-k N", "--scale RULE", "--correlation X", "--components NAME", "--seed N"):
        assert option in shown
    assert "Takes a whole number from 1 to 16384; default 64." in shown


def test_examples_of_the_report_work(capsys: Captured) -> None:
    shown = printed(["report", "--help"], capsys)
    examples = re.findall(r"^  attn-tui (report.*?)(?:   .*| \|.*)?$", shown, re.M)
    assert len(examples) > 5
    for example in examples:
        words = [word for word in example.split() if word not in ("-o", "report.csv")]
        assert main(words) == 0


def test_version(capsys: Captured) -> None:
    assert printed(["--version"], capsys) == f"attn-tui {version()}\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["report", "--help"], ["report", "--d-k", "0"]])
def test_light_words_load_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys; from attn_tui.tui.cli import main; main(sys.argv[1:]);"
        "print([m for m in ('textual', 'numpy', 'rich', 'scipy', 'ml_dtypes') if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert result.stderr.splitlines()[-1] == "[]"


# Settings are the app's alone


@pytest.mark.parametrize("words", [["report", *SMALL], []], ids=["report", "no terminal"])
def test_what_is_printed_knows_no_settings(words: list[str], own_config: Path) -> None:
    plain = attn(*words)
    (own_config / "attn-tui").mkdir()
    (own_config / "attn-tui" / "config.toml").write_text("ascii = true\n[parameters]\nseed = 5\n")
    assert attn(*words, env={"ATTN_TUI_SEED": "6", "ATTN_TUI_THEME": "mauve"}).stdout == plain.stdout


@pytest.mark.parametrize("name", ["ATTN_TUI_THEME", "ATTN_TUI_D_K", "ATTN_TUI_ASCII"])
def test_a_variable_that_is_not_accepted_is_refused_in_one_line(name: str) -> None:
    code, said = on_terminal([], **{name: "mauve"})
    assert code == 2
    assert said.startswith(f"attn-tui: {name}: 'mauve' is not accepted; it takes ")
    assert said.count("\n") == 1


def test_help_says_where_settings_are_and_what_they_are_called(capsys: Captured, own_config: Path) -> None:
    shown = printed(["--help"], capsys)
    assert str(own_config / "attn-tui" / "config.toml") in shown
    for setting in SETTINGS:
        assert setting.variable in shown
    assert "ATTN_TUI" not in printed(["report", "--help"], capsys)
