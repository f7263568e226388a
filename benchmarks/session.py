"""A program in a pseudo-terminal, perhaps behind a slow link: keys go in, frames with their times come out.

Output is only recorded with its time while measuring; the screen is reconstructed afterwards, which delays nothing.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyte

FOREVER = 60.0  # seconds until a benchmark gives up
QUIET = 0.25  # seconds without output or work after which nothing more is expected

# Variables that describe the terminal of the benchmark itself, or change how programs start and paint.
_LEFT_OUT = ("PYTHON", "LC_", "ATTN_TUI_", "TEXTUAL", "NO_COLOR", "COLUMNS", "LINES", "TERM_PROGRAM", "TMUX")
_QUESTION = re.compile(rb"\x1b\[(?:6n|\?(\d+)\$p)")  # queries for the cursor position and for a mode
_UNFINISHED = re.compile(r"\x1b[^a-zA-Z~]{0,40}\Z")
_NOT_FOR_PYTE = re.compile(r"\x1b\[(?:[<=>][\d;]*[a-zA-Z]|\?\d+\$p)")  # pyte would show parts of these
_TOGETHER = re.compile(r"\x1b\[\?2026([hl])")  # output between h and l is shown at once


class Frame(NamedTuple):
    """The text of the screen from a time on."""

    when: float
    text: str
    used: float  # seconds of processor time until then


@dataclass(frozen=True)
class Link:
    """A link between program and terminal; its far end accepts all output at once."""

    bits: float = float("inf")  # per second, towards the terminal
    there_and_back: float = 0.0  # seconds


class Session:
    """A running program, its terminal, and everything it has written."""

    def __init__(self, command: Sequence[str], size: tuple[int, int], link: Link | None = None) -> None:
        self.link = link or Link()
        self.screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pending = ""
        self._emulated = 0
        self._whole = True  # the last frame is complete
        self.out: list[tuple[float, bytes]] = []  # output, with the time it appears on the screen
        self._used: list[float] = []  # seconds of processor time until then
        self._children: dict[int, float] = {}  # processor time of its child processes, by pid
        self._tail = b""
        self._keys: list[tuple[float, bytes]] = []  # keys on their way, in order of arrival
        self._free = 0.0  # when the link has carried everything sent
        self.over = False
        self._home = tempfile.TemporaryDirectory()
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
        home = {f"XDG_{kind}_HOME": self._home.name for kind in ("CONFIG", "STATE")}
        terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**environment, **home, **terminal},
        )
        os.close(theirs)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        self._home.cleanup()

    # Acting

    def press(self, keys: bytes) -> float:
        """Send keys; return the time."""
        now = time.monotonic()
        self._send(keys, now)
        return now

    def pump(self, seconds: float) -> None:
        """Deliver keys and read output for `seconds`, or until the program ends."""
        end = time.monotonic() + seconds
        while not self.over and (now := time.monotonic()) < end:
            self._deliver(now)
            due = min(end, self._keys[0][0]) if self._keys else end
            if select.select([self._ours], [], [], max(0.0, due - time.monotonic()))[0]:
                self._read()

    def answered(self, silence: float = 0.06) -> None:
        """Wait for output, then until there is none for `silence` seconds."""
        before, end = len(self.out), time.monotonic() + 2
        while time.monotonic() < end and (len(self.out) == before or time.monotonic() - self.out[-1][0] < silence):
            self.pump(silence / 4)

    def calm(self) -> None:
        """Wait until no output, key or computation is pending."""
        end = time.monotonic() + FOREVER
        while time.monotonic() < end and not self.over:
            used, before = self.cpu(), len(self.out)
            self.pump(QUIET)
            on_its_way = self._keys or (self.out and self.out[-1][0] > time.monotonic() - QUIET)
            if len(self.out) == before and self.out and not on_its_way and self.cpu() - used < QUIET / 10:
                return
        raise RuntimeError(f"the program never comes to rest; its screen:\n{self.text()}")

    def ended(self) -> float:
        """Wait until the program has ended; return the time."""
        self.pump(FOREVER)
        self.process.wait(FOREVER)
        return time.monotonic()

    # Reading

    @property
    def written(self) -> int:
        """The number of bytes written so far."""
        return sum(len(data) for _, data in self.out)

    def cpu(self) -> float:
        """Return the seconds of processor time so far, of all threads and child processes."""
        leader = self.process.pid
        for pid in map(int, Path(f"/proc/{leader}/task/{leader}/children").read_text().split()):
            with suppress(OSError):  # it may have ended meanwhile
                self._children[pid] = _processor_time(pid)
        return _processor_time(leader) + sum(self._children.values())

    def frames(self) -> Iterator[Frame]:
        """Yield the complete frames shown since the last call."""
        for (when, data), used in zip(self.out[self._emulated :], self._used[self._emulated :], strict=True):
            self._emulated += 1
            if self._draw(data):
                yield Frame(when, self.text(), used)

    def text(self) -> str:
        """Return the text of the screen after the last frame read."""
        return "\n".join(self.screen.display)

    def _draw(self, data: bytes) -> bool:
        """Draw output; return whether the frame is complete."""
        text = self._pending + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        text, self._pending = text[:end], text[end:]
        self._stream.feed(_NOT_FOR_PYTE.sub("", text))
        if marks := _TOGETHER.findall(text):
            self._whole = marks[-1] == "l"
        return self._whole

    # The link

    def _send(self, data: bytes, now: float) -> None:
        insort(self._keys, (now + self.link.there_and_back / 2, data), key=lambda each: each[0])
        self._deliver(time.monotonic())

    def _deliver(self, now: float) -> None:
        while self._keys and self._keys[0][0] <= now:
            os.write(self._ours, self._keys.pop(0)[1])

    def _read(self) -> None:
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # the program has ended
            self.over = True
            return
        now = time.monotonic()
        self._used.append(self.cpu())
        self._free = max(now, self._free) + 8 * len(data) / self.link.bits
        shown = self._free + self.link.there_and_back / 2
        self.out.append((shown, data))
        heard, end = self._tail + data, 0
        for question in _QUESTION.finditer(heard):
            end = question.end()
            mode = question.group(1)
            has = b"2" if mode == b"2026" else b"0"  # mode 2026: the terminal shows a frame when it is complete
            self._send(b"\x1b[?%b;%b$y" % (mode, has) if mode else b"\x1b[1;1R", shown)
        self._tail = heard[end:][-16:]


def _processor_time(pid: int) -> float:
    """Return the processor time of a process in seconds, from the clock of C's clock_getcpuclockid."""
    return time.clock_gettime((~pid << 3) | 2)
