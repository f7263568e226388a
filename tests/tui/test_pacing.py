"""How many frames are sent to a terminal that is slower than the keys, and what becomes of its answers."""

import pytest
from attn_tui.tui.driver import Sieve
from attn_tui.tui.pacing import QUESTION, Pacing
from hypothesis import given
from hypothesis import strategies as st

BIG = 3500  # characters of a frame in which everything changes


class Link:
    """Pacing over a link that carries so many characters a second, with its own clock."""

    def __init__(self, speed: float, delay: float = 0.0) -> None:
        self.now = 100.0
        self.speed, self.delay = speed, delay
        self.free = 0.0  # when the link has carried everything
        self.due: list[float] = []  # when answers will come
        self.calls = 0
        self.pacing = Pacing(self._caught_up, lambda: self.now)

    def _caught_up(self) -> None:
        self.calls += 1

    def send(self, size: int) -> None:
        if self.pacing.ask(size):
            self.free = max(self.now, self.free) + size / self.speed
            self.due.append(self.free + self.delay)

    def wait(self, seconds: float) -> None:
        """Let time pass, with the answers that come in it."""
        end = self.now + seconds
        while self.due and self.due[0] <= end:
            self.now = self.due.pop(0)
            self.pacing.answered(1)
        self.now = end


def test_before_the_first_answer_nothing_is_held_back() -> None:
    link = Link(speed=7000, delay=1e9)
    for _ in range(10):
        link.send(BIG)
        assert link.pacing.hold() == 0


def test_a_terminal_that_never_answers_is_soon_asked_no_more() -> None:
    pacing = Pacing(lambda: None)
    asked = [pacing.ask(BIG) for _ in range(100)]
    assert asked[0] == QUESTION
    assert asked.count(QUESTION) < 20
    assert asked[-1] == ""
    pacing.answered(1)
    assert pacing.ask(BIG) == QUESTION, "it does answer, late"


def test_two_unanswered_frames_hold_the_next_until_an_answer() -> None:
    link = Link(speed=1e9, delay=0.15)
    link.send(10)
    link.wait(1)
    link.send(10)
    assert link.pacing.hold() == 0
    link.wait(0.01)
    link.send(10)
    assert link.pacing.hold() > 1
    assert link.calls == 0
    link.wait(0.15)
    assert link.calls >= 1
    assert link.pacing.hold() == 0


def test_on_a_quick_link_frames_are_never_held_back() -> None:
    link = Link(speed=1e7, delay=0.0005)
    for _ in range(200):
        link.send(BIG)
        assert link.pacing.hold() == 0
        link.wait(0.004)


def test_a_frame_that_keeps_a_slow_link_busy_holds_the_next_until_shortly_before_it_is_through() -> None:
    link = Link(speed=7000, delay=0.15)
    for size in (0, BIG):  # the first one tells how long an answer takes, the second one how fast the link is
        link.send(size)
        link.wait(2)
    link.send(BIG)
    assert link.pacing.hold() == pytest.approx(BIG / 7000, abs=0.15)
    link.wait(link.pacing.hold())
    assert link.pacing.hold() == 0, "without waiting for the answer, which takes another 150 ms"


@pytest.mark.parametrize("speed", [1000, 7000, 50_000])
def test_what_is_on_its_way_stays_little_under_a_held_key(speed: float) -> None:
    link = Link(speed, delay=0.15)
    for first in (0, 4 * BIG):  # a question without a frame, and the first frame
        link.send(first)
        link.wait(60)
    backlog = []
    for _ in range(900):  # thirty keys a second, for half a minute
        if not link.pacing.hold():
            link.send(BIG)
            backlog.append((link.free - link.now) * speed)
        link.wait(1 / 30)
    assert max(backlog) <= 2 * BIG
    most = min(30 * speed / BIG, 30 * 2 / (0.15 + BIG / speed))
    assert len(backlog) > 0.7 * most, "and the link is not left idle"


def test_without_an_answer_for_long_everything_is_sent_again() -> None:
    link = Link(speed=1e9, delay=0.001)
    link.send(10)
    link.wait(1)
    link.delay = 1e9
    link.send(10)
    link.send(10)
    link.wait(link.pacing.hold())
    assert link.pacing.hold() == 0
    for _ in range(5):
        link.send(BIG)
        assert link.pacing.hold() == 0


def test_a_link_that_takes_long_for_an_answer_is_given_longer() -> None:
    link = Link(speed=700, delay=0.3)
    link.send(BIG)
    link.wait(10)
    link.send(BIG)
    link.send(BIG)
    assert link.pacing.hold() > 9


def test_more_answers_than_questions_do_no_harm() -> None:
    link = Link(speed=1e9)
    link.pacing.answered(7)
    link.send(10)
    link.send(10)
    assert link.pacing.hold() > 0
    assert link.pacing.outstanding


# Answers among the keys

KEYS = [
    "a",
    "é",
    "词",
    "\x1b[C",
    "\x1b[1;2R",
    "\x1b[1;16R",
    "\x1b[1;5C",
    "\x1bOP",
    "0",
    "\x1b\x1b[D",
    "\x1b[<35;1;1M",
]
ANSWERS = ["\x1b[1;1R", "\x1b[40;120R", "\x1b[2;2R", "\x1b[1;17R"]


@given(st.lists(st.sampled_from([*KEYS, *ANSWERS])), st.lists(st.integers(1, 9)))
def test_answers_are_found_in_whatever_pieces_they_come(parts: list[str], cuts: list[int]) -> None:
    data, sieve, typed, answers = "".join(parts).encode(), Sieve(), "", 0
    for cut in [*cuts, len(data)]:
        more, count = sieve.sift(data[:cut], expecting=True)
        data, typed, answers = data[cut:], typed + more, answers + count
    assert typed == "".join(part for part in parts if part in KEYS)
    assert answers == sum(part in ANSWERS for part in parts)


def test_an_escape_alone_is_given_back_and_the_beginning_of_an_answer_is_not() -> None:
    sieve = Sieve()
    for typed in ("\x1b", "\x1b["):
        assert sieve.sift(typed.encode(), expecting=True) == ("", 0)
        assert sieve.rest() == typed
        assert sieve.rest() == ""
    assert sieve.sift(b"\x1b[1;", expecting=True) == ("", 0)
    assert sieve.rest() == ""
    assert sieve.sift(b"1R", expecting=True) == ("", 1)


def test_where_no_answer_is_expected_nothing_is_held_back() -> None:
    sieve = Sieve()
    assert sieve.sift(b"\x1b", expecting=False) == ("\x1b", 0)
    assert sieve.sift(b"\x1b[1;", expecting=False) == ("\x1b[1;", 0)


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert Sieve().sift(b"a\xff\xc3(b", expecting=False) == ("a\ufffd\ufffd(b", 0)
