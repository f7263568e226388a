"""The program in a pseudo-terminal: send it keys and signals, and interpret its output."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from digits import shows_number
from emulator import Terminal
from stage import FOREVER

QUIET = 0.1  # seconds without output after which no more is expected
SMALL = ("--d-k", "64", "--n-keys", "16", "--n-queries", "8", "--batch", "2")
LONG = ("--n-keys", "8192", "--n-queries", "8192", "--batch", "4096")
RIGHT, LEFT, UP, DOWN = b"\x1b[C", b"\x1b[D", b"\x1b[A", b"\x1b[B"
ANSWER = b"\x1b[1;1R"

# Makes the terminal the controlling one of the session, as a shell does, so that hang-up and job control work. Under
# nohup or in the background, the tests inherit SIGHUP or SIGINT as ignored.
_START = """
import fcntl, runpy, signal, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in sys.argv.pop(1).split(","):
    if name:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
exec(sys.argv.pop(1))
runpy.run_module("attn_tui", run_name="__main__")
"""

# A key does the same however fast the next one comes.
EVEN_STEPS = "from attn_tui.tui.panes import stepping; stepping.HELD = 0"


class Session:
    """The program in a new pseudo-terminal, with its output."""

    def __init__(
        self,
        words: tuple[str, ...],
        size: tuple[int, int],
        env: Mapping[str, str],
        ignored: str,
        first: str,
        redirected: Collection[str],
    ) -> None:
        self.ours, self.theirs = pty.openpty()
        self.modes = termios.tcgetattr(self.theirs)
        self.screen = Terminal(*size)
        self.screen.left = True  # until the program enters
        self.resize(*size)
        unset = ("LC_ALL", "LC_CTYPE", "NO_COLOR", "COLUMNS", "LINES", "TEXTUAL_FPS", "TERM_PROGRAM")
        usual = {name: value for name, value in os.environ.items() if name not in unset}
        usual |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "ATTN_TUI_HINT": "false"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, ignored, first or EVEN_STEPS, *words],
            stdin=subprocess.DEVNULL if "stdin" in redirected else self.theirs,
            stdout=subprocess.DEVNULL if "stdout" in redirected else self.theirs,
            stderr=self.theirs,
            start_new_session=True,
            env={**usual, **env},
        )
        self.written = b""
        self.answering = False  # whether queries for the cursor's position are answered
        self._answered = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pending = ""

    # Actions

    def send(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def resize(self, width: int, height: int) -> None:
        left, self.screen = self.screen.left, Terminal(width, height)
        self.screen.left, self.screen.strict = left, False  # output on its way may be for another size
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def answer(self, times: int) -> None:
        """Answer `times` queries: the cursor is in the first column of the first line."""
        self._answered += times
        self.send(ANSWER * times)

    @property
    def queries(self) -> int:
        """The number of queries for the cursor's position."""
        return self.written.count(b"\x1b[6n")

    @property
    def unanswered(self) -> int:
        return self.queries - self._answered

    def stop(self) -> None:
        """Stop the program, as Ctrl-Z in a shell does."""
        self.signal(signal.SIGTSTP)
        end = time.monotonic() + FOREVER
        while os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG) == (0, 0):
            assert time.monotonic() < end, "not stopped"
            self.read(0.02)
        self.quiet()

    def resume(self) -> None:
        """Resume the program, as fg in a shell does; the shell has written over the screen."""
        self.screen = Terminal(self.screen.width, self.screen.height)
        self.signal(signal.SIGCONT)

    def quit(self, key: bytes = b"q") -> str:
        """Quit the program, which must restore the terminal; return what it prints after that."""
        self.screen = Terminal(1_000, 60)  # so that no line of it is too long
        self.send(key)
        assert self.ended() == 0
        self.assert_restored()
        return self.written.rpartition(b"\x1b[?1049l")[2].decode()

    def hang_up(self) -> None:
        """Close the terminal."""
        for descriptor in (self.ours, self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self.ours = self.theirs = -1

    # Output

    @property
    def text(self) -> str:
        return "\n".join(self.screen.lines)

    def read(self, seconds: float, most: int = 1 << 16) -> bytes:
        """Return the next output, if there is any within this time."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return b""
        data = os.read(self.ours, most)
        self.written += data
        if self.answering:
            self.answer(self.unanswered)
        self._pending += self._decoder.decode(data)
        incomplete = re.search(r"\x1b[^a-zA-Z~]{0,40}\Z", self._pending)
        end = incomplete.start() if incomplete else len(self._pending)
        self.screen.feed(self._pending[:end])
        self._pending = self._pending[end:]
        return data

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Read until a condition holds."""
        end = time.monotonic() + FOREVER
        while not condition():
            assert time.monotonic() < end, f"no {what} within {FOREVER:g} s; the screen:\n{self.text}"
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.written[-2000:]!r}"
            self.read(0.05)

    def sees(self, words: str) -> None:
        """Read until these words are on screen."""
        self.until(lambda: words in self.text, words)

    def quiet(self) -> bytes:
        """Read until no more output comes; return it."""
        before, end = len(self.written), time.monotonic() + FOREVER
        while self.read(QUIET):
            assert time.monotonic() < end, "the output does not end"
        return self.written[before:]

    def ready(self) -> "Session":
        """Wait for the first result."""
        self.until(lambda: re.search(r"(spread|σ) +\d", self.text), "the first result")
        self.quiet()
        return self

    def shows(self, d_k: int) -> "Session":
        """Wait until this d_k has been measured."""
        self.until(lambda: shows_number(self.screen.lines, d_k), f"d_k {d_k}")
        return self

    def ended(self, read: bool = True, seconds: float = FOREVER) -> int:
        """Wait for the end of the process, reading its output unless `read` is false; return its exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, "not ended"
            if read and self.ours >= 0:
                self.read(0.02)
            else:
                time.sleep(0.02)
        if self.ours >= 0:
            while self.read(0):
                pass
        return self.process.returncode

    def assert_restored(self) -> None:
        """Assert that the terminal is as it was before."""
        last = dict(re.findall(rb"\x1b\[\?([0-9]+)([hl])", self.written))
        assert last.get(b"1049", b"l") == b"l", "still on the alternate screen"
        assert last.get(b"25", b"h") == b"h", "the cursor is hidden"
        for mode in (b"1000", b"1002", b"1003", b"1004", b"1006", b"1015", b"1016", b"2004", b"2026", b"2048"):
            assert last.get(mode, b"l") == b"l", mode
        assert last.get(b"7", b"h") == b"h", "long lines are cut"
        pushed, popped = (re.findall(rb"\x1b\[" + sign + rb"[0-9]*u", self.written) for sign in (b">", b"<"))
        assert len(popped) >= len(pushed), "the keyboard protocol is still on"
        assert termios.tcgetattr(self.theirs) == self.modes

    def assert_no_process_left(self) -> None:
        """Wait until all processes of the program have ended."""
        end = time.monotonic() + FOREVER
        with suppress(ProcessLookupError):
            while True:
                os.killpg(self.process.pid, 0)
                assert time.monotonic() < end, "a process is still running"
                time.sleep(0.01)


@contextmanager
def running(
    *words: str,
    size: tuple[int, int] = (120, 40),
    ignored: str = "",
    first: str = "",
    redirected: Collection[str] = (),
    **env: str,
) -> Generator[Session]:
    """Run the program with these arguments, after the Python code `first` and with the signals `ignored`."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs a Linux terminal")
    session = Session(words or SMALL, size, env, ignored, first, redirected)
    try:
        yield session
    finally:
        session.process.send_signal(signal.SIGCONT)
        session.process.kill()
        session.process.wait()
        session.hang_up()


@contextmanager
def opened(*words: str, **settings: Any) -> Generator[Session]:
    """Run the app with a small experiment, and wait for the first result."""
    with running(*SMALL, *words, **settings) as session:
        yield session.ready()


def printing(*words: str, **settings: Any) -> tuple[int, str]:
    """Run a command; return its exit code and its output on the terminal."""
    with running(*words, **settings) as session:
        return session.ended(), session.written.decode()


def in_engine(code: str) -> str:
    """Return Python for `first` that makes the engine's process run this code, which must not contain braces."""
    return f"from attn_tui.tui.compute import process; process.PROGRAM = {code + chr(10)!r} + process.PROGRAM\n"
