"""Settings and parameters saved from one run to the next, and where they come from."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.views.notice import GREETING
from terminal_session import RIGHT, SMALL, opened, running

pytestmark = pytest.mark.slow

START = GREETING[:20]


@pytest.fixture
def file(own_config: Path) -> Path:
    """The settings file, which does not exist yet."""
    path = own_config / "attn-tui" / "config.toml"
    path.parent.mkdir()
    return path


def saved(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def test_the_next_run_starts_with_the_last_parameters_and_greets_until_escape(file: Path) -> None:
    with opened(ATTN_TUI_HINT="") as session:
        assert START in session.text
        session.send(RIGHT)
        session.shows(65)
        session.until(lambda: START not in session.text and "? help" in session.text, "key bar")
        assert "attn-tui:" not in session.quit()
    assert saved(file) == {"parameters": {"d_k": 65, "n_keys": 16, "n_queries": 8, "batch": 2}}
    with running("--seed", "3", size=(150, 40), ATTN_TUI_HINT="") as session:
        session.ready().shows(65)
        assert "16 keys" in session.text
        assert "seed 3" in session.text
        session.sees(START)
        session.send(b"\x1b")
        session.until(lambda: START not in session.text and "? help" in session.text, "key bar")
        session.send(b"R")
        session.shows(64)
        session.quit()
    assert saved(file) == {"parameters": {}, "hint": False}
    with opened(ATTN_TUI_HINT="") as session:
        assert START not in session.text
        session.quit()
    assert saved(file)["hint"] is False


def test_the_first_run_starts_before_softmax_saturates_and_the_next_where_it_was_left(file: Path) -> None:
    with running("--no-mouse", ATTN_TUI_HINT="") as session:
        session.ready().shows(4)
        session.quit()
    assert saved(file) == {"parameters": {"d_k": 4}}
    file.write_text("")
    with running("--no-mouse", ATTN_TUI_HINT="") as session:
        session.ready().shows(64)
        session.quit()


def test_parameters_are_saved_when_the_terminal_closes(file: Path) -> None:
    with opened() as session:
        session.send(RIGHT)
        session.shows(65)
        session.hang_up()
        session.ended()
    assert saved(file)["parameters"]["d_k"] == 65


def test_no_config_neither_reads_nor_writes_the_file_nor_greets(file: Path) -> None:
    file.write_text(text := "[parameters]\nd_k = 77\n")
    with running("--no-config", *SMALL[2:], ATTN_TUI_HINT="true") as session:
        session.ready().shows(64)
        assert START not in session.text
        session.send(RIGHT)
        session.shows(65)
        assert "attn-tui:" not in session.quit()
    assert file.read_text() == text


def test_a_broken_file_is_reported_and_not_overwritten(file: Path) -> None:
    text = 'theme = "attn-light"\nd_k == 3\n'
    file.write_text(text)
    with opened() as session:
        session.send(RIGHT)
        session.shows(65)
        printed = session.quit()
    assert printed.count("attn-tui: ") == 1
    assert f"attn-tui: {file}: " in printed.replace("\r\n", "")
    assert file.read_text() == text
