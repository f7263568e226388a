"""The pictures of the Learn pane: the axis of a guess, and scores as random walks."""

import math
import statistics

import pytest
from attn_tui.core.learning.step import Compare, Unit
from attn_tui.core.learning.walks import CORRELATIONS, D_K, draw_walks
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.guess import guess_lines
from attn_tui.tui.views.plots.walks import walk_lines


def drawn(
    guess: float | None,
    answer: float | None,
    unit: Unit = "number",
    compare: Compare = "ratio",
    width: int = 60,
    glyphs: Glyphs = UNICODE,
) -> list[str]:
    """Return the lines of an axis as texts."""
    return ["".join(text for text, _ in line) for line in guess_lines(guess, answer, unit, compare, width, glyphs)]


def test_an_axis_without_an_answer_is_the_same_for_every_answer_and_has_the_guess() -> None:
    empty, typed = drawn(None, None), drawn(64, None)
    assert len(empty) == len(typed) == 2
    assert "●" not in empty[0]
    assert typed[0].count("●") == 1
    assert empty[1] == typed[1]


def test_equal_ratios_are_equal_distances() -> None:
    places = [drawn(None, answer)[1].index("◆") for answer in (1, 10, 100)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=1)


def test_a_guess_of_zero_is_at_the_left_end_of_a_logarithmic_axis() -> None:
    words, axis, _ = drawn(0, 7.93)
    assert axis.startswith("◂━")
    assert words.startswith("you said 0")


def test_a_guess_that_is_exact_is_one_point() -> None:
    words, axis, _ = drawn(8, 8)
    assert "◈" in axis
    assert "you said" not in words


@pytest.mark.parametrize("answer", [1e-7, 0.004, 1.0, 99.5, 65_536.0, 1e9])
@pytest.mark.parametrize("guess", [None, -5.0, 0.0, 1e-9, 3.0, 64.0, 1e12])
@pytest.mark.parametrize("unit", ["number", "share", "count"])
@pytest.mark.parametrize("compare", ["ratio", "difference"])
def test_an_axis_holds_every_guess_and_answer(
    guess: float | None, answer: float, unit: Unit, compare: Compare
) -> None:
    for width in (8, 34, 72):
        for glyphs in (UNICODE, ASCII, IN_LANGUAGE["zh"]):
            lines = guess_lines(guess, answer, unit, compare, width, glyphs)
            assert len(lines) == 3
            assert line_width(lines[1]) == width
            assert glyphs is not ASCII or all(text.isascii() for line in lines for text, _ in line)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_walks_have_the_mean_and_the_variance_of_scores(correlation: float) -> None:
    count = 4000
    ends = [walk[-1] for walk in draw_walks(count, correlation)]
    mean, variance = correlation * D_K, (1 + correlation**2) * D_K
    assert statistics.fmean(ends) == pytest.approx(mean, abs=4 * math.sqrt(variance / count))
    assert statistics.variance(ends) == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("item", CORRELATIONS)
def test_walks_fill_their_place_and_name_no_end_before_the_answer(item: str) -> None:
    for width, height in ((40, 3), (76, 12), (150, 40)):
        for answered in (False, True):
            for glyphs in (UNICODE, ASCII):
                lines = walk_lines(item, answered, width, height, glyphs)
                assert len(lines) == height
                assert {line_width(line) for line in lines} == {width}
                text = "".join(text for line in lines for text, _ in line)
                assert ("=" in text) == answered
                assert glyphs is not ASCII or text.isascii()
