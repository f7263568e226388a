"""Which work of the engine's process is done by workers, and that lost ones are opened again."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from threading import Event

import pytest
from attn_tui.core.work import cluster
from attn_tui.core.work.engine_names import ExecutorError
from attn_tui.core.work.part import Part, PartExecutor
from attn_tui.core.work.workers import Workers


def numbered(number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 1.0, (number,)


def unreadable() -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 0.5, ()
    raise ExecutorError("not readable on this worker")


@pytest.mark.parametrize(
    ("name", "count", "seconds", "elsewhere"),
    [("threads:1", 2, 0.25, True), ("threads:1", 2, 0.2, False), ("threads:1", 1, 9, False), ("serial", 2, 9, False)],
)
def test_workers_do_several_parts_that_take_long_together(
    name: str, count: int, seconds: float, elsewhere: bool
) -> None:
    workers = Workers()
    workers.name = name
    running = workers.begin([Part(numbered, (number,), seconds) for number in range(count)])
    found = [result for done in running.steps() for result in done.results]
    assert found == [*range(count)]
    assert (running.pace is not None) is elsewhere
    if running.pace is not None:
        assert (running.pace.workers, running.pace.rate > 0) == (1, True)
        workers.lose(workers.opening())


def test_workers_that_could_not_do_a_part_are_opened_again() -> None:
    workers = Workers()
    workers.name = "threads:1"
    first = workers.opening()
    with pytest.raises(ExecutorError, match="not readable"):
        list(workers.begin([Part(unreadable, (), 1.0)] * 2).steps())
    assert workers.opening() is not first
    assert workers.opening() is workers.opening()
    workers.lose(workers.opening())


def test_workers_stay_open_between_runs_until_they_have_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on the earlier ones may still end."""
    events: list[str] = []
    closed = Event()

    @contextmanager
    def noted(name: str, background: bool) -> Generator[PartExecutor]:
        events.append(f"open {name}")
        with open_engine(name, background=background) as engine:
            yield engine
        events.append(f"close {name}")
        closed.set()

    open_engine = cluster.open_engine
    monkeypatch.setattr(cluster, "open_engine", noted)
    workers = Workers()
    workers.name = "threads:1"
    parts = [Part(numbered, (number,), 1.0) for number in range(2)]
    list(workers.begin(parts).steps())
    assert not closed.wait(0.05)
    running = workers.begin(parts).steps()
    next(running)
    workers.name = "threads:2"
    later = workers.opening()
    assert later.answered.wait(5)
    assert events == ["open threads:1", "open threads:2"], "it is running"
    list(running)
    assert closed.wait(5)
    assert events[2:] == ["close threads:1"]
    workers.lose(later)
