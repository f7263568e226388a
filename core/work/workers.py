"""The workers that long requests are performed on: the executor that the settings name."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from contextlib import closing
from threading import Event, Thread
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from .engine_names import DEFAULT_ENGINE, ExecutorError

if TYPE_CHECKING:
    from .part import Part, PartExecutor, PartProgress, Store

R = TypeVar("R")

_SHORT = 0.5  # seconds of estimated work up to which it is done here: keys wait for no other thread
_PATIENCE = 0.01  # seconds that a step waits for workers, and a key at most for this step


class Pace(NamedTuple):
    """How fast other threads, processes or machines work."""

    workers: int
    rate: float  # parts a second


class Workers:
    """Opens the executor with this name when it is first needed, and again after it was lost."""

    def __init__(self) -> None:
        self.name = DEFAULT_ENGINE
        self._opening: _Opening | None = None

    def begin(self, parts: Iterable[Part[R]], store: Store | None = None) -> Running[R]:
        """Return a run of some parts; those in `store` are not performed again, and the others are added to it."""
        return Running(self, [*parts], store)

    def opening(self) -> _Opening:
        """Return the executor, which may not be open yet. One with an earlier name is closed after its last run."""
        if self._opening is None or self._opening.name != self.name:
            self.lose(self._opening)
            self._opening = _Opening(self.name)
        return self._opening

    def lose(self, opening: _Opening | None) -> None:
        """Open the executor again next time, if it is this one."""
        if opening is not None:
            opening.is_wanted = False
            opening.close_if_unused()
        if opening is self._opening:
            self._opening = None


class _Opening:
    """An executor that another thread opens, because that takes seconds, and closes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.engine: PartExecutor | None = None
        self.error: Exception | None = None
        self.answered, self._unused = Event(), Event()
        self.is_wanted, self.runs = True, 0
        Thread(target=self._hold, daemon=True).start()

    def close_if_unused(self) -> None:
        """Close the executor if no run needs it."""
        if not (self.is_wanted or self.runs):
            self._unused.set()

    def _hold(self) -> None:
        from .cluster import open_engine

        try:
            with open_engine(self.name, background=True) as self.engine:
                self.answered.set()
                self._unused.wait()
        except Exception as error:
            self.error = error
        finally:
            self.answered.set()


class Running(Generic[R]):
    """A run of parts on the workers, or in this thread if they are few or short."""

    def __init__(self, workers: Workers, parts: list[Part[R]], store: Store | None) -> None:
        self.total = sum(part.seconds for part in parts) or 1.0  # seconds, estimated
        self._workers, self._parts, self._store = workers, parts, store
        self.pace: Pace | None = None  # None if the work is done here

    def steps(self) -> Generator[PartProgress[R], None, None]:
        """Yield what `core.work.engines.run` yields; raise ExecutorError if the workers cannot start, or are lost."""
        from .engines import run
        from .part import PartProgress

        if len(self._parts) == 1 or self.total < _SHORT or self._workers.name == "serial":
            with closing(run(self._parts, store=self._store)) as found:
                yield from found
            return
        opening = self._workers.opening()
        opening.runs += 1
        try:
            while not opening.answered.wait(_PATIENCE):
                yield PartProgress(0.0)
            if opening.error is not None:
                raise opening.error
            assert opening.engine is not None
            with closing(run(self._parts, opening.engine, self._store, _PATIENCE)) as found:
                yield from self._measured(found, opening.engine.workers)
        except ExecutorError:
            self._workers.lose(opening)
            raise
        finally:
            opening.runs -= 1
            opening.close_if_unused()

    def _measured(self, found: Iterable[PartProgress[R]], workers: int) -> Generator[PartProgress[R], None, None]:
        """Yield the steps and update the pace; raise an ExecutorError among the results."""
        start, parts = time.monotonic(), 0
        for done in found:
            for result in done.results:
                if isinstance(result, ExecutorError):
                    raise result
            parts += done.complete
            self.pace = Pace(workers, parts / max(time.monotonic() - start, _PATIENCE))
            yield done
