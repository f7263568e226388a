"""Ctrl-Z, fg and resizing: afterwards the whole screen is painted."""

import re

import pytest
from digits import shows_number
from terminal_session import LEFT, RIGHT, Session, opened


def test_after_stopping_and_resuming_the_screen_is_as_before(session: Session) -> None:
    session.send(RIGHT * 3)
    session.shows(67).quiet()
    before = session.screen.places
    for number in range(2):
        if number == 0:
            session.stop()
            session.assert_restored()
        session.resume()  # the second time, without a stop
        session.until(lambda: shows_number(session.screen.lines, 67), "d_k")
        session.quiet()
        assert session.screen.places == before
    session.send(LEFT)
    session.shows(66)


def test_the_alternate_screen_is_cleared_before_it_is_left(session: Session) -> None:
    session.stop()
    painted, after = session.written.rsplit(b"\x1b[?1049l", 1)
    assert re.search(rb"\x1b\[m\x1b\[H\x1b\[2J(\x1b\[[<=>?]?[0-9;]*[a-z])*\Z", painted)
    assert not re.search(rb"[^\x1b\[?0-9a-z]", after)
    session.resume()
    session.until(lambda: shows_number(session.screen.lines, 64), "d_k")


def test_it_can_be_stopped_while_it_writes(session: Session) -> None:
    for _ in range(10):
        session.send(5 * RIGHT)
        session.stop()
        session.assert_restored()
        session.resume()
        session.sees("d_k")
    session.send(b"777\r")
    session.shows(777)


def test_it_can_be_stopped_right_after_it_was_resumed(session: Session) -> None:
    """The system discards a pending SIGCONT when the next SIGTSTP comes."""
    session.stop()
    for _ in range(30):
        session.resume()
        session.stop()
    session.resume()
    session.send(RIGHT)
    session.shows(65)


def test_ctrl_z_without_a_shell_to_continue_it_stops_nothing(session: Session) -> None:
    session.send(b"\x1a")
    session.sees("No shell can continue the app")
    session.send(RIGHT)
    session.shows(65)


def test_a_resized_terminal_is_filled(session: Session) -> None:
    for size in ((200, 60), (80, 20), (20, 5), (120, 40)):
        session.resize(*size)
        session.until(lambda: session.screen.is_filled, "every cell")
    session.until(lambda: "quit" in session.screen.lines[-1], "the key bar")


# A shell that runs the program as a job: it says when the job is stopped, and continues it at the next line of input.
_SHELL = """
import os, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(2, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
else:
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status))
        os.tcsetpgrp(2, os.getpgrp())
        os.write(2, b"[job stopped]")
        os.read(0, 100)
        os.tcsetpgrp(2, job)
        os.killpg(job, signal.SIGCONT)
"""


@pytest.mark.slow
def test_ctrl_z_stops_the_job_of_a_shell_and_fg_shows_the_same_screen() -> None:
    with opened(first=_SHELL) as session:
        session.send(RIGHT * 3)
        session.shows(67)
        for _ in range(2):
            session.send(b"\x1a")
            session.until(lambda: b"[job stopped]" in session.written, "not stopped")
            session.assert_restored()
            session.written = b""
            session.send(b"fg\n")
            session.until(lambda: shows_number(session.screen.lines, 67), "d_k")
        session.send(LEFT)
        session.shows(66)
        session.quit()
