"""stdout and stderr without a terminal: pipes, full disks, closed streams, locales; and what -o FILE writes."""

import json
import os
import signal
from pathlib import Path

import pytest
from cases import for_each
from cli_runner import SAMPLE, SMALL, Captured, attn, printed, python, refusal


@pytest.mark.parametrize("words", [["report", *SMALL], ["--help"]])
def test_a_closed_pipe_ends_it_quietly(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = attn(*words, stdout=writing)
    os.close(writing)
    assert result.returncode in ((0, 141) if "--help" in words else (141,))  # argparse ignores a closed pipe
    assert result.stderr == b""


def test_what_was_printed_before_a_failure_is_not_lost() -> None:
    done = python("""
from attn_tui.core.errors import InputError
from attn_tui.tui.cli import main
def run(*_):
    print("written")
    raise InputError("enough")
main._run = run
main.program()
""")
    assert (done.returncode, done.stdout, done.stderr) == (2, "written\n", "attn-tui: enough\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_is_reported_in_one_line() -> None:
    with open("/dev/full", "wb") as full:
        result = attn("report", *SMALL, stdout=full.fileno())
    assert (result.returncode, result.stderr) == (2, b"attn-tui: stdout: No space left on device\n")


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [(1, ["report", *SMALL], 2), (1, ["report", *SMALL, "-o", "/dev/null"], 0), (2, ["report", "--d-k", "0"], 2)],
)
def test_a_closed_stream_causes_no_traceback(closed: int, words: list[str], code: int) -> None:
    result = attn(*words, first=lambda: os.close(closed))
    assert result.returncode == code
    assert b"Traceback" not in result.stderr


@for_each("kind", ["table", "markdown", "csv", "json"])
@for_each(
    "command",
    [["report", *SMALL], ["inspect", SAMPLE, "--layer", "1"], ["inspect", SAMPLE, "--head", "1", "--layer", "1"]],
)
def test_ascii_prints_ascii_only(command: list[str], kind: str, capsys: Captured) -> None:
    assert printed([*command, "--ascii", "--format", kind], capsys).isascii()


@pytest.mark.slow
@pytest.mark.parametrize(
    "env", [{"LANG": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}], ids=str
)
@pytest.mark.parametrize("words", [["report", *SMALL], ["inspect", SAMPLE], ["--help"]])
def test_a_locale_without_unicode_gets_ascii(words: list[str], env: dict[str, str]) -> None:
    result = attn(*words, env=env)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii() or "latin-1" in env.values()


def test_a_pipe_gets_unicode_and_no_escape_sequences() -> None:
    result = attn("report", *SMALL, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    assert b"\x1b" not in result.stdout
    assert "√d_k" in result.stdout.decode()


@pytest.mark.parametrize("kind", ["table", "json", "csv", "markdown"])
def test_o_writes_what_stdout_would_get(kind: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "übersicht"
    assert printed(["report", *SMALL, "--format", kind, "-o", str(file)], capsys) == ""
    text = file.read_text("utf-8")
    assert text.startswith(printed(["report", *SMALL, "--format", kind], capsys))
    assert kind in ("table", "markdown") or text == printed(["report", *SMALL, "--format", kind], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["übersicht"]


def test_an_existing_file_keeps_its_mode_and_its_links(tmp_path: Path, capsys: Captured) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link"
    file.write_text('{"schema": "attn-tui/report-2"}')
    file.chmod(0o640)
    link.symlink_to(file)
    printed(["report", *SMALL, "--format", "json", "-o", str(link)], capsys)
    assert link.is_symlink()
    assert json.loads(file.read_text())["columns"]
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_is_written_and_replaced_without_what_windows_lacks(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((signal, "SIGHUP"), (os, "fchmod"), (os, "O_TMPFILE")):
        monkeypatch.delattr(module, name)
    for _ in range(2):
        printed(["report", *SMALL, "-o", str(tmp_path / "report")], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_the_old_file_stays_if_writing_fails(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")
    words = ["report", *SMALL, "--overwrite", "-o", str(file)]

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert "No space left on device" in refusal(words, capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]


def test_a_device_is_written_to_and_a_dash_is_stdout(capsys: Captured) -> None:
    assert printed(["report", *SMALL, "-o", "/dev/null"], capsys) == ""
    assert printed(["report", *SMALL, "-o", "-"], capsys) == printed(["report", *SMALL], capsys)


def test_a_file_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    assert attn("report", *SMALL, "-o", str(file), env={"LC_ALL": "C"}).returncode == 0
    assert "√d_k" in file.read_text("utf-8")
