"""The thread that computes: the latest request of each kind wins, and nothing is interrupted halfway."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from attn_tui.core.errors import InputError
from attn_tui.tui import recompute
from attn_tui.tui.messages import Computed, Crashed, Failed, Progress
from attn_tui.tui.recompute import Recompute, Work

FOREVER = 20  # seconds until a test gives up


class Bench:
    """A Recompute, what it delivered, and work whose steps the test releases one by one."""

    def __init__(self, *kinds: str) -> None:
        self.told: list[Computed] = []
        self.log: list[str] = []
        self.recompute = Recompute(kinds or ("lab",), self.told.append)

    def request(self, name: str, kind: str = "lab", steps: int = 1) -> None:
        """Work that notes each of its steps and says so."""

        def work() -> Work:
            for step in range(steps):
                self.log.append(f"{name}{step}")
                yield Progress(kind, step)

        self.recompute.request(kind, work)

    def held(self, name: str, kind: str = "lab", steps: int = 1) -> "Held":
        """Work that waits at its first step until it is released."""
        held = Held(self, name, kind, steps)
        self.recompute.request(kind, held.work)
        return held

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + FOREVER
        while not condition():
            assert time.monotonic() < end, f"only {self.log} was done, and {self.told} delivered"
            time.sleep(0.001)


class Held:
    def __init__(self, bench: Bench, name: str, kind: str, steps: int) -> None:
        self.bench, self.name, self.kind, self.steps = bench, name, kind, steps
        self.begun, self.released = threading.Event(), threading.Event()

    def work(self) -> Iterator[Computed | None]:
        self.begun.set()
        assert self.released.wait(FOREVER)
        for step in range(self.steps):
            self.bench.log.append(f"{self.name}{step}")
            yield None


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench("lab", "head", "map")
    yield bench
    bench.recompute.stop()


def test_what_is_requested_before_the_start_is_done_first(bench: Bench) -> None:
    bench.request("a")
    assert bench.log == []
    bench.recompute.start()
    bench.until(lambda: bench.told)
    assert bench.log == ["a0"]
    assert [type(message) for message in bench.told] == [Progress]


def test_every_step_s_message_is_delivered_in_order_and_none_for_silence(bench: Bench) -> None:
    def work() -> Work:
        yield Progress("lab", 0.1)
        yield None
        yield Progress("lab", 0.2)

    bench.recompute.request("lab", work)
    bench.recompute.start()
    bench.until(lambda: len(bench.told) == 2)
    assert [message.fraction for message in bench.told if isinstance(message, Progress)] == [0.1, 0.2]


def test_of_those_that_wait_only_the_latest_is_done(bench: Bench) -> None:
    bench.recompute.start()
    first = bench.held("first")
    assert first.begun.wait(FOREVER)
    for number in range(50):
        bench.request(f"n{number}-")
    first.released.set()
    bench.until(lambda: "n49-0" in bench.log)
    bench.request("last")
    bench.until(lambda: "last0" in bench.log)
    assert bench.log == ["first0", "n49-0", "last0"]


def test_short_running_work_is_finished_before_a_newer_request(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute, "PATIENCE", 1e9)
    bench.recompute.start()
    first = bench.held("first", steps=30)
    assert first.begun.wait(FOREVER)
    bench.request("second")
    first.released.set()
    bench.until(lambda: "second0" in bench.log)
    assert bench.log == [*(f"first{step}" for step in range(30)), "second0"]


def test_long_running_work_is_dropped_for_a_newer_request(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute, "PATIENCE", -1.0)  # everything takes long
    bench.recompute.start()
    first = bench.held("first", steps=1_000)
    assert first.begun.wait(FOREVER)
    bench.request("second", steps=2)
    first.released.set()
    bench.until(lambda: "second1" in bench.log)
    bench.request("third")
    bench.until(lambda: "third0" in bench.log)
    assert bench.log == ["first0", "second0", "second1", "third0"], "dropped after the step it was in"


def test_long_work_that_nobody_overtakes_is_finished(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute, "PATIENCE", -1.0)
    bench.request("a", steps=100)
    bench.recompute.start()
    bench.until(lambda: len(bench.log) == 100)


def test_a_more_urgent_kind_goes_first_and_the_other_goes_on_after_it(bench: Bench) -> None:
    bench.request("map", kind="map", steps=2)
    bench.request("lab", kind="lab", steps=2)
    bench.request("head", kind="head", steps=2)
    bench.recompute.start()
    bench.until(lambda: len(bench.log) == 6)
    assert bench.log == ["lab0", "lab1", "head0", "head1", "map0", "map1"]


def test_urgent_work_pauses_running_work_of_another_kind_without_dropping_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "PATIENCE", -1.0)
    bench.recompute.start()
    long = bench.held("map", kind="map", steps=5)
    assert long.begun.wait(FOREVER)
    bench.request("lab", kind="lab", steps=2)
    long.released.set()
    bench.until(lambda: len(bench.log) == 7)
    assert bench.log == ["map0", "lab0", "lab1", "map1", "map2", "map3", "map4"]


def test_what_people_can_mend_becomes_failed_with_its_line(bench: Bench) -> None:
    def work() -> Work:
        yield Progress("head", 0.5)
        raise InputError("sample.npz: empty")

    bench.recompute.request("head", work)
    bench.recompute.start()
    bench.until(lambda: len(bench.told) == 2)
    failed = bench.told[1]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.reason) == ("head", "sample.npz: empty")


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), RecursionError()])
def test_a_defect_becomes_crashed_with_its_error(bench: Bench, error: Exception) -> None:
    def work() -> Work:
        raise error
        yield

    bench.recompute.request("lab", work)
    bench.recompute.start()
    bench.until(lambda: bool(bench.told))
    crashed = bench.told[0]
    assert isinstance(crashed, Crashed)
    assert crashed.error is error


def test_too_little_memory_is_a_reason_not_a_defect(bench: Bench) -> None:
    def work() -> Work:
        raise MemoryError
        yield

    bench.recompute.request("lab", work)
    bench.recompute.start()
    bench.until(lambda: bool(bench.told))
    failed = bench.told[0]
    assert isinstance(failed, Failed)
    assert "not enough memory" in failed.reason


def test_where_the_thread_cannot_even_begin_that_is_a_defect(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError

    monkeypatch.setattr(recompute, "keep_memory", fail)
    bench.recompute.start()
    bench.until(lambda: bool(bench.told))
    crashed = bench.told[0]
    assert isinstance(crashed, Crashed)
    assert isinstance(crashed.error, OSError)


def test_after_a_failure_or_a_defect_the_thread_goes_on(bench: Bench) -> None:
    def fail() -> Work:
        raise InputError("no")
        yield

    bench.recompute.start()
    for number in range(3):
        bench.recompute.request("lab", fail)
        bench.until(lambda number=number: len(bench.told) == 2 * number + 1)
        bench.request("a")
        bench.until(lambda number=number: len(bench.told) == 2 * number + 2)


def test_stop_ends_the_thread_after_its_step(bench: Bench) -> None:
    bench.recompute.start()
    long = bench.held("long", steps=1_000_000)
    assert long.begun.wait(FOREVER)
    bench.request("waiting", kind="head")
    bench.recompute.stop()
    long.released.set()
    thread = bench.recompute._thread
    thread.join(FOREVER)
    assert not thread.is_alive()
    assert bench.log == ["long0"]


def test_stop_ends_an_idle_thread(bench: Bench) -> None:
    bench.recompute.start()
    bench.request("a")
    bench.until(lambda: bench.log == ["a0"])
    bench.recompute.stop()
    bench.recompute._thread.join(FOREVER)
    assert not bench.recompute._thread.is_alive()


def test_a_thread_that_was_never_started_can_be_stopped() -> None:
    Bench().recompute.stop()
