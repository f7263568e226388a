"""A terminal that is slower than the keys, that answers late, in pieces or never, and one that is left meanwhile."""

import select
import termios
import time
import tty

import pytest
from attn_tui.tui import driver
from test_terminal import ANSWER, LEFT, QUIET, RIGHT, SMALL, Session, running

pytestmark = pytest.mark.skipif(not driver.SUPPORTED, reason="this Textual is not paced")


def caught_up(session: Session) -> Session:
    """The first result is there, and every question is answered; from now on none is."""
    session.answering = True
    session.ready()
    session.until(lambda: not session.unanswered, "the last question")
    session.answering = False
    return session


def d_k(session: Session) -> str:
    """The d_k that the bar at the top shows."""
    return session.text.partition("d_k")[2].split()[0]


def test_while_answers_are_missing_frames_wait_and_then_show_the_newest_state() -> None:
    with running() as session:
        caught_up(session)
        questions, written = session.questions, len(session.written)
        for _ in range(30):
            session.send(RIGHT)
            session.read(0.01)
        session.quiet()
        assert session.questions - questions == 2
        assert len(session.written) - written < 8_000
        assert d_k(session) != "94"
        session.answering = True
        session.answer(session.unanswered)
        session.shows(94)
        assert session.questions - questions < 10


def test_a_slow_line_shows_few_states_and_ends_on_the_right_one() -> None:
    with running() as session:
        caught_up(session)
        session.answering = True
        questions, shown = session.questions, {d_k(session)}
        pressed, began = 0, time.monotonic()
        while pressed < 60 or d_k(session) != "124":
            assert time.monotonic() - began < 30, "it never comes to an end"
            if pressed < 60 and time.monotonic() - began > pressed / 30:
                session.send(RIGHT)
                pressed += 1
            session.read(0.01, most=70)  # 56 kbit/s
            shown.add(d_k(session))
            time.sleep(0.01)
        session.shows(124)
        assert len(shown) < 40
        assert session.questions - questions < 60


def test_a_terminal_that_never_answers_is_sent_every_frame_and_soon_asked_no_more() -> None:
    with running() as session:
        session.ready()
        for number in range(65, 95):
            session.send(RIGHT)
            session.shows(number)
        assert 0 < session.questions <= 16
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_a_terminal_that_stops_answering_gets_its_frames_again_after_a_while() -> None:
    with running() as session:
        caught_up(session)
        session.send(RIGHT * 2)
        session.quiet()
        session.send(RIGHT * 3)
        session.shows(69)
        late = session.unanswered
        assert late > 0
        session.answer(late)
        session.send(LEFT)
        session.shows(68)


def test_answers_in_pieces_and_too_many_of_them_are_no_keys() -> None:
    with running() as session:
        caught_up(session)
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


def test_shift_f3_which_looks_like_an_answer_does_nothing() -> None:
    with running() as session:
        caught_up(session)
        before = session.text
        session.send(b"\x1b[1;2R" * 3)
        session.quiet()
        assert session.text == before
        session.send(RIGHT * 2)
        session.shows(66)


def test_escape_still_is_a_key_while_an_answer_is_awaited() -> None:
    with running() as session:
        caught_up(session)
        session.send(b"7")
        session.quiet()
        assert session.unanswered
        session.send(b"\x1b")
        session.until(lambda: d_k(session) == "64" or session.answer(session.unanswered), "the value before typing")


def assert_nothing_is_left_for_the_shell(session: Session) -> None:
    farewell = session.written.rpartition(b"\x1b[?1049l")[2]
    assert b"^[" not in farewell, "an answer was echoed"
    tty.setraw(session.theirs, termios.TCSANOW)
    assert not select.select([session.theirs], [], [], QUIET)[0], "an answer is still waiting"


@pytest.mark.parametrize("end", ["q", "error"])
def test_before_it_leaves_it_waits_for_what_the_terminal_still_has_to_say(end: str, tmp_path: object) -> None:
    fault = "from attn_tui.tui.panes.lab import Lab\ndef boom(*_): raise RuntimeError\nLab.action_view = boom"
    with running(first=fault if end == "error" else "", XDG_STATE_HOME=str(tmp_path)) as session:
        caught_up(session)
        session.send(RIGHT)
        session.shows(65)
        questions = session.questions
        session.send(b"q" if end == "q" else b"v")
        session.until(lambda: session.questions > questions, "the last question")
        session.send(b"\x1b[<35;10;10M" * 3 + b"\x1b[O")  # the mouse was moved, and the focus went elsewhere
        session.read(0.2)
        assert session.process.poll() is None
        assert b"\x1b[?1049l" not in session.written
        session.answer(session.unanswered)
        assert session.ended() == (0 if end == "q" else 1)
        session.assert_restored()
        assert_nothing_is_left_for_the_shell(session)


def test_it_leaves_without_the_last_answer_when_that_does_not_come() -> None:
    with running() as session:
        caught_up(session)
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_a_resize_while_frames_wait_is_painted_whole() -> None:
    with running() as session:
        caught_up(session)
        session.send(RIGHT * 5)
        session.quiet()
        session.resize(100, 30)
        session.quiet()
        session.answering = True
        session.answer(session.unanswered)
        session.until(lambda: "quit" in session.screen.lines[29] and d_k(session) == "69", "the smaller screen")
        session.quiet()
        assert all("?" not in line or "? help" in line for line in session.screen.lines), "a cell was left out"


def test_stopping_while_frames_wait_and_going_on_shows_the_newest_state() -> None:
    with running(*SMALL) as session:
        caught_up(session)
        session.send(RIGHT * 5)
        session.quiet()
        session.answering = True
        session.stop()
        session.assert_restored()
        session.go_on()
        session.shows(69)
