"""An unexpected error in the app: one line names the report, and the terminal is restored."""

import re
import stat
import tomllib
from pathlib import Path

import pytest
from terminal_session import RIGHT, SMALL, Session, in_engine, opened, running

pytestmark = pytest.mark.slow

LINE = re.compile(r"attn-tui: unexpected error: (.*); .* (\S+\.txt)\r?\n")
BOOM = "def boom(*_): raise RuntimeError('boom')\n"

# Python code that makes something fail, by what fails.
IN_APP = {
    "a binding": "from attn_tui.tui.panes.lab.pane import LabPane; LabPane.action_d_k = boom",
    "a frame": "from attn_tui.tui.terminal import cell_diff; cell_diff._runs = boom",
    "composing": "from attn_tui.tui.app.app import AttnApp; AttnApp.compose = boom",
    "making the app": "from attn_tui.tui.app.app import AttnApp; AttnApp.register_theme = boom",
    "an import": "import sys; sys.modules['textual.app'] = None",
    "a thread of the driver": "from textual.drivers import linux_driver as m\nwas = m.Thread\n"
    "class Boom(was):\n start = lambda self: boom() if self.name == 'textual-input' else was.start(self)\n"
    "m.Thread = Boom",
    "leaving": "from attn_tui.tui.app.app import AttnApp; AttnApp.on_unmount = boom",
}
IN_ENGINE = {
    "measuring": "from attn_tui.core.lab import experiment; experiment.stream = boom",
    "starting the engine": "from attn_tui.core.work import worker; worker.keep_memory = boom",
    "an import of the engine": "import sys; sys.modules['numpy'] = None",
}
FAULTS = {
    **{name: BOOM + code for name, code in IN_APP.items()},
    **{name: in_engine(BOOM + code) for name, code in IN_ENGINE.items()},
}


# Python code that makes something fail at 32 keys, by what fails.
AT_32_KEYS = {
    "the app": BOOM + "from attn_tui.tui.panes.lab.pane import LabPane as P\nwas = P.follow\n"
    "P.follow = lambda pane: boom() if pane.host.parameters.n_keys == 32 else was(pane)",
    "the engine": in_engine(
        BOOM + "from attn_tui.core.lab import experiment as m\nwas = m.stream\n"
        "m.stream = lambda p, *_, **k: boom() if p.n_keys == 32 else was(p, *_, **k)"
    ),
}


def provoke(session: Session, where: str) -> int:
    """Trigger the fault and return the exit code."""
    if where in ("a binding", "leaving"):
        session.ready()
        session.send(RIGHT if where == "a binding" else b"q")
    return session.ended()


@pytest.mark.parametrize("where", FAULTS)
def test_an_error_is_one_line_after_the_terminal_is_restored_and_a_private_report(where: str, tmp_path: Path) -> None:
    with running(*SMALL, first=FAULTS[where], XDG_STATE_HOME=str(tmp_path), SECRET_TOKEN="hush") as session:
        assert provoke(session, where) == 1
        session.assert_restored()
        session.assert_no_process_left()
        written, pid = session.written.decode(), session.process.pid
    assert "Traceback" not in written
    found = LINE.search(written)
    assert found
    assert "\n" not in written[found.end() :]
    [path] = tmp_path.rglob("*.*")
    assert path == Path(found[2])
    assert path.parent == tmp_path / "attn-tui"
    assert re.fullmatch(rf"crash-\d{{4}}-\d\d-\d\d-\d{{6}}-{pid}\.txt", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    report = path.read_text("utf-8")
    assert found[1].endswith(report.rstrip().splitlines()[-1])
    for words in ("attn-tui 0", "textual 8", "numpy 2", "python    3", "TERM=xterm-256color", "120 x 40"):
        assert words in report
    assert "Traceback (most recent call last)" in report
    assert f"attn-tui {' '.join(SMALL)}\n" in report
    assert "hush" not in report


@pytest.mark.parametrize("where", AT_32_KEYS)
def test_parameters_are_saved_and_the_next_crash_says_how_to_start_without(where: str, own_config: Path) -> None:
    file = own_config / "attn-tui" / "config.toml"
    with opened(first=AT_32_KEYS[where]) as session:
        session.send(b"]")
        assert session.ended() == 1
        session.assert_restored()
    assert tomllib.loads(file.read_text())["parameters"]["n_keys"] == 32
    with running("--batch", "2", first=AT_32_KEYS[where]) as session:
        assert session.ended() == 1
        session.assert_restored()
        written = session.written.decode()
    assert "note: attn-tui --no-config starts without the saved parameters\r\n" in written
    assert LINE.search(written)


def test_a_report_has_no_lines_as_short_as_the_terminal(tmp_path: Path) -> None:
    fault = "from attn_tui.tui.app.app import AttnApp; AttnApp.on_ready = lambda app: app.panic('word ' * 15 + 'end')"
    with running(first=fault, size=(5, 12), XDG_STATE_HOME=str(tmp_path)) as session:
        assert session.ended() == 1
        session.assert_restored()
    [path] = tmp_path.rglob("*.txt")
    assert "word word end\n" in path.read_text("utf-8")


@pytest.mark.parametrize("more", range(1, 9, 3))
def test_too_few_open_files_are_named_in_one_line(more: int) -> None:
    """The engine cannot be started, a module not be loaded, or the limit just suffices."""
    limit = f"max(map(int, os.listdir('/proc/self/fd'))) + {more}"
    code = f"import os, resource; limit = {limit}\nresource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))"
    with running(first=code) as session:
        while session.process.poll() is None and "quit" not in session.text:
            session.read(0.05)
        session.send(b"q")
        assert session.ended() in (0, 2)
        session.assert_restored()
        written = session.written.decode()
    printed = written[written.rfind("attn-tui: ") :] if session.process.returncode else ""
    assert re.fullmatch(r"attn-tui: [^\n]*[Tt]oo many open files[^\n]*\r\nq?|", printed)  # the q may be echoed
    assert "Traceback" not in written


def test_the_line_says_why_a_report_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "attn-tui").write_text("in the way")
    with running(first=FAULTS["a binding"], XDG_STATE_HOME=str(tmp_path)) as session:
        assert provoke(session, "a binding") == 1
        session.assert_restored()
        line = session.written.decode().splitlines()[-1]
    assert re.search(r"attn-tui: unexpected error: RuntimeError: boom; .*: FileExistsError: .*\Z", line)
