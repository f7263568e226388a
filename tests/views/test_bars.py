"""The top bar, the key bar, and the border of a region."""

from dataclasses import replace

import pytest
from attn_tui.core.models import MODEL_WIDTHS
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.catalogue import PANES as PANE_ROWS
from attn_tui.tui.panes.catalogue import TABS
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.views.bars import key_line, parameters_status, progress_status, top_line, typing_status
from attn_tui.tui.views.fields.entry import FieldEntry
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, Thumb, bottom_line, line_width, side
from attn_tui.tui.views.lines import top_line as upper_side
from line_texts import text_of, texts_of

PANES = ("Lab", "Capture")
BERT = Parameters(d_k=64)


def test_the_active_pane_is_highlighted_and_80_columns_show_all_tabs() -> None:
    for active in PANES:
        line = top_line(PANES, active, [], 80, UNICODE)
        assert [text.strip() for text, role in line if role == "accent"] == [active]
    line = text_of(top_line(tuple(TABS), "Lab", parameters_status(replace(BERT, d_k=16384), UNICODE), 80, UNICODE))
    assert [word for word in line.split() if word in TABS] == [*TABS]
    assert line.endswith(" d_k 16384 ")
    assert text_of(typing_status(FieldEntry("d_k", "163840", Parameters(), Parameters()), UNICODE)[-1]) == "3840_"
    assert "as in" not in "".join(text_of(line) for line in parameters_status(replace(BERT, d_k=65), UNICODE))


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
    for pane in (LabPane, CapturePane, LearnPane):
        for glyphs in (UNICODE, ASCII):
            text = text_of(key_line(pane.KEYS, width, glyphs))
            assert "? help" in text
            assert "v view" in text or "v numbers" in text
            first, does = pane.KEYS[0]
            assert f"{glyphs.say(first)} {glyphs.say(does)}" in text


TITLE: Line = (("entropy", "heading"), (" over d_k", "dim"))
NOTE: Line = (("128 keys", "dim"),)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [0, 1, 2, 3, 6, 7, 12, 30, 80])
def test_both_sides_fill_their_width(width: int, glyphs: Glyphs) -> None:
    for left, right in ((True, True), (False, True), (False, False)):
        assert line_width(upper_side(TITLE, NOTE, width, "frame", glyphs, left, right)) == width
    assert line_width(bottom_line(NOTE, width, "frame", glyphs)) == width
    assert glyphs is UNICODE or text_of(upper_side(TITLE, NOTE, width, "lit", glyphs)).isascii()


def test_title_and_note_stand_in_the_upper_side_and_focus_lights_it() -> None:
    assert text_of(upper_side(TITLE, NOTE, 40, "frame", UNICODE)) == "╭─ entropy over d_k ──────── 128 keys ─╮"
    assert text_of(upper_side(TITLE, NOTE, 32, "frame", UNICODE)) == "╭─ entropy over d_k ───────────╮"
    assert text_of(upper_side(TITLE, NOTE, 16, "frame", UNICODE)) == "╭─ entropy o… ─╮"
    assert text_of(upper_side(TITLE, NOTE, 40, "frame", UNICODE, left=False)).startswith("── entropy")
    assert text_of(upper_side((), (), 8, "frame", ASCII)) == "+------+"
    assert {role for _, role in upper_side(TITLE, NOTE, 40, "lit", UNICODE)} == {"lit", "dim"}
    assert {role for _, role in upper_side(TITLE, NOTE, 40, "frame", UNICODE)} == {"frame", "title", "dim"}


def test_the_thumb_shows_which_part_of_a_text_is_seen() -> None:
    assert Thumb(0, 10, 10).rows(10) == range(0)
    assert Thumb(0, 10, 20).rows(10) == range(5)
    assert Thumb(10, 10, 20).rows(10) == range(5, 10)
    assert Thumb(500, 10, 1000).rows(10) == range(5, 6)
    starts = [Thumb(first, 10, 100).rows(10).start for first in range(91)]
    assert starts == sorted(starts)
    assert (starts[0], starts[-1]) == (0, 9)
    assert text_of(side(2, "frame", UNICODE, thumb=True)) == " ┃"
    assert text_of(side(2, "frame", UNICODE, thumb=False, at_left=True)) == "│ "
