"""The saturation gauge, the bar of shares, the headline and the rule of a region."""

import math
from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.theory.prediction import ratio_given, status_given
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.page import headline_lines, large, picture_columns, picture_line, section_line
from attn_tui.tui.views.plots.dots import ENDS, dot_line, multiplier_axis, saturation_axis, zone_line
from attn_tui.tui.views.plots.lab_pictures import gauge_lines, gauge_note, logit_lines, share_bar
from attn_tui.tui.views.results.table import with_theory
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of, texts_of

ASKED = Parameters(d_k=64, n_keys=128, n_queries=16, batch=4)
SETTINGS = [
    ASKED,
    replace(ASKED, against="d_k,precision=bfloat16"),
    replace(ASKED, scale="rms_sqrt_d_k", against="none"),
    replace(ASKED, softcap=2.0),
    replace(ASKED, n_keys=1),
]


CONTENTS = [with_theory(measured, theory_of(measured)) for measured in map(run, SETTINGS)]


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [40, 58, 88, 164])
def test_every_line_says_the_status(width: int, glyphs: Glyphs) -> None:
    for contents in CONTENTS:
        lines = gauge_lines(contents, picture_columns(width), glyphs)
        texts = texts_of(lines)
        assert {line_width(line) for line in lines} == {width}
        assert "".join(texts).isascii() or not glyphs.ascii
        for index, (text, column) in enumerate(zip(texts, contents.columns, strict=False)):
            word = status_given(contents.theory[index].saturation, column.measured)
            assert word is None or text.rstrip().endswith(word)


@given(ratio=st.floats(0, 5000), cells=st.integers(4, 100))
def test_a_line_ends_in_a_point_whose_place_is_the_logarithm_of_the_ratio(ratio: float, cells: int) -> None:
    axis, way = saturation_axis(cells), (ENDS[0], ratio) if ratio else None
    text = text_of(dot_line(axis, ratio, 1.0, "scaled", UNICODE, way))
    assert len(text) == cells
    points = [at for at, sign in enumerate(text) if sign in "●◂▸"]
    assert len(points) == (ratio > 0)
    if ratio > 0:
        share = min(max(math.log(ratio / ENDS[0]) / math.log(ENDS[1] / ENDS[0]), 0), 1)
        assert abs(points[0] - share * cells) <= 1
        assert (text[points[0]] == "●") == (ENDS[0] <= ratio <= ENDS[1])
        limit = axis.cell(1.0)
        assert points[0] == limit or text[limit] == ("┿" if points[0] > limit else "│")


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.integers(4, 80))
def test_a_way_leads_from_a_dot_to_a_mark_on_an_axis_that_holds_both(used: float, wanted: float, cells: int) -> None:
    axis = multiplier_axis((used, wanted), cells)
    text = text_of(dot_line(axis, used, wanted, "alert", UNICODE, (used, wanted), upright=("┊", "text")))
    dot, mark = text.index("●"), text.find("┊")
    assert dot == mark or mark < 0 or {*text[min(dot, mark) + 1 : max(dot, mark)]} <= {"━"}
    assert (dot < mark) == (used < wanted) or mark < 0 or abs(dot - mark) <= 1
    assert text.count("·") + text.count("━") + 1 + (mark >= 0) == cells


def test_an_arrow_ends_a_way_on_the_side_to_which_it_leads() -> None:
    axis = saturation_axis(40)
    up = text_of(dot_line(axis, 0.5, 1.0, "text", UNICODE, (0.2, 5.0), arrow=True))
    assert up.index("●") < up.index("┿") < up.index("▸")
    down = text_of(dot_line(axis, 0.5, 1.0, "text", UNICODE, (5.0, 0.2), arrow=True))
    assert down.index("◂") < down.index("●") < down.index("┿")
    assert "━" not in text_of(dot_line(axis, 0.5, 1.0, "text", UNICODE, (0.5, 0.5), arrow=True))


def test_the_zones_are_in_order_around_the_limit() -> None:
    for cells in (12, 30, 50, 120):
        line = zone_line(cells, UNICODE)
        assert len(line) == cells
        assert line[saturation_axis(cells).cell(1.0)] == "│"
        words = [word for word in line.split() if word != "│"]
        assert words == [word for word in ("uniform", "healthy", "saturated", "one-hot") if word in words]
    assert zone_line(60, UNICODE).split() == ["uniform", "healthy", "│", "saturated", "one-hot"]


def test_where_softmax_saturates_is_said_once_if_one_column_crosses_the_limit() -> None:
    assert gauge_note(CONTENTS[0]) == "unscaled saturated from d_k 10 up"
    both = with_theory(measured := run(replace(ASKED, scale="8/d")), theory_of(measured))
    assert gauge_note(both).startswith("unscaled saturated from d_k 10 up · ")
    assert gauge_note(CONTENTS[4]) == ""


def test_the_ratio_is_the_exact_one_where_it_is_known() -> None:
    (a, b), exact = CONTENTS[0].columns, CONTENTS[0].theory
    assert exact[0].saturation is not None
    assert ratio_given(exact[0].saturation, a.measured) == exact[0].saturation.ratio
    assert ratio_given(None, b.measured) == b.measured["saturation"].value
    assert ratio_given(None, {}) is None


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=300), st.integers(0, 200), st.booleans(), st.booleans())
def test_each_piece_ends_where_its_share_does(weights: list[float], room: int, ascii_only: bool, label: bool) -> None:
    total = sum(weights)
    shares = sorted((each / total for each in weights), reverse=True)
    glyphs = ASCII if ascii_only else UNICODE
    text = text_of(share_bar(shares, room, "scaled", glyphs, label=label))
    assert len(text) == room
    assert text.isascii() or not ascii_only
    gaps = [at + 1 for at, sign in enumerate(text) if sign in "▉|"]
    ends = [round(min(math.fsum(shares[: at + 1]), 1.0) * room) for at in range(len(shares))]
    assert {*gaps} <= {*ends}
    tail = len(text) - len(text.rstrip(glyphs.shades[1]))
    assert tail == 0 or room - tail in {0, *ends}


def test_pieces_have_gaps_between_them_and_the_rest_is_shaded() -> None:
    assert share_bar((0.3, 0.25, 0.2, 0.01), 20, "scaled", UNICODE) == (
        ("█████▉████▉███▉", "scaled"),
        ("░" * 5, "dim"),
    )
    assert share_bar((), 4, "scaled", UNICODE) == (("░" * 4, "dim"),)
    assert text_of(share_bar((0.95, 0.05), 40, "unscaled", UNICODE, 0.76)).startswith("█ 76 % ██")


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_number_in_large_digits_begins_at_one_cell_and_grows_to_the_right(glyphs: Glyphs) -> None:
    for tall in (False, True):
        shown = [large(text, tall, glyphs) for text in ("1", "16", "16384", "×0.125", "−%", "?")]
        for digits in shown:
            assert len(digits) == (5 if tall else 3)
            assert len({len(line) for line in digits}) == 1
            assert "".join(digits).isascii() or not glyphs.ascii
        assert all(long.startswith(short) for short, long in zip(shown[1], shown[2], strict=True))
        word: Line = (("words", "text"),)
        lines = headline_lines("d_k", "64", [word] * 4, 80, glyphs, 11, tall=tall, beside=35)
        assert [line_width(line) for line in lines] == [80] * max(4, 5 if tall else 3)
        assert text_of(lines[0])[35:].startswith("words")
        assert text_of(lines[4 if tall else 2]).startswith(" d_k")


def test_a_region_is_a_rule_with_its_title_and_its_note_if_it_fits() -> None:
    line = section_line("logits", "one fixed axis", 60, UNICODE)
    assert text_of(line) == "── logits " + "─" * 32 + " one fixed axis ──"
    assert "axis" not in text_of(section_line("logits", "one fixed axis", 24, UNICODE))


@for_each("width", [40, 50, 72, 80, 100, 120, 200])
def test_pictures_begin_and_end_at_the_same_columns_and_long_names_are_cut(width: int) -> None:
    at = picture_columns(width)
    assert sum(at) == width
    line = text_of(
        picture_line("1/√d_k, bfloat16, correlation 0.25", "scaled", (("█" * 300, "scaled"),), "w", at, UNICODE)
    )
    assert len(line) == width
    assert line.index("█") == at.name
    assert line.rindex("█") == at.name + at.picture - 1
    assert "…" in line[: at.name]


def test_the_share_beyond_the_axis_is_said_whole_or_left_to_the_arrows() -> None:
    columns = run(Parameters(d_k=512, n_keys=32, n_queries=16, batch=2)).columns
    for width in range(40, 91):
        texts = texts_of(logit_lines(columns, picture_columns(width), 2, UNICODE, 8.0))
        said = [text for text in texts if "%" in text]
        assert any(UNICODE.right in text for text in texts)
        assert all(text.rstrip().endswith("% beyond") for text in said), width
        assert said or width < 90
