"""attn-tui on a terminal without a command: the app opens, or prints why not on one line."""

import re

import pytest
from attn_tui.core.captures.capture import sample_path
from terminal_session import SMALL, printing, running

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("words", [[], ["--ascii", "--d-k", "8"], [str(sample_path())], ["--theme", "attn-light"]])
def test_the_app_opens_and_q_leaves_it(words: list[str]) -> None:
    with running(*words) as session:
        session.sees("quit")
        session.quit()
        assert b"\x1b[?1049h" in session.written


@pytest.mark.parametrize("words", [["missing.npz"], [__file__], ["--theme", "none"], ["--d-k", "0"]])
def test_a_mistake_is_reported_before_the_app_opens(words: list[str]) -> None:
    code, seen = printing(*words)
    assert code == 2
    assert re.fullmatch(r"attn-tui: [^\n\x1b]+\r\n", seen)


@pytest.mark.parametrize("name", ["ATTN_TUI_THEME", "ATTN_TUI_D_K", "ATTN_TUI_ASCII"])
def test_an_invalid_variable_is_refused_in_one_line(name: str) -> None:
    code, seen = printing(**{name: "mauve"})
    assert code == 2
    assert re.fullmatch(rf"attn-tui: {name}: [^\n\x1b]*'mauve'[^\n\x1b]*\r\n", seen)


def test_the_app_needs_a_terminal_on_stdin() -> None:
    code, seen = printing(redirected=["stdin"])
    assert code == 2
    assert re.fullmatch(r"attn-tui: stdin is not a terminal[^\n]*\r\n", seen)


def test_a_dumb_terminal_gets_the_report() -> None:
    code, seen = printing(*SMALL, TERM="dumb")
    assert code == 0
    assert "unscaled × 1" in seen


@pytest.mark.parametrize("columns", ["9999", "99999999", "0", "-1", "abc"])
def test_the_app_is_as_wide_as_its_terminal_whatever_columns_says(columns: str) -> None:
    with running(COLUMNS=columns, LINES=columns) as session:
        session.ready()
        session.quit()
        places = re.findall(rb"\x1b\[([0-9]+);([0-9]+)H", session.written)
    assert max(int(line) for line, _ in places) <= 40
    assert 90 < max(int(column) for _, column in places) <= 120
