"""A program in a terminal of its own, which may be far away: keys go in, frames with their times come out.

While something is measured, what the program writes is only kept, with the time it came; the screen is worked out
afterwards, so that working it out delays nothing.
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

# What describes the terminal that the benchmark is started from, and what changes how programs start and paint.
_LEFT_OUT = ("PYTHON", "LC_", "ATTN_TUI_", "TEXTUAL", "NO_COLOR", "COLUMNS", "LINES", "TERM_PROGRAM", "TMUX")
_QUESTION = re.compile(rb"\x1b\[(?:6n|\?(\d+)\$p)")  # where the cursor is; whether the terminal has a mode
_UNFINISHED = re.compile(r"\x1b[^a-zA-Z~]{0,40}\Z")
_NOT_FOR_PYTE = re.compile(r"\x1b\[(?:[<=>][\d;]*[a-zA-Z]|\?\d+\$p)")  # it would show parts of these
_TOGETHER = re.compile(r"\x1b\[\?2026([hl])")  # what is between h and l is shown at once


class Frame(NamedTuple):
    """What the screen shows from a time on."""

    when: float
    text: str
    used: float  # seconds of processor time until then


@dataclass(frozen=True)
class Link:
    """A line between program and terminal; the far end takes in whatever is waiting to be sent."""

    bits: float = float("inf")  # a second, towards the terminal
    there_and_back: float = 0.0  # seconds


class Session:
    """A program that has been started, its terminal, and all that it has written."""

    def __init__(self, command: Sequence[str], size: tuple[int, int], link: Link | None = None) -> None:
        self.link = link or Link()
        self.screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pending = ""
        self._emulated = 0
        self._whole = True  # no frame has begun that is not shown yet
        self.out: list[tuple[float, bytes]] = []  # when it is on the screen, and what
        self._used: list[float] = []  # seconds of processor time until then
        self._children: dict[int, float] = {}  # what processes have used that it has started, by their numbers
        self._tail = b""
        self._keys: list[tuple[float, bytes]] = []  # when they arrive at the program, the first one first
        self._free = 0.0  # when the link will have carried all that was sent
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

    # Do

    def press(self, keys: bytes) -> float:
        """Type these; the time at which that was."""
        now = time.monotonic()
        self._send(keys, now)
        return now

    def pump(self, seconds: float) -> None:
        """Carry to and fro what is on its way, for so long or until the program has ended."""
        end = time.monotonic() + seconds
        while not self.over and (now := time.monotonic()) < end:
            self._deliver(now)
            due = min(end, self._keys[0][0]) if self._keys else end
            if select.select([self._ours], [], [], max(0.0, due - time.monotonic()))[0]:
                self._read()

    def answered(self, silence: float = 0.06) -> None:
        """Until something has been written and then, for a while, nothing more."""
        before, end = len(self.out), time.monotonic() + 2
        while time.monotonic() < end and (len(self.out) == before or time.monotonic() - self.out[-1][0] < silence):
            self.pump(silence / 4)

    def calm(self) -> None:
        """Until nothing more is written, on its way, or worked on."""
        end = time.monotonic() + FOREVER
        while time.monotonic() < end and not self.over:
            used, before = self.cpu(), len(self.out)
            self.pump(QUIET)
            on_its_way = self._keys or (self.out and self.out[-1][0] > time.monotonic() - QUIET)
            if len(self.out) == before and self.out and not on_its_way and self.cpu() - used < QUIET / 10:
                return
        raise RuntimeError(f"it never comes to rest; its screen:\n{self.text()}")

    def ended(self) -> float:
        """The time at which the program had ended."""
        self.pump(FOREVER)
        self.process.wait(FOREVER)
        return time.monotonic()

    # See

    @property
    def written(self) -> int:
        """Bytes so far."""
        return sum(len(data) for _, data in self.out)

    def cpu(self) -> float:
        """Seconds of processor time so far, of all threads, and of the processes that it has started."""
        leader = self.process.pid
        for pid in map(int, Path(f"/proc/{leader}/task/{leader}/children").read_text().split()):
            with suppress(OSError):  # it may have ended meanwhile
                self._children[pid] = _processor_time(pid)
        return _processor_time(leader) + sum(self._children.values())

    def frames(self) -> Iterator[Frame]:
        """What the screen has shown since this was asked last; what belongs together is shown together."""
        for (when, data), used in zip(self.out[self._emulated :], self._used[self._emulated :], strict=True):
            self._emulated += 1
            if self._draw(data):
                yield Frame(when, self.text(), used)

    def text(self) -> str:
        """The screen, as far as it has been worked out."""
        return "\n".join(self.screen.display)

    def _draw(self, data: bytes) -> bool:
        """Whether the screen is whole after this."""
        text = self._pending + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        text, self._pending = text[:end], text[end:]
        self._stream.feed(_NOT_FOR_PYTE.sub("", text))
        if marks := _TOGETHER.findall(text):
            self._whole = marks[-1] == "l"
        return self._whole

    # The line

    def _send(self, data: bytes, now: float) -> None:
        insort(self._keys, (now + self.link.there_and_back / 2, data), key=lambda each: each[0])
        self._deliver(time.monotonic())

    def _deliver(self, now: float) -> None:
        while self._keys and self._keys[0][0] <= now:
            os.write(self._ours, self._keys.pop(0)[1])

    def _read(self) -> None:
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # nobody has the other end any more
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
            has = b"2" if mode == b"2026" else b"0"  # frames are shown at once when they end
            self._send(b"\x1b[?%b;%b$y" % (mode, has) if mode else b"\x1b[1;1R", shown)
        self._tail = heard[end:][-16:]


def _processor_time(pid: int) -> float:
    """Seconds that a process has used; the clock is what clock_getcpuclockid gives in C."""
    return time.clock_gettime((~pid << 3) | 2)
