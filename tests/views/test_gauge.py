"""The saturation gauge: its bars, its marks and its words."""

import math
from dataclasses import replace

from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.theory.prediction import ratio_given, status_given
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.gauge import END, bar, cell_of, gauge_lines, threshold_note, zone_line
from attn_tui.tui.views.results.table import Contents, with_theory
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


def contents_of(p: Parameters) -> Contents:
    measured = run(p)
    return with_theory(measured, theory_of(measured))


CONTENTS = [contents_of(p) for p in SETTINGS]


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [24, 40, 58, 88, 164])
def test_every_line_has_the_width_and_says_the_status(width: int, glyphs: Glyphs) -> None:
    for contents in CONTENTS:
        for height in (0, 1, 2, 3):
            lines = gauge_lines(contents, width, height, glyphs)
            assert len(lines) == height
            assert {line_width(line) for line in lines} <= {width}
        texts = texts_of(gauge_lines(contents, width, 3, glyphs))
        assert "".join(texts).isascii() or not glyphs.ascii
        for index, (text, column, letter) in enumerate(zip(texts, contents.columns, "AB", strict=False)):
            word = status_given(contents.theory[index].saturation, column.measured)
            assert text.startswith(f" {letter} ")
            assert word is None or word in text


@given(ratio=st.floats(0, 5000), cells=st.integers(4, 100))
def test_a_bar_ends_in_a_point_whose_place_is_the_logarithm_of_the_ratio(ratio: float, cells: int) -> None:
    text = text_of(tuple(bar(ratio, cells, "scaled", UNICODE)))
    assert len(text) == cells
    points = [at for at, sign in enumerate(text) if sign in "●◂▸"]
    assert len(points) == (ratio > 0)
    if ratio > 0:
        share = min(max(0.5 + math.log(ratio) / math.log(END) / 2, 0), 1)
        assert abs(points[0] - share * cells) <= 1
        assert (text[points[0]] == "●") == (1 / END <= ratio <= END)
        assert (text[cell_of(1, cells)] == "│") == (points[0] != cell_of(1, cells))


def test_the_mark_is_at_1_in_the_middle_and_the_zones_are_in_order() -> None:
    for cells in (12, 30, 50, 120):
        assert cell_of(1, cells) == cells // 2
        line = zone_line(cells, UNICODE)
        assert len(line) == cells
        assert line[cell_of(1, cells)] == "1"
        words = [word for word in line.split() if word.isalpha()]
        assert words == [word for word in ("uniform", "healthy", "saturated") if word in words]
    assert zone_line(60, UNICODE).split() == ["uniform", "healthy", "1", "saturated", "50"]


def test_where_softmax_saturates_stands_beside_the_status_if_there_is_room() -> None:
    wide, narrow = (texts_of(gauge_lines(CONTENTS[0], width, 2, UNICODE)) for width in (100, 50))
    assert "saturated from d_k 10" in wide[0]
    assert "healthy; never saturated" in wide[1]
    assert "10" not in narrow[0]


def test_a_ratio_below_1_is_never_shown_as_1() -> None:
    columns = [
        replace(column, measured={**column.measured, "saturation": Estimate(0.9999, 0.0)})
        for column in CONTENTS[0].columns
    ]
    assert all("0.999 " in text for text in texts_of(gauge_lines(Contents(columns), 80, 2, UNICODE)))


def test_the_ratio_is_the_exact_one_where_it_is_known() -> None:
    for contents in CONTENTS[:1]:
        (a, b), exact = contents.columns, contents.theory
        assert (
            ratio_given(exact[0].saturation, a.measured) == exact[0].saturation.ratio if exact[0].saturation else None
        )
        assert ratio_given(None, b.measured) == b.measured["saturation"].value
    assert ratio_given(None, {}) is None


def test_the_note_says_what_1_is() -> None:
    assert threshold_note(3.115, UNICODE) == "σ of logits in a row over √(2 ln n) = 3.12"
    assert threshold_note(None, ASCII).isascii()
