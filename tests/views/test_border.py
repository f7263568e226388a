"""The border of a region."""

import pytest
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, Thumb, bottom_line, line_width, side, top_line
from line_texts import text_of

TITLE: Line = (("entropy", "heading"), (" over d_k", "dim"))
NOTE: Line = (("128 keys", "dim"),)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [0, 1, 2, 3, 6, 7, 12, 30, 80])
def test_both_sides_fill_their_width(width: int, glyphs: Glyphs) -> None:
    for left, right in ((True, True), (False, True), (False, False)):
        assert line_width(top_line(TITLE, NOTE, width, "frame", glyphs, left, right)) == width
    assert line_width(bottom_line(NOTE, width, "frame", glyphs)) == width
    assert glyphs is UNICODE or text_of(top_line(TITLE, NOTE, width, "lit", glyphs)).isascii()


def test_title_and_note_stand_in_the_upper_side_as_far_as_they_fit() -> None:
    assert text_of(top_line(TITLE, NOTE, 40, "frame", UNICODE)) == "╭─ entropy over d_k ──────── 128 keys ─╮"
    assert text_of(top_line(TITLE, NOTE, 32, "frame", UNICODE)) == "╭─ entropy over d_k ───────────╮"
    assert text_of(top_line(TITLE, NOTE, 16, "frame", UNICODE)) == "╭─ entropy o… ─╮"
    assert text_of(top_line(TITLE, NOTE, 40, "frame", UNICODE, left=False)).startswith(" ─ entropy")
    assert text_of(top_line((), (), 8, "frame", ASCII)) == "+------+"


def test_focus_lights_the_border_and_the_title() -> None:
    assert {role for _, role in top_line(TITLE, NOTE, 40, "lit", UNICODE)} == {"lit", "dim"}
    assert {role for _, role in top_line(TITLE, NOTE, 40, "frame", UNICODE)} == {"frame", "title", "dim"}


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
