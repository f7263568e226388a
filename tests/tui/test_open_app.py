"""attn-tui on a terminal without a command: the app opens, or prints why not on one line."""

import gc
import re

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.tui.cli import output
from attn_tui.tui.cli.main import main
from terminal_session import SMALL, printing, running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "columns"),
    [([], "99999999"), (["--ascii", "--d-k", "8"], "0"), ([str(sample_path()), "--theme", "attn-light"], "abc")],
)
def test_the_app_opens_as_wide_as_its_terminal_whatever_columns_says(words: list[str], columns: str) -> None:
    with running(*words, COLUMNS=columns, LINES=columns) as session:
        session.sees("quit")
        session.quiet()
        session.quit()
        assert b"\x1b[?1049h" in session.written
        lines = re.findall(rb"\x1b\[([0-9]+);[0-9]+H", session.written)
        across = re.findall(rb"\x1b\[(?:[0-9]+;)?([0-9]+)[HG]", session.written)  # G moves within a line
    assert max(map(int, lines)) <= 40
    assert 80 < max(map(int, across)) <= 120


@pytest.mark.slow
def test_a_mistake_is_reported_before_the_app_opens() -> None:
    code, seen = printing("missing.npz")
    assert code == 2
    assert re.fullmatch(r"attn-tui: [^\n\x1b]+\r\n", seen)


def test_a_dumb_terminal_gets_the_report() -> None:
    code, seen = printing(*SMALL, TERM="dumb")
    assert code == 0
    assert "unscaled × 1" in seen


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make the program take stdout for a terminal; the app must not open, as there is none."""
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    return monkeypatch


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which these words are refused."""
    assert main(words) == 2
    assert gc.isenabled()
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"attn-tui: [^\n\x1b]+\n", err)
    return err


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ([__file__], ""),
        (["--theme", "mauve"], ""),
        (["--d-k", "mauve"], ""),
        ([], "ATTN_TUI_THEME"),
        ([], "ATTN_TUI_D_K"),
        ([], "ATTN_TUI_ASCII"),
    ],
)
def test_what_the_app_does_not_accept_is_refused_in_one_line(
    words: list[str], variable: str, terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setattr("sys.stdin.isatty", lambda: True, raising=False)
    if variable:
        terminal.setenv(variable, "mauve")
    line = refused(words, capsys)
    assert (variable or words[0]) in line
    assert ("'mauve'" in line) == (words != [__file__])


@pytest.mark.usefixtures("terminal")
def test_the_app_needs_a_terminal_on_stdin(capsys: pytest.CaptureFixture[str]) -> None:
    assert "stdin is not a terminal" in refused([], capsys)
