"""Work on many heads with all cores: NumPy computes without Python's lock."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ...core.blas import one_blas_thread
from ...core.errors import InputError
from .progress import ProgressLine

if TYPE_CHECKING:
    from ...core.captures.reader import CaptureFile

T = TypeVar("T")
R = TypeVar("R")
Steps: TypeAlias = "Iterable[tuple[float, R | None]]"  # the finished fraction, and the result with the last one

_PATIENCE = 0.1  # seconds between looks at Ctrl-C


def of_each(
    captures: Sequence[CaptureFile],
    items: Sequence[T],
    work: Callable[[Sequence[CaptureFile], T], Steps[R]],
    progress: ProgressLine,
) -> Iterator[R | InputError]:
    """Yield the result of `work` for each item in order, or the InputError that it raised.

    Ctrl-C takes effect after a step. `work` is called with the captures, of which every thread has copies: what they
    have decompressed is not shared.
    """
    with one_blas_thread():
        if len(items) == 1:
            yield _result(work(captures, items[0]), progress.show)
        else:
            yield from _in_threads(captures, items, work, progress)


def _result(steps: Steps[R], show: Callable[[float], None]) -> R | InputError:
    try:
        for fraction, result in steps:
            if result is not None:
                return result
            show(fraction)
    except InputError as error:
        return error
    raise AssertionError("work ends with its result")


def _in_threads(
    captures: Sequence[CaptureFile],
    items: Sequence[T],
    work: Callable[[Sequence[CaptureFile], T], Steps[R]],
    progress: ProgressLine,
) -> Iterator[R | InputError]:
    own, stopped = threading.local(), threading.Event()

    def start() -> None:
        own.captures = [replace(each, at_hand={}) for each in captures]

    def show(_: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    def run(item: T) -> R | InputError:
        return _result(work(own.captures, item), show)

    with ThreadPoolExecutor(_cores(), "heads", start) as pool:
        futures = [pool.submit(run, item) for item in items]
        try:
            for number, future in enumerate(futures):
                _await(future, number / len(items), progress)
                yield future.result()
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


def _await(future: Future[R], fraction: float, progress: ProgressLine) -> None:
    progress.show(fraction)
    while wait([future], _PATIENCE).not_done:
        progress.show(fraction)


def _cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
