"""Requests: frozen values that the app's engine answers in its process, a step at a time.

The class of a request is its kind: a request replaces an earlier one of its kind. Modules that define requests load
NumPy only inside functions, because the process that paints imports them too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from ..work.part import Part, results_of
from ..work.workers import Pace, Running, Workers

R = TypeVar("R")

# The steps that answer a request: each yields an answer or None, and the last one may return an answer. Work is
# cancelled between steps, by not running the next one.
Work: TypeAlias = Iterator[object]

PROGRESS_INTERVAL = 0.15  # seconds between reports of progress
BATCH_INTERVAL = 0.05  # seconds between answers; results that come faster are sent together


class Priority(IntEnum):
    """The order in which requests are worked on."""

    KEYPRESS = 0  # the response to a key
    VISIBLE = 1  # other contents of the pane on screen
    PREFETCH = 2  # the probable response to the next key
    BACKGROUND = 3  # work that continues while other panes are on screen


class Request:
    """What the engine is asked: parts of work, and what the app shows of their results as they come."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE

    def parts(self) -> Iterable[Part[Any]]:
        """Yield the parts of the work, for any executor; raise InputError if there is no answer."""
        raise NotImplementedError

    def interim(self, results: Sequence[Any], fraction: float) -> object:
        """Return what the app shows of new results, of a finished fraction; by default the last; None: nothing."""
        return results[-1] if results else None

    def work(self, cache: Cache) -> Work:
        """Return short steps that answer the request; they raise InputError if it has no answer."""
        running = cache.workers.begin(self.parts())
        steps = ((done.seconds / running.total, results_of(done)) for done in running.steps())
        return batches(steps, self.interim, running)


class Cache:
    """Data that requests share with later ones, and the workers, in the engine's process."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.by_kind: dict[type, Any] = {}  # by kind of request


def batches(
    steps: Iterable[tuple[float, Iterable[R]]],
    answer: Callable[[list[R], float], object],
    running: Running[Any] | None = None,
) -> Work:
    """Yield what steps find, as answers with the finished fraction, and before each the progress.

    Steps give the fraction and their results; those that come fast are sent together. The last answer has fraction 1.
    """
    last_sent, points = time.monotonic(), list[R]()
    for fraction, results in steps:
        points += results
        now = time.monotonic()
        if fraction < 1 and now - last_sent > (BATCH_INTERVAL if points else PROGRESS_INTERVAL):
            last_sent = now
            yield Progress(fraction, running.pace if running else None)
            yield answer(points, fraction)
            points = []
        else:
            yield None
    yield answer(points, 1.0)


# Answers to requests of every kind


class Progress(NamedTuple):
    """The part of a long computation that is done, 0 to 1; and its pace, if it is not done in the engine's thread."""

    fraction: float
    pace: Pace | None = None


class Failed(NamedTuple):
    """There is no result; the reason is one line that helps the user."""

    reason: str


class Crashed(NamedTuple):
    """An unexpected error: one line, and Python's report."""

    error: str
    report: str
