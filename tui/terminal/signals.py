"""Signals, suspending and a closed terminal, which Textual itself does not handle fully."""

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

from .diff_screen import REPORT_WIDTH, DiffApp

_GRACE = 2.0  # seconds after which the process exits even if a blocked terminal takes no output


def run(app: DiffApp[Any], mouse: bool) -> int:
    """Run the app and return its exit code. Raises the unexpected error that ended it, if any."""
    output = io.StringIO()
    app.error_console = Console(file=output, width=REPORT_WIDTH)  # instead of a long traceback in the terminal
    app.run(mouse=mouse)
    if app.fault is not None:
        raise app.fault
    if output.getvalue():
        unknown = RuntimeError("the app ended with an error message")
        unknown.add_note(output.getvalue())
        raise unknown
    return app.return_code or 0


def end_on_signals(app: App[Any]) -> None:
    """End cleanly on SIGTERM, SIGHUP and SIGINT.

    Call it from on_load, in the app's event loop: from then on, the terminal has to be restored.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Not a handler of the loop, which a blocked terminal may block in a write.
            signal.signal(number, lambda caught, _: _end(app, loop, caught))


def install(app: App[Any]) -> None:
    """End cleanly if the terminal is closed, and repaint after SIGTSTP and `fg`.

    Call it from on_mount, in the app's event loop.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTSTP, signal.SIGCONT):
        handler = signal.getsignal(number)
        if callable(handler):
            # In the loop, because the driver's handler writes: during a write it would deadlock.
            loop.add_signal_handler(number, handler, number, None)
    app.app_resume_signal.subscribe(app, _repaint)  # pyright: ignore[reportUnknownMemberType]
    if not app.is_headless:  # the thread keeps the app, and all that it shows, in memory
        threading.Thread(target=_watch, args=(app, loop), name="terminal watch", daemon=True).start()


def suspend() -> bool:
    """Stop the processes of this job, as Ctrl+Z does in a shell; return False if no shell could continue them.

    The group of the session's leader is not a job of a shell: nothing would continue it.
    """
    if os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


def _repaint(app: App[Any]) -> None:
    """Repaint everything, because the terminal showed something else in the meantime."""
    if isinstance(app, DiffApp):
        app.forget_screen()
    app.screen.refresh(layout=True)


def _end(app: App[Any], loop: asyncio.AbstractEventLoop, number: int) -> None:
    """End the app with the exit code that a shell reports for this signal; may be called from any thread."""
    timer = threading.Timer(_GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()
    if not loop.is_closed():
        loop.call_soon_threadsafe(partial(app.exit, return_code=128 + number))


def _watch(app: App[Any], loop: asyncio.AbstractEventLoop) -> None:
    """End the app when the terminal is closed, even if SIGHUP is ignored, as under nohup."""
    terminal = select.poll()
    terminal.register(0, 0)  # no events: only a hang-up or an error ends the wait
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        _end(app, loop, signal.SIGHUP)
