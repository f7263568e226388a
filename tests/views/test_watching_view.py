"""A run as lines: what the map shades, what a trend and a chart show, and what is said of changes."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from attn_tui.core.tables.runs import change_words
from attn_tui.core.watching.snapshot import RunSnapshot, snapshot
from attn_tui.core.watching.step import parse_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results.watch_page import head_at_page, head_map, page_lines
from attn_tui.tui.views.results.watching import (
    chart,
    figures,
    head_lines,
    map_lines,
    ranked_lines,
    shown_part,
    step_line,
    summary,
    trend,
)
from cases import for_each, present
from line_texts import text_of, texts_of

Rows = list[list[float]]


def shown(*steps: Rows, baseline: int | None = None, **more: object) -> RunSnapshot:
    history = [parse_line(json.dumps({"step": 10 * n, "max_logit": rows, **more})) for n, rows in enumerate(steps)]
    found = present(snapshot(history, 100, baseline=None if baseline is None else history[baseline // 10]))
    return found


def cells(of: RunSnapshot, statistic: str = "max_logit", chosen: tuple[int, int] = (9, 9)) -> list[str]:
    """The cells of the first layer."""
    line = text_of(map_lines(of, statistic, chosen, (30, 8), UNICODE)[0])
    return [line[at : at + 3] for at in range(5, 5 + 3 * of.heads[0], 3)]


def test_logits_are_shaded_by_their_logarithm_shares_and_changes_linearly() -> None:
    rows = [[1.0, 10.0, 80.0, 100.0]]
    both = shown(rows, entropy=rows)
    assert cells(both) == ["░░ ", "▓▓ ", "██ ", "██ "]
    assert cells(both, "entropy") == ["░░ ", "░░ ", "██ ", "██ "]
    found = shown([[1.0, 2.0]], one_hot_rows=[[0.0213, 0]])
    assert "2.1 %" in text_of(head_lines(found, (0, 0), (40, 0), UNICODE)[2])
    assert "none" in text_of(head_lines(found, (0, 1), (40, 0), UNICODE)[2])
    assert "░ none to █ 2.1 %" in text_of(map_lines(found, "one_hot_rows", (0, 0), (30, 8), UNICODE)[-1])
    found = shown([[50.0, 10.0, 10.0]], [[40.0, 10.0, 20.0]], baseline=0)
    assert cells(found) == ["░░ ", "▓▓ ", "██ "]
    assert "░ −10 to █ +10" in text_of(map_lines(found, "max_logit", (0, 0), (30, 8), UNICODE)[-1])


def test_a_head_over_the_limit_is_marked_and_one_without_a_number_blank() -> None:
    found = shown([[1.0, 120.0, math.inf, 100.0]])
    assert cells(found, chosen=(0, 1)) == ["░░ ", "9 !", "██!", "██ "]
    assert cells(shown([[1.0, math.nan, 2.0]], entropy=[[None, 1, 2]]), "entropy")[0] == "   "


@pytest.mark.parametrize("values", [(5.0, 5.0), (5.0, 4.99999)])
def test_heads_that_are_equal_but_for_noise_have_one_shade_and_one_number(values: tuple[float, float]) -> None:
    found = shown([[*values]])
    assert cells(found) == ["░░ ", "░░ "]
    assert "all 5" in text_of(map_lines(found, "max_logit", (0, 0), (30, 8), UNICODE)[-1])


def test_a_map_that_does_not_fit_says_what_it_is_a_part_of() -> None:
    found = shown([[1.0 + n for n in range(40)]] * 12)
    small = map_lines(found, "max_logit", (11, 39), (30, 8), UNICODE)
    assert "part of 12 x 40" in text_of(small[-1])
    assert text_of(small[5]).startswith("  11 ")
    assert shown_part(found, (11, 39), (30, 8)).place_at(29, 5) == (11, 39)
    assert "part of" not in text_of(map_lines(found, "max_logit", (11, 39), (60, 20), UNICODE)[-1])


def test_a_constant_growth_is_a_straight_chart_in_steps_as_fine_as_its_height() -> None:
    def rows_of(values: Sequence[float], rows: int, high: float) -> list[str]:
        return texts_of(chart(values, (8, rows), (1, high), 1000, UNICODE))

    [row] = rows_of([2.0**n for n in range(8)], 1, 128)
    bars = [UNICODE.bars.index(bar) for bar in row]
    assert bars == sorted(bars)
    assert len({*bars}) == 7, "a bar of one row leaves a gap to the row above"
    assert rows_of([1.0, math.nan, math.inf], 1, 100) == ["▁ !"]
    assert rows_of([1e-9, 1e9], 1, 100) == ["▁▇"]
    assert rows_of([1.0, 9.9, 10.1, 100.0, math.inf, math.nan], 2, 100) == ["  ▁█! ", "▁████ "]


def test_bars_of_the_selected_head_over_the_limit_have_another_role() -> None:
    [row] = chart([50.0, 100.0, 101.0, math.inf, 60.0], (5, 1), (50, 101), 100, UNICODE)
    assert [(len(text), role) for text, role in row] == [(2, "scaled"), (2, "alert"), (1, "scaled")]


@for_each("steps", [3, 7, 25, 300])
@for_each("width", [60, 90, 160])
def test_trends_fill_the_line_at_any_number_of_steps_above_two(steps: int, width: int) -> None:
    assert "trend" not in text_of(ranked_lines(shown(*[[[50.0, 60.0]]] * 2), width, UNICODE)[0])
    found = shown(*[[[50.0, 60.0]]] * steps)
    for line in ranked_lines(found, width, UNICODE)[1:]:
        assert len(text_of(line).rstrip()) == width


@for_each("glyphs", [UNICODE, ASCII])
def test_a_trend_marks_where_the_limit_was_passed(glyphs: Glyphs) -> None:
    """The heads of a real run whose limit is 50: 27, 43, 79 and 120 differ, and two of them are over it."""
    line = trend([2.0, 27.0, 43.0, 50.0, 50.1, 79.0, 120.0, 300.0, math.inf, math.nan, 8.0], 11, 50, glyphs)
    assert text_of(line) == "".join(
        [*(glyphs.bars[height] for height in (1, 4, 5, 5, 6, 6, 7, 8)), "! ", glyphs.bars[2]]
    )
    assert [(len(text), role) for text, role in line] == [(4, "scaled"), (5, "alert"), (2, "scaled")]


def test_a_trend_keeps_its_largest_number_in_fewer_cells() -> None:
    values = [10.0] * 20
    values[7] = 120.0
    assert text_of(trend(values, 10, 100, UNICODE)) == "▁▁▁▆▁▁▁▁▁▁"
    assert text_of(trend([10.0, 120.0], 6, 100, UNICODE)) == "▁▁▁▆▆▆"


@pytest.mark.parametrize("limit", [0.1, 49.9, 1e-30])
def test_a_head_at_the_limit_is_not_over_it_in_its_trend(limit: float) -> None:
    [(bars, role)] = trend([float(np.float32(limit))], 4, limit, UNICODE)
    assert (bars, role) == ("▅▅▅▅", "scaled")


def came_back() -> RunSnapshot:
    """Layer 0 head 1 is over 100 from step 20 on, layer 0 head 0 from step 10 to 30."""
    return run_of_rows([5.0, 6.0], [120.0, 6.0], [150.0, 101.0], [101.0, 110.0], [8.0, 105.0])


@for_each(
    ("steps", "words"),
    [
        (([5.0], [8.0]), "No head is over 100."),
        (
            ([5.0], [120.0], [8.0]),
            "No head is over 100 at step 20, but 1 was earlier. First over it: layer 0 head 0 at step 10. "
            "Peak: 120.0, layer 0 head 0 at step 10; now 8.0.",
        ),
        (
            ([5.0, 101.0], [120.0, 3.0], [8.0, 3.0]),
            "No head is over 100 at step 20, but 2 were earlier. First over it: layer 0 head 1 at step 0. "
            "Peak: 120.0, layer 0 head 0 at step 10; now 8.0.",
        ),
        (
            ([5.0, 101.0], [120.0, 3.0]),
            "1 head is over 100, 1 other was earlier. First over it: layer 0 head 1 at step 0. "
            "Peak: 120.0, layer 0 head 0 at this step.",
        ),
        (
            ([math.inf], [None]),
            "No head has a largest |logit| at step 10, but 1 was earlier. First over it: layer 0 head 0 at step 0. "
            "Peak: not finite, layer 0 head 0 at step 0; now —.",
        ),
        (
            ([120.0], [130.0, 1.0], [1.0, 2.0, 3.0]),
            "No head is over 100 at step 20. Heads that step 20 does not have were over 100, first at step 0.",
        ),
    ],
)
def test_heads_that_were_over_the_limit_are_told(steps: Sequence[list[float | None]], words: str) -> None:
    assert summary(run_of_rows(*steps)) == words
    assert words.startswith(summary(run_of_rows(*steps), brief=True))


def test_the_list_has_the_first_step_over_the_limit_and_the_largest_logit() -> None:
    header, *heads = [text_of(line) for line in ranked_lines(came_back(), 120, UNICODE)]
    assert header.split("  ")[:5] == ["head", "largest |logit|", "first over", " peak", "at step"]
    assert "▆▇█ over 100" in header
    assert [line.split()[:5] for line in heads] == [
        ["0/1", "105.0", "20", "110.0", "30"],
        ["0/0", "8.0", "10", "150.0", "20"],
    ]
    assert "first over" not in text_of(ranked_lines(run_of([1, 2, 3]), 120, UNICODE)[0])


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (42, "head |logit| first over peak trend"),
        (56, "head |logit| first over peak to 100 trend"),
        (63, "head |logit| first over peak at step to 100 trend"),
        (80, "head |logit| first over peak at step per 10 to 100 trend ▆▇█ over 100"),
    ],
)
def test_columns_of_the_past_and_trends_come_before_the_growth(width: int, titles: str) -> None:
    lines = [text_of(line) for line in ranked_lines(came_back(), width, UNICODE)]
    assert " ".join(lines[0].split()) == titles
    assert {len(line) for line in lines} == {width}


def test_the_map_marks_heads_that_were_over_the_limit() -> None:
    found = came_back()
    assert cells(found) == ["░░^", "██!"]
    legends = [text_of(map_lines(found, "max_logit", (9, 9), (width, 8), UNICODE)[-1]) for width in (60, 32, 24)]
    assert ["  ".join(legend.split("  ")[1:]).strip() for legend in legends] == [
        "! over the limit  ^ was over",
        "! over  ^ was",
        "! ^ over",
    ]
    assert text_of(map_lines(found, "max_logit", (9, 9), (7, 8), UNICODE)[0]).strip() == "0 ^!"
    never = map_lines(run_of([1, 2]), "max_logit", (9, 9), (60, 8), UNICODE)
    assert not any("^" in text_of(line) for line in never)


def test_the_figures_of_a_head_that_was_over_the_limit_have_its_past() -> None:
    for width in (30, 40):
        lines = [" ".join(text_of(line).split()) for line in head_lines(came_back(), (0, 0), (width, 0), UNICODE)]
        assert lines[2:] == ["first over 100 step 10", "peak 150.0", "at step 20"]
        assert len(lines) == 1 + figures(came_back())
    assert len(head_lines(run_of([1, 2]), (0, 0), (40, 0), UNICODE)) == 2


@pytest.mark.parametrize(("height", "rows"), [(5, 1), (8, 4), (40, 8)])
def test_the_trend_of_the_selected_head_fills_the_height(height: int, rows: int) -> None:
    lines = [text_of(line) for line in head_lines(shown([[1.0]], [[1.0]], [[2.0]]), (0, 0), (40, height), UNICODE)]
    assert len(lines) == 4 + rows
    assert lines[-1].strip() == "steps 0 to 20: 1 to 2"


@for_each(
    ("steps", "baseline", "words"),
    [
        (([[1.0, 2.0]], [[4.0, 2.0]]), 0, "Since step 0, 1 of 2 heads grew, most layer 0 head 0 (+3.0)."),
        (([[1.0, 2.0]], [[0.5, 2.0]]), 0, "Since step 0, the largest |logit| of no head grew."),
        (([[1.0, 2.0]], [[4.0, 2.0]]), 10, "Step 10 is the baseline"),
        (([[1.0]], [[4.0, 2.0]]), 0, "Step 0 has other layers or heads"),
        (([[math.inf]], [[math.inf]]), 0, "no largest |logit| is known to have changed"),
        (([[1.0]], [[math.inf]]), 0, "most layer 0 head 0 (not finite)"),
    ],
)
def test_changes_in_words(steps: tuple[Rows, Rows], baseline: int, words: str) -> None:
    found = shown(*steps, baseline=baseline)
    assert words in summary(found)
    assert words in summary(found, brief=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [(None, "—"), (0.017, "+0.0"), (-3.25, "-3.2"), (2e6, "+2.0e+06"), (-math.inf, "finite again")],
)
def test_a_change_has_its_sign(change: float | None, words: str) -> None:
    assert change_words(change) == words


@pytest.mark.parametrize("width", [30, 48, 70, 100])
def test_the_list_has_the_change_whatever_the_width(width: int) -> None:
    found = shown([[1.0, 2.0]], [[4.0, 2.0]], baseline=0)
    header, first, _ = (text_of(line) for line in ranked_lines(found, width, UNICODE))
    assert ("since 0" if width == 100 else "change") in header
    assert first.split()[:3] == ["0/0", "4.0", "+3.0"]


def test_a_baseline_is_named_and_growths_have_their_points_in_one_line() -> None:
    found = shown([[1.0]], [[2.0]], baseline=0)
    assert text_of(step_line(found, 40, UNICODE)) == "step 10, 2 of 2 since 0"
    assert text_of(step_line(found, 20, UNICODE)) == "step 10 since 0"
    found = shown(*([[1.05**n, 1.3**n, 12.0**n]] for n in range(9)))
    lines = [text_of(line) for line in ranked_lines(found, 100, UNICODE)]
    growths = [line[line.index("×") :].split()[1] for line in lines[1:]]
    assert len({len(growth.partition(".")[2]) for growth in growths}) == 2, "some have one decimal, others three"
    assert len({line.index(".", line.index("×")) for line in lines[1:]}) == 1
    assert len({line.index("×") for line in lines[1:]}) == 1


def test_a_head_has_no_trend_without_lines_for_it() -> None:
    assert not any("▁▇" in text_of(line) for line in head_lines(shown([[1.0]], [[2.0]]), (0, 0), (30, 5), UNICODE))
    found = shown([[1.0]], [[1.0]], [[2.0]])
    assert any("▁▁▇" in text_of(line) for line in head_lines(found, (0, 0), (30, 5), UNICODE))
    assert not any("▁▇" in text_of(line) for line in head_lines(found, (0, 0), (30, 0), UNICODE))


def run_of(values: Sequence[float | None], at: int | None = None) -> RunSnapshot:
    lines = (
        {"schema": "attn-tui/watch-1", "step": 10 * number, "max_logit": [[value, 1.0]]}
        for number, value in enumerate(values)
    )
    shown = present(snapshot([parse_line(json.dumps(line)) for line in lines], 100, at=at))
    return shown


def run_of_rows(*rows: Sequence[float | None]) -> RunSnapshot:
    """Return the last step of a run of one layer, every 10 steps."""
    lines = ({"step": 10 * number, "max_logit": [[*row]]} for number, row in enumerate(rows))
    return present(snapshot([parse_line(json.dumps(line)) for line in lines], 100))


def no_words(_: int) -> list[Line]:
    return []


def wave(layers: int, heads: int, steps: int) -> RunSnapshot:
    """Return a run whose logits grow from head to head and from step to step, to over the limit."""
    rows = [
        [[1.2 ** (10 * step / steps) * (1 + 3 * head + layer) for head in range(heads)] for layer in range(layers)]
        for step in range(steps)
    ]
    return shown(*rows)


@for_each("glyphs", [UNICODE, ASCII])
@for_each(("width", "height"), [(40, 9), (60, 17), (80, 22), (120, 38), (200, 58)])
@for_each(("layers", "heads", "steps"), [(1, 1, 1), (2, 2, 30), (6, 8, 65), (12, 12, 3), (32, 32, 65), (33, 64, 3)])
def test_the_page_has_its_size(glyphs: Glyphs, width: int, height: int, layers: int, heads: int, steps: int) -> None:
    lines = page_lines(wave(layers, heads, steps), (0, 0), no_words, width, height, glyphs)
    assert len(lines) == height
    assert {line_width(line) for line in lines} == {width}
    assert not glyphs.ascii or "".join(texts_of(lines)).isascii()


def test_every_head_is_on_the_map_where_there_is_room() -> None:
    found = head_map(wave(6, 8, 65), (2, 3), 120, 33, UNICODE)
    assert {place for row in found.places for place in row} >= {
        (layer, head) for layer in range(6) for head in range(8)
    }
    assert len(found.lines) <= 33
    folded = head_map(wave(6, 8, 65), (2, 3), 80, 16, UNICODE)
    assert {place for (place,) in folded.places if place[0] == 2} == {(2, head) for head in range(8)}
    assert [place for (place,) in folded.places if place[0] != 2] == [(layer, 7) for layer in (0, 1, 3, 4, 5)], (
        "largest"
    )


def test_a_cell_over_the_limit_is_full_and_an_alert() -> None:
    found = head_map(shown(*([[value, 1.0]] for value in (1.0, 30.0, 100.0, 150.0))), (0, 0), 60, 5, UNICODE)
    texts = {role: text for text, role in found.lines[1] if {*text.strip()} <= {*UNICODE.shades} and text.strip()}
    assert {*texts["alert"]} == {"█"}
    assert [*dict.fromkeys(texts["unscaled"])] == ["░", "▓"]
    assert len(texts["unscaled"]) == pytest.approx(3 * len(texts["alert"]), abs=2)


def test_few_heads_have_bars_several_lines_high() -> None:
    few, many = (head_map(wave(1, heads, 30), (0, 0), 80, 16, UNICODE) for heads in (3, 12))
    assert (few.bars, many.bars) == (True, False)
    assert [row.count((0, 1)) for row in few.places].count(1) > 2


def test_a_click_on_the_page_selects_the_head_under_it() -> None:
    run, size = wave(6, 8, 65), (120, 38)
    texts = texts_of(page_lines(run, (2, 3), no_words, *size, UNICODE))
    y = next(number for number, text in enumerate(texts) if text.startswith("▌"))
    assert head_at_page(run, (2, 3), no_words, size, (10, y), UNICODE) == (2, 3)
    assert head_at_page(run, (2, 3), no_words, size, (70, y), UNICODE) == (3, 3)
    assert head_at_page(run, (2, 3), no_words, size, (10, 1), UNICODE) is None


@for_each(
    ("values", "verdict"),
    [((1.0, 150.0), "OVER THE LIMIT"), ((150.0, 1.0), "CAME BACK"), ((1.0, 2.0), "BELOW THE LIMIT")],
)
def test_the_page_says_first_whether_the_limit_is_passed(values: Sequence[float], verdict: str) -> None:
    lines = page_lines(run_of(values), (0, 0), no_words, 80, 22, UNICODE)
    assert verdict in text_of(lines[0])
    assert "step 10" in text_of(lines[0])
    earlier = page_lines(run_of(values, at=0), (0, 0), no_words, 80, 22, UNICODE)
    assert "End: newest" in text_of(earlier[0])
