"""Pools of threads and of processes, whose workers perform parts, and the results of any executor in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from threading import Event
from typing import Any, ParamSpec, TypeVar

from ..blas import one_blas_thread
from ..errors import InputError
from .engine_names import ExecutorError, LostExecutorError
from .part import Part, PartExecutor, PartProgress, Perform, Store, perform
from .worker import (
    RUNS,
    give_way,
    interrupts_blocked,
    other_processors,
    other_versions,
    perform_of_run,
    start_process,
    start_resource_tracker,
    traits,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_START = 30  # seconds in which workers must answer
_END = 1.0  # seconds to wait for the thread of a pool whose processes have ended
# Parts given to each worker at a time: enough that none waits for the next, few enough to stop soon.
_WINDOW = 4
# Finished results held at most for each worker while an earlier part is not finished.
_HELD = 32
_LOST = 30  # seconds without any worker after which none is expected; a nanny starts a new one in less


@contextmanager
def open_threads(workers: int, background: bool = False) -> Generator[PartExecutor, None, None]:
    """Open threads of this process; in the background, they give way to others."""
    initializer = give_way if background else None
    with one_blas_thread(), ThreadPoolExecutor(workers, "work", initializer) as pool:
        yield PartExecutor("threads", workers, pool, _begin_thread)


@contextmanager
def open_processes(workers: int, background: bool = False) -> Generator[PartExecutor, None, None]:
    """Open processes on this machine, which give way to others in the background; raise ExecutorError."""
    start_resource_tracker()
    context = get_context("spawn")
    ended, numbers = context.RawArray("Q", RUNS), count(1)

    def begin() -> tuple[Perform, Callable[[], object]]:
        number = next(numbers)
        return partial(perform_of_run, number), lambda: ended.__setitem__(number % RUNS, number)

    with _ending(_ProcessPool(workers, context, start_process, (ended, background))) as pool:
        yield checked(PartExecutor("processes", workers, pool, begin))


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


def checked(engine: PartExecutor) -> PartExecutor:
    """Return an executor whose workers answer, and have the same versions as this process.

    Raise ExecutorError otherwise, within _START seconds.
    """
    assert engine.executor is not None
    try:
        futures = [engine.executor.submit(traits) for _ in range(engine.workers)]
        if wait(futures, _START).not_done:
            raise ExecutorError(
                "executor {name}: no answer from its workers within {start} seconds", name=engine.name, start=_START
            )
        results = [future.result() for future in futures]
    except (BrokenExecutor, OSError) as error:  # such as too many processes
        raise ExecutorError(
            "executor {name}: its workers cannot start: {error}", name=engine.name, error=error
        ) from None
    return replace(engine, remark=same_versions(engine.name, results))


def same_versions(name: str, versions: Sequence[Mapping[str, str]]) -> str:
    """Return in what workers may differ from this process, by their traits; raise ExecutorError on other versions."""
    here = traits()
    if refused := other_versions(here, versions):
        raise ExecutorError("executor {name}: {refused}", name=name, refused=refused)
    return other_processors(here, versions)


def _begin_thread() -> tuple[Perform, Callable[[], object]]:
    stopped = Event()
    return partial(perform, stopped=stopped.is_set), stopped.set


def pooled(
    parts: Iterator[Part[R]], engine: PartExecutor, store: Store | None, patience: float
) -> Iterator[PartProgress[R]]:
    """Yield what `run` yields of parts that an executor performs."""
    assert engine.executor is not None
    perform, stop = engine.begin()
    waiting: deque[tuple[Part[R], Future[tuple[R | InputError, ...]]]] = deque()
    unfinished: dict[Future[tuple[R | InputError, ...]], Part[R]] = {}
    seconds, ended = 0.0, False
    try:
        while waiting or not ended:
            for future in [future for future in unfinished if future.done()]:
                part = unfinished.pop(future)
                seconds += part.seconds
                _keep(store, part, future)
            while not ended and len(unfinished) < _WINDOW * engine.workers and len(waiting) < _HELD * engine.workers:
                part = next(parts, None)
                ended = part is None
                if part is not None:
                    known = None if store is None else store.get(part)
                    if known is None:
                        future = engine.executor.submit(perform, part)
                        unfinished[future] = part
                    else:
                        future = Future[tuple[R | InputError, ...]]()
                        future.set_result(known)
                        seconds += part.seconds
                    waiting.append((part, future))
            while waiting and waiting[0][1] not in unfinished:
                part, future = waiting.popleft()
                yield PartProgress(seconds, _results(future, engine), part, complete=True)
            if unfinished and engine.missing() > _LOST:
                raise LostExecutorError("executor {name}: no worker for {lost} seconds", name=engine.name, lost=_LOST)
            if unfinished and (len(unfinished) >= _WINDOW * engine.workers or ended):
                wait(unfinished, patience, FIRST_COMPLETED)
            yield PartProgress(seconds)
    finally:
        for future, part in unfinished.items():
            if future.done():
                _keep(store, part, future)
            else:
                future.cancel()
        stop()


def _keep(store: Store | None, part: Part[R], future: Future[tuple[R | InputError, ...]]) -> None:
    """Add the results of a finished part, unless it was lost or its worker could not do it."""
    if store is None or future.cancelled() or future.exception() is not None:
        return
    if not any(isinstance(result, ExecutorError) for result in future.result()):
        store.add(part, future.result())


def _results(future: Future[tuple[R | InputError, ...]], engine: PartExecutor) -> tuple[R | InputError, ...]:
    """Return the results of a finished part; raise LostExecutorError if it could not be finished."""
    try:
        return future.result()
    except (CancelledError, BrokenExecutor):
        raise LostExecutorError("executor {name}: its workers are gone", name=engine.name) from None
    except ImportError as error:  # a worker came after the work began
        raise LostExecutorError(
            "executor {name}: a worker cannot use attn-tui: {error}", name=engine.name, error=error
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        raise LostExecutorError(
            "executor {name}: {split}", name=engine.name, split=" ".join(str(error).split())
        ) from None
