"""A run as lines: what the map shades, what a trend and a chart show, and what is said of changes."""

import json
import math
from collections.abc import Sequence

import pytest
from attn_tui.core.tables.runs import change_words
from attn_tui.core.watching.snapshot import Snapshot, snapshot
from attn_tui.core.watching.step import parse_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results.watching import (
    LEAST,
    chart,
    chart_lines,
    head_at,
    head_lines,
    map_lines,
    ranked_lines,
    step_line,
    summary,
)
from cases import for_each, present
from line_texts import text_of, texts_of

Rows = list[list[float]]


def shown(*steps: Rows, baseline: int | None = None, **more: object) -> Snapshot:
    history = [parse_line(json.dumps({"step": 10 * n, "max_logit": rows, **more})) for n, rows in enumerate(steps)]
    found = present(snapshot(history, 100, baseline=None if baseline is None else history[baseline // 10]))
    return found


def cells(of: Snapshot, statistic: str = "max_logit", chosen: tuple[int, int] = (9, 9)) -> list[str]:
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
    assert head_at(found, (11, 39), (30, 8), 29, 5) == (11, 39)
    assert "part of" not in text_of(map_lines(found, "max_logit", (11, 39), (60, 20), UNICODE)[-1])


def test_a_constant_growth_is_a_straight_chart_in_steps_as_fine_as_its_height() -> None:
    [row] = chart([2.0**n for n in range(8)], (8, 1), 1, 128, UNICODE)
    bars = [UNICODE.bars.index(bar) for bar in row]
    assert bars == sorted(bars)
    assert len({*bars}) == 7, "a bar of one row leaves a gap to the row above"
    assert chart([1.0, math.nan, math.inf], (8, 1), 1, 100, UNICODE) == ["▁ !"]
    assert chart([1e-9, 1e9], (8, 1), 1, 100, UNICODE) == ["▁▇"]
    rows = chart([1.0, 9.9, 10.1, 100.0, math.inf, math.nan], (8, 2), 1, 100, UNICODE)
    assert rows == ["  ▁█! ", "▁████ "]


@for_each("steps", [3, 7, 25, 300])
@for_each("width", [60, 90, 160])
def test_trends_fill_the_line_at_any_number_of_steps(steps: int, width: int) -> None:
    found = shown(*[[[50.0, 60.0]]] * steps)
    for line in ranked_lines(found, width, UNICODE)[1:]:
        assert len(text_of(line).rstrip()) == width


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
    lines = [text_of(line) for line in ranked_lines(found, 70, UNICODE)]
    growths = [line[line.index("×") :].split()[1] for line in lines[1:]]
    assert len({len(growth.partition(".")[2]) for growth in growths}) == 2, "some have one decimal, others three"
    assert len({line.index(".", line.index("×")) for line in lines[1:]}) == 1
    assert len({line.index("×") for line in lines[1:]}) == 1


def test_a_head_has_no_trend_without_lines_for_it() -> None:
    assert not any("▁▇" in text_of(line) for line in head_lines(shown([[1.0]], [[2.0]]), (0, 0), (30, 5), UNICODE))
    found = shown([[1.0]], [[1.0]], [[2.0]])
    assert any("▁▁▇" in text_of(line) for line in head_lines(found, (0, 0), (30, 5), UNICODE))
    assert not any("▁▇" in text_of(line) for line in head_lines(found, (0, 0), (30, 0), UNICODE))


def run_of(values: Sequence[float | None], at: int | None = None) -> Snapshot:
    lines = (
        {"schema": "attn-tui/watch-1", "step": 10 * number, "max_logit": [[value, 1.0]]}
        for number, value in enumerate(values)
    )
    shown = present(snapshot([parse_line(json.dumps(line)) for line in lines], 100, at=at))
    return shown


def heights(lines: Sequence[Line], role: str) -> list[int]:
    """Return the upper line that shows something in a role, for each column from the left."""
    found: dict[int, int] = {}
    for y, line in enumerate(lines):
        for at, each in enumerate(_roles(line)):
            if each == role:
                found.setdefault(at, y)
    return [found[at] for at in sorted(found)]


def _roles(line: Line) -> list[object]:
    return [role if sign.strip() else "" for text, role in line for sign in text]


@for_each("glyphs", [UNICODE, ASCII])
@for_each(("width", "height"), [(80, LEAST), (86, 12), (150, 19)])
def test_a_chart_has_its_size(glyphs: Glyphs, width: int, height: int) -> None:
    lines = chart_lines(run_of([5, 20, 60, 150]), (0, 0), width, height, glyphs)
    assert len(lines) == height
    assert {line_width(line) for line in lines} == {width}
    assert "layer 0 head 0" in texts_of(lines)[1]
    assert "".join(texts_of(lines)).isascii() or not glyphs.ascii


def test_the_curve_rises_to_the_limit_with_the_logits_and_ends_at_the_step_shown() -> None:
    lines = chart_lines(run_of([0, 25, 50, 100]), (0, 0), 80, 14, UNICODE)
    curve, limit = heights(lines, "scaled"), heights(lines, "alert")
    assert curve == sorted(curve, reverse=True)
    assert len({*limit}) == 1
    assert curve[-1] - limit[0] in (0, 1)
    assert texts_of(lines)[-1].split()[0] == "0"
    assert texts_of(lines)[-1].split()[-1] == "30"
    earlier = chart_lines(run_of([0, 25, 50, 100], at=20), (0, 0), 80, 14, UNICODE)
    assert texts_of(earlier)[-1].split()[-1] == "20"
    assert "largest 50" in texts_of(earlier)[1]


def test_a_chart_needs_numbers_and_room_for_its_title() -> None:
    assert chart_lines(run_of([1, None, 3, 4]), (0, 0), 80, 14, UNICODE)
    assert chart_lines(run_of([1, None, 2]), (0, 0), 80, 14, UNICODE) == []
    assert chart_lines(run_of([1, 2, 3]), (0, 0), 80, LEAST - 1, UNICODE) == []
    assert chart_lines(run_of([1, 2, 3]), (0, 7), 80, 14, UNICODE) == []
    wide, narrow = (chart_lines(run_of([0, 25, 50, 100]), (0, 0), width, 14, UNICODE) for width in (90, 44))
    assert "over the steps" in texts_of(wide)[1]
    assert texts_of(narrow)[1].strip() == "limit 100 · largest 100"
