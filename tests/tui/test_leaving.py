"""How the program ends: with the right exit code, the terminal restored and no process left."""

import signal
import termios
import time
from pathlib import Path

import pytest
from terminal_session import DOWN, LONG, UP, in_engine, opened, running

pytestmark = pytest.mark.slow


def test_q_ends_a_long_computation_and_restores_the_terminal() -> None:
    with running(*LONG, size=(160, 40)) as session:
        session.sees("computing")
        assert termios.tcgetattr(session.theirs) != session.modes
        session.quit()
        session.assert_no_process_left()


@pytest.mark.parametrize(
    "where",
    [
        "from attn_tui.core.learning import measure; measure.stream = stuck",
        "from attn_tui.core.questions.learn import ReadItems; ReadItems.work = lambda *_: iter(stuck, None)",
    ],
    ids=["in a pool", "in a step"],
)
def test_q_ends_a_computation_that_hangs(where: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    stuck = f"pathlib.Path({str(started)!r}).touch(); threading.Event().wait()"
    with opened(first=in_engine(f"import pathlib, threading\ndef stuck(*_): {stuck}\n{where}")) as session:
        for keys, seen in ((b"<", "leave the field"), (b"\x1b", "type a guess")):
            session.send(keys)
            session.sees(seen)
        session.until(started.exists, "measuring a figure")
        session.quit()
        session.assert_no_process_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it_with_the_exit_code_of_a_shell(number: signal.Signals) -> None:
    with opened() as session:
        session.signal(number)
        assert session.ended() == 128 + number
        session.assert_restored()
        assert b"Traceback" not in session.written
        session.assert_no_process_left()


# Python code that presses Ctrl-C when the module with this name is loaded.
AT_IMPORT = """
class PressCtrlC:
    @staticmethod
    def find_spec(name, *_):
        if name == {!r}:
            import os
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, PressCtrlC)
"""


@pytest.mark.parametrize(
    "module",
    [
        "attn_tui.core.errors",
        "attn_tui.tui.compute.process",
        "textual.app",
        "attn_tui.tui.terminal.driver",
        "attn_tui.tui.views.notice",
    ],
)
def test_ctrl_c_ends_it_whenever_it_comes_during_the_start(module: str, own_config: Path) -> None:
    with running(first=AT_IMPORT.format(module), ATTN_TUI_HINT="") as session:  # with the greeting, loaded last
        assert session.ended() == 130
        session.assert_restored()
        session.assert_no_process_left()
        assert b"Traceback" not in session.written
        assert b"attn-tui: " not in session.written


@pytest.mark.parametrize(("long", "ignored"), [(False, "SIGHUP"), (True, "")], ids=["idle under nohup", "computing"])
def test_a_closed_terminal_leaves_no_process(long: bool, ignored: str) -> None:
    with running(*(LONG if long else ()), size=(160, 40), ignored=ignored) as session:
        if long:
            session.sees("computing")
        else:
            session.ready()
        session.hang_up()
        assert session.ended() == 128 + signal.SIGHUP
        session.assert_no_process_left()


def test_a_signal_ends_it_while_the_terminal_is_blocked() -> None:
    with opened(size=(200, 60)) as session:
        termios.tcflow(session.theirs, termios.TCOOFF)  # as after Ctrl-S
        for _ in range(100):  # more frames than the queue of the writing thread holds
            session.send(UP)
            time.sleep(0.01)
            session.send(DOWN)
            time.sleep(0.01)
        session.signal(signal.SIGTERM)
        assert session.ended(read=False) == 128 + signal.SIGTERM
        session.assert_no_process_left()
