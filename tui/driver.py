"""The terminal's end of the app: hears what is typed and what the terminal answers, and leaves it quiet.

Textual's driver for Unix with its reading replaced. It takes bytes that are no UTF-8, keeps the answers that pacing
asks for from being taken for keys, sleeps while nobody types, and ends at once. Before the terminal is given back,
it is asked a last question: with its answer everything it had to say has come, and nothing lands in the shell.
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

from .pacing import PacedApp, Pacing
from .views.glyphs import ascii_cells

# Where the cursor is, which need not be where it was asked: some terminals answer when they have read on. In the
# first line, 2 to 16 are not columns but the modifiers of F3.
_ANSWER = re.compile(r"\x1b\[(?!1;(?:[2-9]|1[0-6])R)[0-9]{1,4};[0-9]{1,4}R")
_BEGINNING = re.compile(r"\x1b(?:\[(?:[0-9]{1,4}(?:;[0-9]{0,4})?)?)?\Z")

_MOMENT = 1.1 * ESCAPE_DELAY  # seconds without another byte after which an Escape was a key

# What a terminal reports unasked: the mouse (1016 counts in pixels, which stock Textual leaves on) and the focus.
_SILENCE = "".join(f"\x1b[?{mode}l" for mode in (1000, 1003, 1015, 1006, 1016, 1004))

_TOGETHER, _DONE = "\x1b[?2026h", "\x1b[?2026l"  # what is between them is shown at once

_Parser: Any = getattr(linux_driver, "XTermParser", None)
_INHERITED = (
    *("start_application_mode", "stop_application_mode", "disable_input"),
    *("run_input_thread", "process_message", "write"),
)

# A screen that is left is left empty: lines painted to the edge are wrapped into the shell's when tmux, resized
# meanwhile, goes back to it, and a terminal without a second screen would show the shell amid them.
_EMPTY = "\x1b[m\x1b[H\x1b[2J"

# Whether this Textual has the parts that are used below.
SUPPORTED = hasattr(_Parser, "feed") and hasattr(_Parser, "tick") and {*_INHERITED} <= {*vars(LinuxDriver)}


class TerminalDriver(LinuxDriver):
    """Reads keys and answers, and waits for the last answer before it leaves."""

    def __init__(self, app: PacedApp[Any], **settings: Any) -> None:
        super().__init__(app, **settings)  # pyright: ignore[reportUnknownMemberType]
        self._ascii_only = app.ascii_only
        self._pacing = app.pacing = Pacing(app.caught_up)
        self._begun: list[str] = []  # a frame that is still being worked out, from its beginning on
        self._writing = Lock()
        self._listening = False
        self._entered = False  # whether there is a thread that writes
        self._ears, self._mouth = os.pipe()  # a byte tells the reading thread that it is time to leave
        if not _is_terminal(sys.__stderr__) and sys.__stdout__ is not None:
            self._file = sys.__stdout__  # messages are sent elsewhere; the screen is not
            self._file.reconfigure(errors="backslashreplace")
        self._file: Any = _Deaf(self._file)

    def start_application_mode(self) -> None:
        if self._listening:  # a SIGCONT after no SIGTSTP, as SIGSTOP leaves it: begin anew, and paint everything
            self.suspend_application_mode()
            self._must_signal_resume = True
        self._pacing.forget()
        self._listening = self._entered = True
        super().start_application_mode()

    def stop_application_mode(self) -> None:
        """Leave the terminal, once: a SIGTSTP close behind a SIGCONT makes the system forget that one."""
        if self._entered:
            super().stop_application_mode()
            self._entered = False

    def write(self, data: str) -> None:
        """Send this; a frame in one piece, or its beginning would have others work while it is being composed."""
        if not self._entered:  # what is left to nobody would fill the queue in the end, and block the app
            return
        data = ascii_cells(data) if self._ascii_only else data
        with self._writing:
            if (self._begun or data == _TOGETHER) and data != _DONE:
                self._begun.append(data)
                return
            begun, self._begun = self._begun, []
            super().write("".join([*begun, data]))

    def disable_input(self) -> None:
        listening, self._listening = self._listening, False
        if listening:
            self.write(_SILENCE + self._pacing.ask(0))
            os.write(self._mouth, b".")
        super().disable_input()
        if listening:
            self.write(_EMPTY)

    def run_input_thread(self) -> None:
        """Hand on what is typed until it is time to leave; then hear the terminal out."""
        self.write(self._pacing.ask(0))  # its answer tells how far away the terminal is
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._ears, selectors.EVENT_READ)
            if self._listen(selector):
                selector.unregister(self._ears)
                self._hear_out(selector)

    def _listen(self, selector: selectors.SelectSelector) -> bool:
        """Hand on what is typed until it is time to leave; False if the terminal has gone before."""
        parser = _Parser()
        sieve = Sieve()
        wait = None
        while True:
            ready = [key.fd for key, _ in selector.select(wait)]
            if self._ears in ready:
                os.read(self._ears, 1)
                return True
            if ready:
                data = self._read()
                if not data:
                    return False
                typed, answers = sieve.sift(data, self._pacing.outstanding)
                self._pacing.answered(answers)
            else:
                typed = sieve.rest()
            messages = [*parser.feed(typed)] if typed else []
            for message in [*messages, *parser.tick()]:
                self.process_message(message)
            wait = _MOMENT if ready or typed else None  # an Escape alone is known by what does not follow

    def _hear_out(self, selector: selectors.SelectSelector) -> None:
        """Wait until everything that was asked is answered, but not for long."""
        sieve = Sieve()
        end = time.monotonic() + self._pacing.farewell
        while self._pacing.outstanding and selector.select(max(end - time.monotonic(), 0)):
            data = self._read()
            if not data:
                return
            self._pacing.answered(sieve.sift(data, True)[1])

    def _read(self) -> bytes:
        """What there is to read; nothing where the terminal has gone."""
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""


class Sieve:
    """Takes a terminal's answers out of what is typed, also where they come in pieces."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def sift(self, data: bytes, expecting: bool) -> tuple[str, int]:
        """What was typed, and the number of answers. What may become an answer is held if one is expected."""
        text, answers = _ANSWER.subn("", self._held + self._decode(data))
        beginning = _BEGINNING.search(text) if expecting else None
        self._held = beginning[0] if beginning else ""
        return text.removesuffix(self._held), answers

    def rest(self) -> str:
        """What was held and has stayed alone: Escape, or Alt and a bracket. Nobody types more than that at once."""
        typed, self._held = (self._held, "") if len(self._held) <= 2 else ("", self._held)
        return typed


class _Deaf:
    """The terminal's file. When it has gone, nobody hears what is written; an error would leave the app waiting for
    a thread that has died of it.
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
