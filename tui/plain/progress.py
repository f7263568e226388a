"""Long work that says how far it is, and that Ctrl-C ends between two of its steps."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import FrameType, TracebackType

_SILENCE = 1.0  # seconds before work says how far it is
_EVERY = 0.2


class Progress:
    """One line on a terminal's stderr that says how far long work is; gone when it is over.

    Ctrl-C is heeded by `show`, when a step is done: in the midst of one it can leave a lock held that other threads
    wait for, and then nothing ends any more. A second Ctrl-C is heeded at once.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = 0
        self._next = time.monotonic() + _SILENCE
        self._interrupted = False

    def __enter__(self) -> Progress:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as it is in the background
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end_waiting()
        self._draw("")
        if kind is None:
            self._heed()

    def show(self, fraction: float) -> None:
        """The part done, 0 to 1; raises KeyboardInterrupt if Ctrl-C was pressed since."""
        self._heed()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._draw(f"{self._what} {100 * fraction:3.0f} %")

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self._interrupted = True
        self._end_waiting()

    def _end_waiting(self) -> None:
        """From now on Ctrl-C is heeded at once, as it was before."""
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _heed(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def _draw(self, text: str) -> None:
        """The line in place of what it was, without codes that a terminal might not know."""
        if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            return
        if not text and not self._shown:
            return
        before, self._shown = self._shown, len(text)  # at once: Ctrl-C may come as soon as the line is seen
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("\r" + text.ljust(before) + ("\r" if not text else ""))
            sys.stderr.flush()
