"""An unexpected error: one line that says what happened and where the report is, and a terminal as it was before."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from attn_tui.core.captures.reader import sample_path
from attn_tui.tui import crash
from test_terminal import SMALL, assert_nobody_left, running

LINE = re.compile(r"attn-tui: unexpected error: (.*); the full report is in (\S+)\r?\n")

# What goes wrong, by where; each is Python that is run before the program.
_BOOM = "def boom(*_): raise RuntimeError('boom')\n"
FAULTS = {
    "a binding": "from attn_tui.tui.panes.lab import Lab; Lab.action_d_k = boom",
    "a message handler": "from attn_tui.tui.app import AttnApp; AttnApp.on_parameters_changed = boom",
    "a view": "from attn_tui.tui.widgets import statistics_table as m; m.StatisticsTable.compose_lines = boom",
    "a frame": "from attn_tui.tui import rows; rows._runs = boom",
    "composing": "from attn_tui.tui.app import AttnApp; AttnApp.compose = boom",
    "making the app": "from attn_tui.tui.app import AttnApp; AttnApp.register_theme = boom",
    "an import": "import sys; sys.modules['textual.app'] = None",
    "computing": "from attn_tui.tui import work; work.Lab.measure = boom",
    "theory": (
        "from attn_tui.tui import second_process; second_process._side_by_side = lambda: False; "
        "from attn_tui.core.lab import comparison; comparison.theory_of = boom"
    ),
    "the compute thread's start": "from attn_tui.tui import recompute; recompute.keep_memory = boom",
    "the compute thread's imports": (
        "from attn_tui.tui import second_process; second_process._side_by_side = lambda: False; "
        "import sys; sys.modules['numpy'] = None"
    ),
    "leaving": "from attn_tui.tui.app import AttnApp; AttnApp.on_unmount = boom",
}


@pytest.mark.parametrize("where", FAULTS)
def test_an_error_in_the_app_is_one_line_and_leaves_the_terminal_as_it_was(where: str, tmp_path: Path) -> None:
    with running(first=_BOOM + FAULTS[where], XDG_STATE_HOME=str(tmp_path)) as session:
        if where == "leaving":
            session.ready()
            session.send(b"q")
        elif where in ("a binding", "a message handler"):
            session.ready()
            session.send(b"\x1b[C")
        assert session.ended() == 1
        session.assert_restored()
        assert_nobody_left(session)
        written = session.written.decode()
    assert "Traceback" not in written
    found = LINE.search(written)
    assert found
    assert found.end() == len(written) or "\n" not in written[found.end() :]
    assert len(list(tmp_path.rglob("*.*"))) == 1
    report = Path(found[2]).read_text("utf-8")
    assert report.rstrip().splitlines()[-1] == found[1]
    assert "Traceback (most recent call last)" in report


def test_a_report_says_what_helps_and_is_for_its_user_alone(tmp_path: Path) -> None:
    with running(first=_BOOM + FAULTS["a binding"], XDG_STATE_HOME=str(tmp_path), SECRET_TOKEN="hush") as session:
        session.ready()
        session.send(b"\x1b[C")
        session.ended()
        pid = session.process.pid
    [path] = tmp_path.rglob("*.txt")
    assert path.parent == tmp_path / "attn-tui"
    assert re.fullmatch(rf"crash-\d{{4}}-\d\d-\d\d-\d{{6}}-{pid}\.txt", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    report = path.read_text("utf-8")
    for words in ("attn-tui 0", "textual 8", "numpy 2", "python    3", "TERM=xterm-256color", "120 x 40"):
        assert words in report
    assert f"attn-tui {' '.join(SMALL)}\n" in report
    assert "hush" not in report


def test_where_no_report_can_be_written_the_line_says_why(tmp_path: Path) -> None:
    (tmp_path / "attn-tui").write_text("in the way")
    with running(first=_BOOM + FAULTS["a binding"], XDG_STATE_HOME=str(tmp_path)) as session:
        session.ready()
        session.send(b"\x1b[C")
        assert session.ended() == 1
        session.assert_restored()
        line = session.written.decode().splitlines()[-1]
    said = r"attn-tui: unexpected error: RuntimeError: boom; its report could not be written: FileExistsError: .*"
    assert re.search(f"{said}\\Z", line)


# Without the app


def plain(fault: str, *words: str, state: Path) -> subprocess.CompletedProcess[str]:
    """A plain command in a process where this has gone wrong."""
    script = f"{_BOOM}{fault}\nimport sys\nfrom attn_tui.tui.cli import main\nraise SystemExit(main())"
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("from attn_tui.core.lab import experiment; experiment.stream = boom", ("report", *SMALL)),
        ("from attn_tui.core.export import report; report.report_csv = boom", ("report", *SMALL, "--format", "csv")),
        ("from attn_tui.core.captures import heads; heads.stream_head = boom", ("inspect", str(sample_path()))),
        ("from attn_tui.core.lab import claims; claims.check_all = boom", ("claims",)),
        ("import sys; sys.modules['numpy'] = None", ("report", *SMALL)),
        ("import sys; sys.modules['rich'] = None", ("report", *SMALL)),
        ("from attn_tui.tui import options; options.parse = boom", ("report",)),
    ],
    ids=["measuring", "exporting", "inspecting", "claims", "no NumPy", "no Rich", "parsing"],
)  # fmt: skip
def test_an_error_in_a_plain_command_is_one_line(fault: str, words: tuple[str, ...], tmp_path: Path) -> None:
    result = plain(fault, *words, state=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    found = LINE.fullmatch(result.stderr)
    assert found
    assert "Traceback" in Path(found[2]).read_text("utf-8")


# The line


class TalkativeError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (AssertionError(), "AssertionError"),
        (TalkativeError("one\n  two\r\nthree"), "TalkativeError: one two three"),
        (KeyError("d_k"), "KeyError: 'd_k'"),
    ],
)
def test_the_line_is_one_line(error: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert crash.report(error, []).startswith(f"unexpected error: {said}; the full report is in {tmp_path}")


def test_a_long_line_is_cut_and_the_report_has_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    line = crash.report(TalkativeError("word " * 1000 + "end"), ["report", "--d-k", "7"])
    assert len(line) < 400 + len(str(tmp_path))
    [path] = tmp_path.rglob("*.txt")
    assert "word end" in path.read_text("utf-8")
    assert "attn-tui report --d-k 7\n" in path.read_text("utf-8")


def test_old_reports_make_room_and_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "attn-tui"
    folder.mkdir()
    old = [f"crash-20{year}-01-01-000000-1.txt" for year in range(10, 25)]
    others = ["notes.txt", "crash-mine.txt", "crash-2009-01-01-000000-1.txt.bak"]
    for name in (*old, *others):
        (folder / name).write_text("")
    line = crash.report(TalkativeError("newest"), [])
    reports = {path.name for path in folder.iterdir()}
    assert {*others, *old[-9:]} < reports
    assert len(reports) == len(others) + 10
    assert "newest" in Path(line.rpartition(" is in ")[2]).read_text()


def test_old_reports_that_cannot_be_removed_are_no_new_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for year in range(10, 25):  # a directory cannot be unlinked, even by root
        (tmp_path / "attn-tui" / f"crash-20{year}-01-01-000000-1.txt").mkdir(parents=True)
    line = crash.report(TalkativeError("newest"), [])
    assert "newest" in Path(line.rpartition(" is in ")[2]).read_text()


def test_two_errors_in_one_second_hide_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(crash.time, "strftime", lambda _: "now")
    crash.report(TalkativeError("first"), [])
    assert "could not be written: FileExistsError" in crash.report(TalkativeError("second"), [])
    [path] = tmp_path.rglob("*.txt")
    assert "first" in path.read_text("utf-8")
