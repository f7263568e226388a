"""Points, error bars, exact curves and a cursor on a pair of axes."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, Role, line_width
from attn_tui.tui.views.plots.axes import Axis, axis_over, tick_labels
from attn_tui.tui.views.plots.plot import Drawing, Mark, Plot, Point, Series, draw, with_cursor
from cases import for_each, present
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from line_texts import text_of, texts_of

both = st.sampled_from([UNICODE, ASCII])
numbers = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-6, 1e6)
widths, heights = st.integers(1, 130), st.integers(1, 40)
d_ks = st.integers(1, 4096)
stderrs = st.none() | st.floats(0, 1e6)
X = Axis(1, 4096, 2)


def inside(drawing: Drawing, lines: Sequence[Line] | None = None) -> list[str]:
    """Return the text between the axes."""
    at = drawing.at
    return [text_of(line)[at.margin : at.margin + at.columns] for line in (lines or drawing.lines)[: at.rows]]


def where(rows: Sequence[str], sign: str) -> list[tuple[int, int]]:
    return [(row, column) for row, text in enumerate(rows) for column, found in enumerate(text) if found == sign]


def one(points: Sequence[Point] = (), exact: Sequence[tuple[float, float]] = (), mark: str = "●") -> Series:
    return Series("unscaled", "thin_unscaled", mark, points, exact)


@st.composite
def plots(draw_: st.DrawFn) -> Plot:
    """Draw a plot over d_k, whose values may lie outside its axes."""
    values = draw_(st.lists(numbers, min_size=1, max_size=8))
    logarithmic = draw_(st.booleans()) and all(value > 1e-6 for value in values)
    y = axis_over(values, 10 if logarithmic else 0)
    looks: list[tuple[Role, Role, str]] = [("unscaled", "thin_unscaled", "o"), ("scaled", "thin_scaled", "x")]
    series = [
        Series(
            role,
            thin,
            mark,
            [
                Point(
                    draw_(d_ks),
                    draw_(st.sampled_from(values)),
                    draw_(st.none() | st.floats(0, 1e6)),
                    draw_(st.booleans()),
                )
                for _ in range(draw_(st.integers(0, 6)))
            ],
            sorted(draw_(st.dictionaries(st.integers(1, 9000), numbers, max_size=5)).items()),
        )
        for role, thin, mark in looks
    ]
    marks = [Mark(draw_(d_ks), "softmax saturates", "dim")] if draw_(st.booleans()) else []
    return Plot(X, y, series, draw_(st.sampled_from(["", " %"])), marks)


# Axes


@given(values=st.lists(numbers, min_size=1, max_size=10))
def test_an_axis_contains_its_values(values: list[float]) -> None:
    axis = axis_over(values)
    slack = 1e-9 * (axis.high - axis.low)
    assert axis.low < axis.high
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack


@given(values=st.lists(positive, min_size=1, max_size=10), base=st.sampled_from([2, 10]))
def test_a_logarithmic_axis_contains_its_values_and_has_round_ends(values: list[float], base: int) -> None:
    axis = axis_over(values, base)
    assert axis.low * (1 - 1e-8) <= min(values)
    assert max(values) <= axis.high * (1 + 1e-8)
    for end in (axis.low, axis.high):
        part = end / float(base) ** math.floor(math.log(end, base) + 1e-9)
        assert round(part, 9) in ((1, 2, 5, 10) if base == 10 else (1, 2))


@given(low=st.floats(0.71, 0.999), high=st.floats(0, 1))
def test_an_axis_starts_at_0_if_that_is_near(low: float, high: float) -> None:
    assert axis_over([high * 0.5, 1.0]).low == 0
    assert axis_over([low, 1.0]).low > 0


@given(value=positive, base=st.sampled_from([0, 2, 10]))
def test_the_value_at_a_position_is_the_inverse_of_the_position(value: float, base: int) -> None:
    axis = Axis(1e-3, 1e4, base)
    place = present(axis.place(value))
    assert axis.value(place) == pytest.approx(value)


def test_values_of_0_and_below_have_no_position_on_a_logarithmic_axis() -> None:
    assert Axis(1, 100, 10).place(0) is None
    assert Axis(1, 100, 10).place(-1) is None


@given(values=st.lists(numbers, min_size=2, max_size=5), most=st.integers(1, 30))
def test_ticks_are_round_and_evenly_spaced_within_the_axis(values: list[float], most: int) -> None:
    assume(max(values) - min(values) > 1e-3)
    axis = axis_over(values)
    ticks = axis.ticks(most)
    assert 1 <= len(ticks) <= most
    size = axis.high - axis.low
    assert all(axis.low - 1e-9 * size <= tick <= axis.high + 1e-9 * size for tick in ticks)
    steps = [after - before for before, after in pairwise(ticks)]
    assert all(step == pytest.approx(steps[0]) for step in steps)
    if steps:
        mantissa = steps[0] / 10.0 ** math.floor(math.log10(steps[0]) + 1e-9)
        assert min(abs(mantissa - round_) for round_ in (1, 2, 5)) < 1e-6


@for_each(
    ("most", "ticks"),
    [
        (13, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]),
        (12, [1, 4, 16, 64, 256, 1024, 4096]),
        (6, [1, 8, 64, 512, 4096]),
        (4, [1, 16, 256, 4096]),
        (3, [1, 32, 1024]),
        (2, [1, 128]),
        (1, [1]),
    ],
)
def test_ticks_over_d_k_are_powers_of_two(most: int, ticks: list[float]) -> None:
    assert X.ticks(most) == pytest.approx(ticks)


@given(low=st.integers(-5, 3), decades=st.integers(1, 8), most=st.integers(1, 30))
def test_logarithmic_ticks_are_powers_of_ten_twos_or_fives(low: int, decades: int, most: int) -> None:
    ticks = Axis(10.0**low, 10.0 ** (low + decades), 10).ticks(most)
    assert 1 <= len(ticks) <= most
    for tick in ticks:
        assert round(tick / 10.0 ** math.floor(math.log10(tick) + 1e-9), 6) in (1, 2, 5)


@for_each(
    ("axis", "most", "labels"),
    [
        (Axis(0, 5), 6, ["0", "1", "2", "3", "4", "5"]),
        (Axis(0, 1), 5, ["0.0", "0.5", "1.0"]),
        (Axis(-0.02, 0.02), 5, ["−0.02", "−0.01", "0.00", "0.01", "0.02"]),
        (Axis(0, 0.0004), 5, ["0", "10⁻⁴", "2·10⁻⁴", "3·10⁻⁴", "4·10⁻⁴"]),
        (Axis(0, 2e6), 3, ["0", "10⁶", "2·10⁶"]),
        (Axis(0.5, 5000, 10), 4, ["1", "10", "100", "1000"]),
        (Axis(0.01, 1, 10), 7, ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]),
        (Axis(1e-6, 1e6, 10), 4, ["10⁻⁴", "1", "10⁴"]),
    ],
)
def test_labels_have_enough_digits_to_distinguish_the_ticks(axis: Axis, most: int, labels: list[str]) -> None:
    assert tick_labels(axis.ticks(most), axis, UNICODE) == labels


@given(values=st.lists(numbers, min_size=2, max_size=5), most=st.integers(2, 12), base=st.sampled_from([0, 10]))
@example(values=[0.998046875, 0.997], most=3, base=0)
@example(values=[0.96875, 0.9921875], most=2, base=0)
@example(values=[-154621.0, -154626.0], most=2, base=0)
def test_labels_differ_and_equal_their_values(values: list[float], most: int, base: int) -> None:
    assume(max(values) - min(values) > 1e-3)
    assume(not base or min(values) > 1e-6)
    axis = axis_over(values, base)
    ticks = axis.ticks(most)
    labels = tick_labels(ticks, axis, ASCII)
    assert len(set(labels)) == len(labels)
    for label, tick in zip(labels, ticks, strict=True):
        assert float(label) == pytest.approx(tick, rel=2e-6, abs=1e-9 * (axis.high - axis.low))


# The plot


@settings(deadline=None)
@given(plot=plots(), width=widths, height=heights, glyphs=both, cursor=d_ks)
def test_a_plot_has_exactly_its_height_and_width(
    plot: Plot, width: int, height: int, glyphs: Glyphs, cursor: int
) -> None:
    drawing = draw(plot, width, height, glyphs)
    here = [(series, Point(cursor, plot.y.value(0.5), 1.0)) for series in plot.series]
    for lines in (drawing.lines, with_cursor(drawing, cursor, here, glyphs)):
        assert len(lines) == height
        assert {line_width(line) for line in lines} == {width}
        if glyphs.ascii:
            assert all(text.isascii() for text in texts_of(lines))


@given(x=d_ks, part=st.floats(0, 1), width=st.integers(30, 120), height=st.integers(5, 40), glyphs=both)
def test_a_point_is_drawn_at_its_value(x: int, part: float, width: int, height: int, glyphs: Glyphs) -> None:
    y = Axis(-3, 7)
    drawing = draw(Plot(X, y, [one([Point(x, y.value(part))], mark="P")]), width, height, glyphs)
    at = drawing.at
    [(row, column)] = where(inside(drawing), "P")
    assert abs(column - math.log2(x) / 12 * (at.columns - 1)) <= 0.5 + 1e-9
    assert abs((at.rows - 1 - row) - part * (at.rows - 1)) <= 0.5 + 1e-9


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_ticks_are_beside_their_values(glyphs: Glyphs) -> None:
    y = Axis(0, 5)
    points = [Point(2.0**n, 0.0) for n in range(13)] + [Point(1, value) for value in range(6)]
    drawing = draw(Plot(X, y, [one(points, mark="P")], " %"), 100, 18, glyphs)
    rows, at = texts_of(drawing.lines), drawing.at
    beside = {row: text[: at.margin - 1].strip() for row, text in enumerate(rows) if text[at.margin] == "P"}
    assert list(beside.values()) == ["5 %", "4 %", "3 %", "2 %", "1 %", "0 %"]
    assert all(rows[row][at.margin - 1] == glyphs.frame[1] for row in beside)
    feet = [at.margin + column for _, column in where(inside(drawing)[-1:], "P")]
    assert [rows[-2][column] for column in feet] == [glyphs.tick] * 13
    assert rows[-1].split() == [str(2**n) for n in range(13)]
    ends = [rows[-1].index(f" {2**n}") + 1 for n in range(12)]
    assert all(start <= column <= start + 4 for start, column in zip(ends, feet, strict=False))


@given(x=d_ks, width=st.integers(30, 120), glyphs=both)
def test_the_column_of_a_point_gives_its_x(x: int, width: int, glyphs: Glyphs) -> None:
    drawing = draw(Plot(X, Axis(0, 1), [one([Point(x, 0.5)], mark="P")]), width, 9, glyphs)
    [(_, column)] = where(inside(drawing), "P")
    found = drawing.at.x_of(drawing.at.margin + column)
    half = 4096 ** (0.51 / (drawing.at.columns - 1))
    assert x / half <= found <= x * half


@given(stderr=st.floats(0.01, 3), width=st.integers(30, 60), height=st.integers(6, 40))
def test_an_error_bar_extends_one_standard_error_up_and_down(stderr: float, width: int, height: int) -> None:
    drawing = draw(Plot(X, Axis(-5, 5), [one([Point(64, 0.0, stderr)], mark="P")]), width, height, UNICODE)
    rows = inside(drawing)
    [(middle, column)] = where(rows, "P")
    upper = present(drawing.at.down(stderr))
    ends = {"│": (0, 1), "╵": (0, 0.5), "╷": (0.5, 1)}
    bar = [
        (row + ends[text[column]][0], row + ends[text[column]][1])
        for row, text in enumerate(rows)
        if text[column] in ends
    ]
    above, below = [top for top, _ in bar if top < middle], [bottom for _, bottom in bar if bottom > middle + 1]
    lower = drawing.at.rows - upper  # the bar is symmetric about 0, and so is the axis
    assert 0 <= upper - min(above, default=middle) < (0.5 if above else 1.01)
    assert 0 <= max(below, default=middle + 1) - lower <= (0.5 if below else 1.01)


def test_an_error_bar_below_0_reaches_a_logarithmic_axis() -> None:
    drawing = draw(Plot(X, Axis(0.1, 100, 10), [one([Point(64, 10.0, 20.0)])]), 60, 12, UNICODE)
    rows = inside(drawing)
    [(row, column)] = where(rows, "●")
    assert all(text[column] == "│" for text in rows[row + 1 :])


@pytest.mark.slow
@settings(deadline=None)
@given(power=st.floats(-1, 1), height=st.integers(8, 40))
def test_a_curve_passes_through_its_values(power: float, height: int) -> None:
    exact = [(float(x), x**power) for x in range(1, 4097)]
    drawing = draw(Plot(X, Axis(4096**-1, 4096, 10), [one((), exact)]), 100, height, UNICODE)
    rows, at = inside(drawing), drawing.at
    for column in range(1, at.columns - 1):
        found = [row for row in range(at.rows) if 0x2800 < ord(rows[row][column]) < 0x2900]
        level = present(at.down(at.x_of(at.margin + column) ** power))
        assert any(row - 0.51 <= level <= row + 1.51 for row in found)


@settings(deadline=None)
@given(plot=plots(), width=st.integers(20, 100), height=st.integers(4, 30))
def test_a_curve_has_no_gaps_and_reaches_its_ends(plot: Plot, width: int, height: int) -> None:
    exact = [(1.0, plot.y.low), (4096.0, plot.y.high)]
    rows = inside(draw(Plot(X, plot.y, [one((), exact)]), width, height, UNICODE))
    crossed = {row for row, text in enumerate(rows) if any(0x2800 < ord(sign) < 0x2900 for sign in text)}
    assert crossed == set(range(len(rows)))


@pytest.mark.parametrize("high", [1, 5, 30, 1000])
def test_every_whole_number_on_a_short_x_axis_has_one_label(high: int) -> None:
    drawing = draw(Plot(Axis(0, high), Axis(0, 1), [one([Point(0, 0.5)])]), 130, 6, UNICODE)
    axis, words = texts_of(drawing.lines[-2:])
    labels = [int(word) for word in words.split()]
    assert labels == sorted(set(labels))
    assert {labels[0], labels[-1]} == {0, high}
    assert all(axis[(word.start() + word.end() - 1) // 2] == "┬" for word in [*re.finditer(r"\d+", words)][:-1])


def test_curves_that_share_a_cell_share_its_dots() -> None:
    exact = [(1.0, 0.0), (4096.0, 1.0)]
    crossing = [one((), exact), one((), [(1.0, 1.0), (4096.0, 0.0)])]
    alone = inside(draw(Plot(X, Axis(0, 1), crossing[:1]), 43, 7, UNICODE))
    together = inside(draw(Plot(X, Axis(0, 1), crossing), 43, 7, UNICODE))
    for before, after in zip("".join(alone), "".join(together), strict=True):
        if before != " ":
            assert (ord(before) & ord(after)) == ord(before)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_points_of_two_series_share_a_sign_and_one_far_from_its_curve_is_marked(glyphs: Glyphs) -> None:
    series = [one([Point(1, 0.5), Point(64, 0.5)], mark=glyphs.marks[0]), one([Point(64, 0.5)], mark=glyphs.marks[1])]
    text = "".join(inside(draw(Plot(X, Axis(0, 1), series), 60, 9, glyphs)))
    assert [text.count(sign) for sign in glyphs.marks] == [1, 0, 1]
    drawing = draw(Plot(X, Axis(0, 1), [one([Point(64, 0.5, 0.01, far=True)])]), 60, 9, glyphs)
    assert len(where(inside(drawing), "!")) == 1
    assert ("!", "alert") in [span for line in drawing.lines for span in line]


@settings(deadline=None)
@given(plot=plots(), cursor=d_ks, width=st.integers(30, 120), height=st.integers(5, 40), glyphs=both)
def test_the_cursor_hides_nothing_and_is_drawn_at_its_d_k(
    plot: Plot, cursor: int, width: int, height: int, glyphs: Glyphs
) -> None:
    drawing = draw(plot, width, height, glyphs)
    at = drawing.at
    assume(at.columns > 1)
    before, after = texts_of(drawing.lines), texts_of(with_cursor(drawing, cursor, (), glyphs))
    column = at.margin + math.floor(math.log2(cursor) / 12 * (at.columns - 1) + 0.5)
    for row, (old, new) in enumerate(zip(before, after, strict=True)):
        changed = [place for place in range(width) if old[place] != new[place]]
        assert changed in ([], [column])
        if row < at.rows and changed:
            assert old[column] in " " + glyphs.uprights
            assert new[column] == glyphs.uprights[1]
    assert after[at.rows][column] == glyphs.foot


@pytest.mark.parametrize(("cursor", "sign"), [(0.5, "◂"), (8192.0, "▸")])
def test_an_arrow_points_to_a_cursor_beyond_the_axis(cursor: float, sign: str) -> None:
    drawing = draw(Plot(X, Axis(0, 1)), 60, 9, UNICODE)
    lines = texts_of(with_cursor(drawing, cursor, (), UNICODE))
    assert lines[:-2] == texts_of(drawing.lines)[:-2]
    assert sign in lines[-2]


def test_a_point_shown_only_at_the_cursor_has_its_error_bar() -> None:
    series = one(mark="P")
    drawing = draw(Plot(X, Axis(-5, 5), [series]), 60, 21, UNICODE)
    rows = inside(drawing, with_cursor(drawing, 100, [(series, Point(100, 0.0, 2.0))], UNICODE))
    [(row, column)] = where(rows, "P")
    lines = with_cursor(drawing, 100, [(series, Point(100, 0.0, 2.0))], UNICODE)
    bar = [y for y, line in enumerate(lines) if ("│", "unscaled") in line]
    assert row - 1 in bar
    assert row + 1 in bar
    assert all(text[column] != " " for text in rows)


@given(x=d_ks, cursor=d_ks, width=st.integers(60, 120))
def test_the_words_of_a_mark_are_whole(x: int, cursor: int, width: int) -> None:
    points = [Point(2.0**n, n / 12, 0.05) for n in range(13)]
    drawing = draw(Plot(X, Axis(0, 1), [one(points)], "", [Mark(x, "softmax saturates", "dim")]), width, 12, UNICODE)
    text = "\n".join(inside(drawing, with_cursor(drawing, cursor, (), UNICODE)))
    assert text.count("●") == len(points)
    assert re.search(r"(?m)(^|[ ┊│])softmax saturates([ ┊│]|$)", text)


def test_a_point_at_the_cursor_leaves_no_half_of_a_wide_character() -> None:
    glyphs, series = IN_LANGUAGE["zh"], one(mark="P")
    drawing = draw(Plot(X, Axis(0, 1), [series], "", [Mark(4, "softmax 饱和处", "dim")]), 60, 12, glyphs)
    for column in range(drawing.at.columns):
        x = drawing.at.x_of(drawing.at.margin + column)
        assert "softmax 饱和处" in text_of(with_cursor(drawing, x, (), glyphs)[0])
        line = with_cursor(drawing, x, [(series, Point(x, 1.0))], glyphs)[0]
        assert line_width(line) == 60
        assert line_width(((text_of(line).partition("P")[0], "text"),)) == drawing.at.margin + column


@pytest.mark.parametrize("stderr", [None, 0.0, 2.0])
def test_points_at_the_cursor_share_a_sign_only_where_they_share_a_cell(stderr: float | None) -> None:
    series = [one(mark=mark) for mark in UNICODE.marks[:2]]
    drawing = draw(Plot(X, Axis(-5, 5), series), 60, 21, UNICODE)
    apart = list(zip(series, [Point(100, 4.0, stderr), Point(100, -4.0, stderr)], strict=True))
    together = [(each, Point(100, 1.0, stderr)) for each in series]
    for here, signs in ((apart, [1, 1, 0]), (together, [0, 0, 1])):
        text = "".join(inside(drawing, with_cursor(drawing, 100, here, UNICODE)))
        assert [text.count(sign) for sign in UNICODE.marks] == signs
