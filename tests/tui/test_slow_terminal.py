"""The program in a terminal that is slower than the keys, or that answers late, in parts or never."""

import select
import termios
import time
import tty
from pathlib import Path

import pytest
from attn_tui.tui.terminal import driver
from emulator import NOISE
from terminal_session import ANSWER, FOREVER, LEFT, QUIET, RIGHT, SMALL, Session, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not driver.SUPPORTED, reason="frames are not paced with this Textual"),
]


def silent(session: Session) -> Session:
    """Wait for the first result, answer all queries, and from then on none."""
    session.answering = True
    session.ready()
    session.until(lambda: not session.unanswered, "last query")
    session.answering = False
    return session


def answering_again(session: Session) -> None:
    session.answering = True
    session.answer(session.unanswered)


def d_k(session: Session) -> str:
    """The d_k in the top bar."""
    return session.text.partition("d_k")[2].split()[0]


# Frames


def test_frames_wait_for_answers_and_then_show_the_newest_state() -> None:
    with running() as session:
        silent(session)
        queries, written = session.queries, len(session.written)
        for _ in range(30):
            session.send(RIGHT)
            session.read(0.01)
        session.quiet()
        assert session.queries - queries == 2
        assert len(session.written) - written < 8_000
        assert d_k(session) != "94"
        answering_again(session)
        session.shows(94)
        assert session.queries - queries < 10


def test_a_slow_line_shows_some_states_and_ends_with_the_last_one() -> None:
    with running() as session:
        silent(session).answering = True
        queries, shown = session.queries, {d_k(session)}
        pressed, began = 0, time.monotonic()
        while pressed < 60 or d_k(session) != "124":
            assert time.monotonic() - began < 2 * FOREVER, "the last state was never shown"
            if pressed < 60 and time.monotonic() - began > pressed / 30:
                session.send(RIGHT)
                pressed += 1
            session.read(0.01, most=70)
            time.sleep(0.01)  # at most 7000 characters a second, as on a line of 56 kbit/s
            shown.add(d_k(session))
        session.shows(124)
        assert len(shown) < 40
        assert session.queries - queries < 60


def test_a_terminal_that_never_answers_gets_every_frame_and_few_queries() -> None:
    with running() as session:
        session.ready()
        for number in range(65, 95):
            session.send(RIGHT)
            session.shows(number)
        assert 0 < session.queries <= 16
        session.quit()


def test_a_terminal_that_stops_answering_gets_frames_again_after_a_while() -> None:
    with running() as session:
        silent(session).send(RIGHT * 2)
        session.quiet()
        session.send(RIGHT * 3)
        session.shows(69)
        assert session.unanswered > 0
        session.answer(session.unanswered)
        session.send(LEFT)
        session.shows(68)


def test_a_resize_while_frames_wait_repaints_the_whole_screen() -> None:
    with running() as session:
        silent(session).send(RIGHT * 5)
        session.quiet()
        session.resize(100, 30)
        session.quiet()
        answering_again(session)
        session.until(lambda: "quit" in session.screen.lines[29] and d_k(session) == "69", "the smaller screen")
        session.quiet()
        assert all(NOISE not in row for row in session.screen.places), "a cell was not painted"


def test_stopping_and_resuming_while_frames_wait_shows_the_newest_state() -> None:
    with running(*SMALL) as session:
        silent(session).send(RIGHT * 5)
        session.quiet()
        session.answering = True
        session.stop()
        session.assert_restored()
        session.resume()
        session.shows(69)


# Answers and keys


def test_partial_and_unexpected_answers_are_not_keys() -> None:
    with running() as session:
        silent(session)
        shown = 64
        while session.unanswered < 2:
            shown += 1
            session.send(RIGHT)
            session.shows(shown)
        for at in range(len(ANSWER)):
            session.send(ANSWER[at : at + 1])
            session.read(0.02)
        session.send(ANSWER[:3])
        session.read(0.3)
        session.send(ANSWER[3:])
        session.answer(5)
        session.quiet()
        session.send(RIGHT)
        session.shows(shown + 1)


def test_shift_f3_is_not_taken_for_an_answer() -> None:
    with running() as session:
        silent(session)
        before = session.text
        session.send(b"\x1b[1;2R" * 3)
        session.quiet()
        assert session.text == before
        session.send(RIGHT * 2)
        session.shows(66)


def test_escape_is_a_key_while_an_answer_is_expected() -> None:
    with running() as session:
        silent(session).send(b"7")
        session.quiet()
        assert session.unanswered
        assert d_k(session) == "7"
        session.send(b"\x1b")
        session.until(lambda: d_k(session) == "64" or session.answer(session.unanswered), "the value before typing")


# Ending


FAULT = """
from attn_tui.tui.panes.lab.pane import LabPane
def fail(*_): raise RuntimeError
LabPane.action_view = fail
"""


@pytest.mark.parametrize("end", ["q", "error"])
def test_before_it_ends_it_reads_what_the_terminal_still_sends(end: str, tmp_path: Path) -> None:
    with running(first=FAULT if end == "error" else "", XDG_STATE_HOME=str(tmp_path)) as session:
        silent(session).send(RIGHT)
        session.shows(65)
        queries = session.queries
        session.send(b"q" if end == "q" else b"v")
        session.until(lambda: session.queries > queries, "last query")
        session.send(b"\x1b[<35;10;10M" * 3 + b"\x1b[O")  # reports of the mouse and of the focus
        session.read(0.2)
        assert session.process.poll() is None
        assert b"\x1b[?1049l" not in session.written
        session.answer(session.unanswered)
        assert session.ended() == (0 if end == "q" else 1)
        session.assert_restored()
        assert b"^[" not in session.written.rpartition(b"\x1b[?1049l")[2], "an answer was echoed"
        tty.setraw(session.theirs, termios.TCSANOW)
        assert not select.select([session.theirs], [], [], QUIET)[0], "an answer is left for the shell"


def test_it_ends_even_if_the_last_answer_is_missing() -> None:
    with running() as session:
        silent(session).quit()
