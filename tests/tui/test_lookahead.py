"""What a held key is going to ask for is measured so that it is there when the key is."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui.messages import MeasurementReady
from attn_tui.tui.panes import lookahead
from attn_tui.tui.panes.lookahead import Lookahead, by

START = Parameters(d_k=100)
LOOK = 0.008  # seconds from one look at a measurement that goes on to the next


@dataclass(frozen=True, eq=False)
class Measured:
    """As much of a measurement as is looked at."""

    subject: Parameters
    complete: bool = True


def message(p: Parameters) -> MeasurementReady:
    found: Any = Measured(p)
    return MeasurementReady("lab", found)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the time is, to be moved on."""
    now = [1000.0]
    monkeypatch.setattr(lookahead.time, "monotonic", lambda: now[0])
    return now


@dataclass
class Bench:
    """A key that repeats, and something that measures one d_k after the other, each as long as the other."""

    clock: list[float]
    every: float  # seconds between keys
    takes: float  # seconds for a measurement
    ahead: Lookahead = field(default_factory=Lookahead)
    shown: list[tuple[float, int]] = field(default_factory=list)  # when, and which d_k
    measured: list[int] = field(default_factory=list)
    pressed: list[float] = field(default_factory=list)

    def hold(self, keys: int) -> "Bench":
        """Press so often; then wait until nothing more is measured."""
        ahead, clock = self.ahead, self.clock
        p, begun, work, until = START, clock[0], iter(()), None
        coming = [begun + number * self.every for number in range(keys)]
        request, running = None, None
        while coming or running or request:
            if running and (not coming or until <= coming[0]):
                while clock[0] < until and not ahead.in_vain(running):
                    clock[0] = min(clock[0] + LOOK, until)
                if clock[0] == until:
                    self.come(running, p)
                running = next(work, None)
                until = clock[0] + self.takes
            elif coming:
                clock[0] = coming.pop(0)
                self.pressed.append(clock[0])
                p = ahead.following(p)
                known = ahead.ask(p)
                request = p
                if known:
                    ahead.awaited.clear()
                    self.shown.append((clock[0], p.d_k))
                    request = p if ahead.outrun else None
            if running is None and request is not None:
                work, request = ahead.aims(request) if ahead.outrun else iter([request]), None
                running = next(work, None)
                until = clock[0] + self.takes
        return self

    def come(self, p: Parameters, asked: Parameters) -> None:
        self.measured.append(p.d_k)
        self.ahead.learn(message(p))
        if p == asked:
            self.ahead.awaited.clear()
            self.shown.append((self.clock[0], p.d_k))
        elif p in self.ahead.awaited:
            self.ahead.awaited.discard(p)
            self.shown.append((self.clock[0], p.d_k))

    def lags(self) -> list[float]:
        """From each key to its d_k or a later one."""
        return [
            next(when for when, d_k in self.shown if d_k >= START.d_k + number) - pressed
            for number, pressed in enumerate(self.pressed, 1)
        ]


@pytest.mark.parametrize("takes", [0.001, 0.009, 0.02, 0.025, 0.033, 0.07, 0.2])
@pytest.mark.parametrize("every", [0.01, 0.02, 0.033])
def test_a_held_key_ends_on_its_own_d_k_and_never_shows_one_before_its_key(
    every: float, takes: float, clock: list[float]
) -> None:
    bench = Bench(clock, every, takes).hold(60)
    assert bench.shown[-1][1] == START.d_k + 60
    values = [d_k for _, d_k in bench.shown]
    assert values == sorted(set(values))
    for when, d_k in bench.shown:
        assert when >= bench.pressed[d_k - START.d_k - 1]


@pytest.mark.parametrize(
    ("every", "takes"), [(0.01, 0.013), (0.01, 0.025), (0.01, 0.07), (0.033, 0.1), (0.02, 0.028)]
)
def test_where_results_take_longer_than_keys_they_are_there_when_the_key_is(
    every: float, takes: float, clock: list[float]
) -> None:
    lags = Bench(clock, every, takes).hold(100).lags()
    settled = sorted(lags[20:-10])
    newest_first = 1.5 * takes  # on average, where the newest key is measured whenever there is time
    assert sum(settled) / len(settled) < 0.75 * newest_first
    assert settled[-1] < takes + 2 * every


@pytest.mark.parametrize(("every", "takes"), [(0.01, 0.025), (0.033, 0.1), (0.033, 0.3)])
def test_what_a_released_key_will_not_get_to_is_given_up(every: float, takes: float, clock: list[float]) -> None:
    bench = Bench(clock, every, takes).hold(100)
    assert bench.lags()[-1] < takes + 1.5 * every + 2 * LOOK


def test_a_key_that_a_busy_app_hears_late_is_still_held(clock: list[float]) -> None:
    ahead, p = Lookahead(), START
    for _ in range(20):
        clock[0] += 0.01
        p = ahead.following(p)
        ahead.ask(p)
    clock[0] += 0.024
    assert not ahead.released
    clock[0] += 0.002
    assert ahead.released


def test_what_is_known_of_the_next_keys_is_found_the_nearest_first(clock: list[float]) -> None:
    ahead = Lookahead()
    assert ahead.next_known(START) is None
    further, next_but_one = (message(replace(START, d_k=d_k)) for d_k in (103, 102))
    for each in (further, next_but_one):
        ahead.learn(each)
    assert ahead.next_known(START) is next_but_one
    assert ahead.next_known(replace(START, seed=1)) is None
    ahead.onward = by(-1)
    assert ahead.next_known(START) is None


def test_results_that_keep_up_are_measured_one_after_the_other(clock: list[float]) -> None:
    bench = Bench(clock, 0.033, 0.02).hold(30)
    assert bench.measured == [*range(START.d_k + 1, START.d_k + 31)]
    assert not bench.ahead.outrun


def test_a_key_that_is_pressed_again_and_again_is_not_held(clock: list[float]) -> None:
    bench = Bench(clock, 0.06, 0.3).hold(10)
    assert not bench.ahead.held
    assert not bench.ahead.outrun


def test_what_is_typed_fast_is_no_key_that_is_held(clock: list[float]) -> None:
    ahead = Lookahead()
    for d_k in (2, 28, 289):
        clock[0] += 0.01
        ahead.ask(replace(START, d_k=d_k))
        assert not ahead.held


def test_a_key_that_has_stopped_is_measured_where_it_stands(clock: list[float]) -> None:
    ahead = Bench(clock, 0.01, 0.025).hold(30).ahead
    assert ahead.outrun
    p = ahead.following(START)
    for _ in range(2):
        clock[0] += 0.01
        p = ahead.following(replace(p, seed=1))
        ahead.ask(p)
    clock[0] += 1
    assert [*ahead.aims(p)] == [p]


def test_at_a_bound_the_key_stays_where_it_is(clock: list[float]) -> None:
    ahead = Lookahead()
    assert ahead.following(replace(START, d_k=16_383), times=3).d_k == 16_384
    ahead.onward = by(-1)
    assert ahead.following(replace(START, d_k=2), times=3).d_k == 1


def test_only_the_last_measurements_are_kept(clock: list[float]) -> None:
    ahead = Lookahead()
    for d_k in range(1, 100):
        ahead.learn(message(replace(START, d_k=d_k)))
    assert [p.d_k for p in ahead.known] == [*range(84, 100)]
