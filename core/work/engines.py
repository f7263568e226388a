"""Engines: where the parts of some work are performed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from threading import Event
from typing import Any

from ..blas import one_blas_thread
from ..engine_names import EngineError, engine_name
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
def open_engine(text: str) -> Generator[Engine, None, None]:
    """Open the engine that a text names, and end what it started afterwards.

    Raise EngineError before any work if it cannot start.
    """
    kind, workers = engine_name(text)
    if kind == "serial":
        yield SERIAL
    elif kind == "threads":
        stopped = Event()
        with one_blas_thread(), ThreadPoolExecutor(workers, "work") as pool:
            try:
                yield Engine(kind, workers, pool, partial(perform, stopped=stopped.is_set))
            finally:
                stopped.set()
                pool.shutdown(cancel_futures=True)
    else:
        with _ending(ProcessPoolExecutor(workers, get_context("spawn"), ignore_interrupts)) as pool:
            yield checked(Engine(kind, workers, pool, perform_prepared))


@contextmanager
def _ending(pool: ProcessPoolExecutor) -> Generator[Executor, None, None]:
    """End the processes of a pool afterwards; after an error, even in the middle of a part."""
    try:
        yield pool
    except BaseException:
        processes: list[Any] = [*(getattr(pool, "_processes", None) or {}).values()]
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    pool.shutdown()


def checked(engine: Engine) -> Engine:
    """Return an engine whose workers answer, and have the same versions as this process.

    Raise EngineError otherwise, within _START seconds.
    """
    assert engine.executor is not None
    try:
        futures = [engine.executor.submit(traits) for _ in range(engine.workers)]
        if wait(futures, _START).not_done:
            raise EngineError(f"executor {engine.name}: no answer from its workers within {_START} seconds")
        refused, remark = differences(traits(), [future.result() for future in futures])
    except BrokenExecutor as error:
        raise EngineError(f"executor {engine.name}: its workers cannot start: {error}") from None
    if refused:
        raise EngineError(f"executor {engine.name}: {refused}")
    return replace(engine, remark=remark)
