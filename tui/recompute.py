"""The one thread that computes, and always works on the latest request of each kind.

Work is an iterator that does a little at every step and yields a message, or None when it has nothing to say. To
drop work is to stop asking it for its next step, so nothing has to be interrupted and nothing is left half done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Condition, Thread
from typing import TypeAlias

from ..core.blas import one_blas_thread
from ..core.errors import NO_MEMORY, InputError
from ..core.memory import keep_memory
from .messages import Computed, Crashed, Failed

Work: TypeAlias = Iterator[Computed | None]

# A newer request waits this long for the running one: finishing short work shows more states under a held key,
# dropping long work answers sooner.
PATIENCE = 0.25


class Recompute:
    """Runs work of several kinds, those named first before the others; `deliver` gets every message."""

    def __init__(self, kinds: tuple[str, ...], deliver: Callable[[Computed], object]) -> None:
        self._kinds = kinds
        self._deliver = deliver
        self._waiting: dict[str, Callable[[], Work]] = {}
        self._changed = Condition()
        self._stopped = False
        self._unlimited = True  # until NumPy is loaded, its threads cannot be kept to one
        self._thread = Thread(target=self._run, name="recompute", daemon=True)

    def start(self) -> None:
        """Begin; what was requested before is done first."""
        self._thread.start()

    def request(self, kind: str, work: Callable[[], Work]) -> None:
        """Ask for this work in place of whatever of its kind is waiting."""
        with self._changed:
            self._waiting[kind] = work
            self._changed.notify()

    def stop(self) -> None:
        """Drop everything; the thread ends after its current step."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            keep_memory()
            with ExitStack() as limits:
                self._work(limits)
        except Exception as error:  # without this thread there would be no more results, and nobody would know why
            self._deliver(Crashed(self._kinds[0], error))

    def _work(self, limits: ExitStack) -> None:
        running: dict[str, tuple[Work, float]] = {}
        while True:
            with self._changed:
                while not (self._stopped or self._waiting or running):
                    self._changed.wait()
                if self._stopped:
                    return
                for kind in [*self._waiting]:
                    if kind not in running or time.monotonic() - running[kind][1] > PATIENCE:
                        running[kind] = self._waiting.pop(kind)(), time.monotonic()
            if self._unlimited and "numpy" in sys.modules:  # only some of the work needs it
                self._unlimited = False
                limits.enter_context(one_blas_thread())
            kind = next(kind for kind in self._kinds if kind in running)
            if not self._step(kind, running[kind][0]):
                del running[kind]

    def _step(self, kind: str, work: Work) -> bool:
        """One step of this work; whether there is more of it."""
        try:
            message = next(work)
        except StopIteration:
            return False
        except InputError as error:
            self._deliver(Failed(kind, str(error)))
            return False
        except MemoryError:
            self._deliver(Failed(kind, NO_MEMORY))
            return False
        except Exception as error:  # it is raised again where the app can end cleanly
            self._deliver(Crashed(kind, error))
            return False
        if message is not None:
            self._deliver(message)
        return True
