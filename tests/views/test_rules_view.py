"""Scale rules as rows: aligned, as many columns and rows as there is room for, and one rule in words."""

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.lab.rule_curves import Curves
from attn_tui.core.lab.rule_rows import MEASURED, RULES, Order, Row
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.rule_text import rule_text
from attn_tui.tui.views.rules import (
    COLUMNS,
    CURVE,
    HEAD,
    NAME,
    Shown,
    columns_in,
    left_out,
    next_columns,
    table_lines,
    title_line,
)

VALUES = dict(zip(MEASURED, (0.00781, 1.0, 13.99, 100.0, 0.5, 7.0), strict=True))
ROWS = {
    name: Row(name, 1 / (at + 1), {s: Estimate(value / (at + 1), 0.01) for s, value in VALUES.items()})
    for at, name in enumerate(RULES)
}
CURVES = Curves((4, 8, 16), 2, 2, dict.fromkeys(RULES, (0.0, 0.5, 1.0)))


def shown(**changes: object) -> Shown:
    whole = {"names": RULES, "rows": ROWS, "curves": CURVES, "order": Order(), "lab": "mup", "cursor": "none"}
    return Shown(**(whole | changes))  # type: ignore[arg-type]


def text(line: Line) -> str:
    return "".join(piece for piece, _ in line)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [24, 40, 60, 80, 100, 120, 200])
def test_every_line_is_as_wide_as_the_table(width: int, glyphs: Glyphs) -> None:
    for order in (Order(), Order("dead_rows", reverse=True)):
        lines = [title_line(shown(order=order), width, glyphs)]
        lines += table_lines(shown(order=order), width, 0, HEAD + len(RULES), glyphs)
        assert len(lines) == 1 + HEAD + len(RULES)
        assert {line_width(line) for line in lines} == {width}
        assert glyphs is UNICODE or all(text(line).isascii() for line in lines)


@pytest.mark.parametrize("by", ["rule", "multiplier", "score_overflow"])
@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_columns_in_pages_are_all_of_them_and_the_sorted_one_always(width: int, by: str) -> None:
    first, seen = 0, set[str]()
    for _ in COLUMNS:
        here = columns_in(width, first, by, 3)
        assert here == [column for column in COLUMNS if column in here]
        assert by in (*here, "rule")
        missing = left_out(width, first, by, CURVES)
        assert [*sorted(here + missing)] == sorted(COLUMNS)
        seen |= {*here}
        first = next_columns(width, first, by, CURVES)
    assert seen == {*COLUMNS}


def test_points_stand_under_each_other() -> None:
    lines = [text(line) for line in table_lines(shown(), 80, 0, HEAD + len(RULES), UNICODE)][HEAD:]
    for at in range(NAME, 78):
        column = {line[at] for line in lines}
        if "." in column:
            assert column <= {".", " "}, at


@pytest.mark.parametrize(("top", "words"), [(0, "24 more rows: 24 below"), (3, "24 more rows: 3 above, 21 below")])
def test_rows_that_do_not_fit_are_counted(top: int, words: str) -> None:
    lines = [text(line).strip() for line in table_lines(shown(), 80, top, HEAD + 6, UNICODE)]
    assert len(lines) == HEAD + 6
    assert lines[-1] == words
    assert lines[HEAD].endswith(text(table_lines(shown(), 80, 0, 99, UNICODE)[HEAD + top]).strip()[3:])


def test_the_curve_reaches_from_0_to_1_without_touching_the_line_above() -> None:
    (line,) = [text(line) for line in table_lines(shown(), 100, 0, 99, UNICODE) if "Zamba" in text(line)] or [
        text(table_lines(shown(), 100, 0, 99, UNICODE)[HEAD])
    ]
    assert line.rstrip().endswith("  ▄▄▇▇")
    lines = table_lines(shown(curves=None), 100, 0, 99, UNICODE)
    assert text(lines[HEAD]).rstrip().endswith("…")


def test_what_is_pending_missing_or_stale_says_so() -> None:
    fault = Row("log_d_k", None, {}, "1/ln d_k has no value at d_k = 1")
    some = shown(rows={"none": ROWS["none"], "log_d_k": fault}, stale={"none"})
    lines = table_lines(some, 100, 0, 99, UNICODE)[HEAD:]
    assert [role for piece, role in lines[0] if "1.000" in piece] == ["dim"]
    assert text(lines[1])[NAME:].strip() == "…"
    assert text(lines[3])[NAME:].strip() == "has no value at d_k = 1"
    assert "alert" in [role for _, role in lines[3]]


def test_the_lab_s_rule_and_the_cursor_are_marked() -> None:
    lines = [text(line) for line in table_lines(shown(), 100, 0, 99, UNICODE)[HEAD:]]
    assert [line[:2] for line in lines if line[:2] != "  "] == ["▌ ", " ◆"]
    assert lines[RULES.index("mup")].startswith(" ◆8/d_k")


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_told_with_its_source(name: str, glyphs: Glyphs) -> None:
    lines = rule_text(name, ROWS[name], 60, glyphs)
    assert all(line_width(line) <= 60 for line in lines[1:])
    told = " ".join(text(line) for line in lines)
    rule = SCALE_RULES[name]
    for part in (rule.formula, rule.source.split()[0], rule.note.split(" ")[0]):
        assert glyphs.say(part) in told
    assert ("depends on" in told) == bool(rule.needs)
    assert "entropy" in told
    assert CURVE not in told


def test_what_stands_in_the_way_comes_before_the_rest() -> None:
    fault = Row("log_d_k", None, {}, "1/ln d_k has no value at d_k = 1")
    assert text(rule_text("log_d_k", fault, 80, UNICODE)[1]) == "1/ln d_k has no value at d_k = 1."
    lines = rule_text("log_d_k", fault, 80, UNICODE, "No.")
    assert [text(line) for line in lines[1:2]] == ["No."]
    assert lines[1][0][1] == "alert"
