"""Lines have exactly the given width, whatever characters they contain; a Chinese one takes two cells."""

from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import theory_of
from attn_tui.tui.language.cells import cells
from attn_tui.tui.views.bars import key_at, key_line, pane_at, tab_line
from attn_tui.tui.views.fields.choices import Choice
from attn_tui.tui.views.fields.matching import matching
from attn_tui.tui.views.glyphs import IN_LANGUAGE, UNICODE
from attn_tui.tui.views.lines import Line, as_text, ends, fitted, line_width, middle_cut, shortened, unsplit, wrapped
from attn_tui.tui.views.results.table import layout, meaning, row_line, table_lines, table_rows, with_theory
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st
from line_texts import text_of, texts_of
from rich.cells import cell_len

# Narrow, wide (two cells each) and combining (none).
words = st.text(st.sampled_from("ab 词語한字\u0301é—▁"), max_size=12)
roles = st.sampled_from(["text", "label", "dim", "scaled"])
lines = st.lists(st.tuples(words, roles), max_size=6).map(tuple)


@given(line=lines, width=st.integers(0, 60))
def test_a_fitted_line_has_exactly_the_width(line: Line, width: int) -> None:
    assert line_width(fitted(line, width)) == width


@given(line=lines, width=st.integers(0, 60))
@example(line=(("aa", "text"), ("aa", "text"), ("\u0301", "text")), width=3)
def test_fitting_keeps_the_beginning_and_its_roles(line: Line, width: int) -> None:
    whole, kept = text_of(line), text_of(fitted(line, width)).rstrip(" ")
    assert whole.startswith(kept)
    roles_of = [(character, role) for text, role in line for character in text]
    fitted_roles = [(character, role) for text, role in fitted(line, width) for character in text]
    assert fitted_roles[: len(kept)] == roles_of[: len(kept)]


@given(line=lines, columns=st.frozensets(st.integers(0, 40)))
def test_columns_split_no_wide_character_of_a_moved_line(line: Line, columns: frozenset[int]) -> None:
    moved = text_of(unsplit(line, columns))
    assert moved.replace(" ", "") == text_of(line).replace(" ", "")
    starts = [cell_len(moved[:at]) for at, character in enumerate(moved) if cell_len(character) == 2]
    assert not {start + 1 for start in starts} & columns


def test_a_wide_character_moves_away_from_a_column_at_the_punctuation_before_it() -> None:
    line: Line = (("按键。注意力", "text"),)
    assert unsplit(line, {3}) == (("按 键。注意力", "text"),)
    assert unsplit(line, {9}) == (("按键。 注意力", "text"),)
    assert unsplit(line, {7, 10}) == (("按键。 注 意力", "text"),)
    assert unsplit(line, {2, 4}) == line


def test_a_line_that_fits_is_unchanged_and_no_wide_character_split() -> None:
    assert fitted((("ab", "dim"),), 2) == (("ab", "dim"),)
    assert fitted((), 3) == (("   ", "text"),)
    assert fitted((("词語", "text"),), 3) == (("词 ", "text"),)
    assert fitted((("词語", "text"),), 1) == ((" ", "text"),)
    assert fitted((("a", "dim"), ("词", "text")), 2) == (("a", "dim"), (" ", "text"))


@given(left=lines, right=lines, width=st.integers(0, 80))
def test_two_ends_have_exactly_the_width(left: Line, right: Line, width: int) -> None:
    assert line_width(ends(left, right, width)) == width


def test_the_right_part_is_at_the_edge_or_dropped() -> None:
    left: Line = (("left", "text"),)
    right: Line = (("词", "dim"),)
    assert text_of(ends(left, right, 10)) == "left    词"
    assert text_of(ends(left, right, 7)) == "left 词"
    assert text_of(ends(left, right, 6)) == "left  "  # they need a space between them
    assert text_of(ends(left, right, 3)) == "lef"


@given(text=st.lists(words, max_size=8).map(" ".join), width=st.integers(24, 60))
def test_a_paragraph_keeps_its_words_in_lines_that_fit(text: str, width: int) -> None:
    paragraph = texts_of(wrapped(text, width, "dim"))
    assert "".join("".join(paragraph).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in paragraph)
    assert all(line == line.strip() and line for line in paragraph)


def test_a_paragraph_breaks_between_words_or_a_word_that_is_too_long() -> None:
    assert texts_of(wrapped("one two  three", 7)) == ["one two", "three"]
    assert wrapped("  ", 7) == []
    assert wrapped("a", 7, "alert") == [(("a", "alert"),)]
    path = "/a/very/long/path/to/a/capture.safetensors"
    paragraph = texts_of(wrapped(f"{path}: empty", 20))
    assert all(len(line) <= 20 for line in paragraph)
    assert "".join(paragraph).replace(" ", "").startswith(path)


def test_printed_lines_have_the_same_text() -> None:
    text = as_text([(("ab", "unscaled"), (" c", "dim")), ((("d"), "alert"),)])
    assert text.plain == "ab c\nd"


def test_punctuation_stays_with_a_percent_sign() -> None:
    lines = wrapped("Dead rows 0 %. Sinks (above 30 %) and, 5 %, others.", 80)
    assert lines == [(("Dead rows 0 %. Sinks (above 30 %) and, 5 %, others.", "text"),)]
    assert [text for ((text, _),) in wrapped("It is 14 %. No", 9)] == ["It is", "14 %. No"]


@pytest.mark.parametrize("height", range(1, 6))
def test_a_cut_paragraph_ends_with_the_sign(height: int) -> None:
    lines = wrapped("one two three four five six seven", 9)
    assert shortened(lines, 9, 5, "…") == lines
    cut = texts_of(shortened(lines, 9, height, "…"))
    assert len(cut) == min(height, len(lines))
    assert cut[-1].endswith(" …") == (height < len(lines))
    assert all(len(text) <= 9 for text in cut)


def test_a_word_that_fills_the_line_is_shortened_for_the_sign() -> None:
    assert shortened(wrapped("abcdefghi jkl", 9), 9, 1, "...") == [(("abcde ...", "text"),)]


@for_each("width", range(-2, 12))
def test_wrapping_ends_at_any_width(width: int) -> None:
    for text in ("Unscaled: 28 % of rows one-hot.", "词语 > 99.9 % 词语"):
        lines = wrapped(text, width)
        assert width <= 0 or all(line_width(line) <= width for line in lines)
        for height in range(4):
            assert len(shortened(lines, width, height, "…")) <= max(height, 0)


def test_a_name_that_is_too_long_loses_its_middle_but_no_half_of_a_character() -> None:
    assert middle_cut("all-MiniLM-L6-v2", 16, "…") == "all-MiniLM-L6-v2"
    assert middle_cut("all-MiniLM-L6-v2", 11, "…") == "all-M…L6-v2"
    assert middle_cut("scaled scores are normal", 20, "…") == "scaled…normal"
    for width in range(30):
        for sign in ("…", "..."):
            assert line_width(((middle_cut("scaled scores are normal", width, sign), "text"),)) <= width
    for width in range(12):
        assert line_width(((middle_cut("模型的名字很长", width, "…"), "text"),)) <= width


ZH = IN_LANGUAGE["zh"]
TEXT = "缩放使一行的 27 % 不再是独热，σ 为 0.5 ± 0.1；softmax 的输入（对数几率）不变。"
ASKED = Parameters(d_k=64, n_keys=16, n_queries=8, batch=4)
MEASURED = run(ASKED)
CONTENTS = with_theory(MEASURED, theory_of(MEASURED))
PANES = ("Lab", "Sweep", "Rules")
KEYS = (("←→", "d_k ±1"), ("?", "help"), ("q", "quit"), (">", "next tab"))


@for_each("width", range(12, 80))
def test_a_chinese_paragraph_breaks_beside_characters_and_keeps_numbers_whole(width: int) -> None:
    lines = texts_of(wrapped(TEXT, width))
    assert "".join(lines).replace(" ", "") == TEXT.replace(" ", "")
    assert all(line_width(((line, "text"),)) <= width for line in lines)
    assert all(line[0] not in "，。；）%±" and line[-1] not in "（±" for line in lines)
    assert all(line_width(((line, "text"),)) > width - 14 for line in lines[:-1])  # full but for a longest word


def test_a_cut_paragraph_fills_its_last_line_and_a_name_loses_its_middle() -> None:
    lines = wrapped(TEXT, 20)
    last = text_of(shortened(lines, 20, 2, "…")[-1])
    assert last.endswith(" …")
    assert 16 <= line_width(((last, "text"),)) <= 20
    assert middle_cut("未缩放的得分服从正态分布", 13, "…") == "未缩放…态分布"


def test_neither_numbers_nor_words_instead_of_them_move_a_column() -> None:
    for chinese, english in zip(
        table_lines(table_rows(CONTENTS), CONTENTS, layout(CONTENTS, 100), ZH),
        table_lines(table_rows(CONTENTS), CONTENTS, layout(CONTENTS, 100), UNICODE),
        strict=True,
    ):
        if any(sign in text_of(english) for sign in "±"):
            ends = [cells(line.rpartition("±")[0]) for line in (text_of(chinese), text_of(english))]
            assert ends[0] == ends[1]
    column = replace(MEASURED.columns[0], measured={**MEASURED.columns[0].measured, "dead_rows": Estimate(0.0, 0.0)})
    contents = CONTENTS._replace(columns=(column, MEASURED.columns[1]))
    (row,) = (row for row in table_rows(contents) if row.statistic is STATISTIC["dead_rows"])
    for width in (40, 100, 130):
        starts: list[list[int]] = []
        for glyphs in (ZH, UNICODE):
            line = row_line(row, contents, layout(contents, width), glyphs)
            starts.append([line_width(line[:at]) for at, (_, role) in enumerate(line) if role == "scaled"])
        assert starts[0] == starts[1] != []


def test_a_list_and_clicks_find_what_is_said_in_chinese() -> None:
    bar = key_line(KEYS, 100, ZH)
    x = 0
    for text, role in bar:
        if role == "dim":
            assert key_at(KEYS, 100, ZH, x + 1) is not None
        x += line_width(((text, role),))
    tabs = tab_line(PANES, "Lab", 100, ZH)
    x = 0
    for text, role in tabs:
        if role == "dim":
            assert pane_at(PANES, "Lab", 100, x + 1, ZH) in PANES
        x += line_width(((text, role),))
    row = Choice("sqrt_d_k", "Show the answer", help="row entropy", also=("the largest weight of a row",))
    assert all(matching([row], words) == [row] for words in ("answer", ZH.say("row entropy"), "entropy"))
    assert not matching([row], "掩码")


def test_meanings_fit_their_cells_and_values_have_the_stops_of_chinese() -> None:
    for statistic in STATISTIC.values():
        for room in (20, 40, 60):
            assert line_width(((meaning(statistic, room, ZH), "dim"),)) <= room
    assert ZH.say("{verb}{name}", verb="用于", name="muP") == "用于 muP"
    assert ZH.say("{name}: {rest}", name="NaN", rest="有些行") == "NaN：有些行"
    assert ZH.say("{one} {other}", one="没有这样的行。", other="乘以") == "没有这样的行。乘以"
    assert ZH.say("{name:<6}{value}", name="熵值", value="8") == "熵值  8"  # columns keep their cells
