"""Perform the parts of a plan and yield their results in the order of the plan, whichever is finished first."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from ..blas import one_blas_thread
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


def _pooled(parts: Iterator[Part[R]], engine: Engine) -> Iterator[Done[R]]:
    assert engine.executor is not None
    waiting: deque[tuple[Part[R], Future[tuple[R | InputError, ...]]]] = deque()
    unfinished: set[Future[tuple[R | InputError, ...]]] = set()
    seconds, ended = 0.0, False
    try:
        while waiting or not ended:
            unfinished = {future for future in unfinished if not future.done()}
            while not ended and len(unfinished) < _WINDOW * engine.workers and len(waiting) < _HELD * engine.workers:
                part = next(parts, None)
                ended = part is None
                if part is not None:
                    future = engine.executor.submit(engine.perform, part)
                    waiting.append((part, future))
                    unfinished.add(future)
            while waiting and waiting[0][1].done():
                part, future = waiting.popleft()
                seconds += part.seconds
                yield Done(seconds, future.result(), part, complete=True)
            if unfinished and (len(unfinished) >= _WINDOW * engine.workers or ended):
                wait(unfinished, _PATIENCE, FIRST_COMPLETED)
            yield Done(seconds + sum(part.seconds for part, future in waiting if future.done()))
    finally:
        for _, future in waiting:
            future.cancel()
