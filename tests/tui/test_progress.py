"""Long work and Ctrl-C: it ends between two steps, and nothing is lost or left hanging."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from attn_tui.tui.plain.progress import Progress


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_in_the_midst_of_a_step_is_heeded_when_it_is_done() -> None:
    done: list[int] = []

    def work() -> None:
        with Progress("work") as progress:
            for step in range(3):
                if step == 1:
                    press_ctrl_c()
                done.append(step)
                progress.show(step / 3)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_after_the_last_step_is_heeded_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), Progress("work"):
        press_ctrl_c()


def test_a_second_ctrl_c_is_heeded_at_once() -> None:
    pressed: list[int] = []

    def work() -> None:
        with Progress("work"):
            for number in range(3):
                pressed.append(number)
                press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert pressed == [0, 1]


def test_what_fails_after_ctrl_c_is_told_of() -> None:
    def work() -> None:
        with Progress("work"):
            press_ctrl_c()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Progress("work") as progress:
        press_ctrl_c()
        progress.show(1)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_handlers_of_ctrl_c_stay_as_they_are() -> None:
    seen: list[int] = []

    def see(number: int, _: object) -> None:
        seen.append(number)

    signal.signal(signal.SIGINT, see)
    with Progress("work") as progress:
        press_ctrl_c()
        progress.show(1)
    assert (seen, signal.getsignal(signal.SIGINT)) == ([signal.SIGINT], see)


def test_a_sweep_ends_whenever_ctrl_c_is_pressed() -> None:
    """Without Progress one in some hundred of these leaves a lock held, and the sweep waits for it for ever."""
    ended = subprocess.run([sys.executable, "-c", SWEEPS], stdout=subprocess.PIPE, timeout=60)
    assert ended.stdout == b"300 ended\n"


SWEEPS = """
import os, random, signal, threading
from attn_tui.core.lab.sweep import stream
from attn_tui.core.parameters import Parameters
from attn_tui.tui.plain.progress import Progress

def sweep(p, timer):
    with Progress("sweeping") as progress:
        timer.start()
        while True:
            for step in stream(p, range(1, 60)):
                progress.show(step.fraction)

p, moments, ended = Parameters(n_keys=16, n_queries=64, batch=64), random.Random(1), 0
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ in range(300):
    timer = threading.Timer(moments.uniform(0, 0.01), os.kill, (os.getpid(), signal.SIGINT))
    try:
        sweep(p, timer)
    except KeyboardInterrupt:
        ended += 1
print(ended, "ended")
"""
