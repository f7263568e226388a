"""Scale rules and mechanisms as rows: aligned, as many columns and rows as fit, and one rule in words."""

import re
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab.mechanisms import COMPARED
from attn_tui.core.lab.mechanisms import MEASURED as OF_MECHANISMS
from attn_tui.core.lab.results import MEASURED, RULES, SORTABLE, MechanismRow, Order, RuleRow
from attn_tui.core.parameters import Parameters
from attn_tui.core.scales import SCALE_RULES, scale_rule
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.saturation import saturation_of
from attn_tui.tui.language.chosen import Language
from attn_tui.tui.panes.rules.widget import rule_text, rule_title
from attn_tui.tui.views.fields.choices import FAMILIES, family_of
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.results.mechanisms import bound_sentences, mechanism_lines
from attn_tui.tui.views.results.rules import (
    COLUMNS,
    HEAD,
    NAME,
    RuleTableContents,
    by_family,
    columns_in,
    first_line,
    left_out,
    next_columns,
    rule_at,
    rule_sentences,
    table_lines,
    title_line,
)
from cases import for_each
from line_texts import text_of, texts_of

PLAIN = HEAD + len(RULES)  # lines of a table without the titles of families
UNTITLED = Order("multiplier")  # rows of another order have none
VALUES = dict(zip(MEASURED, (0.00781, 1.0, 13.99, 100.0, 0.5, 0.25, 7.0), strict=True))
ROWS = {
    name: RuleRow(name, 1 / (at + 1), {s: Estimate(value / (at + 1), 0.01) for s, value in VALUES.items()})
    for at, name in enumerate(RULES)
}
SATURATING = saturation_of(Parameters(), RULES)


def shown(**changes: Any) -> RuleTableContents:
    return replace(RuleTableContents(RULES, ROWS, SATURATING, UNTITLED, lab="two_sqrt_d_k", cursor="none"), **changes)


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [24, 40, 60, 80, 100, 120, 200])
def test_every_line_is_as_wide_as_the_table(width: int, glyphs: Glyphs) -> None:
    for order in (Order(), Order("dead_rows", reverse=True)):
        title = title_line(shown(order=order), width - 6, width, glyphs)
        lines = table_lines(shown(order=order), width, 0, HEAD + len(RULES), glyphs)
        assert len(lines) == HEAD + len(RULES)
        assert width < 40 or line_width(title) <= width - 6
        assert {line_width(line) for line in lines} == {width}
        assert glyphs is UNICODE or all(text_of(line).isascii() for line in lines)


@for_each("language", ["en", "zh"])
@for_each("by", SORTABLE)
def test_the_mark_of_the_sorted_column_moves_no_heading(by: str, language: Language) -> None:
    glyphs = IN_LANGUAGE[language]
    plain, sorted_by = (
        texts_of(table_lines(shown(order=Order(column)), 240, 0, PLAIN, glyphs)[:HEAD]) for column in ("rule", by)
    )
    marks = str.maketrans("▲▼", "  ")
    assert [line.translate(marks) for line in sorted_by] == [line.translate(marks) for line in plain]


@for_each("by", ["rule", "multiplier", "score_overflow"])
@for_each("width", [40, 60, 80, 110])
def test_pages_show_every_column_and_always_the_sorted_one(width: int, by: str) -> None:
    first, seen = 0, set[str]()
    for _ in COLUMNS:
        here = [*columns_in(width, first, by)]
        assert here == [column for column in COLUMNS if column in here]
        assert by in (*here, "rule")
        missing = left_out(width, first, by)
        assert [*sorted(here + missing)] == sorted(COLUMNS)
        seen |= {*here}
        first = next_columns(width, first, by)
    assert seen == {*COLUMNS}


def test_decimal_points_are_aligned() -> None:
    _, *lines = texts_of(table_lines(shown(), 80, 0, HEAD + len(RULES), UNICODE))[HEAD:]  # the first is wider
    for at in range(NAME, 78):
        column = {line[at] for line in lines}
        if "." in column:
            assert column <= {".", " "}, at


@pytest.mark.parametrize("top", [0, 3])
def test_rows_that_do_not_fit_are_counted(top: int) -> None:
    lines = [text_of(line).strip() for line in table_lines(shown(), 80, top, HEAD + 6, UNICODE)]
    assert len(lines) == HEAD + 6
    hidden = len(RULES) - 5  # the last line counts them
    below = f"{hidden - top} more below"
    assert lines[-1] == (f"{top} more above, {below}" if top else below)
    assert lines[HEAD].endswith(text_of(table_lines(shown(), 80, 0, PLAIN, UNICODE)[HEAD + top]).strip()[3:])


def test_a_rule_is_a_dot_with_its_way_on_the_axis_of_saturation() -> None:
    rows = {name: replace(ROWS[name], measured={}) for name in RULES}
    lines = texts_of(table_lines(shown(rows=rows), 100, 0, PLAIN, UNICODE))
    pictures = {name: line[NAME:] for name, line in zip(RULES, lines[HEAD:], strict=True)}
    limit = lines[1].index("│", NAME) - NAME
    assert pictures["none"].index("●") > limit > pictures["sqrt_d_k"].index("●") > pictures["d_k"].index("●")
    assert pictures["none"].index("●") < pictures["none"].index("▸"), "wider heads saturate more"
    assert pictures["d_k"].index("◂") < pictures["d_k"].index("●"), "and flatten"
    assert not {"▸", "◂", "━"} & {*pictures["sqrt_d_k"]}


def test_sentences_on_rules_say_what_a_wider_head_does() -> None:
    lines = texts_of(rule_sentences(("sqrt_d_k", "none", "d_k"), SATURATING, 60, UNICODE))
    assert ["alike at every d_k" in lines[0], "from d_k 10" in lines[1], "averages" in lines[2]] == [True] * 3
    assert {line.index(word) for line, word in zip(lines, ("spreads", "saturated", "averages"), strict=True)} == {8}
    assert all(len(line) <= 24 for line in texts_of(rule_sentences(("none", "d_k"), SATURATING, 24, UNICODE)))


def test_pending_missing_and_stale_rows_the_cursor_and_the_lab_s_rule_are_marked() -> None:
    fault = RuleRow("log_d_k", None, {}, "1/ln d_k has no value at d_k = 1")
    some = shown(rows={"none": ROWS["none"], "log_d_k": fault}, stale={"none"})
    lines = table_lines(some, 100, 0, PLAIN, UNICODE)[HEAD:]
    assert [role for piece, role in lines[0] if "1.000" in piece] == ["dim"]
    assert text_of(lines[1])[NAME:].strip() == "…"
    assert text_of(lines[3])[NAME:].strip() == "has no value at d_k = 1"
    assert "alert" in [role for _, role in lines[3]]
    lines = [text_of(line) for line in table_lines(shown(), 100, 0, PLAIN, UNICODE)[HEAD:]]
    assert [line[:2] for line in lines if line[:2] != "  "] == ["▌ ", " ◆"]
    assert lines[RULES.index("two_sqrt_d_k")].startswith(" ◆1/(2√d_k)")


@pytest.mark.parametrize("height", [PLAIN + 2 * len(FAMILIES) - 1, PLAIN, HEAD + 12])
def test_families_have_titles_and_the_cursor_s_is_shown_with_its_first_rule(height: int) -> None:
    names = by_family(RULES)
    of, top = shown(names=names, order=Order()), 0
    for name in (*names, *reversed(names)):
        at = replace(of, cursor=name)
        top = first_line(at, top, height)
        lines = [text_of(line).strip() for line in table_lines(at, 100, top, height, UNICODE)]
        assert len(lines) <= height
        rules = [rule_at(at, top, y, height) for y in range(HEAD, len(lines))]
        assert name in rules
        family = family_of(scale_rule(name))
        first = next(each for each in names if family_of(scale_rule(each)) == family)
        assert name != first or lines[HEAD + rules.index(name) - 1] == family
        for rule, line in zip(rules, lines[HEAD:], strict=True):
            assert (rule is None) == (line in ("", *FAMILIES) or "more" in line), line
        shown_rules = sum(rule is not None for rule in rules)
        counted = sum(int(number) for number in re.findall(r"(\d+) more", lines[-1]))
        assert shown_rules + counted == len(names)


def test_other_orders_and_low_tables_have_no_titles_and_a_reverse_order_reverses_families() -> None:
    names = by_family(RULES)
    for order, height in ((Order("dead_rows"), 60), (Order(), HEAD + 11)):
        lines = table_lines(shown(names=names, order=order), 100, 0, height, UNICODE)
        assert not {text_of(line).strip() for line in lines} & {*FAMILIES}
    assert by_family(RULES, reverse=True) == by_family(RULES)[::-1]
    with_formula = by_family([*RULES, "1/sqrt(d)"])
    depends_on_d_k = [name for name in with_formula if family_of(scale_rule(name)) == FAMILIES[0]]
    assert depends_on_d_k[-1] == "1/sqrt(d)"


@for_each("glyphs", [UNICODE, ASCII])
@for_each("name", RULES)
def test_the_description_of_a_rule_names_its_source(name: str, glyphs: Glyphs) -> None:
    lines = rule_text(name, ROWS[name], SATURATING.get(name), 60, glyphs)
    assert all(line_width(line) <= 60 for line in lines)
    lines = [rule_title(name, glyphs), *lines]
    told = " ".join(text_of(line) for line in lines)
    rule = SCALE_RULES[name]
    for part in (rule.formula, rule.source.split()[0], rule.note.split(" ")[0]):
        assert glyphs.say(part) in told
    assert ("depends on" in told) == bool(rule.needs)
    assert ("layer 11" in told) == ("layer" in rule.needs)
    assert "entropy" in told
    assert "Softmax stays below saturation" in told or "Softmax is saturated " in told


def test_no_share_is_said_in_a_word_and_other_zeros_are_numbers() -> None:
    row = RuleRow("none", 1.0, {"logit_std": Estimate(0.0, None), "dead_rows": Estimate(0.0, 0.0)}, "")
    told = " ".join(text_of(line) for line in rule_text("none", row, None, 200, UNICODE))
    assert re.search(r"std 0\b", told)
    assert "none" in told
    some = replace(row, measured={"logit_std": Estimate(2.0, 0.1), "dead_rows": Estimate(0.5, 0.01)})
    told = " ".join(text_of(line) for line in rule_text("none", some, None, 200, UNICODE))
    assert re.search(r"2(\.0+)? ± 0\.10*\b", told)
    assert re.search(r"50(\.0)? ± 1(\.0)? %", told)


def test_an_error_message_comes_first() -> None:
    fault = RuleRow("log_d_k", None, {}, "1/ln d_k has no value at d_k = 1")
    assert text_of(rule_text("log_d_k", fault, None, 80, UNICODE)[0]) == "1/ln d_k has no value at d_k = 1."
    lines = rule_text("log_d_k", fault, None, 80, UNICODE, "No.")
    assert [text_of(line) for line in lines[:1]] == ["No."]
    assert lines[0][0][1] == "alert"


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_long_name_does_not_move_the_columns(glyphs: Glyphs) -> None:
    formula = "0.5*log2(n)/d^2"  # 15 characters
    rows = ROWS | {formula: replace(ROWS["none"], rule=formula)}
    lines = table_lines(shown(names=(*RULES, formula), rows=rows), 80, 0, PLAIN + 1, glyphs)[HEAD:]
    assert len({text_of(line).index(re.findall(r"\.\d", text_of(line)[NAME:])[0], NAME) for line in lines}) == 1


BOUNDS = {"additive": 8.0, "cosine": 1.0}
MECHANISMS = [
    MechanismRow(
        m, rule, 1.0, d_k, {name: Estimate(0.5 / d_k, 0.1) for name in OF_MECHANISMS}, d_k / 8, BOUNDS.get(m), s
    )
    for d_k in (4, 16, 32)
    for m, rule, s in COMPARED
]


def texts(rows: list[MechanismRow], width: int = 80, glyphs: Glyphs = UNICODE) -> list[str]:
    def text(line: Line) -> str:
        assert line_width(line) <= width
        return "".join(piece for piece, _ in line)

    return [text(line) for line in mechanism_lines(rows, width, glyphs)]


def test_each_statistic_has_a_line_for_each_mechanism_with_aligned_points() -> None:
    lines = texts(MECHANISMS)
    at = lines.index("entropy / ln n, %            4      16      32")
    assert [line[:22].strip() for line in lines[at + 1 : at + 7]] == [
        "dot product × 1", "dot product × 1/√d_k", "dot product with sink", "bilinear × 1/√d_k", "additive", "cosine",
    ]  # fmt: skip
    assert lines[at + 1].split()[-3:] == ["12.50", "3.125", "1.562"]
    at = lines.index("bound of |score|             4      16      32")
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["additive", "cosine"]
    block = lines[1:7]
    for at in range(22, max(map(len, block))):
        column = {line[at : at + 1] for line in block}
        assert "." not in column or column <= {".", " ", ""}


def test_the_bounds_are_described_in_words() -> None:
    additive, cosine = bound_sentences(MECHANISMS)
    assert "at d_k 32 ‖v‖₁ is 8, and the largest |score| drawn is 4, 50 % of it" in additive
    assert "exceeds 1 at 2 of 3 d_k" in additive
    assert "±1" in cosine
    assert bound_sentences([row for row in MECHANISMS if row.mechanism == "dot_product"]) == []


@pytest.mark.parametrize(("width", "missing"), [(30, "4, 16"), (38, "4"), (46, "")])
def test_if_not_all_d_k_fit_the_largest_are_shown(width: int, missing: str) -> None:
    hidden = " ".join(texts(MECHANISMS, width)).partition("Not shown at this width: ")[2].partition(".")[0]
    assert hidden == (f"d_k {missing}" if missing else "")


def test_mechanisms_without_a_measurement_are_pending() -> None:
    assert texts([]) == ["Measuring mechanisms…"]
    lines = texts(MECHANISMS[:-1])
    assert next(line for line in lines if line.startswith(" cosine")).split()[-1] == "…"
    assert all(line.isascii() for line in texts(MECHANISMS[:-1], glyphs=ASCII))
