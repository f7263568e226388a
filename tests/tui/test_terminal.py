"""The program in a real terminal: what it writes, how it ends, and what it leaves behind."""

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
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.numbers import short
from test_frugal import Terminal

if not sys.platform.startswith("linux"):
    pytest.skip("what terminals do is told by Linux here", allow_module_level=True)

FOREVER = 20.0  # seconds until a test gives up
QUIET = 0.1  # seconds without output after which nothing more is expected
SMALL = ("--d-k", "64", "--n-keys", "16", "--n-queries", "8", "--batch", "2")
RIGHT, LEFT = b"\x1b[C", b"\x1b[D"
ANSWER = b"\x1b[1;1R"

# Makes the terminal the session's own, as a shell does, so that hanging up and stopping work; then does what a test
# wants done first.
_START = """
import fcntl, runpy, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is inherited as ignored where the tests run under nohup
for name in sys.argv.pop(1).split(","):
    if name:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
exec(sys.argv.pop(1))
runpy.run_module("attn_tui.tui", run_name="__main__")
"""


HOME = {"ATTN_TUI_HINT": "false"}  # people who have been here before


class Session:
    """The program in a terminal of its own, with everything it has written."""

    def __init__(
        self, words: tuple[str, ...], size: tuple[int, int], env: Mapping[str, str], ignored: str, first: str
    ) -> None:
        self.ours, self.theirs = pty.openpty()
        self.modes = termios.tcgetattr(self.theirs)
        self.screen = Terminal(*size)
        self.screen.left = True  # until the program enters
        self.resize(*size)
        left_out = ("LC_ALL", "LC_CTYPE", "NO_COLOR", "COLUMNS", "LINES", "TEXTUAL_FPS", "TERM_PROGRAM")
        clean = {name: value for name, value in os.environ.items() if name not in left_out}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, ignored, first, *words],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            start_new_session=True,
            env={**clean, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **HOME, **env},
        )
        self.written = b""
        self._answered = 0
        self.answering = False  # whether questions where the cursor is are answered
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pending = ""

    # Do

    def send(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def resize(self, width: int, height: int) -> None:
        left, self.screen = self.screen.left, Terminal(width, height)
        self.screen.left, self.screen.strict = left, False  # what was on its way may be for another size
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def answer(self, times: int) -> None:
        """Say so many times that the cursor is in the first column of the first line."""
        self._answered += times
        self.send(ANSWER * times)

    @property
    def questions(self) -> int:
        """How often it has been asked where the cursor is."""
        return self.written.count(b"\x1b[6n")

    @property
    def unanswered(self) -> int:
        return self.questions - self._answered

    def stop(self) -> None:
        """As with Ctrl-Z in a shell."""
        self.signal(signal.SIGTSTP)
        end = time.monotonic() + FOREVER
        while os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG) == (0, 0):
            assert time.monotonic() < end, "it does not stop"
            self.read(0.02)
        self.quiet()

    def go_on(self) -> None:
        """As with fg in a shell, which has written over the screen."""
        self.screen = Terminal(self.screen.width, self.screen.height)
        self.signal(signal.SIGCONT)

    def hang_up(self) -> None:
        """The terminal is gone."""
        for descriptor in (self.ours, self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self.ours = self.theirs = -1

    # See

    def read(self, seconds: float, most: int = 1 << 16) -> bytes:
        """What is written next, if something is before the time is over."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return b""
        data = os.read(self.ours, most)
        self.written += data
        if self.answering:
            self.answer(self.unanswered)
        self._pending += self._decoder.decode(data)
        whole = re.search(r"\x1b[^a-zA-Z~]{0,40}\Z", self._pending)  # a sequence that is not all there
        end = whole.start() if whole else len(self._pending)
        self.screen.feed(self._pending[:end])
        self._pending = self._pending[end:]
        return data

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + FOREVER
        while not condition():
            assert time.monotonic() < end, f"{what} never came about; the screen:\n{self.text}"
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.written[-2000:]!r}"
            self.read(0.05)

    def quiet(self) -> bytes:
        """Everything until nothing more is written."""
        before, end = len(self.written), time.monotonic() + FOREVER
        while self.read(QUIET):
            assert time.monotonic() < end, "it never stops writing"
        return self.written[before:]

    def calm(self) -> None:
        """Until nothing more is written, or for some seconds where something is always going on."""
        end = time.monotonic() + 3
        while self.read(2 * QUIET) and time.monotonic() < end:
            pass

    def ready(self) -> "Session":
        """Wait for the first result with its theory, which says where softmax freezes."""
        self.until(lambda: re.search(r"freezing.*(frozen|freezes)", self.text), "the first result")
        self.quiet()
        return self

    def shows(self, d_k: int) -> None:
        """Wait until this d_k has been measured at 1/√d_k."""
        title = f"× {short(d_k**-0.5, UNICODE)} (1/√d_k)"
        self.until(lambda: re.search(rf"d_k {d_k} .*\n d_k +{d_k} .*{re.escape(title)}", self.text), f"d_k {d_k}")
        self.quiet()

    def ended(self, read: bool = True, seconds: float = FOREVER) -> int:
        """The exit code, once the process has ended; what it writes until then is read, or left unread."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            if read and self.ours >= 0:
                self.read(0.02)
            else:
                time.sleep(0.02)
        if self.ours >= 0:
            while self.read(0):
                pass
        return self.process.returncode

    @property
    def text(self) -> str:
        return "\n".join(self.screen.lines)

    def assert_restored(self) -> None:
        """The terminal is as it was before."""
        last = dict(re.findall(rb"\x1b\[\?([0-9]+)([hl])", self.written))
        assert last.get(b"1049", b"l") == b"l", "the alternate screen is left"
        assert last.get(b"25", b"h") == b"h", "the cursor is shown"
        for mode in (b"1000", b"1002", b"1003", b"1004", b"1006", b"1015", b"1016", b"2004", b"2026", b"2048"):
            assert last.get(mode, b"l") == b"l", mode
        pushed, popped = (re.findall(rb"\x1b\[" + sign + rb"[0-9]*u", self.written) for sign in (b">", b"<"))
        assert len(popped) >= len(pushed), "the keyboard's own protocol is left"
        assert termios.tcgetattr(self.theirs) == self.modes


@contextmanager
def running(
    *words: str, size: tuple[int, int] = (120, 40), ignored: str = "", first: str = "", **env: str
) -> Iterator[Session]:
    """The program with these words; `first` is Python that its process runs before, `ignored` names signals."""
    session = Session(words or SMALL, size, env, ignored, first)
    try:
        yield session
    finally:
        session.process.send_signal(signal.SIGCONT)
        session.process.kill()
        session.process.wait()
        session.hang_up()


def assert_nobody_left(session: Session) -> None:
    """No process of the program's session is left, or the one that is has noticed that it is alone, and ends."""
    end = time.monotonic() + FOREVER
    with suppress(ProcessLookupError):
        while True:
            os.killpg(session.process.pid, 0)
            assert time.monotonic() < end, "somebody is left"
            time.sleep(0.01)


# How it ends


def test_q_ends_it_with_0_and_leaves_the_terminal_as_it_was() -> None:
    with running() as session:
        session.ready()
        assert termios.tcgetattr(session.theirs) != session.modes
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert_nobody_left(session)


def test_q_ends_it_while_it_computes() -> None:
    with running("--n-keys", "8192", "--n-queries", "8192", "--batch", "4096") as session:
        session.until(lambda: "computing" in session.text, "progress")
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert_nobody_left(session)


_STUCK = """
import pathlib, threading
from attn_tui.core.lab import claims
from attn_tui.tui import work
def stuck(*_):
    pathlib.Path({begun!r}).touch()
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    "where",
    ["claims.examine = stuck", "work.check_claims = lambda: iter(stuck, None)"],
    ids=["in a pool", "in a step"],
)
def test_q_ends_it_though_what_it_computes_never_ends(where: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with running(first=_STUCK.format(begun=str(begun)) + where) as session:
        session.ready()
        session.send(b"<")
        session.until(begun.exists, "the claims' computing")
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert_nobody_left(session)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it_with_the_shell_s_code_and_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    with running() as session:
        session.ready()
        session.signal(number)
        assert session.ended() == 128 + number
        session.assert_restored()
        assert b"Traceback" not in session.written
        assert_nobody_left(session)


@pytest.mark.parametrize("ignored", ["", "SIGHUP"], ids=["", "under nohup"])
def test_when_the_terminal_goes_away_no_process_is_left(ignored: str) -> None:
    with running(ignored=ignored) as session:
        session.ready()
        session.hang_up()
        assert session.ended() == 128 + signal.SIGHUP
        assert_nobody_left(session)


def test_when_the_terminal_goes_away_while_it_computes_no_process_is_left() -> None:
    with running("--n-keys", "8192", "--n-queries", "8192", "--batch", "4096") as session:
        session.until(lambda: "computing" in session.text, "progress")
        session.hang_up()
        assert session.ended() == 128 + signal.SIGHUP
        assert_nobody_left(session)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it_even_while_the_terminal_takes_nothing(number: signal.Signals) -> None:
    with running(size=(200, 60)) as session:
        session.ready()
        for _ in range(100):  # screens that nobody reads, as after Ctrl-S or on a line that stalls
            session.send(b"\x1b[A")
            time.sleep(0.01)
            session.send(b"\x1b[B")
            time.sleep(0.01)
        session.signal(number)
        assert session.ended(read=False, seconds=4.0) == 128 + number
        assert_nobody_left(session)


# Stopping and going on


def test_after_stopping_and_going_on_everything_is_painted_again() -> None:
    with running() as session:
        session.ready()
        session.send(RIGHT * 3)
        session.shows(67)
        before = session.screen.places
        session.stop()
        session.assert_restored()
        session.go_on()
        session.until(lambda: "d_k 67" in session.text, "the screen")
        session.quiet()
        assert session.screen.places == before
        session.send(LEFT)
        session.shows(66)
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_the_screen_is_left_empty() -> None:
    with running() as session:
        session.ready().stop()
        session.go_on()
        session.until(lambda: "d_k 64" in session.text, "the screen")
        session.send(b"q")
        assert session.ended() == 0
        first, second, after = session.written.split(b"\x1b[?1049l")
    for painted in (first, second):
        assert re.search(rb"\x1b\[m\x1b\[H\x1b\[2J(\x1b\[[<=>?]?[0-9;]*[a-z])*\Z", painted)
    assert not re.search(rb"[^\x1b\[?0-9a-z]", after)


def test_it_stops_and_goes_on_in_the_midst_of_what_it_writes() -> None:
    with running() as session:
        session.ready()
        for _ in range(10):
            session.send(5 * RIGHT)
            session.stop()
            session.assert_restored()
            session.go_on()
        session.send(b"777\r")
        session.until(lambda: "d_k 777" in session.text, "what was typed last")
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_stopping_close_behind_going_on_blocks_nothing() -> None:
    """The system forgets a SIGCONT that has not been handled when the next SIGTSTP comes."""
    with running() as session:
        session.ready()
        session.stop()
        for _ in range(30):
            session.go_on()
            session.stop()
        session.go_on()
        session.send(RIGHT)
        session.shows(65)
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_going_on_without_having_been_told_to_stop_is_no_second_start() -> None:
    with running() as session:
        session.ready()
        before = session.screen.places
        session.go_on()
        session.until(lambda: "d_k 64" in session.text, "the screen")
        session.quiet()
        assert session.screen.places == before
        session.send(RIGHT)
        session.shows(65)
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert_nobody_left(session)


def test_what_was_sent_in_differences_is_what_a_full_repaint_shows() -> None:
    with running() as session:
        session.ready()
        for keys in (
            RIGHT * 40,
            b"s",
            b"\x1b[A",
            b"\t\t\t",
            b"?",
            b"\x1b",
            b">",
            b"\x1b[B",
            b"m",
            b"<",
            b"v",
            b"vv",
            b"0",
        ):
            session.send(keys)
            session.quiet()
        session.until(lambda: not session.quiet(), "the end")
        before = session.screen
        session.resize(120, 39)
        session.until(lambda: "quit" in session.screen.lines[38], "the smaller screen")
        session.quiet()
        session.resize(120, 40)
        session.until(lambda: "quit" in session.screen.lines[39], "the screen")
        session.quiet()
        assert session.screen.lines == before.lines
        assert session.screen.places == before.places


def test_a_resized_terminal_is_filled() -> None:
    with running(size=(80, 24)) as session:
        session.until(lambda: "Unscaled, logits" in session.text, "the first result")
        for size in ((200, 60), (80, 20), (20, 5), (121, 41)):
            session.resize(*size)
            session.quiet()
        session.until(lambda: "quit" in session.screen.lines[40] and not left_out(session), "every cell")


def left_out(session: Session) -> list[str]:
    """Lines with cells to which nothing has been sent."""
    return [line for line in session.screen.lines if "?" in line and "? help" not in line]


# Keys


def test_a_burst_of_200_keys_ends_on_the_right_number() -> None:
    with running() as session:
        session.ready()
        session.send(RIGHT * 200)
        session.shows(264)


def test_keys_in_pieces_as_a_slow_line_brings_them_all_count() -> None:
    with running() as session:
        session.ready()
        for number in range(60):
            session.send(RIGHT * (1 + number % 3))
            session.read(0.001 * (number % 7))
        session.shows(64 + 120)


def test_keys_as_kitty_sends_them_are_the_same_keys() -> None:
    with running() as session:
        session.ready()
        [asked] = re.findall(rb"\x1b\[>([0-9]+)u", session.written)
        texts = int(asked) & 16  # also of letters it is told the code and the text; else they come as ever
        ell, mark, q = (b"\x1b[108;1;108u", b"\x1b[63;2;63u", b"\x1b[113;1;113u") if texts else (b"l", b"?", b"q")
        for number, key in enumerate([b"\x1b[C", b"\x1b[1;1C", ell], start=65):
            session.send(key)
            session.shows(number)
        for key, words in ((b"\x1b[112;5u", "Search for commands"), (mark, "Scores are dot products")):
            session.send(key)  # Ctrl+P, and ?
            session.until(lambda words=words: words in session.text, words)
            session.send(b"\x1b[27u")
            session.until(lambda words=words: words not in session.text, "Escape")
        session.send(q)
        assert session.ended() == 0
        session.assert_restored()


def test_bytes_that_are_no_text_do_no_harm() -> None:
    with running() as session:
        session.ready()
        session.send(b"\xff\xfe\xc3(\x80")
        session.quiet()
        session.send(RIGHT)
        session.shows(65)


# What it writes


def test_idle_it_writes_nothing() -> None:
    with running() as session:
        session.ready()
        assert session.read(1.0) == b""


def test_a_step_of_d_k_writes_little() -> None:
    with running() as session:
        session.ready().quiet()
        before = len(session.written)
        for d_k in range(65, 75):
            session.send(RIGHT)
            session.shows(d_k)
        session.quiet()
        assert len(session.written) - before < 10 * 2_400


def test_a_key_that_changes_nothing_writes_next_to_nothing() -> None:
    with running("--d-k", "1", *SMALL[2:]) as session:
        session.ready()
        session.send(LEFT)
        assert len(session.quiet()) < 100


@pytest.mark.parametrize("way", ["--ascii", "LANG=C"])
def test_ascii_is_all_that_is_written_with_ascii_and_where_the_locale_has_no_more(way: str) -> None:
    words, env = ("--ascii", *SMALL), {}
    if way != "--ascii":
        words, env = SMALL, {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with running(*words, **env) as session:
        session.ready()
        for number, pane in enumerate(PANES, start=1):
            session.until(lambda tab=f" {number} {pane} ": tab in session.text, pane)
            session.calm()
            for keys in (b"?", b"\x1b", b"\x10", b"\x1b", RIGHT, b"\x1b[B", b"\t"):  # help, the palette, and others
                session.send(keys)
                session.calm()
            session.send(b"\x1b>")
        assert session.process.poll() is None
        assert session.written.isascii()


def test_no_color_leaves_only_shades_of_grey() -> None:
    with running(NO_COLOR="1") as session:
        session.ready()
        colours = {pen[at] for row in session.screen.places for _, pen in row for at in (0, 1)}
        for colour in colours:
            kind, *parts = colour.split(";")
            assert kind in ("", "2"), colour
            assert len(set(parts)) <= 1, colour


@pytest.mark.parametrize(("term", "theme"), [("xterm", "attn-dark"), ("linux", "attn-light"), ("", "ansi-dark")])
def test_no_color_in_the_terminal_s_own_colours_leaves_none(term: str, theme: str) -> None:
    named = {"TERM": term, "COLORTERM": ""} if term else {}
    with running("--no-config", "--theme", theme, *SMALL, size=(80, 24), NO_COLOR="1", **named) as session:
        session.until(lambda: "Unscaled, logits" in session.text, "the first result")
        session.send(b"\t")
        session.calm()
        assert {pen[:2] for row in session.screen.places for _, pen in row} == {("", "")}
        session.send(b"e")
        session.until(lambda: "Export what" in session.text, "the form")
        session.calm()
        pens = [pen for row in session.screen.places for _, pen in row]
        assert {pen[:2] for pen in pens} == {("", "")}
        assert any("7" in attributes for _, _, attributes in pens), "the cursor is seen"


@pytest.mark.parametrize("theme", ["attn-dark", "attn-light"])
@pytest.mark.parametrize("term", ["xterm", "xterm-256color", "tmux-256color", "screen", "linux", "vt220"])
def test_in_every_terminal_keys_work_and_colours_are_those_it_has(term: str, theme: str) -> None:
    with running("--no-config", "--theme", theme, *SMALL, size=(80, 24), TERM=term, COLORTERM="") as session:
        session.until(lambda: "Unscaled, logits" in session.text, "the first result")
        session.send(b"l")
        session.until(lambda: "d_k 65 " in session.text, "d_k 65")
        session.quiet()
        assert b"8;2;" not in session.written
        many = term.endswith("-256color")
        assert (b"8;5;" in session.written) == many
        if not many:  # unscaled is yellow or red, scaled is cyan or blue, on the terminal's own ground
            colours = {pen[:2] for row in session.screen.places for _, pen in row}
            assert {
                ("33" if theme == "attn-dark" else "31", ""),
                ("36" if theme == "attn-dark" else "34", ""),
            } <= colours
            assert {ground for _, ground in colours} == {""}
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


OTHER_FRAMES = """
from textual import _compositor
for kind in (_compositor.ChopsUpdate, _compositor.LayoutUpdate):
    kind.__init__ = lambda self, *words, made=kind.__init__, **named: made(self, *words, **named)
"""
OTHER_DRIVER = """
from textual.drivers import linux_driver
linux_driver.XTermParser = lambda *words, made=linux_driver.XTermParser, **named: made(*words, **named)
"""


@pytest.mark.parametrize(
    ("parts", "compared", "asked"),
    [(OTHER_FRAMES, False, True), (OTHER_DRIVER, True, False), (OTHER_FRAMES + OTHER_DRIVER, False, False)],
    ids=["frames", "driver", "both"],
)
def test_with_a_textual_it_does_not_know_it_works_as_textual_does(parts: str, compared: bool, asked: bool) -> None:
    with running(first=parts) as session:
        session.ready()
        before = len(session.written)
        session.send(RIGHT * 3)
        session.shows(67)
        assert (len(session.written) - before < 3 * 2_400) == compared
        assert (session.questions > 0) == asked
        session.send(b"?")
        session.until(lambda: "Scores are dot products" in session.text, "the help")
        session.send(b"\x1b")
        session.calm()
        session.resize(100, 30)
        session.until(lambda: "quit" in session.screen.lines[29] and not left_out(session), "every cell")
        session.stop()
        session.assert_restored()
        session.go_on()
        session.until(lambda: "d_k 67" in session.text, "the screen")
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert_nobody_left(session)


def test_with_stderr_elsewhere_the_screen_is_on_stdout() -> None:
    elsewhere = "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2)"
    with running("--no-config", *SMALL, first=elsewhere) as session:
        session.ready()
        session.send(RIGHT)
        session.shows(65)
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()


def test_a_terminal_that_reports_its_size_and_the_mouse_in_pixels_is_left_as_it_was() -> None:
    with running("--no-config", *SMALL) as session:
        session.until(lambda: b"\x1b[?2048$p" in session.written, "the question")
        session.send(b"\x1b[?2048;2$y")
        session.until(lambda: b"\x1b[?2048h" in session.written, "reports of the size")
        session.ready()
        session.send(b"\x1b[48;30;100;600;1000t" + RIGHT)
        session.until(lambda: "d_k 65 " in session.text, "d_k 65")
        session.send(b"q")
        assert session.ended() == 0
        session.assert_restored()
        assert b"\x1b[?1016h" in session.written


def test_no_mouse_asks_for_no_mouse() -> None:
    with running("--no-mouse", *SMALL) as session:
        session.ready()
        assert not re.search(rb"\x1b\[\?(1000|1002|1003|1006|1015|1016)h", session.written)


# What it remembers


def remembered(own_config: Path) -> dict[str, Any]:
    return tomllib.loads((own_config / "attn-tui" / "config.toml").read_text())


def left_with(session: Session, key: bytes = b"q") -> str:
    """What it says after it was left."""
    session.screen = Terminal(1_000, 60)  # so that no line of it is too long
    session.send(key)
    assert session.ended() == 0
    session.assert_restored()
    return session.written.rpartition(b"\x1b[?1049l")[2].decode()


def test_the_next_time_it_opens_as_it_was_left(own_config: Path) -> None:
    with running() as session:
        session.ready().send(RIGHT)
        session.shows(65)
        assert "attn-tui:" not in left_with(session)
    assert remembered(own_config) == {"parameters": {"d_k": 65, "n_keys": 16, "n_queries": 8, "batch": 2}}
    with running("--seed", "3", size=(150, 40)) as session:  # where the top bar has room for it
        assert "d_k 65 · 16 keys · seed 3" in session.ready().text
        session.send(b"R")
        session.shows(64)
        left_with(session)
    assert remembered(own_config) == {"parameters": {}}


def test_it_is_remembered_when_the_terminal_goes_away(own_config: Path) -> None:
    with running() as session:
        session.ready().send(RIGHT)
        session.shows(65)
        session.hang_up()
        session.ended()
    assert remembered(own_config)["parameters"]["d_k"] == 65


@pytest.mark.parametrize(("key", "again"), [(b"\x1b", False), (RIGHT, True)], ids=["escape", "another key"])
def test_newcomers_are_greeted_until_they_send_the_greeting_away(own_config: Path, key: bytes, again: bool) -> None:
    with running(ATTN_TUI_HINT="") as session:
        session.until(lambda: "New here?" in session.text, "the greeting")
        session.send(key)
        session.until(lambda: "New here?" not in session.text and "? help" in session.text, "the keys")
        left_with(session)
    assert remembered(own_config).get("hint", True) == again
    with running(ATTN_TUI_HINT="") as session:
        session.until(lambda: "Unscaled, logits" in session.text, "the first result")
        session.quiet()
        assert ("New here?" in session.text) == again


def test_where_nothing_is_remembered_nobody_is_greeted() -> None:
    with running("--no-config", *SMALL, ATTN_TUI_HINT="true") as session:
        assert "New here?" not in session.ready().text


def test_no_config_leaves_the_file_alone(own_config: Path) -> None:
    file = own_config / "attn-tui" / "config.toml"
    for text in ("[parameters]\nd_k = 77\n", "theme = "):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        with running("--no-config", *SMALL) as session:
            assert "d_k 64 " in session.ready().text
            session.send(RIGHT)
            assert "attn-tui:" not in left_with(session)
        assert file.read_text() == text


def test_a_broken_file_is_named_and_kept(own_config: Path) -> None:
    file = own_config / "attn-tui" / "config.toml"
    file.parent.mkdir()
    file.write_text('theme = "attn-light"\nd_k == 3\n')
    with running() as session:
        session.ready().send(RIGHT)
        session.shows(65)
        said = left_with(session)
    assert said.count("attn-tui: ") == 1
    assert f"attn-tui: {file}: is not TOML" in said.replace("\r\n", "")
    assert file.read_text() == 'theme = "attn-light"\nd_k == 3\n'


def test_the_environment_goes_before_the_file_and_the_command_line_before_it(own_config: Path) -> None:
    file = own_config / "attn-tui" / "config.toml"
    file.parent.mkdir()
    file.write_text("[parameters]\nd_k = 10\nn_keys = 11\nseed = 12\nbatch = 2\n")
    settings = {"ATTN_TUI_D_K": "20", "ATTN_TUI_N_KEYS": "21", "ATTN_TUI_ASCII": "1"}
    with running("--d-k", "30", size=(150, 40), **settings) as session:  # where the top bar has room for it
        session.until(lambda: "d_k 30 . 21 keys . seed 12" in session.text, "the parameters")
        left_with(session)
        assert session.written.isascii()
