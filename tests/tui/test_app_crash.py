"""An unexpected error in the app: one line names the report, and the terminal is restored."""

import re
import stat
from pathlib import Path

import pytest
from terminal_session import RIGHT, SMALL, Session, in_engine, running

pytestmark = pytest.mark.slow

LINE = re.compile(r"attn-tui: unexpected error: (.*); .* (\S+\.txt)\r?\n")
BOOM = "def boom(*_): raise RuntimeError('boom')\n"

# Python code that makes something fail, by what fails.
IN_APP = {
    "a binding": "from attn_tui.tui.panes.lab.pane import LabPane; LabPane.action_d_k = boom",
    "a message handler": "from attn_tui.tui.panes.pane import Pane; Pane.on_answered = boom",
    "a view": "from attn_tui.tui.widgets import statistics_table as m; m.StatisticsTable.compose_lines = boom",
    "a frame": "from attn_tui.tui.terminal import cell_diff; cell_diff._runs = boom",
    "composing": "from attn_tui.tui.app import AttnApp; AttnApp.compose = boom",
    "making the app": "from attn_tui.tui.app import AttnApp; AttnApp.register_theme = boom",
    "an import": "import sys; sys.modules['textual.app'] = None",
    "leaving": "from attn_tui.tui.app import AttnApp; AttnApp.on_unmount = boom",
}
IN_ENGINE = {
    "measuring": "from attn_tui.core.lab import experiment; experiment.stream = boom",
    "theory": "from attn_tui.core.theory import deviations; deviations.theory_of = boom",
    "starting the engine": "from attn_tui.tui import tuning; tuning.keep_memory = boom",
    "an import of the engine": "import sys; sys.modules['numpy'] = None",
}
FAULTS = {
    **{name: BOOM + code for name, code in IN_APP.items()},
    **{name: in_engine(BOOM + code) for name, code in IN_ENGINE.items()},
}


def provoke(session: Session, where: str) -> int:
    """Trigger the fault and return the exit code."""
    if where in ("a binding", "leaving"):
        session.ready()
        session.send(RIGHT if where == "a binding" else b"q")
    return session.ended()


@pytest.mark.parametrize("where", FAULTS)
def test_an_error_is_reported_in_one_line_after_the_terminal_is_restored(where: str, tmp_path: Path) -> None:
    with running(first=FAULTS[where], XDG_STATE_HOME=str(tmp_path)) as session:
        assert provoke(session, where) == 1
        session.assert_restored()
        session.assert_no_process_left()
        written = session.written.decode()
    assert "Traceback" not in written
    found = LINE.search(written)
    assert found
    assert "\n" not in written[found.end() :]
    assert len(list(tmp_path.rglob("*.*"))) == 1
    report = Path(found[2]).read_text("utf-8")
    assert found[1].endswith(report.rstrip().splitlines()[-1])
    assert "Traceback (most recent call last)" in report


def test_a_report_has_versions_and_the_command_but_no_secrets_and_is_private(tmp_path: Path) -> None:
    with running(first=FAULTS["a binding"], XDG_STATE_HOME=str(tmp_path), SECRET_TOKEN="hush") as session:
        provoke(session, "a binding")
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


def test_the_line_says_why_a_report_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "attn-tui").write_text("in the way")
    with running(first=FAULTS["a binding"], XDG_STATE_HOME=str(tmp_path)) as session:
        assert provoke(session, "a binding") == 1
        session.assert_restored()
        line = session.written.decode().splitlines()[-1]
    assert re.search(r"attn-tui: unexpected error: RuntimeError: boom; .*: FileExistsError: .*\Z", line)
