"""Textual's driver for Unix with another input thread, which reads keys and the terminal's replies.

It accepts bytes that are not UTF-8, separates the replies that pacing requests from keys, sleeps between keys, and
stops at once. Before it leaves the terminal, it sends a last query and waits for the reply, so that no reply or mouse
report ends up in the shell.
"""

from __future__ import annotations

import codecs
import os
import re
import selectors
import sys
import time
from contextlib import suppress
from threading import Lock
from typing import Any, TextIO

from textual.constants import ESCAPE_DELAY
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from ..views.glyphs import ascii_cells
from .pacing import Pacing

# The position of the cursor, at any place: some terminals reply only after reading on. `CSI 1 ; 2 R` to
# `CSI 1 ; 16 R` are F3 with modifiers.
_REPLY = re.compile(r"\x1b\[(?!1;(?:[2-9]|1[0-6])R)[0-9]{1,4};[0-9]{1,4}R")
_PARTIAL_REPLY = re.compile(r"\x1b(?:\[(?:[0-9]{1,4}(?:;[0-9]{0,4})?)?)?\Z")

_ESCAPE_WAIT = 1.1 * ESCAPE_DELAY  # seconds after which a lone ESC was the Escape key

# The reports that a terminal sends unasked: mouse (1016 is in pixels, which Textual's own driver leaves on), focus.
_REPORTS_OFF = "".join(f"\x1b[?{mode}l" for mode in (1000, 1003, 1015, 1006, 1016, 1004))

_FRAME_START, _FRAME_END = "\x1b[?2026h", "\x1b[?2026l"  # the terminal shows a frame as a whole

_Parser: Any = getattr(linux_driver, "XTermParser", None)
_EXTENDED = (
    *("start_application_mode", "stop_application_mode", "disable_input"),
    *("run_input_thread", "process_message", "write"),
)

# Clears the screen before leaving it: after a resize, tmux wraps lines painted to the edge into the shell's, and a
# terminal without an alternate screen would show the shell among them.
_CLEAR = "\x1b[m\x1b[H\x1b[2J"

# Whether this version of Textual has the private parts used below.
SUPPORTED = hasattr(_Parser, "feed") and hasattr(_Parser, "tick") and {*_EXTENDED} <= {*vars(LinuxDriver)}


class TerminalDriver(LinuxDriver):
    """Reads keys and replies, and waits for the last reply before it leaves the terminal."""

    def __init__(self, app: Any, **settings: Any) -> None:
        super().__init__(app, **settings)  # pyright: ignore[reportUnknownMemberType]
        self._ascii_only = app.ascii_only
        self._pacing = app.pacing = Pacing(app.caught_up)
        self._frame: list[str] = []  # the frame being written, from its start
        self._writing = Lock()
        self._reading = False
        self._entered = False  # whether the writing thread runs
        self._stop_reader, self._stop_writer = os.pipe()  # a byte stops the input thread
        if not _is_terminal(sys.__stderr__) and sys.__stdout__ is not None:
            self._file = sys.__stdout__  # stderr is redirected; the screen is not
            self._file.reconfigure(errors="backslashreplace")
        self._file: Any = _QuietFile(self._file)

    def start_application_mode(self) -> None:
        if self._reading:  # a SIGCONT without a SIGTSTP, as after SIGSTOP: start again and repaint
            self.suspend_application_mode()
            self._must_signal_resume = True
        self._pacing.reset()
        self._reading = self._entered = True
        super().start_application_mode()

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
        self.write(self._pacing.query(0))  # measures the delay of the terminal
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._stop_reader, selectors.EVENT_READ)
            if self._read_input(selector):
                selector.unregister(self._stop_reader)
                self._drain(selector)

    def _read_input(self, selector: selectors.SelectSelector) -> bool:
        """Process input until the driver stops; return False if the terminal was closed first."""
        parser = _Parser()
        replies = ReplyFilter()
        wait = None
        while True:
            ready = [key.fd for key, _ in selector.select(wait)]
            if self._stop_reader in ready:
                os.read(self._stop_reader, 1)
                return True
            if ready:
                data = self._read()
                if not data:
                    return False
                typed, count = replies.feed(data, self._pacing.outstanding)
                self._pacing.replied(count)
            else:
                typed = replies.flush()
            messages = [*parser.feed(typed)] if typed else []
            for message in [*messages, *parser.tick()]:
                self.process_message(message)
            wait = _ESCAPE_WAIT if ready or typed else None

    def _drain(self, selector: selectors.SelectSelector) -> None:
        """Wait until all queries are replied to, up to a limit."""
        replies = ReplyFilter()
        end = time.monotonic() + self._pacing.final_wait
        while self._pacing.outstanding and selector.select(max(end - time.monotonic(), 0)):
            data = self._read()
            if not data:
                return
            self._pacing.replied(replies.feed(data, True)[1])

    def _read(self) -> bytes:
        """Return what can be read; nothing if the terminal was closed."""
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""


class ReplyFilter:
    """Separates a terminal's replies from keys, even if they arrive in parts."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes, expecting: bool) -> tuple[str, int]:
        """Return the keys in `data` and the number of replies. If one is expected, a possible start of it is held."""
        text, count = _REPLY.subn("", self._held + self._decode(data))
        partial = _PARTIAL_REPLY.search(text) if expecting else None
        self._held = partial[0] if partial else ""
        return text.removesuffix(self._held), count

    def flush(self) -> str:
        """Return what is held if it can be a key: Escape, or Alt with a bracket."""
        typed, self._held = (self._held, "") if len(self._held) <= 2 else ("", self._held)
        return typed


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


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
