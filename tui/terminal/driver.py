"""Textual's driver for Unix with another input thread, which reads keys and the terminal's replies.

It accepts any bytes, separates the replies that pacing requests from keys, sleeps between keys, and stops at once.
Before it leaves the terminal, it sends a last query and waits for the reply, so that no reply or mouse report ends up
in the shell.
"""

from __future__ import annotations

import os
import select
import selectors
import sys
import time
from contextlib import suppress
from functools import partial
from threading import Event, Lock
from typing import Any, TextIO

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from ..views.glyphs import ascii_cells
from . import reader
from .pacing import Pacing
from .reader import Reader

# The reports that a terminal sends unasked: mouse (1016 is in pixels, which Textual's own driver leaves on), focus.
_REPORTS_OFF = "".join(f"\x1b[?{mode}l" for mode in (1000, 1003, 1015, 1006, 1016, 1004))

_FRAME_START, _FRAME_END = "\x1b[?2026h", "\x1b[?2026l"  # the terminal shows a frame as a whole

# Columns and lines that are laid out, at most: twice what a large monitor shows in the smallest font. Each cell costs
# memory and time; a terminal that reports more, such as 99999 columns, shows this part.
_MOST = 1000

_WITHOUT_COLOURS = ("dumb", "linux")  # terminals that may print a query for their background

_FLOOD = 200  # messages after which nothing is read until the app has taken them
_CHECK = 0.01  # seconds between checks whether the driver stops

_EXTENDED = (
    *("start_application_mode", "stop_application_mode", "disable_input"),
    *("run_input_thread", "process_message", "write", "_get_terminal_size"),
)

# Clears the screen before leaving it: after a resize, tmux wraps lines painted to the edge into the shell's, and a
# terminal without an alternate screen would show the shell among them.
_CLEAR = "\x1b[m\x1b[H\x1b[2J"

# Whether this version of Textual has the private parts used below.
SUPPORTED = reader.SUPPORTED and {*_EXTENDED} <= {*vars(LinuxDriver)}


class TerminalDriver(LinuxDriver):
    """Reads keys and replies, and waits for the last reply before it leaves the terminal."""

    def __init__(self, app: Any, **settings: Any) -> None:
        super().__init__(app, **settings)  # pyright: ignore[reportUnknownMemberType]
        self._ascii_only = app.ascii_only
        self._asks_background = app.follows_background
        self._pacing = app.pacing = Pacing(app.caught_up)
        self._do_last = app.do_last
        self._frame: list[str] = []  # the frame being written, from its start
        self._writing = Lock()
        self._reading = False
        self._entered = False  # whether the writing thread runs
        self._stop_reader, self._stop_writer = os.pipe()  # a byte stops the input thread
        if not _is_terminal(sys.__stderr__) and sys.__stdout__ is not None:
            self._file = sys.__stdout__  # stderr is redirected; the screen is not
            self._file.reconfigure(errors="backslashreplace")
        self._file: Any = _QuietFile(self._file)
        self._size = self._size or self._get_terminal_size()  # until the first Resize

    def start_application_mode(self) -> None:
        if self._reading:  # a SIGCONT without a SIGTSTP, as after SIGSTOP: start again and repaint
            self.suspend_application_mode()
            self._must_signal_resume = True
        self._pacing.reset()
        self._reading = self._entered = True
        try:
            super().start_application_mode()
        except BaseException:  # such as no thread left
            self.stop_application_mode()
            raise

    def stop_application_mode(self) -> None:
        """Leave the terminal, once: a SIGTSTP right after a SIGCONT discards the SIGCONT."""
        if self._entered:
            super().stop_application_mode()
            self._entered = False

    def write(self, data: str) -> None:
        """Write to the terminal, a frame in one piece; in parts, it would wake the writing thread for each."""
        if not self._entered:  # without the writing thread, the queue would fill up and block the app
            return
        data = ascii_cells(data) if self._ascii_only else data
        with self._writing:
            if (self._frame or data == _FRAME_START) and data != _FRAME_END:
                self._frame.append(data)
                return
            frame, self._frame = self._frame, []
            super().write("".join([*frame, data]))

    def process_message(self, message: Message) -> None:
        if isinstance(message, events.Resize):
            message = events.Resize.from_dimensions(_bounded(message.size), message.pixel_size)
        super().process_message(message)

    def _get_terminal_size(self) -> tuple[int, int]:
        return _bounded(super()._get_terminal_size())

    def disable_input(self) -> None:
        reading, self._reading = self._reading, False
        if reading:
            self.write(_REPORTS_OFF + self._pacing.query(0))
            os.write(self._stop_writer, b".")
        super().disable_input()
        if reading:
            self.write(_CLEAR)

    def run_input_thread(self) -> None:
        """Process input until the driver stops; then wait for the last reply."""
        asked = self._asks_background and os.environ.get("TERM") not in _WITHOUT_COLOURS
        self.write((reader.BACKGROUND_QUERY if asked else "") + self._pacing.query(0))  # that measures the delay
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._stop_reader, selectors.EVENT_READ)
            if self._read_input(selector):
                selector.unregister(self._stop_reader)
                self._drain(selector)

    def _read_input(self, selector: selectors.SelectSelector) -> bool:
        """Process input until the driver stops; return False if the terminal was closed first."""
        source = Reader()
        sent = 0
        while True:
            ready = [key.fd for key, _ in selector.select(source.wait)]
            if self._stop_reader in ready:
                os.read(self._stop_reader, 1)
                return True
            if ready:
                data = self._read()
                if not data:
                    return False
                messages, replies = source.feed(data)
                self._pacing.replied(replies)
            else:
                messages = source.pause()
            for message in messages:
                self.process_message(message)
            sent += len(messages)
            if sent >= _FLOOD:
                self._wait_for_app()
                sent = 0

    def _wait_for_app(self) -> None:
        """Wait until the app has taken what was sent, or the driver stops; otherwise its queue could grow forever."""
        taken = Event()
        call = events.Callback(partial(self._do_last, taken.set))
        self.send_message(call)  # as keys are; posted at once, it would overtake the last ones
        while not (taken.wait(_CHECK) or select.select([self._stop_reader], [], [], 0)[0]):
            pass

    def _drain(self, selector: selectors.SelectSelector) -> None:
        """Wait until all queries are replied to, up to a limit."""
        source = Reader()
        end = time.monotonic() + self._pacing.final_wait
        while self._pacing.outstanding and selector.select(max(end - time.monotonic(), 0)):
            data = self._read()
            if not data:
                return
            self._pacing.replied(source.feed(data)[1])

    def _read(self) -> bytes:
        """Return what can be read; nothing if the terminal was closed."""
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""


class _QuietFile:
    """The terminal's file without errors after the terminal was closed.

    An error would end the writing thread, and the app would wait for it forever.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _bounded(size: tuple[int, int]) -> tuple[int, int]:
    """Return the columns and lines to lay out for a terminal of this size."""
    width, height = size
    return min(max(width, 1), _MOST), min(max(height, 1), _MOST)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
