"""Ctrl-C during long work takes effect between two steps."""

import os
import signal
from collections.abc import Iterator

import pytest
from attn_tui.tui.cli.progress import ProgressLine
from cli_runner import python


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_during_a_step_takes_effect_when_the_step_is_done() -> None:
    done: list[int] = []

    def work() -> None:
        with ProgressLine("work") as progress:
            for step in range(3):
                if step == 1:
                    press_ctrl_c()
                done.append(step)
                progress.show(step / 3)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_after_the_last_step_takes_effect_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), ProgressLine("work"):
        press_ctrl_c()


def test_a_second_ctrl_c_takes_effect_at_once() -> None:
    pressed: list[int] = []

    def work() -> None:
        with ProgressLine("work"):
            for number in range(3):
                pressed.append(number)
                press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert pressed == [0, 1]


def test_an_error_after_ctrl_c_is_not_hidden_by_it() -> None:
    def work() -> None:
        with ProgressLine("work"):
            press_ctrl_c()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_ctrl_c_stays_ignored_where_it_was_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ProgressLine("work") as progress:
        press_ctrl_c()
        progress.show(1)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_handler_of_ctrl_c_is_kept() -> None:
    seen: list[int] = []

    def see(number: int, _: object) -> None:
        seen.append(number)

    signal.signal(signal.SIGINT, see)
    with ProgressLine("work") as progress:
        press_ctrl_c()
        progress.show(1)
    assert (seen, signal.getsignal(signal.SIGINT)) == ([signal.SIGINT], see)


@pytest.mark.slow
def test_a_sweep_ends_whenever_ctrl_c_is_pressed() -> None:
    """Without ProgressLine, one in some hundred of these leaves a lock held, and the sweep never ends."""
    assert python(SWEEPS).stdout == "100 ended\n"


SWEEPS = """
import os, random, signal, threading
from attn_tui.core.work.opening import open_engine
from attn_tui.core.work.sweeps import stream, sweep_plan
from attn_tui.core.parameters import Parameters
from attn_tui.tui.cli.progress import ProgressLine

def sweep(p, timer):
    with ProgressLine("sweeping") as progress:
        timer.start()
        while True:
            with open_engine("threads") as engine:
                for step in stream(sweep_plan(p, range(1, 60)), engine):
                    progress.show(step.fraction)

p, moments, ended = Parameters(n_keys=16, n_queries=64, batch=64), random.Random(1), 0
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ in range(100):
    timer = threading.Timer(moments.uniform(0, 0.01), os.kill, (os.getpid(), signal.SIGINT))
    try:
        sweep(p, timer)
    except KeyboardInterrupt:
        ended += 1
print(ended, "ended")
"""
