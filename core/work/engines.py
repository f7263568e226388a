"""Engines: where the parts of some work are performed, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from threading import Event
from typing import Any

from ..blas import one_blas_thread
from ..engine_names import EngineError
from .part import Part, perform
from .worker import differences, ignore_interrupts, perform_prepared, traits

_START = 30  # seconds in which workers must answer


@dataclass(frozen=True, eq=False)
class Engine:
    """Where parts are performed: an executor and its number of workers, or this thread."""

    name: str
    workers: int = 1
    executor: Executor | None = None
    perform: Callable[[Part[Any]], tuple[Any, ...]] = perform
    remark: str = ""  # what the user should know of it


SERIAL = Engine("serial")


@contextmanager
def open_threads(workers: int) -> Generator[Engine, None, None]:
    """Open threads of this process; afterwards they end after their step."""
    stopped = Event()
    with one_blas_thread(), ThreadPoolExecutor(workers, "work") as pool:
        try:
            yield Engine("threads", workers, pool, partial(perform, stopped=stopped.is_set))
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def open_processes(workers: int) -> Generator[Engine, None, None]:
    """Open processes on this machine; raise EngineError if they do not start."""
    with _ending(ProcessPoolExecutor(workers, get_context("spawn"), ignore_interrupts)) as pool:
        yield checked(Engine("processes", workers, pool, perform_prepared))


@contextmanager
def _ending(pool: ProcessPoolExecutor) -> Generator[Executor, None, None]:
    """End the processes of a pool afterwards, even in the middle of a part."""
    try:
        yield pool
    finally:
        processes: list[Any] = [*(getattr(pool, "_processes", None) or {}).values()]
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


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
    except BrokenExecutor as error:
        raise EngineError(
            "executor {name}: its workers cannot start: {error}", name=engine.name, error=error
        ) from None
    return replace(engine, remark=same_versions(engine.name, found))


def same_versions(name: str, found: Sequence[Mapping[str, str]]) -> str:
    """Return in what workers may differ from this process, by their traits; raise EngineError on other versions."""
    refused, remark = differences(traits(), found)
    if refused:
        raise EngineError("executor {name}: {refused}", name=name, refused=refused)
    return remark
