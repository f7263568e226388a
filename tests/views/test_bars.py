"""The top bar and the key bar."""

from dataclasses import replace

import pytest
from attn_tui.core.models import MODEL_WIDTHS
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.catalogue import PANES as PANE_ROWS
from attn_tui.tui.panes.catalogue import TABS
from attn_tui.tui.panes.claims.pane import ClaimsPane
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.views.bars import key_line, parameters_status, progress_status, top_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from line_texts import text_of, texts_of

PANES = ("Lab", "Capture")
BERT = Parameters(d_k=64)


@pytest.mark.parametrize("width", range(20, 140, 7))
def test_bars_have_exactly_the_width(width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        assert line_width(top_line(PANES, "Lab", parameters_status(BERT, glyphs), width, UNICODE)) == width
        assert line_width(top_line(PANES, "Lab", progress_status(0.3, glyphs), width, UNICODE)) == width
        for keys in (LabPane.KEYS, CapturePane.KEYS):
            assert line_width(key_line(keys, width, glyphs)) == width


def test_a_screen_of_80_columns_shows_all_tabs() -> None:
    line = text_of(top_line(tuple(TABS), "Lab", parameters_status(replace(BERT, d_k=16384), UNICODE), 80, UNICODE))
    assert [word for word in line.split() if word in TABS] == [*TABS]
    assert line.endswith(" d_k 16384 ")


def test_the_active_pane_is_highlighted() -> None:
    for active in PANES:
        line = top_line(PANES, active, [], 80, UNICODE)
        assert [text.strip() for text, role in line if role == "accent"] == [active]


def test_the_longest_status_that_fits_is_shown_at_the_right_edge() -> None:
    statuses = parameters_status(BERT, UNICODE)
    assert text_of(top_line(PANES, "Lab", statuses, 120, UNICODE)).endswith(
        "d_k 64 as in the Transformer, BERT, GPT-2 · 128 keys · seed 0 "
    )
    assert text_of(top_line(PANES, "Lab", statuses, 70, UNICODE)).endswith("   d_k 64 · 128 keys · seed 0 ")
    assert text_of(top_line(PANES, "Lab", statuses, 45, UNICODE)).endswith("   d_k 64 ")
    assert text_of(top_line(PANES, "Lab", statuses, 33, UNICODE)) == " Lab  Capture             d_k 64 "
    assert text_of(top_line(PANES, "Lab", statuses, 25, UNICODE)) == " Lab  Capture     d_k 64 "
    assert text_of(top_line(PANES, "Lab", statuses, 18, UNICODE)) == " < Lab >   d_k 64 "
    assert "d_k" not in text_of(top_line(PANES, "Lab", statuses, 14, UNICODE))


@pytest.mark.parametrize("d_k", sorted(MODEL_WIDTHS))
def test_a_d_k_of_a_real_model_is_named(d_k: int) -> None:
    assert MODEL_WIDTHS[d_k] in text_of(parameters_status(replace(BERT, d_k=d_k), UNICODE)[0])


def test_other_d_k_have_no_name() -> None:
    assert "as in" not in "".join(text_of(line) for line in parameters_status(replace(BERT, d_k=65), UNICODE))


@pytest.mark.parametrize("at", ["", "d_k 7", "d_k 16384"])
def test_progress_keeps_its_width(at: str) -> None:
    for glyphs in (UNICODE, ASCII):
        widths: set[tuple[int, ...]] = set()
        for fraction in (0.0, 0.004, 0.094, 0.31, 0.994):
            texts = texts_of(progress_status(fraction, glyphs, at))
            assert all(f" {100 * fraction:2.0f} %" in text for text in texts)
            assert all(text.isascii() or not glyphs.ascii for text in texts)
            widths.add(tuple(map(len, texts)))
        assert len(widths) == 1


def test_progress_has_shorter_forms() -> None:
    texts = texts_of(progress_status(0.34, UNICODE, "d_k 64"))
    assert texts == [
        "d_k 64 · computing ███───────  34 %",
        "d_k 64 · ███───────  34 %",
        "d_k 64 · ██───  34 %",
        "d_k 64 34 %",
        "computing ███───────  34 %",
        "███───────  34 %",
        "██───  34 %",
        " 34 %",
    ]
    assert texts_of(progress_status(0.34, UNICODE)) == texts[4:]


def test_keys_fill_the_line_in_order_without_being_cut() -> None:
    for keys in (LabPane.KEYS, CapturePane.KEYS):
        for width in range(80, 160):
            text = text_of(key_line(keys, width, UNICODE)).rstrip()
            always = [key for key in keys if key[1] in ("help", "quit", "next tab")]
            others = [key for key in keys if key not in always]
            lines = [
                " "
                + "   ".join(f"{press} {does}" for press, does in keys if (press, does) in (*always, *others[:count]))
                for count in range(len(others) + 1)
            ]
            assert text == max((line for line in lines if len(line) < width), key=len)


@pytest.mark.parametrize("pane", PANE_ROWS)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_from_80_columns_every_pane_ends_its_own_keys_with_help_quit_and_next_pane(pane: str, glyphs: Glyphs) -> None:
    keys = PANE_ROWS[pane].load().KEYS
    for width in (80, 100, 120, 200):
        text = text_of(key_line(keys, width, glyphs))
        first, does = keys[0]
        assert text.startswith(f" {glyphs.say(first)} {glyphs.say(does)}   ")
        assert "   ? help   q quit   > next tab " in text


@pytest.mark.parametrize("width", range(40, 80, 3))
def test_help_and_other_views_are_shown_on_a_narrow_screen(width: int) -> None:
    for pane in (LabPane, CapturePane, ClaimsPane):
        for glyphs in (UNICODE, ASCII):
            text = text_of(key_line(pane.KEYS, width, glyphs))
            assert "? help" in text
            assert "v view" in text
            first, does = pane.KEYS[0]
            assert f"{glyphs.say(first)} {glyphs.say(does)}" in text
