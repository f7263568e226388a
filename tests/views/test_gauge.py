"""The saturation gauge, and the divided bar of one query's weights."""

import math
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.lab.experiment import row_weights, run
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Estimate, RowWeights
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.theory.prediction import ratio_given, status_given
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.gauge import END, bar, cell_of, gauge_lines, threshold_note, zone_line
from attn_tui.tui.views.plots.weights import pieces, weight_lines
from attn_tui.tui.views.results.table import TableContents, with_theory
from cases import for_each, present
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
@for_each("width", [24, 40, 58, 88, 164])
def test_every_line_says_the_status(width: int, glyphs: Glyphs) -> None:
    for contents in CONTENTS:
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


@for_each(
    ("width", "name", "words"), [(87, 23, 32), (86, 15, 32), (79, 15, 32), (78, 11, 32), (68, 4, 32), (67, 23, 11),
                                 (66, 23, 11), (65, 15, 11), (46, 4, 11), (24, 4, 11)],
)  # fmt: skip
def test_the_bar_has_24_cells_before_names_and_words_have_more(width: int, name: int, words: int) -> None:
    cells = max(width - name - 8 - words, 0)
    zones = text_of(gauge_lines(CONTENTS[0], width, 3, UNICODE)[2])
    assert zones.rstrip() == (" " * name + zone_line(cells, UNICODE)).rstrip()


def test_where_softmax_saturates_stands_beside_the_status_if_there_is_room() -> None:
    wide, narrow = (texts_of(gauge_lines(CONTENTS[0], width, 2, UNICODE)) for width in (100, 50))
    assert "saturated from d_k 10" in wide[0]
    assert "healthy; never saturated" in wide[1]
    assert "10" not in narrow[0]


def test_the_ratio_is_the_exact_one_and_below_1_never_shown_as_1() -> None:
    columns = [
        replace(column, measured={**column.measured, "saturation": Estimate(0.9999, 0.0)})
        for column in CONTENTS[0].columns
    ]
    assert all("0.999 " in text for text in texts_of(gauge_lines(TableContents(columns), 80, 2, UNICODE)))
    for contents in CONTENTS[:1]:
        (a, b), exact = contents.columns, contents.theory
        assert (
            ratio_given(exact[0].saturation, a.measured) == exact[0].saturation.ratio if exact[0].saturation else None
        )
        assert ratio_given(None, b.measured) == b.measured["saturation"].value
    assert ratio_given(None, {}) is None
    assert threshold_note(3.115, UNICODE) == "σ of logits in a row over √(2 ln n) = 3.12"
    assert threshold_note(None, ASCII).isascii()


def row_of(p: Parameters) -> tuple[RowWeights, ...]:
    draws = Draws()
    run(p, draws)
    return row_weights(p, draws)


def test_the_weights_of_a_query_are_those_of_softmax_in_order() -> None:
    a, b = row_of(Parameters(d_k=64, n_keys=16, n_queries=8, batch=4))
    for row in (a, b):
        assert row.keys == len(row.largest) == 16
        assert math.isclose(sum(row.largest), 1, rel_tol=1e-6)
        assert [*row.largest] == sorted(row.largest, reverse=True)
    logits = 8 * np.log(b.largest)  # A multiplies by 1, B by 1/8
    weights = np.exp(logits - logits.max())
    np.testing.assert_allclose(a.largest, weights / weights.sum(), rtol=1e-3, atol=1e-9)


@for_each(
    "change",
    [
        {"mask": "causal"}, {"precision": "float16"}, {"mechanism": "additive"}, {"scale": "rms_sqrt_d_k"},
        {"softcap": 2.0}, {"against": "components=uniform"}, {"correlation": 0.5},
    ],
)  # fmt: skip
def test_the_effective_keys_of_a_query_are_like_those_of_all(change: dict[str, object]) -> None:
    p = Parameters(d_k=16, n_keys=64, n_queries=64, batch=4)
    for name, value in change.items():
        p = p.with_value(name, value)  # pyright: ignore[reportArgumentType]
    for row, column in zip(row_of(p), run(p).columns, strict=True):
        mean = column.measured["effective_keys"].value
        assert mean is not None
        assert mean / 5 < present(row.effective) < 5 * mean


def test_a_query_of_one_key_or_of_nan_has_no_other_weights() -> None:
    assert row_of(Parameters(n_keys=1, n_queries=2, batch=2))[0] == RowWeights(1, (1.0,), 1.0)
    p = Parameters(d_k=256, n_keys=64, n_queries=64, batch=2, std_q=100.0, std_k=100.0, precision="float16")
    assert row_of(p.with_value("arithmetic", "eager"))[0].effective is None


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=300), st.integers(0, 200), st.booleans())
def test_each_piece_ends_where_its_share_does(weights: list[float], room: int, ascii_only: bool) -> None:
    total = sum(weights)
    row = RowWeights(len(weights), tuple(sorted((each / total for each in weights), reverse=True)), 2.0)
    spans = pieces(row, room, "scaled", ASCII if ascii_only else UNICODE)
    text = text_of(tuple(spans))
    assert len(text) == room
    assert text.isascii() or not ascii_only
    solid = (ASCII if ascii_only else UNICODE).shades[-1]
    first = len(text) - len(text.lstrip(f"{solid} %.<>0123456789"))
    assert first >= round(row.largest[0] * room)


def test_pieces_take_turns_of_two_shades_and_the_rest_a_third() -> None:
    row = RowWeights(9, (0.3, 0.25, 0.2, 0.01), 4.0)
    assert pieces(row, 20, "scaled", UNICODE) == [
        ("█" * 6, "scaled"), ("▒" * 5, "thin_scaled"), ("█" * 4, "scaled"), ("░" * 5, "dim")
    ]  # fmt: skip


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_saturated_query_is_one_piece_and_a_healthy_one_is_many(glyphs: Glyphs) -> None:
    p = Parameters(d_k=256, n_keys=64, n_queries=8, batch=2)
    row = row_of(p)
    for width in (30, 80, 200):
        lines = weight_lines(row, run(p).columns, width, glyphs)
        assert {line_width(line) for line in lines} == {width}
    unscaled, scaled = (text_of(line) for line in lines)
    assert unscaled.count(glyphs.shades[2]) < scaled.count(glyphs.shades[2])
    assert scaled.rstrip().endswith("keys count")
