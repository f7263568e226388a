"""Ctrl-C ends a command without a word and with exit code 130, whenever it comes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from attn_tui.tui.cli import interrupts
from attn_tui.tui.cli.working import ProgressLine
from cli_runner import SMALL, python

# Python code that presses Ctrl-C when the module with this name is loaded, and then runs the program.
AT_IMPORT = """
import os, signal, sys

class PressCtrlC:
    @staticmethod
    def find_spec(name, *_):
        if name == {!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, PressCtrlC)
signal.signal(signal.SIGINT, signal.default_int_handler)
from attn_tui.tui.cli.main import program
program()
"""

# The same, or another signal, when a file is flushed to the disk.
AT_FLUSH = """
import os, signal
os.fsync = lambda _: os.kill(os.getpid(), signal.{})
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
from attn_tui.tui.cli.main import program
program()
"""

# The same in a destructor, where an exception would be printed and forgotten.
IN_DESTRUCTOR = """
import os, signal
class Gone:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
from attn_tui.tui.terminal import tuning
tuning.set_environment = lambda: Gone() and None
signal.signal(signal.SIGINT, signal.default_int_handler)
from attn_tui.tui.cli.main import program
program()
"""


@pytest.fixture
def ends_at_once() -> Iterator[None]:
    """Ctrl-C ends this process, as in a command; only the handler is examined."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.exit_at_once()
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "module", ["attn_tui.core.message", "attn_tui.tui.cli.parser", "numpy._core._multiarray_umath", "rich.table"]
)
def test_ctrl_c_while_a_module_is_loaded(module: str) -> None:
    result = python(AT_IMPORT.format(module), "report", *SMALL)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_in_a_destructor() -> None:
    result = python(IN_DESTRUCTOR, "report", *SMALL)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGKILL", -9)])
def test_a_signal_while_a_file_is_written_leaves_the_old_one(number: str, code: int, tmp_path: Path) -> None:
    if number == "SIGKILL" and not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    file = tmp_path / "report.json"
    file.write_text("old")
    named = "" if number == "SIGKILL" else "import os; vars(os).pop('O_TMPFILE', None)"
    result = python(named + AT_FLUSH.format(number), "report", *SMALL, "--overwrite", "-o", str(file))
    assert (result.returncode, result.stdout, result.stderr) == (code, "", "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    code = AT_IMPORT.format("numpy").replace("signal.default_int_handler", "signal.SIG_IGN")
    result = python(code, "report", *SMALL)
    assert (result.returncode, result.stderr) == (0, "")
    assert "unscaled" in result.stdout


@pytest.mark.usefixtures("ends_at_once")
def test_a_progress_line_takes_ctrl_c_over_and_gives_it_back() -> None:
    with ProgressLine("work"):
        assert signal.getsignal(signal.SIGINT) is not interrupts.exit_now
    assert signal.getsignal(signal.SIGINT) is interrupts.exit_now
