"""Parts performed by engines: results in the order of the plan, errors, and what stays behind."""

import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.work import cluster, pools, worker
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.engine_names import ExecutorError, LostExecutorError, engine_name
from attn_tui.core.work.engines import run
from attn_tui.core.work.part import SERIAL, MemoryStore, Part, PartExecutor
from cases import for_each


def doubled(number: int, seconds: float = 0.0) -> Iterator[tuple[float, tuple[int, ...]]]:
    time.sleep(seconds)
    yield 0.5, (number,)
    yield 1.0, (number,)


def refused(number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 0.5, (number,)
    raise InputError(f"{number}: not accepted")


def divided(number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 1.0, (1 // number,)


def ended() -> Iterator[tuple[float, tuple[int, ...]]]:
    import os

    yield 0.5, ()
    os._exit(1)


def unknown() -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 0.5, ()
    raise ModuleNotFoundError("No module named 'attn_tui'")


def unreadable() -> Iterator[tuple[float, tuple[int, ...]]]:
    yield 0.5, ()
    raise ExecutorError("not readable on this worker")


def results(parts: list[Part[int]], engine: PartExecutor) -> list[Any]:
    return [str(result) for done in run(parts, engine) for result in done.results]


@pytest.mark.parametrize("name", ["serial", "threads:3", pytest.param("processes:2", marks=pytest.mark.slow)])
def test_results_come_in_the_order_of_the_plan(name: str) -> None:
    parts = [Part(doubled, (number, 0.02 * (number % 3 == 0)), 1.0) for number in range(30)]
    parts.insert(7, Part(refused, (99,), 1.0))
    expected = [str(n) for n in range(7) for _ in "ab"] + ["99", "99: not accepted"]
    expected += [str(n) for n in range(7, 30) for _ in "ab"]
    with open_engine(name) as engine:
        seconds = [done.seconds for done in run(parts, engine)]
        assert results(parts, engine) == expected
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(31)


def test_few_parts_are_taken_from_the_plan_at_a_time() -> None:
    taken: list[int] = []

    def plan() -> Iterator[Part[int]]:
        for number in range(10_000):
            taken.append(number)
            yield Part(doubled, (number,))

    with open_engine("threads:2") as engine:
        work = run(plan(), engine)
        while not next(work).results:
            pass
        work.close()
    assert len(taken) <= 2 * 33


def test_a_defect_is_raised_and_ends_the_work() -> None:
    for name in ("serial", "threads:2"):
        with open_engine(name) as engine, pytest.raises(ZeroDivisionError):
            results([Part(divided, (number,)) for number in (3, 0, 2)], engine)


def test_closing_the_work_stops_running_parts_after_their_step_and_begins_no_other() -> None:
    begun: list[int] = []

    def slow(number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        for step in range(10_000):
            begun.append(number)
            time.sleep(0.01)
            yield step / 10_000, ()

    before = set(threading.enumerate())
    with open_engine("threads:2") as engine:
        work = run([Part(slow, (number,)) for number in range(8)], engine)
        next(work)
        work.close()
        assert results([Part(doubled, (1,))], engine) == ["1", "1"]  # another run does not wait for the closed one
        assert len(begun) < 10_000
    assert set(begun) <= {0, 1}
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("name", ["serial", "threads:2"])
def test_finished_parts_are_kept_and_not_performed_again(name: str) -> None:
    kept, performed = MemoryStore(), list[int]()

    def noted(number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        performed.append(number)
        yield 1.0, (number,)

    parts = [Part(noted, (number,)) for number in range(4)]
    with open_engine(name) as engine:
        for plan in (parts[:3], parts, parts):
            found = [result for done in run(plan, engine, kept) for result in done.results]
            assert found == [*range(len(plan))]
    assert sorted(performed) == [0, 1, 2, 3]


def test_what_a_worker_could_not_do_is_not_kept() -> None:
    kept, part = MemoryStore(), Part(unreadable, ())
    for name in ("serial", "threads:1"):
        with open_engine(name) as engine:
            assert [str(result) for done in run([part], engine, kept) for result in done.results] == [
                "not readable on this worker"
            ]
        assert kept.get(part) is None


@pytest.mark.slow
def test_processes_end_with_the_process_that_started_them() -> None:
    program = (
        "import os, signal\n"
        "from attn_tui.core.work.pools import open_processes\n"
        "with open_processes(2) as engine:\n"
        "    print(*engine.executor._processes, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    limit = time.monotonic() + 300
    workers = found.stdout.split()
    assert len(workers) == 2
    while any(Path(f"/proc/{worker}/exe").exists() for worker in workers):
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_processes_and_their_threads_end_with_the_executor_in_the_middle_of_a_part() -> None:
    begun = {*threading.enumerate()}
    with open_engine("processes:1") as engine:
        assert engine.executor is not None
        engine.executor.submit(time.sleep, 20)
        assert multiprocessing.active_children()
    assert not multiprocessing.active_children()
    assert {*threading.enumerate()} <= begun


class NoWorkers:
    """A client of a cluster that has lost its workers, or even its scheduler."""

    def __init__(self, scheduler: bool) -> None:
        self.scheduler = scheduler

    def ncores(self) -> dict[str, int]:
        if not self.scheduler:
            raise OSError("closed")
        return {}


@pytest.mark.parametrize("scheduler", [True, False])
def test_only_a_scheduler_that_answers_tells_that_workers_are_gone(
    scheduler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_LOOK", 0.01)
    with cluster._watched(NoWorkers(scheduler)) as missing:  # pyright: ignore[reportPrivateUsage]
        time.sleep(0.5)
        assert (missing() > 0.25) is scheduler


@pytest.mark.slow
def test_a_worker_without_the_program_that_came_later_is_named_in_one_line() -> None:
    with open_engine("threads:1") as engine, pytest.raises(LostExecutorError) as refused:
        results([Part(unknown, ())], engine)
    assert str(refused.value) == "executor threads: a worker cannot use attn-tui: No module named 'attn_tui'"


def test_a_worker_that_dies_is_named_in_one_line() -> None:
    with (
        open_engine("processes:1") as engine,
        pytest.raises(LostExecutorError, match="executor processes: its workers"),
    ):
        results([Part(ended, ()), Part(doubled, (1,))], engine)


@pytest.mark.slow
def test_processes_that_do_not_answer_are_refused_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_START", 0)
    with (
        pytest.raises(ExecutorError, match="no answer from its workers within 0 seconds"),
        open_engine("processes:1"),
    ):
        pass


def test_workers_with_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = worker.traits()
    with ThreadPoolExecutor(1) as pool:
        engine = PartExecutor("processes", 1, pool)
        assert pools.checked(engine).remark == ""
        for name in ("attn-tui", "NumPy"):
            monkeypatch.setattr(pools, "traits", lambda name=name: {**own, name: "0.0.1"})
            with pytest.raises(ExecutorError, match=f"a worker has {name} .* this machine 0.0.1"):
                pools.same_versions("dask", [own])


def test_workers_with_another_processor_are_used_with_a_note() -> None:
    own = worker.traits()
    assert pools.same_versions("dask", [own]) == ""
    note = pools.same_versions("dask", [own, {**own, "BLAS kernels": "Zen"}])
    assert note.startswith("1 of 2 workers have another kind of processor")
    assert "last digits may differ" in note


def test_parts_are_small() -> None:
    assert len(pickle.dumps(Part(doubled, (1,)))) < 200


@for_each(
    ("text", "expected"),
    [
        ("serial", ("serial", "")),
        ("threads", ("threads", "")),
        ("processes:12", ("processes", "12")),
        ("threads:1", ("threads", "1")),
        ("threads:1024", ("threads", "1024")),
        ("dask", ("dask", "")),
        ("dask:tcp://node-1:8786", ("dask", "tcp://node-1:8786")),
        ("dask:tls://[::1]:8786", ("dask", "tls://[::1]:8786")),
    ],
)
def test_engines_have_names(text: str, expected: tuple[str, str]) -> None:
    assert engine_name(text) == expected


@for_each(
    "text",
    [
        "", "thread", "serial:2", "serial:", "threads:", "threads:0", "threads:-1", "threads:²", "threads:４",
        "threads:1025", "processes:x", "dask:host", "dask:udp://host:1", "dask:tcp://host:x", "mpi",
    ],
)  # fmt: skip
def test_other_names_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ExecutorError, match=r"^--executor: .*, not ") as refusal:
        engine_name(text, "--executor")
    assert "\n" not in str(refusal.value)


def test_the_serial_engine_has_no_executor() -> None:
    with open_engine("serial") as engine:
        assert engine is SERIAL
