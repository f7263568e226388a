"""stdout and stderr without a terminal: pipes, full disks, closed streams; and what locales print."""

import os
from pathlib import Path

import pytest
from cases import for_each
from cli_runner import SAMPLE, SMALL, Captured, attn, printed, python


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
    ("words", "env"),
    [
        *((words, {"LANG": "C"}) for words in (["inspect", SAMPLE], ["--help"], ["report", "--help"])),
        *((["report", *SMALL], {name: value}) for name, value in (
            ("LANG", "C"), ("LC_ALL", "C"), ("LC_ALL", "POSIX"),
            ("PYTHONIOENCODING", "latin-1"), ("PYTHONIOENCODING", "ascii"),
        )),
    ],
    ids=str,
)  # fmt: skip
def test_a_locale_without_unicode_gets_ascii(words: list[str], env: dict[str, str]) -> None:
    result = attn(*words, env=env)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii()


def test_a_pipe_gets_unicode_and_no_escape_sequences() -> None:
    result = attn("report", *SMALL, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    assert b"\x1b" not in result.stdout
    assert "√d_k" in result.stdout.decode()
