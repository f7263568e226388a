"""Requests to the engine: frozen values that are sent to the engine's process and answered there.

The class of a request is its kind: a request replaces an earlier one of its kind. Modules that define requests load
NumPy only inside `work`, because the process that paints imports them too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from .workers import Pace, Running, Workers

if TYPE_CHECKING:
    from ...core.lab.sampling import Draws
    from ...core.parameters import Parameters

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
    """A request to the engine. Subclasses are frozen dataclasses; their docstrings name the answers."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE

    def work(self, cache: Cache) -> Work:
        """Return short steps that answer the request; they raise InputError if it has no answer."""
        raise NotImplementedError


class Cache:
    """Data that requests share with later ones, and the workers, in the engine's process."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.by_kind: dict[type, Any] = {}  # by kind of request
        self._drawn: tuple[object, Draws] | None = None

    def draws(self, parameters: Parameters) -> Draws:
        """Return the last queries and keys drawn, if these parameters share them, or else an empty `Draws`.

        Work in progress on other parameters keeps its own.
        """
        from ...core.lab.sampling import Draws, drawn_from
        from ...core.lab.scoring import sides

        source = drawn_from(parameters, sides(parameters))
        if self._drawn is None or self._drawn[0] != source:
            self._drawn = source, Draws()
        return self._drawn[1]


def batches(
    steps: Iterable[tuple[float, Iterable[R]]],
    answer: Callable[[list[R], float], object],
    running: Running[Any] | None = None,
) -> Work:
    """Yield what steps find, as answers with the finished fraction, and before each the progress.

    Steps give the fraction and their results; those that come fast are sent together. The last answer has fraction 1.
    """
    last_sent, found = time.monotonic(), list[R]()
    for fraction, results in steps:
        found += results
        now = time.monotonic()
        if now - last_sent > (BATCH_INTERVAL if found else PROGRESS_INTERVAL):
            last_sent, fraction = now, min(fraction, 0.999)
            yield Progress(fraction, running.pace if running else None)
            yield answer(found, fraction)
            found = []
        else:
            yield None
    yield answer(found, 1.0)


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
