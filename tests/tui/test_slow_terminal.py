"""The program in a terminal that is slower than the keys, or that replies late, in parts or never."""

import select
import termios
import tty
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.terminal import driver
from digits import shows_number
from terminal_session import ANSWER, LEFT, QUIET, RIGHT, SMALL, Session, running

pytestmark = pytest.mark.skipif(not driver.SUPPORTED, reason="frames are not paced with this Textual")


@contextmanager
def answered(**settings: Any) -> Generator[Session]:
    """Open the app in a terminal that replies, and wait for the first result."""
    with running("--no-config", *SMALL, **settings) as session:
        session.answering = True
        yield session.ready()


def silent(session: Session) -> Session:
    """Answer all queries, and from then on none."""
    answering_again(session)
    session.until(lambda: not session.unanswered, "last query")
    session.answering = False
    return session


def answering_again(session: Session) -> None:
    session.answering = True
    session.answer(session.unanswered)


@pytest.fixture(scope="module")
def replying() -> Iterator[Callable[[], Session]]:
    """Open the app when a test first needs it."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(answered()))


@pytest.fixture
def replied(replying: Callable[[], Session]) -> Session:
    """The app at d_k 64, in a terminal that has replied to everything, and replies no more."""
    answering_again(replying())
    replying().send(b"64\r")
    replying().shows(64).quiet()
    return silent(replying())


def is_at(session: Session, d_k: object) -> bool:
    """Return whether the headline shows this d_k, or what is typed for it."""
    return shows_number(session.screen.lines, d_k)


# Frames


def hold_right(session: Session) -> None:
    """Step 30 times, so that frames wait."""
    for _ in range(30):
        session.send(RIGHT)
        session.read(0.01)


def test_frames_wait_for_replies_and_then_show_the_newest_state(replied: Session) -> None:
    queries, written, last = replied.queries, len(replied.written), 94
    while replied.queries - queries < 2 and last < 999:
        replied.send(RIGHT)
        replied.read(0.01)
        last += 1
    hold_right(replied)
    replied.quiet()
    assert replied.queries - queries == 2
    assert len(replied.written) - written < 8_000
    assert not is_at(replied, last)
    answering_again(replied)
    replied.shows(last)
    assert replied.queries - queries < 20  # fewer frames than keys


def test_a_terminal_that_never_replies_gets_every_frame_and_few_queries(session: Session) -> None:
    session.stop()
    queries = session.queries
    session.resume()  # after which no reply to earlier queries is expected
    session.until(lambda: shows_number(session.screen.lines, 64), "d_k")
    asked: list[int] = []
    for number in range(65, 90):
        session.send(RIGHT)
        session.shows(number)
        asked.append(session.queries - queries)
    assert 0 < asked[-5] == asked[-1]  # no more than a few: the terminal is believed not to reply


def test_a_terminal_that_stops_replying_gets_frames_again_after_a_while(replied: Session) -> None:
    replied.send(RIGHT * 2)
    replied.quiet()
    replied.send(RIGHT * 3)
    replied.shows(69)
    assert replied.unanswered > 0
    replied.answer(replied.unanswered)
    replied.send(LEFT)
    replied.shows(68)


def test_a_resize_while_frames_wait_repaints_the_whole_screen(replied: Session) -> None:
    hold_right(replied)
    replied.quiet()
    replied.resize(100, 30)
    replied.quiet()
    for size in ((100, 30), (120, 40)):
        replied.resize(*size)
        answering_again(replied)
        replied.until(lambda: "quit" in replied.screen.lines[-1] and is_at(replied, 94), "the resized screen")
        replied.until(lambda: replied.screen.is_filled, "every cell")


def test_stopping_and_resuming_while_frames_wait_shows_the_newest_state(replied: Session) -> None:
    hold_right(replied)
    replied.quiet()
    replied.answering = True
    replied.stop()
    replied.assert_restored()
    replied.resume()
    replied.shows(94)


# Replies and keys


def test_partial_and_unexpected_replies_are_not_keys(replied: Session) -> None:
    shown = 64
    while replied.unanswered < 2:
        shown += 1
        replied.send(RIGHT)
        replied.shows(shown).quiet()
    for at in range(len(ANSWER)):
        replied.send(ANSWER[at : at + 1])
        replied.read(0.02)
    replied.send(ANSWER[:3])
    replied.read(0.3)
    replied.send(ANSWER[3:])
    replied.answer(5)
    replied.quiet()
    replied.send(RIGHT)
    replied.shows(shown + 1)


def test_shift_f3_is_not_taken_for_a_reply(replied: Session) -> None:
    before = replied.text
    replied.send(b"\x1b[1;2R" * 3)
    replied.quiet()
    assert replied.text == before
    replied.send(RIGHT * 2)
    replied.shows(66)


def test_escape_is_a_key_while_a_reply_is_expected(replied: Session) -> None:
    replied.send(b"7")
    replied.until(lambda: replied.unanswered and is_at(replied, "7_"), "the digit")
    replied.send(b"\x1b")
    replied.until(lambda: is_at(replied, 64) or replied.answer(replied.unanswered), "the value before typing")


# Ending


FAULT = """
from attn_tui.tui.panes.lab.pane import LabPane
def fail(*_): raise RuntimeError
LabPane.action_view = fail
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["q", "error"])
def test_before_it_ends_it_reads_what_the_terminal_still_sends(end: str, tmp_path: Path) -> None:
    with answered(first=FAULT if end == "error" else "", XDG_STATE_HOME=str(tmp_path)) as session:
        silent(session).send(RIGHT)
        session.shows(65).quiet()
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
        assert b"^[" not in session.written.rpartition(b"\x1b[?1049l")[2], "a reply was echoed"
        tty.setraw(session.theirs, termios.TCSANOW)
        assert not select.select([session.theirs], [], [], QUIET)[0], "a reply is left for the shell"


def test_it_ends_even_if_the_last_reply_is_missing(replying: Callable[[], Session]) -> None:
    silent(replying()).quit()
