"""When frames are delayed for a terminal that is slower than the keys."""

import pytest
from attn_tui.tui.terminal.pacing import QUERY, Pacing

BIG = 3500  # characters of a frame in which everything changes


class Link:
    """Pacing over a simulated link of `speed` characters a second whose terminal replies after `delay` seconds."""

    def __init__(self, speed: float, delay: float = 0.0) -> None:
        self.now = 100.0
        self.speed, self.delay = speed, delay
        self.free = 0.0  # when the link has transmitted everything
        self.due: list[float] = []  # when replies will arrive
        self.calls = 0  # of `_caught_up`
        self.pacing = Pacing(self._caught_up, lambda: self.now)

    def _caught_up(self) -> None:
        self.calls += 1

    def send(self, size: int) -> None:
        if self.pacing.query(size):
            self.free = max(self.now, self.free) + size / self.speed
            self.due.append(self.free + self.delay)

    def wait(self, seconds: float) -> None:
        """Let time pass and the replies that are due arrive."""
        end = self.now + seconds
        while self.due and self.due[0] <= end:
            self.now = self.due.pop(0)
            self.pacing.replied(1)
        self.now = end


def test_before_the_first_reply_nothing_is_delayed() -> None:
    link = Link(speed=7000, delay=1e9)
    for _ in range(10):
        link.send(BIG)
        assert link.pacing.delay() == 0


def test_a_terminal_that_never_replies_is_queried_a_few_times_only() -> None:
    pacing = Pacing(lambda: None)
    queries = [pacing.query(BIG) for _ in range(100)]
    assert queries[0] == QUERY
    assert queries.count(QUERY) == 16
    assert queries[-1] == ""
    pacing.replied(1)
    assert pacing.query(BIG) == QUERY, "a late reply counts"


def test_two_frames_without_a_reply_delay_the_next_one_until_a_reply() -> None:
    link = Link(speed=1e9, delay=0.15)
    link.send(10)
    link.wait(1)
    link.send(10)
    assert link.pacing.delay() == 0
    link.wait(0.01)
    link.send(10)
    assert link.pacing.delay() > 1
    assert link.calls == 0
    link.wait(0.15)
    assert link.calls >= 1
    assert link.pacing.delay() == 0


def test_on_a_fast_link_no_frame_is_delayed() -> None:
    link = Link(speed=1e7, delay=0.0005)
    for _ in range(200):
        link.send(BIG)
        assert link.pacing.delay() == 0
        link.wait(0.004)


def test_a_frame_on_a_slow_link_delays_the_next_one_until_it_has_nearly_arrived() -> None:
    link = Link(speed=7000, delay=0.15)
    link.send(0)  # its reply measures the delay, those of the others the speed
    link.wait(2)
    for _ in range(2):
        link.send(BIG)
    link.wait(3)
    link.send(BIG)
    assert link.pacing.delay() == pytest.approx(BIG / 7000, abs=0.15)
    link.send(BIG)
    link.wait(BIG / 7000 + 0.16)
    assert link.pacing.delay() == pytest.approx(BIG / 7000, abs=0.3)
    link.wait(link.pacing.delay())
    assert link.pacing.delay() == 0, "the reply itself takes another 150 ms"


@pytest.mark.parametrize("speed", [1000, 7000, 50_000])
def test_under_a_held_key_the_backlog_is_small_and_the_link_is_not_idle(speed: float) -> None:
    link = Link(speed, delay=0.15)
    for size in (0, 4 * BIG):
        link.send(size)
        link.wait(60)
    backlog: list[float] = []
    for _ in range(900):  # thirty keys a second, for half a minute
        if not link.pacing.delay():
            link.send(BIG)
            backlog.append((link.free - link.now) * speed)
        link.wait(1 / 30)
    assert max(backlog) <= 2 * BIG
    most = min(30 * speed / BIG, 30 * 2 / (0.15 + BIG / speed))
    assert len(backlog) > 0.7 * most


def test_when_replies_stop_frames_are_sent_again_after_the_timeout() -> None:
    link = Link(speed=1e9, delay=0.001)
    link.send(10)
    link.wait(1)
    link.delay = 1e9
    link.send(10)
    link.send(10)
    link.wait(link.pacing.delay())
    assert link.pacing.delay() == 0
    for _ in range(100):
        link.send(BIG)
        assert link.pacing.delay() == 0
    assert not link.pacing.query(BIG), "as before the first reply, queries are few"


@pytest.mark.parametrize(("delay", "timeout"), [(0.1, 2), (1, 4), (9, 10)])
def test_the_timeout_is_four_times_the_last_delay_from_2_to_10_seconds(delay: float, timeout: float) -> None:
    link = Link(speed=1e9, delay=delay)
    link.send(10)
    link.wait(20)
    for _ in range(2):
        link.send(10)
    assert link.pacing.delay() == pytest.approx(timeout)


def test_short_frames_do_not_measure_the_speed() -> None:
    link = Link(speed=1e9)
    for delay in (0.1, 0.3):
        link.delay = delay
        link.send(10)
        link.wait(1)
    link.send(BIG)
    assert link.pacing.delay() == 0


def test_several_replies_may_arrive_together_and_unexpected_ones_are_ignored() -> None:
    link = Link(speed=1e9)
    link.send(10)
    link.send(10)
    link.pacing.replied(2)
    assert not link.pacing.outstanding
    link.pacing.replied(7)
    link.send(10)
    link.send(10)
    assert link.pacing.delay() > 0
    assert link.pacing.outstanding
