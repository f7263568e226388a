"""What commands print on a terminal: colours, what fits its width, and progress, which gives way to results."""

import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.work.engine_names import LostExecutorError
from attn_tui.tui.cli import working
from attn_tui.tui.cli.main import main
from attn_tui.tui.cli.output import Output, screen_glyphs
from attn_tui.tui.cli.working import ProgressLine, ResultStream, time_left
from cases import for_each
from cli_runner import SAMPLE, Captured

Written: TypeAlias = list[tuple[str, str]]  # the stream, and a text


class Stream(io.StringIO):
    """A stream that may be a terminal, and notes what is written in the order in which all streams are written."""

    encoding = "utf-8"

    def __init__(self, name: str, written: Written) -> None:
        super().__init__()
        self.name, self.written, self.terminal = name, written, True

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.written.append((self.name, text))
        return len(text)


class Screen:
    """stdout and stderr on one terminal, and a clock."""

    def __init__(self) -> None:
        self.written: Written = []
        self.out, self.err = Stream("out", self.written), Stream("err", self.written)
        self.now = 100.0

    @contextmanager
    def used(self) -> Generator[None, None, None]:
        """Write there, which a fixture cannot choose: pytest sets both streams for each phase of a test."""
        with redirect_stdout(self.out), redirect_stderr(self.err):
            yield

    def run(self, words: str) -> str:
        """Run a command and return what it prints on stdout."""
        self.written.clear()
        with self.used():
            assert main(words.replace("SAMPLE", SAMPLE).split()) == 0
        return "".join(text for name, text in self.written if name == "out")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 80 cells in colour."""
    screen = Screen()
    monkeypatch.setattr(working, "time", SimpleNamespace(monotonic=lambda: screen.now))
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "80"), ("LANG", "C.UTF-8")):
        monkeypatch.setenv(name, value)
    return screen


@for_each(
    ("terminal", "variables", "colours"),
    [
        (True, {}, True), (True, {"TERM": "dumb"}, False), (True, {"TERM": "unknown"}, False),
        (True, {"NO_COLOR": "1"}, False), (True, {"FORCE_COLOR": "0"}, True), (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True), (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False), (False, {"FORCE_COLOR": ""}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)  # fmt: skip
def test_colours_are_for_terminals_or_forced_and_never_in_files(
    terminal: bool, variables: dict[str, str], colours: bool, screen: Screen, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    screen.out.terminal = terminal
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        assert ("\x1b[" in screen.run("softmax")) == colours
        screen.run(f"softmax -o {tmp_path}/softmax")
    assert "\x1b[" not in (tmp_path / "softmax").read_text()


@for_each(
    ("command", "columns", "first", "left_out"),
    [
        ("inspect SAMPLE --layer 1 --executor serial", 96, "head", "max"),
        ("report --d-k 8 --n-keys 16 --n-queries 4 --batch 2", 94, "logits", "theory"),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_and_a_pipe_gets_all(
    command: str, columns: int, first: str, left_out: str, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(width: int) -> tuple[bool, bool]:
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            text = "".join(screen.run(command).splitlines()[:8])  # titles and headings
        return first in text, left_out in text

    screen.out.terminal = True
    assert [shown(width) for width in (columns - 1, columns)] == [(True, False), (True, True)]
    screen.out.terminal = False
    assert shown(columns - 1) == (True, True)


def test_progress_is_shown_after_a_second_and_the_time_left_after_another(screen: Screen) -> None:
    def said(now: float, fraction: float) -> str:
        screen.written.clear()
        screen.now = 100 + now
        progress.show(fraction)
        assert {name for name, _ in screen.written} <= {"err"}
        return "".join(text for _, text in screen.written).strip("\r")

    steps = [
        (0.9, 0.1, ""), (1.0, 0.1, "work  10 %"), (1.1, 0.15, ""), (1.2, 0.2, "work  20 %"), (2.0, 0.2, "work  20 %"),
        (2.5, 0.5, "work  50 %, 2 s left"), (3.0, 0.0, "work   0 %"), (400.0, 0.5, "work  50 %, 7 min left"),
    ]  # fmt: skip
    with screen.used(), ProgressLine("work") as progress:
        for now, fraction, text in steps:
            assert said(now, fraction).rstrip() == text
        for erased in (True, False):  # once
            screen.written.clear()
            progress.hide()
            assert bool(screen.written) == erased
        screen.err.terminal = False
        assert said(500, 0.6) == ""
    assert [time_left(seconds) for seconds in (99, 100)] == [", 99 s left", ", 2 min left"]


@for_each(
    "words", ["sweep --d-k 2,4,8 --n-keys 4 --batch 2 --format jsonl", "inspect SAMPLE --layer 1 --format jsonl"]
)
@for_each("terminal", [True, False])
def test_progress_gives_way_to_results_on_the_same_terminal(
    words: str, terminal: bool, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.out.terminal = terminal

    def later() -> float:
        screen.now += 10  # every step is shown
        return screen.now

    monkeypatch.setattr(working, "time", SimpleNamespace(monotonic=later))
    screen.run(f"{words} --executor serial")
    before = ""
    shown = [0]
    for name, text in screen.written:
        if name == "out":
            shown.append(int(bool(before.strip("\r "))))
        else:
            before = text if not text.endswith("\r") else ""
    assert before == ""
    assert (sum(shown) == 0) == terminal


REFUSAL = InputError("this one is refused")
LOST = LostExecutorError("the workers are lost")


@for_each(
    ("results", "path", "code", "says"),
    [
        ([1, 2, 3], None, 0, ""), ([1, REFUSAL, REFUSAL], None, 2, "this one is refused (2 of 3 "),
        ([REFUSAL, LOST], None, 2, "this one is refused (1 of 3 … the workers are lost: kept 0 of 3 "),
        ([1, LOST], None, 2, "the workers are lost: kept 1 of 3 "),
        ([1, KeyboardInterrupt()], None, 130, "interrupted: kept 1 of 3 "),
        ([1, KeyboardInterrupt()], Path("x"), 130, "interrupted: kept 1 of 3 … in x"),
        ([KeyboardInterrupt()], Path("x"), 130, "interrupted: kept 0 of 3 … x is not written"),
    ],
)  # fmt: skip
@for_each("what", ["heads", "points"])
def test_what_is_missing_is_said_at_the_end(
    results: Sequence[int | BaseException], path: Path | None, code: int, says: str, what: str, capsys: Captured
) -> None:
    def given() -> Generator[int | InputError, None, None]:
        for result in results:
            if isinstance(result, LostExecutorError | KeyboardInterrupt):
                raise result
            assert isinstance(result, int | InputError)
            yield result

    stream = ResultStream(given(), 3, "heads" if what == "heads" else "points")
    assert [*stream] == [result for result in results if isinstance(result, int)]
    assert stream.code(Output(path=path)) == code
    said = capsys.readouterr().err
    assert all(piece in said for piece in says.split(" … "))
    assert (what in said) == bool(says)


def test_a_refusal_is_raised_if_there_is_nothing_else() -> None:
    def given() -> Generator[int | InputError, None, None]:
        yield REFUSAL

    stream = ResultStream(given(), 1, "heads")
    assert [*stream] == []
    with pytest.raises(InputError, match="refused"):
        stream.code(Output())


@for_each(
    ("variables", "ascii_only"),
    [
        ({}, False), ({"LANG": "C"}, True), ({"LANG": "POSIX"}, True), ({"LANG": "C.UTF-8"}, False),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True), ({"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, False),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True), ({"LC_CTYPE": "de_DE.UTF-8", "LANG": "C"}, False),
        ({"LC_CTYPE": "utf-8", "LANG": "C"}, True), ({"LC_CTYPE": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"LC_ALL": "POSIX", "LC_CTYPE": "de_DE.UTF-8"}, True),
    ],
)  # fmt: skip
def test_a_locale_without_unicode_gets_ascii(
    variables: dict[str, str], ascii_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for name in ("LC_ALL", "LC_CTYPE", "LANG"):
            patch.setenv(name, variables.get(name, ""))
        assert screen_glyphs(False).ascii == ascii_only
        assert screen_glyphs(True).ascii
