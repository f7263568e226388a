"""Ctrl-C ends the process at once, or raises KeyboardInterrupt where something has to be put in order first.

An exception is lost in a destructor, and NumPy turns one into an ImportError while it is loaded.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130  # the exit code after Ctrl-C


def exit_at_once() -> None:
    """Let Ctrl-C end the process, unless it is ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_now)


def raise_exception(writes_file: bool) -> None:
    """Let Ctrl-C raise KeyboardInterrupt and, while a file is written, SIGTERM and SIGHUP SystemExit.

    Signals that would not end the process are left as they are.
    """
    if signal.getsignal(signal.SIGINT) is exit_now:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ending = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP
    for number in ending if writes_file else ():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda caught, _: sys.exit(128 + caught))


def exit_now(*_: object) -> None:
    """End the process: the handler of Ctrl-C while nothing has to be put in order."""
    os._exit(INTERRUPTED)
