"""Perform the parts of a plan and yield their results in the order of the plan, whichever is finished first."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import TypeVar

from ..blas import one_blas_thread
from ..errors import InputError
from .engine_names import EngineError, LostEngineError
from .engines import SERIAL, Engine
from .part import Done, Part, Store

R = TypeVar("R")

# Parts given to each worker at a time: enough that none waits for the next, few enough to stop soon.
_WINDOW = 4
# Finished results held at most for each worker while an earlier part is not finished.
_HELD = 32
_LOST = 30  # seconds without any worker after which none is expected; a nanny starts a new one in less
_PATIENCE = 0.05  # seconds between reports, unless the caller says otherwise


def run(
    parts: Iterable[Part[R]], engine: Engine = SERIAL, store: Store | None = None, patience: float = _PATIENCE
) -> Generator[Done[R], None, None]:
    """Yield the results of each part in order, and in between, at least every `patience` seconds, the progress.

    The results depend on the parts alone. An InputError that a part raises is its last result. Parts in `store` are
    not performed again; others are added to it as soon as they are finished. To stop the work, close the generator:
    waiting parts are cancelled, and running ones end after their step. A serial engine yields results after each
    short step, others after each part. Raise LostEngineError if the workers are gone.
    """
    if engine.executor is None:
        with one_blas_thread():
            yield from _serial(parts, store)
    else:
        yield from _pooled(iter(parts), engine, store, patience)


def _serial(parts: Iterable[Part[R]], store: Store | None) -> Iterator[Done[R]]:
    before = 0.0
    for part in parts:
        known = None if store is None else store.get(part)
        if known is None:
            found: list[R | InputError] = []
            try:
                for fraction, results in part.steps():
                    if store is not None:
                        found += results
                    yield Done(before + fraction * part.seconds, results, part)
                known = ()
            except InputError as error:
                known = (error,)
            if store is not None and not any(isinstance(error, EngineError) for error in known):
                store.add(part, (*found, *known))
        before += part.seconds
        yield Done(before, known, part, complete=True)


def _pooled(parts: Iterator[Part[R]], engine: Engine, store: Store | None, patience: float) -> Iterator[Done[R]]:
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
                yield Done(seconds, _results(future, engine), part, complete=True)
            if unfinished and engine.missing() > _LOST:
                raise LostEngineError("executor {name}: no worker for {lost} seconds", name=engine.name, lost=_LOST)
            if unfinished and (len(unfinished) >= _WINDOW * engine.workers or ended):
                wait(unfinished, patience, FIRST_COMPLETED)
            yield Done(seconds)
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
    if not any(isinstance(result, EngineError) for result in future.result()):
        store.add(part, future.result())


def _results(future: Future[tuple[R | InputError, ...]], engine: Engine) -> tuple[R | InputError, ...]:
    """Return the results of a finished part; raise LostEngineError if it could not be finished."""
    try:
        return future.result()
    except (CancelledError, BrokenExecutor):
        raise LostEngineError("executor {name}: its workers are gone", name=engine.name) from None
    except ImportError as error:  # a worker came after the work began
        raise LostEngineError(
            "executor {name}: a worker cannot use attn-tui: {error}", name=engine.name, error=error
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        raise LostEngineError(
            "executor {name}: {split}", name=engine.name, split=" ".join(str(error).split())
        ) from None
