"""An unexpected error in a command: one line on stderr, and a report in the state directory."""

import errno
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.errors import InputError
from attn_tui.tui.cli import crash
from attn_tui.tui.cli.main import main
from attn_tui.tui.compute.engine import EngineError
from cases import for_each
from cli_runner import SMALL, Captured, python, refusal


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def path_in(line: str) -> Path:
    """The report that the line names last."""
    return Path(line.split()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("from attn_tui.core.lab import experiment; experiment.stream = boom", ["report", *SMALL]),
        ("from attn_tui.core.tables import lab; lab.report_table = boom", ["report", *SMALL, "--format", "csv"]),
        ("from attn_tui.core.captures import heads; heads.stream_head = boom", ["inspect", str(sample_path())]),
        ("from attn_tui.core.learning import measure; measure.stream = boom", ["claims"]),
        ("import sys; sys.modules['numpy'] = None", ["report", *SMALL]),
        ("import sys; sys.modules['rich'] = None", ["report", *SMALL]),
        ("from attn_tui.tui.cli.parser import Parser; Parser.read = boom", ["report"]),
    ],
    ids=["measuring", "exporting", "inspecting", "claims", "no NumPy", "no Rich", "parsing"],
)
def test_an_error_in_a_command_is_reported_in_one_line(fault: str, words: list[str], state: Path) -> None:
    result = python(
        f"def boom(*_): raise RuntimeError('boom')\n{fault}\n"
        "from attn_tui.tui.cli.main import main\nraise SystemExit(main())",
        *words,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(r"attn-tui: unexpected error: .*\n", result.stderr)
    assert path_in(result.stderr).is_relative_to(state)
    assert "Traceback" in path_in(result.stderr).read_text("utf-8")


@for_each(
    ("error", "resumed", "code"),
    [
        (ValueError, "", 1), (ValueError, "new", 1), (ValueError, "old", 2), (RuntimeError, "old", 1),
        (partial(InputError, "refused"), "", 2), (partial(InputError, "refused"), "old", 2),
    ],
)  # fmt: skip
def test_an_error_while_work_is_resumed_is_that_of_its_file(
    error: Callable[[], Exception], resumed: str, code: int, state: Path, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def fail(*_: object) -> NoReturn:
        raise error()

    monkeypatch.setattr("attn_tui.tui.cli.commands.rules.answer", fail)
    (state / "old").write_bytes(b"")
    words = ["rules", *SMALL, *(["--resume", str(state / resumed)] if resumed else [])]
    assert main(words) == code
    err = capsys.readouterr().err
    assert ("unexpected error" in err) == (code == 1)
    assert ("old: its parts" in err) == (resumed == "old" and error is ValueError)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "x.py"), "too many open files in one process; ulimit -n"),
        (ImportError(f"x.so: cannot open: {os.strerror(errno.EMFILE)}"), "too many open files in one process; "),
        (EngineError(f"OSError: [Errno 23] {os.strerror(errno.ENFILE)}"), "too many open files in the system"),
        (RuntimeError("can't start new thread"), "too many processes or threads; ulimit -u"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "not enough memory"),
    ],
    ids=str,
)
def test_an_exhausted_resource_is_named_in_one_line(
    error: Exception, says: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("attn_tui.tui.cli.main._run", fail)
    assert refusal([], capsys).startswith(says)
    assert not [*state.iterdir()]


class TalkativeError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (AssertionError(), "AssertionError"),
        (TalkativeError("one\n  two\r\nthree"), "TalkativeError: one two three"),
        (KeyError("d_k"), "KeyError: 'd_k'"),
    ],
)
def test_any_error_fits_in_one_line(error: Exception, shown: str) -> None:
    assert crash.report(error, []).startswith(f"unexpected error: {shown}; ")


def test_a_long_line_is_cut_but_the_report_is_complete(state: Path) -> None:
    line = crash.report(TalkativeError("word " * 1000 + "end"), ["report", "--d-k", "7"])
    assert len(line) < 400 + len(str(state))
    [path] = state.rglob("*.txt")
    assert "word end" in path.read_text("utf-8")
    assert "attn-tui report --d-k 7\n" in path.read_text("utf-8")


def test_only_the_newest_ten_reports_are_kept_and_other_files_stay(state: Path) -> None:
    folder = state / "attn-tui"
    folder.mkdir()
    old = [f"crash-20{year}-01-01-000000-1.txt" for year in range(10, 25)]
    others = ["notes.txt", "crash-mine.txt", "crash-2009-01-01-000000-1.txt.bak"]
    for name in (*old, *others):
        (folder / name).write_text("")
    line = crash.report(TalkativeError("newest"), [])
    assert {path.name for path in folder.iterdir()} == {*others, *old[-9:], path_in(line).name}
    assert "newest" in path_in(line).read_text()


def test_a_report_is_written_even_if_old_ones_cannot_be_removed(state: Path) -> None:
    for year in range(10, 25):  # a directory cannot be unlinked, even by root
        (state / "attn-tui" / f"crash-20{year}-01-01-000000-1.txt").mkdir(parents=True)
    assert "newest" in path_in(crash.report(TalkativeError("newest"), [])).read_text()


def test_a_second_error_in_one_second_does_not_overwrite_the_first_report(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now(_: str) -> str:
        return "now"

    monkeypatch.setattr(crash.time, "strftime", now)
    crash.report(TalkativeError("first"), [])
    assert "FileExistsError" in crash.report(TalkativeError("second"), [])
    [path] = state.rglob("*.txt")
    assert "first" in path.read_text("utf-8")
