"""Perform the parts of a plan and yield their results in the order of the plan, whichever is finished first."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import TypeVar

from ..blas import one_blas_thread
from ..engine_names import LostEngineError
from ..errors import InputError
from .engines import SERIAL, Engine
from .part import Done, Part

R = TypeVar("R")

# Parts given to each worker at a time: enough that none waits for the next, few enough to stop soon.
_WINDOW = 4
# Finished results held at most for each worker while an earlier part is not finished.
_HELD = 32
_PATIENCE = 0.1  # seconds between reports, so that the caller can stop


def run(parts: Iterable[Part[R]], engine: Engine = SERIAL) -> Generator[Done[R], None, None]:
    """Yield the results of each part in order, and in between, at least every tenth of a second, the progress.

    The results depend on the parts alone. An InputError that a part raises is its last result. To stop the work,
    close the generator: waiting parts are cancelled. A serial engine yields results after each short step, others
    after each part.
    """
    if engine.executor is None:
        with one_blas_thread():
            yield from _serial(parts)
    else:
        yield from _pooled(iter(parts), engine)


def _serial(parts: Iterable[Part[R]]) -> Iterator[Done[R]]:
    before = 0.0
    for part in parts:
        refused: tuple[InputError, ...] = ()
        try:
            for fraction, results in part.steps():
                yield Done(before + fraction * part.seconds, results, part)
        except InputError as error:
            refused = (error,)
        before += part.seconds
        yield Done(before, refused, part, complete=True)


def _results(future: Future[tuple[R | InputError, ...]], engine: Engine) -> tuple[R | InputError, ...]:
    """Return the results of a finished part; raise LostEngineError if it could not be finished."""
    try:
        return future.result()
    except (CancelledError, BrokenExecutor):
        raise LostEngineError(f"executor {engine.name}: its workers are gone") from None
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        raise LostEngineError(f"executor {engine.name}: {' '.join(str(error).split())}") from None


def _pooled(parts: Iterator[Part[R]], engine: Engine) -> Iterator[Done[R]]:
    assert engine.executor is not None
    waiting: deque[tuple[Part[R], Future[tuple[R | InputError, ...]]]] = deque()
    unfinished: dict[Future[tuple[R | InputError, ...]], Part[R]] = {}
    seconds, ended = 0.0, False
    try:
        while waiting or not ended:
            for future in [future for future in unfinished if future.done()]:
                seconds += unfinished.pop(future).seconds
            while not ended and len(unfinished) < _WINDOW * engine.workers and len(waiting) < _HELD * engine.workers:
                part = next(parts, None)
                ended = part is None
                if part is not None:
                    future = engine.executor.submit(engine.perform, part)
                    waiting.append((part, future))
                    unfinished[future] = part
            while waiting and waiting[0][1] not in unfinished:
                part, future = waiting.popleft()
                yield Done(seconds, _results(future, engine), part, complete=True)
            if unfinished and (len(unfinished) >= _WINDOW * engine.workers or ended):
                wait(unfinished, _PATIENCE, FIRST_COMPLETED)
            yield Done(seconds)
    finally:
        for _, future in waiting:
            future.cancel()
