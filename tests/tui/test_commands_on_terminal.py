"""Commands that print to a terminal: colours, the width, progress, and Ctrl-C."""

import re
import signal
from pathlib import Path

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.watching.snapshot import sample_run
from terminal_session import LONG, SMALL, printing, running

pytestmark = pytest.mark.slow

WRONG = str(Path(__file__).parents[1] / "data/wrong-scale.safetensors")


def test_colours_and_theory_are_printed_where_the_terminal_has_them_and_room() -> None:
    shown = printing("report", *SMALL)[1]
    assert "\x1b[" in shown
    wide, narrow = (printing("report", *SMALL, NO_COLOR="1", size=(width, 24))[1] for width in (120, 80))
    assert "\x1b" not in wide
    assert "theory" in wide
    assert "theory" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert printing("report", *SMALL, TERM="dumb", size=(80, 24))[1] == narrow


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", str(sample_path()), "--layer", "0", "--head", "2", "--rules", "all"),
        ("compare", str(sample_path()), WRONG),
        ("watch", str(sample_run()), "--once", "--step", "10", "--baseline", "5"),
        (
            "train",
            "--d-k",
            "8",
            "--steps",
            "12",
            "--seeds",
            "2",
            "--rules",
            "none,rms_sqrt_d_k,8/d,granite_2b,gemma,0.05",
        ),
    ],
    ids=lambda words: words[0],
)
def test_tables_and_sentences_fit_80_columns(words: tuple[str, ...]) -> None:
    lines = printing(*words, NO_COLOR="1", size=(80, 24))[1].splitlines()
    shown = [line for line in lines if not line.startswith("attn-tui: ")]  # messages are one line each
    assert 70 < max(map(len, shown)) <= 80


def test_long_work_shows_progress_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    with running("report", *LONG, "-o", str(file), redirected=["stdout"]) as session:
        session.until(lambda: b"%" in session.written, "progress")
        session.signal(signal.SIGINT)
        assert session.ended() == 130
    assert re.fullmatch(rb"(\r[a-z]+ +\d+ %)+\r +\r", session.written)
    assert not file.exists()


def test_ctrl_c_before_the_first_point_of_a_sweep_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "sweep.csv"
    file.write_text("before")
    with running("sweep", *LONG, "-o", str(file), "--overwrite") as session:
        session.until(lambda: b"%" in session.written, "progress")
        session.signal(signal.SIGINT)
        assert session.ended() == 130
    assert b"kept 0 of" in session.written
    assert file.read_text() == "before"
