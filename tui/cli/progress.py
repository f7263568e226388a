"""The progress line of long computations, and how Ctrl-C interrupts them between two steps."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import TracebackType

from ..language.cells import cells, to_left
from ..views.glyphs import UNICODE, Glyphs
from . import interrupts

_DELAY = 1.0  # seconds before the line is first shown
_INTERVAL = 0.2  # seconds between updates


class ProgressLine:
    """A line on stderr that shows the progress of a computation, if stderr is a terminal; erased at the end.

    Ctrl-C takes effect in `show`, after a step: during a step it could leave a lock held that other threads wait
    for, and the process would hang. A second Ctrl-C takes effect immediately.
    """

    def __init__(self, what: str, glyphs: Glyphs = UNICODE) -> None:
        self._what = glyphs.say(what)
        self._shown = 0
        self._next = time.monotonic() + _DELAY
        self._interrupted = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> ProgressLine:
        if self._is_ours:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._draw("")
        if self._is_ours:
            signal.signal(signal.SIGINT, self._before)
        if kind is None:
            self._raise_if_interrupted()

    def show(self, fraction: float) -> None:
        """Show the fraction done, 0 to 1; raise KeyboardInterrupt if Ctrl-C was pressed."""
        self._raise_if_interrupted()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._draw(f"{self._what} {100 * fraction:3.0f} %")

    def hide(self) -> None:
        """Erase the line until it is shown again, so that results can be printed on the same terminal."""
        self._draw("")

    @property
    def _is_ours(self) -> bool:
        """Whether Ctrl-C is left to this line; in the background, for example, it is ignored."""
        return self._before in (signal.default_int_handler, interrupts.exit_now)

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _raise_if_interrupted(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def _draw(self, text: str) -> None:
        """Replace the line, with no escape sequences that a terminal might not support."""
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is None if it was closed
            if not sys.stderr.isatty() or not (text or self._shown):
                return
            # Set first: Ctrl-C may arrive while the line is written.
            before, self._shown = self._shown, cells(text)
            sys.stderr.write("\r" + to_left(text, before) + ("\r" if not text else ""))
            sys.stderr.flush()
