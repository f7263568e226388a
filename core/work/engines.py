"""Executors: where the parts of some work are performed, and `run`, which yields their results in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

from ..blas import one_blas_thread
from ..errors import InputError
from .engine_names import ExecutorError
from .part import SERIAL, Part, PartExecutor, PartProgress, Store, results_of

R = TypeVar("R")

_PATIENCE = 0.05  # seconds between reports, unless the caller says otherwise


def run(
    parts: Iterable[Part[R]], engine: PartExecutor = SERIAL, store: Store | None = None, patience: float = _PATIENCE
) -> Generator[PartProgress[R], None, None]:
    """Yield the results of each part in order, and in between, at least every `patience` seconds, the progress.

    The results depend on the parts alone. An InputError that a part raises is its last result. Parts in `store` are
    not performed again; others are added to it as soon as they are finished. To stop the work, close the generator:
    waiting parts are cancelled, and running ones end after their step. A serial one yields results after each
    short step, others after each part. Raise LostExecutorError if the workers are gone.
    """
    if engine.executor is None:
        with one_blas_thread():
            yield from _serial(parts, store)
    else:
        from .pools import pooled  # with libraries that a serial executor does without

        yield from pooled(iter(parts), engine, store, patience)


def all_results(parts: Iterable[Part[R]]) -> list[R]:
    """Return the results of parts, performed in this thread; raise an InputError among them."""
    return [result for done in run(parts) for result in results_of(done)]


def _serial(parts: Iterable[Part[R]], store: Store | None) -> Iterator[PartProgress[R]]:
    before = 0.0
    for part in parts:
        known = None if store is None else store.get(part)
        if known is None:
            found: list[R | InputError] = []
            try:
                for fraction, results in part.steps():
                    if store is not None:
                        found += results
                    yield PartProgress(before + fraction * part.seconds, results, part)
                known = ()
            except InputError as error:
                known = (error,)
            if store is not None and not any(isinstance(error, ExecutorError) for error in known):
                store.add(part, (*found, *known))
        before += part.seconds
        yield PartProgress(before, known, part, complete=True)
