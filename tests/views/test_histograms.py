"""Pairs of histograms: their bars and their shared axis."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import ComponentLaw, Parameters
from attn_tui.core.statistics.histogram import BinAxis, Histogram
from attn_tui.core.statistics.measurement import HISTOGRAMS, HistogramName
from attn_tui.core.theory.predict import predict, score_curve
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.axes import nice_range
from attn_tui.tui.views.plots.histograms import (
    NAME,
    AxisSpan,
    axis_growth,
    axis_line,
    axis_span,
    bars,
    curve_rows,
    grid_lines,
    halves,
    outside,
    pair_lines,
    trace_rows,
)
from cases import for_each, present
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of, texts_of

ASKED = Parameters(d_k=64, n_keys=32, n_queries=16, batch=4)
COLUMNS = run(ASKED).columns
CURVE = score_curve(ASKED)
CURVES = CURVE, CURVE
LOGITS = [column.histograms["logits"] for column in COLUMNS]

counts_lists = st.lists(st.just(0.0) | st.floats(0.5, 1e7), min_size=1, max_size=40)
heights = st.integers(1, 6)
both = st.sampled_from([UNICODE, ASCII])


def counted(low: float, high: float, counts: Sequence[int], underflow: int = 0, overflow: int = 0) -> Histogram:
    return Histogram(BinAxis(low, high, len(counts)), [*itertools.accumulate([underflow, *counts, overflow])])


# Bars


@given(counts=counts_lists, height=heights, glyphs=both)
def test_bars_fill_their_room_where_there_is_a_count_the_higher_the_larger(
    counts: list[float], height: int, glyphs: Glyphs
) -> None:
    rows = bars(counts, height, glyphs)
    assert [len(row) for row in rows] == [len(counts)] * height
    assert set("".join(rows)) <= set(glyphs.bars)
    columns = zip(*bars(counts, height, glyphs), strict=True)
    assert [any(sign != " " for sign in column) for column in columns] == [count > 0 for count in counts]
    columns = list(zip(*reversed(bars(counts, height, glyphs)), strict=True))
    levels = [sum(glyphs.bars.index(sign) for sign in column) for column in columns]
    drawn = sorted(zip(counts, levels, strict=True))
    assert [level for _, level in drawn] == sorted(levels)
    for column in columns:  # no bar is drawn over a gap
        cells = [glyphs.bars.index(sign) for sign in column]
        assert cells == sorted(cells, reverse=True)


@given(counts=counts_lists.filter(any), height=heights, glyphs=both)
def test_the_largest_count_reaches_the_top(counts: list[float], height: int, glyphs: Glyphs) -> None:
    top = bars(counts, height, glyphs)[0]
    assert top[counts.index(max(counts))] == glyphs.bars[-1]


def test_without_counts_there_are_no_bars() -> None:
    assert bars([0, 0, 0], 2, UNICODE) == ["   ", "   "]
    assert bars([], 1, UNICODE) == [""]


# Axes


@given(low=st.floats(-1e6, 1e6), size=st.floats(1e-3, 1e6))
def test_an_axis_covers_its_data_and_not_much_more(low: float, size: float) -> None:
    nice_low, nice_high = nice_range(low, low + size)
    slack = 1e-9 * max(abs(nice_low), abs(nice_high))
    assert nice_low <= low + slack
    assert nice_high >= low + size - slack
    assert nice_high - nice_low <= 2 * max(size, abs(low + size) * 1e-6) + slack


@pytest.mark.parametrize("d_k", [16, 64, 100, 512, 4096])
def test_an_axis_stays_the_same_for_small_changes(d_k: int) -> None:
    spread = 3.3 * math.sqrt(d_k)
    ranges = {nice_range(-spread * (1 + change / 1000), spread * (1 - change / 1000)) for change in range(-20, 21)}
    assert len(ranges) <= 2, "at most one step within two per cent"


def test_the_axis_of_logits_has_round_ends_and_that_of_entropy_goes_to_ln_n() -> None:
    assert nice_range(-26.7, 25.1) == (-30, 30)
    assert nice_range(-0.31, 0.29) == pytest.approx((-0.4, 0.3))
    assert nice_range(5, 5) == pytest.approx((5, 5), abs=1e-4)
    low, high = nice_range(0, 0)
    assert low <= 0 <= high
    span = axis_span([column.histograms["entropy"] for column in COLUMNS], "entropy", UNICODE)
    assert (span.low, span.high) == pytest.approx((0, math.log(32)))


def test_the_shared_axis_covers_both_histograms() -> None:
    span = axis_span(LOGITS, "logits", UNICODE)
    assert span == axis_span(LOGITS[::-1], "logits", UNICODE)
    for histogram in LOGITS:
        below, through = np.array(histogram.below([span.low, span.high])) / histogram.total
        assert below < 0.002
        assert through > 0.998
    unscaled = axis_span(LOGITS[:1], "logits", UNICODE)
    assert (span.low, span.high) == (unscaled.low, unscaled.high)


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_an_axis_contains_its_labels(name: HistogramName) -> None:
    for glyphs in (UNICODE, ASCII):
        span = axis_span([column.histograms[name] for column in COLUMNS], name, glyphs)
        assert span.low < span.high
        for cells in (14, 20, 40, 90):
            line = axis_line(span, cells, glyphs)
            assert len(line) == cells
            assert line.startswith(span.labels[0])
            assert line.endswith(span.labels[2])
            assert line.isascii() or not glyphs.ascii
        assert span.labels[1] in axis_line(span, 40, glyphs)


@given(cells=st.integers(1, 60), labels=st.tuples(*[st.sampled_from(["0", "−1.5e−3", "2000", "10⁻¹²"])] * 3))
def test_an_axis_has_exactly_its_cells(cells: int, labels: tuple[str, str, str]) -> None:
    assert len(axis_line(AxisSpan(0, 1, labels), cells, UNICODE)) == cells


# Shares outside the axis


def test_the_share_off_the_axis_is_shown_over_the_pair() -> None:
    span = AxisSpan(0, 1, ("0", "", "1"))
    low, high = counted(0, 1, [90, 0], underflow=10), counted(0, 1, [50, 0], overflow=50)
    assert text_of(outside([low, low], span, 40, UNICODE)) == "10 % / 10 % below the axis"
    assert text_of(outside([low, high], span, 40, UNICODE)) == "10 % below, 50 % above the axis"
    assert text_of(outside([low, high], span, 22, UNICODE)) == "10 % below, 50 % above"
    assert dict(outside([low, high], span, 40, UNICODE)).items() >= {("10 %", "unscaled"), ("50 %", "scaled")}
    for all_inside in (counted(0, 1, [5, 5]), counted(0, 1, [0, 0])):
        assert outside([all_inside] * 2, span, 40, UNICODE) == ()
    weights = counted(-12, 0, [1, 0], underflow=3)
    column = replace(COLUMNS[0], histograms={**COLUMNS[0].histograms, "weights": weights})
    title = text_of(pair_lines([column, COLUMNS[1]], "weights", 60, 1, UNICODE)[0])
    assert title.endswith("75 % below the axis")


# Pairs and the grid


@for_each("name", HISTOGRAMS)
@for_each("height", [1, 2, 6])
def test_a_pair_is_a_title_bars_for_each_column_and_an_axis(name: HistogramName, height: int) -> None:
    for width in (27, 44, 90):
        lines = pair_lines(COLUMNS, name, width, height, UNICODE, CURVES)
        assert len(lines) == 2 * height + 2
        assert {line_width(line) for line in lines} == {width}
        words = [text_of(line)[:NAME].strip() for line in lines[1:-1]]
        assert words == [*[""] * (height - 1), "unscaled", *[""] * (height - 1), "scaled"]


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_no_count_is_lost_between_a_histogram_and_its_bars(name: HistogramName) -> None:
    histograms = [column.histograms[name] for column in COLUMNS]
    span = axis_span(histograms, name, UNICODE)
    for histogram in histograms:
        shown = sum(histogram.onto(np.linspace(span.low, span.high, 41)))
        below, through = histogram.below([span.low, span.high])
        assert shown == pytest.approx(through - below)
        if shown < 0.998 * histogram.total:
            assert text_of(outside([histogram, histogram], span, 60, UNICODE)).endswith(" the axis")


@pytest.mark.parametrize(
    ("law", "n_keys"), [("normal", 1), ("normal", 2), *((law, 32) for law in get_args(ComponentLaw))]
)
def test_the_grid_has_exactly_the_width_and_at_most_the_height(law: ComponentLaw, n_keys: int) -> None:
    asked = replace(ASKED, components=law, n_keys=n_keys)
    columns, curve = run(asked).columns, score_curve(asked)
    for width in (58, 71, 94, 175, 176, 200):
        for height in (0, 1, 4, 7, 8, 12, 14, 30, 60):
            for glyphs in (UNICODE, ASCII):
                lines = grid_lines(columns, width, height, glyphs, (curve, curve))
                assert len(lines) <= height
                assert {line_width(line) for line in lines} <= {width}
                if glyphs.ascii:
                    assert all(text_of(line).isascii() for line in lines)


@pytest.mark.parametrize(("width", "titles"), [(58, 2), (131, 2), (132, 3), (176, 4), (200, 4)])
def test_up_to_four_pairs_are_side_by_side_if_they_fit(width: int, titles: int) -> None:
    columns = [
        replace(column, histograms={name: column.histograms[name] for name in HISTOGRAMS}) for column in COLUMNS
    ]
    lines = texts_of(grid_lines(columns, width, 30, UNICODE))
    assert ("row entropy" in lines[0]) == (titles >= 3)
    text = "\n".join(lines)
    assert all(word in text for word in ("logits", "attention weights", "row entropy", "‖J‖_F"))


def test_eight_lines_show_four_pairs_the_gradient_instead_of_the_jacobian() -> None:
    text = "\n".join(text_of(line) for line in grid_lines(COLUMNS, 58, 8, UNICODE))
    assert all(word in text for word in ("logits", "attention weights", "row entropy", "‖∂L/∂q‖"))
    assert "‖J‖_F" not in text
    assert text.count("unscaled") == text.count(" scaled") + text.count("\nscaled") == 4


@pytest.mark.parametrize("change", [{"std_q": 0.0}, {"std_q": 0.0, "std_k": 0.0}, {"d_k": 1}, {"mean_q": 50.0}])
def test_degenerate_scores_can_be_drawn(change: dict[str, float]) -> None:
    asked = replace(ASKED, **change)
    columns, curve = run(asked).columns, score_curve(asked)
    lines = grid_lines(columns, 94, 20, UNICODE, (curve, curve))
    assert {line_width(line) for line in lines} == {94}
    assert "nan" not in "".join(text_of(line) for line in lines)


# The exact law


def has_line(text: str) -> bool:
    return any("⠁" <= sign <= "⣿" for sign in text)


def test_the_exact_law_is_drawn_over_logits_only_and_only_over_tall_bars() -> None:
    assert CURVE is not None
    for name in HISTOGRAMS:
        for height in (1, 3):
            drawn = "".join(text_of(line) for line in pair_lines(COLUMNS, name, 60, height, UNICODE, CURVES))
            assert has_line(drawn) == (name == "logits" and height > 1)
    assert not has_line("".join(text_of(line) for line in pair_lines(COLUMNS, "logits", 60, 3, UNICODE)))
    plain = "".join(text_of(line) for line in pair_lines(COLUMNS, "logits", 60, 3, ASCII, CURVES))
    assert plain.isascii()
    assert "_ exact" in plain


DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # in the left and the right half of a cell, from below


def dots_of(rows: dict[int, dict[int, str]], cells: int, height: int) -> list[list[int]]:
    """The heights of the dots in each half of each cell."""
    found: list[list[int]] = []
    for half in range(2 * cells):
        signs = [(height - 1 - row, line.get(half // 2, chr(0x2800))) for row, line in rows.items()]
        bits = [(4 * above + dot, ord(sign) & DOTS[half % 2][dot]) for above, sign in signs for dot in range(4)]
        found.append(sorted(at for at, bit in bits if bit))
    return found


@given(counts=st.lists(st.floats(1.0, 40.0), min_size=2, max_size=20), height=st.integers(2, 12))
def test_the_exact_law_is_one_line_at_the_tops_of_bars(counts: list[float], height: int) -> None:
    rows = curve_rows([count for count in counts for _ in range(2)], counts, height, UNICODE)
    assert all(0 <= row < height for row in rows)
    dots = dots_of(rows, len(counts), height)
    levels = [min(int(count / max(counts) * height * 4), 4 * height - 1) for count in counts]
    for cell, level in enumerate(levels):
        if dots[2 * cell + 1]:
            assert dots[2 * cell + 1] == [level]
    for before, after in itertools.pairwise(dots):
        if before and after:
            assert min(abs(a - b) for a in before for b in after) <= 1, "a gap in the line"


def test_the_exact_law_has_two_values_a_bar() -> None:
    assert halves([0, 1, 3]) == [0, 0.5, 1, 2, 3]


def test_the_exact_law_leaves_no_hole_in_a_bar_and_stays_within_its_lines() -> None:
    lines = pair_lines(COLUMNS, "logits", 120, 6, UNICODE, CURVES)
    bare = pair_lines(COLUMNS, "logits", 120, 6, UNICODE)
    for line, without in zip(lines[1:-1], bare[1:-1], strict=True):
        roles = [role for text, role in line for _ in text]
        for sign, role in zip(text_of(without), roles, strict=True):
            assert sign != "█" or role in ("unscaled", "scaled", "over_unscaled", "over_scaled")
    assert {*curve_rows([1e9, 1e9, 0.0, 0.0], [1.0, 1.0], 3, UNICODE)} == {0}
    assert curve_rows([1.0, 1.0], [0.0], 3, UNICODE) == {}


# Marks


def test_the_axes_mark_three_standard_deviations_one_over_n_and_ln_n() -> None:
    def axis(name: HistogramName) -> str:
        return text_of(pair_lines(COLUMNS, name, 120, 2, UNICODE)[-1])[NAME:]

    std, mean = (COLUMNS[0].measured[name].value or 0.0 for name in ("logit_std", "logit_mean"))
    span = axis_span(LOGITS, "logits", UNICODE)
    for sign, label in ((-1, "┊−3σ"), (1, "┊+3σ")):
        at = (mean + 3 * sign * std - span.low) / (span.high - span.low) * (120 - NAME)
        assert abs(axis("logits").index(label) - at) <= 1
    assert axis("weights").index("┊1/n") == math.floor((12 - math.log10(32)) / 12 * (120 - NAME))
    assert axis("entropy").endswith("ln n 3.47")
    assert "┊" not in axis("jacobian_norm")


@pytest.mark.parametrize("cells", [33, 34, 40, 60])
def test_both_marks_of_three_standard_deviations_fit_beside_the_numbers_of_the_ends(cells: int) -> None:
    span = AxisSpan(-30, 30, ("−30", "0", "30"))
    line = axis_line(span, cells, UNICODE, [(-24.1, "−3σ"), (24.1, "+3σ")])
    assert len(line) == cells
    for sign, label in ((-1, "┊−3σ"), (1, "+3σ┊")):
        at = line.index(label) + label.index("┊")
        assert at == math.floor((24.1 * sign + 30) / 60 * cells)
    assert [line.startswith("−30"), line.endswith(" 30")] == [True, True]


@for_each("cells", range(8, 33))
def test_never_only_one_of_both_marks_is_shown(cells: int) -> None:
    line = axis_line(AxisSpan(-30, 30, ("−30", "0", "30")), cells, UNICODE, [(-24.1, "−3σ"), (24.1, "+3σ")])
    assert ("−3σ" in line) == ("+3σ" in line)


@pytest.mark.parametrize("rule", ["none", "file", "sqrt_d_k"])
def test_the_word_before_the_bars_names_the_column(rule: str) -> None:
    word = {"none": "unscaled", "file": "file"}.get(rule, "scaled")
    lines = pair_lines([COLUMNS[0], replace(COLUMNS[1], rule=rule)], "entropy", 60, 1, UNICODE)
    assert text_of(lines[2]).startswith(word.ljust(NAME))


def test_a_row_of_fewer_pairs_fills_the_width_too() -> None:
    lines = [line.rstrip() for line in texts_of(grid_lines(COLUMNS, 160, 40, UNICODE))]
    axes = [line for line in lines if "───" in line]
    assert len(axes) == 2
    assert {len(line) for line in axes} <= {159, 160}


def test_dots_outline_the_bars_before_and_only_those_that_changed() -> None:
    before, now = [0, 2, 8, 2, 0.0], [2, 4, 8, 4, 2.0]
    assert trace_rows(before, now, 4) == {0: [2], 1: [2], 2: [2], 3: [1, 3]}
    assert trace_rows(now, [2.0, 4.1, 8.2, 4.1, 2.0], 4) == {}


def test_the_axis_of_logits_stays_to_d_k_512_and_then_grows_by_four() -> None:
    for d_k, growth in ((1, 1), (16, 1), (256, 1), (512, 1), (600, 4), (8_000, 4), (16_384, 16)):
        saturation = present(predict(Parameters(d_k=d_k)).columns[0].saturation)
        assert axis_growth(saturation.reach) == growth, d_k
    assert axis_growth(1.0) == 1 / 4
