"""Engines: where the parts of some work are performed, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from threading import Event
from typing import Any, ParamSpec, TypeAlias, TypeVar

from ..blas import one_blas_thread
from .engine_names import EngineError
from .part import Part, perform
from .worker import (
    RUNS,
    give_way,
    interrupts_blocked,
    other_processors,
    other_versions,
    perform_of_run,
    perform_prepared,
    start_process,
    start_resource_tracker,
    traits,
)

P = ParamSpec("P")
T = TypeVar("T")

_START = 30  # seconds in which workers must answer
_END = 1.0  # seconds to wait for the thread of a pool whose processes have ended

Perform: TypeAlias = "Callable[[Part[Any]], tuple[Any, ...]]"
# Begins a run: returns the function that performs its parts, and one that stops those that are running.
Begin: TypeAlias = "Callable[[], tuple[Perform, Callable[[], object]]]"


def _begin_thread() -> tuple[Perform, Callable[[], object]]:
    stopped = Event()
    return partial(perform, stopped=stopped.is_set), stopped.set


def begin_elsewhere(perform: Perform = perform_prepared) -> tuple[Perform, Callable[[], object]]:
    """Begin a run whose running parts cannot be stopped, or end themselves when they are cancelled."""
    return perform, lambda: None


# Calls a function with arguments on each worker, and returns what it returns by the name of the worker.
Everywhere: TypeAlias = "Callable[..., Mapping[str, Any]]"


@dataclass(frozen=True, eq=False)
class Engine:
    """Where parts are performed: an executor and its number of workers, or this thread."""

    name: str
    workers: int = 1
    executor: Executor | None = None
    begin: Begin = begin_elsewhere
    remark: str = ""  # what the user should know of it
    everywhere: Everywhere | None = None  # None: its workers are on this machine, or cannot be addressed
    missing: Callable[[], float] = float  # for how many seconds there has been no worker


SERIAL = Engine("serial")


@contextmanager
def open_threads(workers: int, background: bool = False) -> Generator[Engine, None, None]:
    """Open threads of this process; in the background, they give way to others."""
    initializer = give_way if background else None
    with one_blas_thread(), ThreadPoolExecutor(workers, "work", initializer) as pool:
        yield Engine("threads", workers, pool, _begin_thread)


@contextmanager
def open_processes(workers: int, background: bool = False) -> Generator[Engine, None, None]:
    """Open processes on this machine, which give way to others in the background; raise EngineError."""
    start_resource_tracker()
    context = get_context("spawn")
    ended, numbers = context.RawArray("Q", RUNS), count(1)

    def begin() -> tuple[Perform, Callable[[], object]]:
        number = next(numbers)
        return partial(perform_of_run, number), lambda: ended.__setitem__(number % RUNS, number)

    with _ending(_ProcessPool(workers, context, start_process, (ended, background))) as pool:
        yield checked(Engine("processes", workers, pool, begin))


class _ProcessPool(ProcessPoolExecutor):
    """Starts processes, when they are needed, that Ctrl-C does not reach."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with interrupts_blocked():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _ending(pool: ProcessPoolExecutor) -> Generator[Executor, None, None]:
    """End the processes of a pool afterwards, even in the middle of a part."""
    try:
        yield pool
    finally:
        processes: list[Any] = [*(getattr(pool, "_processes", None) or {}).values()]
        manager: Any = getattr(pool, "_executor_manager_thread", None)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        if manager is not None:
            manager.join(_END)  # else its semaphores may be removed while this process ends, which Python reports


def checked(engine: Engine) -> Engine:
    """Return an engine whose workers answer, and have the same versions as this process.

    Raise EngineError otherwise, within _START seconds.
    """
    assert engine.executor is not None
    try:
        futures = [engine.executor.submit(traits) for _ in range(engine.workers)]
        if wait(futures, _START).not_done:
            raise EngineError(
                "executor {name}: no answer from its workers within {start} seconds", name=engine.name, start=_START
            )
        found = [future.result() for future in futures]
    except (BrokenExecutor, OSError) as error:  # such as too many processes
        raise EngineError(
            "executor {name}: its workers cannot start: {error}", name=engine.name, error=error
        ) from None
    return replace(engine, remark=same_versions(engine.name, found))


def same_versions(name: str, found: Sequence[Mapping[str, str]]) -> str:
    """Return in what workers may differ from this process, by their traits; raise EngineError on other versions."""
    own = traits()
    if refused := other_versions(own, found):
        raise EngineError("executor {name}: {refused}", name=name, refused=refused)
    return other_processors(own, found)
