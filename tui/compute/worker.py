"""The program of the engine's process: answer requests until the app ends."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

from ...core.errors import NO_MEMORY, InputError
from ...core.questions.lab import Measure
from ...core.questions.request import Cache, Crashed, Failed, Priority, Progress, Request, Work
from .engine import Reply, Submission
from .measure import Prefetch

# Seconds after which a newer request of its kind replaces running work that has a result, and work that has none yet:
# short work is finished, and under a held key long work still shows a result every second.
REPLACE_WITH_RESULT = 0.25
REPLACE_WITHOUT_RESULT = 1.0


class _Job:
    """A request that is being answered."""

    def __init__(self, number: int, request: Request) -> None:
        self.number, self.request = number, request
        self.work: Work | None = None  # None before the first step
        self.started = time.monotonic()
        self.has_result = False

    @property
    def is_replaceable(self) -> bool:
        """Whether a newer request of its kind replaces it now."""
        limit = REPLACE_WITH_RESULT if self.has_result else REPLACE_WITHOUT_RESULT
        return self.request.PRIORITY is Priority.PREFETCH or time.monotonic() - self.started > limit

    def step(self, cache: Cache) -> tuple[object, bool]:
        """Run the next step; return its answer, and whether the job is done."""
        try:
            self.work = self.work or self.request.work(cache)
            return next(self.work), False
        except StopIteration as end:
            return end.value, True
        except InputError as error:
            return Failed(str(error)), True
        except MemoryError:
            return Failed(NO_MEMORY), True
        except Exception as error:  # it ends the app, which reports it
            return crashed(error), True


class Schedule:
    """Decides which request to work on: the latest of each kind, and of several kinds the most urgent."""

    def __init__(self) -> None:
        self._cache = Cache()
        self._waiting: dict[type[Request], Submission] = {}
        self._jobs: dict[type[Request], _Job] = {}

    @property
    def idle(self) -> bool:
        """Whether there is no work."""
        return not (self._waiting or self._jobs)

    def submit(self, submission: Submission) -> Iterator[Reply]:
        """Add a request, or cancel one; yield the end of requests that it replaces or cancels."""
        self._cache.workers.name = submission.executor
        replaced = self._waiting.pop(submission.kind, None)
        if replaced is not None:
            yield Reply(replaced.number, None)
        if submission.request is not None:
            self._waiting[submission.kind] = submission
        elif submission.kind in self._jobs:
            yield Reply(self._jobs.pop(submission.kind).number, None)

    def step(self) -> Iterator[Reply]:
        """Run a step of the most urgent job."""
        for kind in [*self._waiting]:
            job = self._jobs.get(kind)
            if job is None or job.is_replaceable:
                if job is not None:
                    yield Reply(job.number, None)
                yield from self._start(self._waiting.pop(kind))
        kind, job = min(self._jobs.items(), key=lambda item: item[0].PRIORITY)
        content, done = job.step(self._cache)
        if content is not None:
            job.has_result |= not isinstance(content, Progress)
            yield Reply(job.number, content)
        if done:
            del self._jobs[kind]
            yield Reply(job.number, None)

    def _start(self, submission: Submission) -> Iterator[Reply]:
        """Start a job; a measurement that is being prefetched is continued."""
        number, kind, request, _ = submission
        assert request is not None
        job = self._jobs[kind] = _Job(number, request)
        prefetch = self._jobs.get(Prefetch)
        if prefetch is not None and type(request) is Measure and vars(request) == vars(prefetch.request):
            yield Reply(prefetch.number, None)
            job.work = self._jobs.pop(Prefetch).work


def main(descriptor: int) -> None:
    """Answer requests on the connection with this file descriptor until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the app
    connection = Connection(descriptor)
    inbox: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    try:
        from ...core.blas import one_blas_thread
        from ...core.work.worker import keep_memory

        for module in ("lab.experiment", "theory.predict"):  # load slow modules before the first request
            import_module(f"attn_tui.core.{module}")
        gc.freeze()  # modules live as long as the process
        keep_memory()
        with one_blas_thread():
            serve(Schedule(), inbox, connection.send)
    except Exception as error:  # such as a library that is not installed
        connection.send([Reply(0, crashed(error))])
        sys.exit(1)


def serve(schedule: Schedule, inbox: SimpleQueue[bytes], send: Callable[[Sequence[Reply]], None]) -> None:
    """Answer the pickled requests in `inbox`, and send the replies of each step together; never return."""
    while True:
        while schedule.idle or not inbox.empty():
            if replies := [*schedule.submit(pickle.loads(inbox.get()))]:
                send(replies)
        if replies := [*schedule.step()]:
            send(replies)


def crashed(error: BaseException) -> Crashed:
    """Return the answer that reports an unexpected error."""
    return Crashed(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


def _listen(connection: Connection, inbox: SimpleQueue[bytes]) -> None:
    """Put what the app sends into `inbox`; exit at once when the app has ended, even during a computation."""
    try:
        while True:
            inbox.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
