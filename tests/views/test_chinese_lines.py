"""Chinese text in lines: breaks, cuts and columns count cells, of which a Chinese character takes two."""

from dataclasses import replace

from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import theory_of
from attn_tui.tui.language.cells import cells
from attn_tui.tui.views.bars import key_at, key_line, pane_at, tab_line
from attn_tui.tui.views.fields.choices import Choice
from attn_tui.tui.views.fields.matching import in_both, matching
from attn_tui.tui.views.glyphs import IN_LANGUAGE, UNICODE
from attn_tui.tui.views.lines import line_width, middle_cut, shortened, wrapped
from attn_tui.tui.views.results.table import layout, meaning, row_line, table_lines, table_rows, with_theory
from cases import for_each
from line_texts import text_of, texts_of

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
    said = {"causal": "因果", "Query i sees keys 0 to i.": "查询 i 看到键 0 到 i。"}
    row = in_both(Choice("causal", "causal", help="Query i sees keys 0 to i."), lambda text: said.get(text, text))
    assert all(matching([row], words) == [row] for words in ("causal", "因果", "看到", "sees"))
    assert not matching([row], "掩码")


def test_meanings_fit_their_cells_and_values_have_the_stops_of_chinese() -> None:
    for statistic in STATISTIC.values():
        for room in (20, 40, 60):
            assert line_width(((meaning(statistic, room, ZH), "dim"),)) <= room
    assert ZH.say("{verb}{name}", verb="用于", name="muP") == "用于 muP"
    assert ZH.say("{name}: {rest}", name="NaN", rest="有些行") == "NaN：有些行"
    assert ZH.say("{one} {other}", one="没有这样的行。", other="乘以") == "没有这样的行。乘以"
    assert ZH.say("{name:<6}{value}", name="熵值", value="8") == "熵值  8"  # columns keep their cells
