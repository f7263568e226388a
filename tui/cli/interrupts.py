"""Ctrl-C ends the process at once, or raises KeyboardInterrupt where something has to be put in order first.

An exception is lost in a destructor, and NumPy turns one into an ImportError while it is loaded.
"""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130  # the exit code after Ctrl-C


def exit_at_once() -> None:
    """Let Ctrl-C end the process, unless it is ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_now)


def raise_exception() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, if it would end the process."""
    if signal.getsignal(signal.SIGINT) is exit_now:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_now(*_: object) -> None:
    """End the process: the handler of Ctrl-C while nothing has to be put in order."""
    os._exit(INTERRUPTED)
