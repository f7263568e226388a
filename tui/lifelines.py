"""Ending and resuming well: what stock Textual leaves undone when a terminal goes away or comes back."""

from __future__ import annotations

import asyncio
import io
import os
import select
import signal
import threading
from functools import partial
from typing import Any

from rich.console import Console
from textual.app import App

from .frugal import FrugalApp

# A terminal that has gone can block the farewell written to it; after this long the process ends without it.
_GRACE = 2.0


def run(app: FrugalApp[Any], mouse: bool) -> int:
    """Run the app to its end; the exit code. Raises the error that ended it, where that was not expected."""
    told = io.StringIO()
    app.error_console = Console(file=told)  # a wall of traceback over the terminal helps nobody
    app.run(mouse=mouse)
    if app.fault is not None:
        raise app.fault
    if told.getvalue():
        unknown = RuntimeError("the app has ended itself")
        unknown.add_note(told.getvalue())
        raise unknown
    return app.return_code or 0


def install(app: App[Any]) -> None:
    """End cleanly on SIGTERM, SIGHUP and a vanished terminal, and repaint after SIGTSTP and `fg`.

    Call it from on_mount, in the app's event loop.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Not the loop's own handler: a terminal that takes nothing blocks the loop in its write.
            signal.signal(number, lambda caught, _: _end(app, loop, caught))
    for number in (signal.SIGTSTP, signal.SIGCONT):
        handler = signal.getsignal(number)
        if callable(handler):
            # By the loop: the driver's handler writes, and in the midst of a write it would wait for itself.
            loop.add_signal_handler(number, handler, number, None)
    app.app_resume_signal.subscribe(app, _repaint)  # pyright: ignore[reportUnknownMemberType]
    threading.Thread(target=_watch, args=(app, loop), name="terminal watch", daemon=True).start()


def _repaint(app: App[Any]) -> None:
    """Paint everything: the terminal has shown something else in the meantime."""
    if isinstance(app, FrugalApp):
        app.forget_screen()
    app.screen.refresh(layout=True)


def _end(app: App[Any], loop: asyncio.AbstractEventLoop, number: int) -> None:
    """Leave the app with the exit code that a shell gives a process ended by this signal; from any thread."""
    timer = threading.Timer(_GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()
    if not loop.is_closed():
        loop.call_soon_threadsafe(partial(app.exit, return_code=128 + number))


def _watch(app: App[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the terminal is gone. With SIGHUP ignored, as under nohup, nothing else would tell."""
    terminal = select.poll()
    terminal.register(0, 0)  # asks for no event, so only a hang-up wakes it, or a system that cannot tell
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        _end(app, loop, signal.SIGHUP)
