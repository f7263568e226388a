"""Ctrl-C during long work takes effect between two steps."""

import os
import signal
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.tables.table import Table
from attn_tui.core.work.part import Part
from attn_tui.tui.cli.output import Output
from attn_tui.tui.cli.working import ProgressLine, ResultStream, Work, complete, results_of
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


@pytest.mark.soak
def test_a_sweep_ends_whenever_ctrl_c_is_pressed() -> None:
    """Without ProgressLine, one in some hundred of these leaves a lock held, and the sweep never ends."""
    assert python(SWEEPS).stdout == "100 ended\n"


SWEEPS = """
import os, random, signal, threading
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.engines import run
from attn_tui.core.work.sweeps import parts, sweep_plan
from attn_tui.core.parameters import Parameters
from attn_tui.tui.cli.working import ProgressLine

def sweep(p, timer):
    with ProgressLine("sweeping") as progress:
        timer.start()
        while True:
            with open_engine("threads") as engine:
                for done in run(parts(sweep_plan(p, range(1, 60))), engine):
                    progress.show(done.seconds)

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


def points_of_which_the_second_is_refused() -> Iterator[tuple[float, tuple[str, ...]]]:
    yield 0.5, ("first",)
    raise InputError("the second point is refused")


@pytest.mark.parametrize("executor", ["serial", "threads:2"])
def test_ctrl_c_is_as_before_when_an_error_ends_the_results(executor: str) -> None:
    parts = [Part(points_of_which_the_second_is_refused, ())] * 3
    results = results_of(parts, replace(Work(), executor=executor), "work", Output())
    with pytest.raises(InputError, match="the second point"):
        complete(results)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert next(results, None) is None


def test_ctrl_c_is_as_before_when_results_cannot_be_written(tmp_path: Path) -> None:
    def results() -> Generator[int | InputError, None, None]:
        with ProgressLine("work"):
            yield from range(3)

    def full(_: int) -> list[list[int]]:
        raise InputError("the disk is full")

    def table(numbers: Iterable[int]) -> Table[int]:
        return Table("test-1", {}, "points", numbers, lambda n: [{"n": n}], {"n": int}, full, list, asked=3)

    with pytest.raises(InputError, match="full") as error:
        ResultStream(results(), 3, "points").emit(Output("csv", tmp_path / "points.csv"), str, table)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert error.tb  # which holds all that is left unfinished
