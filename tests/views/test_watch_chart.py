"""The chart of one head over the steps of a run."""

import json
from collections.abc import Sequence

from attn_tui.core.watching.snapshot import Snapshot, snapshot
from attn_tui.core.watching.step import parse_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results.watch_chart import LEAST, chart_lines
from cases import for_each
from line_texts import texts_of


def run_of(values: Sequence[float | None], at: int | None = None) -> Snapshot:
    lines = (
        {"schema": "attn-tui/watch-1", "step": 10 * number, "max_logit": [[value, 1.0]]}
        for number, value in enumerate(values)
    )
    shown = snapshot([parse_line(json.dumps(line)) for line in lines], 100, at=at)
    assert shown is not None
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


def test_numbers_that_are_missing_are_left_out_and_too_few_have_no_chart() -> None:
    assert chart_lines(run_of([1, None, 3, 4]), (0, 0), 80, 14, UNICODE)
    assert chart_lines(run_of([1, None, 2]), (0, 0), 80, 14, UNICODE) == []
    assert chart_lines(run_of([1, 2, 3]), (0, 0), 80, LEAST - 1, UNICODE) == []
    assert chart_lines(run_of([1, 2, 3]), (0, 7), 80, 14, UNICODE) == []


def test_a_narrow_chart_keeps_the_limit_and_the_largest_value_instead_of_its_title() -> None:
    wide, narrow = (chart_lines(run_of([0, 25, 50, 100]), (0, 0), width, 14, UNICODE) for width in (90, 44))
    assert "over the steps" in texts_of(wide)[1]
    assert texts_of(narrow)[1].strip() == "limit 100 · largest 100"
