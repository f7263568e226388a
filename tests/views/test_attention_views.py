"""The attention of a captured head as lines: the list of heads, the matrix, one row, and what can be found."""

from dataclasses import replace

import pytest
from attn_tui.core.captures.capture import Layer, sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import named_rule
from attn_tui.core.diagnosis.comparing.results import HeadComparison, Plan
from attn_tui.core.diagnosis.heads.attention import attention_matrix, attention_row
from attn_tui.core.diagnosis.results import AttentionCells, AttentionRow
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.tui.panes.capture.heads import CHANGE, ORDERS, Heads, find
from attn_tui.tui.panes.capture.matrix import LEVELS, ends_of, level, matrix_lines, pair_at, panned, view, zoomed
from attn_tui.tui.panes.capture.requests import ComparedHeads, HeadStatistics
from attn_tui.tui.panes.capture.row import key_at, label, row_lines, threshold_words, token
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Blend, line_width
from attn_tui.tui.views.results.ranked import RankedHead, ranked_lines
from cases import for_each, present
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of

CAPTURE = open_capture(sample_path())
LAYER: Layer = CAPTURE.layers[0]
TOKENS = present(CAPTURE.tokens)[0]
BOTH = (TOKENS, TOKENS)
SATURATING = STATISTIC["saturation"]


def attention(head: int, down: int, across: int, queries: tuple[int, int] = (0, 70)) -> AttentionCells:
    found = attention_matrix(CAPTURE, LAYER, head, file_rule(LAYER), 0, queries, (0, 70), down, across)
    return next(each for each in found if each is not None)


def one_row(query: int = 12, head: int = 5) -> AttentionRow:
    return attention_row(CAPTURE, LAYER, head, [named_rule("none", LAYER), file_rule(LAYER)], 0, query)


def heads() -> list[RankedHead]:
    found: list[RankedHead] = []
    for head in range(4):
        measured = measure_head(CAPTURE, LAYER, head, [file_rule(LAYER)]).columns[0].measured
        if head in (0, 3):
            measured = {**measured, "saturation": Estimate(23456.7 if head == 0 else 1.7e-4, None)}
        found.append(RankedHead(0, head, measured, (f"reason {head}", "another"), rough=head == 1))
    return [*found, RankedHead(0, 4, None, ())]


# The list


def test_the_list_has_numbers_a_bar_a_word_and_reasons() -> None:
    header, *lines = map(text_of, ranked_lines(heads(), SATURATING, 120, UNICODE, chosen=2))
    assert header.split() == ["L/H", "saturation", "max", "1st", "key", "status", "because"]
    third = lines[2].split()
    assert third[:2] == ["▌0/2", "4.30"]
    assert third[2] == "█" * 7 + "▸", "longer than a full bar"
    assert third[3:] == ["100", "%", "3", "%", "one-hot", "reason", "2;", "another"]
    assert "≈healthy" in lines[1], "of some rows"
    assert "≈" not in lines[0]
    assert "unreadable" in lines[4]
    assert len({line.index("reason") for line in lines[:4]}) == 1
    alone = text_of(ranked_lines(heads()[1:2], SATURATING, 120, UNICODE)[1])
    assert alone == lines[1], "the same axis without a saturated head"


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("width", [30, 45, 58, 59, 80, 140])
def test_lines_of_the_list_have_the_width_and_a_cut_is_marked(width: int, glyphs: Glyphs) -> None:
    lines = ranked_lines(heads(), SATURATING, width, glyphs)
    assert {line_width(line) for line in lines} == {width}
    assert ("max" in text_of(lines[0])) == (width >= 59), "two more statistics"
    for line, head in zip(lines[1:], heads(), strict=True):
        text = text_of(line)
        assert text.isascii() or not glyphs.ascii
        assert "one-hot" in text or head.head != 2
        assert text.rstrip().endswith(("another", glyphs.say("…"))) or head.measured is None


@pytest.mark.parametrize(("glyphs", "names"), [(UNICODE, ("saturation", "satur")), (ASCII, ("saturation", "satur."))])
def test_the_name_of_the_ratio_is_shortened_instead_of_cut(glyphs: Glyphs, names: tuple[str, ...]) -> None:
    for width in (82, 140) if glyphs is ASCII else (45, 82, 140):
        words = text_of(ranked_lines(heads(), SATURATING, width, glyphs)[0]).replace("L/H", "").split("  ")
        assert any(name in (word.strip() for word in words) for name in names), words


def test_later_answers_about_heads_replace_no_better_ones_and_turn_nothing_back() -> None:
    found, place, exact = Heads(), (0, 0), {"saturation": Estimate(1.0, None)}
    found.learn(HeadStatistics({place: exact}))
    found.learn(HeadStatistics({place: {}}, rough=True))
    assert (found.measured, found.rough) == ({place: exact}, set())
    first, second = (HeadComparison(LAYER, head, LAYER, head, (), None, None, 0.1, 0.0) for head in range(2))
    found.learn_changes(ComparedHeads(CAPTURE, (first,), Plan((), (), ())))
    assert (found.statistic, found.order) == (CHANGE, ORDERS.index("largest"))
    found.statistic, found.order = SATURATING, 0
    found.learn_changes(ComparedHeads(CAPTURE, (second,), Plan((), (), ())))
    assert (found.statistic, found.order, len(found.compared)) == (SATURATING, 0, 2)


# The matrix


@given(
    queries=st.integers(1, 300), keys=st.integers(1, 300), width=st.integers(4, 90), height=st.integers(2, 40),
    halves=st.booleans(), tokens=st.booleans(), data=st.data(),
)  # fmt: skip
def test_the_matrix_fits_any_size_and_the_cursor_is_on_it(
    queries: int, keys: int, width: int, height: int, halves: bool, tokens: bool, data: st.DataObject
) -> None:
    shown = view((0, queries), (0, keys), width, height, halves, tokens)
    cursor = data.draw(st.integers(0, queries - 1)), data.draw(st.integers(0, keys - 1))
    rows = [queries * y // shown.down for y in range(shown.down + 1)]
    columns = [keys * x // shown.across for x in range(shown.across + 1)]
    shares = tuple((0.5,) * shown.across for _ in range(shown.down))
    matrix = AttentionCells(0, 0, 0, tuple(rows), tuple(columns), tuple(rows[:-1]), shares, False)
    names = [f"word{n}" for n in range(max(keys, queries))] if tokens else None
    glyphs = UNICODE if halves else ASCII
    lines = matrix_lines(shown, matrix, cursor, (names, names), glyphs)
    assert len(lines) <= height
    assert {line_width(line) for line in lines} == {width}
    role = "accent" if halves else "cursor"
    marked = [y for y, line in enumerate(lines[1:], start=1) if any(each == role for _, each in line)]
    assert len(marked) == 1
    places = [pair_at(shown, matrix, x, marked[0]) for x in range(shown.labels, width)]
    hit = [place for place in places if place is not None]
    assert any(query <= cursor[0] and key <= cursor[1] for query, key in hit)
    assert pair_at(shown, matrix, 0, 0) is None


def test_a_line_has_two_rows_of_cells_and_tokens_at_the_edges() -> None:
    shown = view((0, 70), (0, 70), 81, 36, True, True)
    assert (shown.down, shown.across) == (70, 70)
    matrix = attention(5, 70, 70)
    lines = matrix_lines(shown, matrix, (3, 9), BOTH, UNICODE)
    assert len(lines) == 36
    assert text_of(lines[1]).startswith(f" {label(TOKENS, 0, 9, UNICODE)}")
    assert text_of(lines[2]).startswith(f"▌{label(TOKENS, 3, 9, UNICODE)}"), "the query with the cursor"
    ruler = text_of(lines[0])
    shown_there = [
        at for at in range(70) if ruler[shown.labels + at :].startswith(label(TOKENS, at, 7, UNICODE).strip())
    ]
    assert 9 in shown_there
    for at in (0, 1, 69):
        tokens = [text for text, role in matrix_lines(shown, matrix, (3, at), BOTH, UNICODE)[0] if role == "accent"]
        assert tokens == [label(TOKENS, at, 7, UNICODE).strip()], "that of the key with the cursor"
    assert ruler.split() == [label(TOKENS, at, 7, UNICODE).strip() for at in shown_there], "each over its column"
    cells = [(half, *role) for text, role in lines[1] if isinstance(role, Blend) for half in text]
    ends = ends_of(matrix)
    pairs = [[level(share or 0, ends) for share in pair] for pair in zip(*matrix.shares[:2], strict=True)]
    assert cells == [(" " if a == b else "▀▄"[a < b], max(a, b), min(a, b)) for a, b in pairs]


def test_a_row_of_several_queries_is_labelled_by_the_one_with_the_cursor() -> None:
    shown = view((0, 70), (0, 70), 60, 8, True, True)
    lines = matrix_lines(shown, attention(5, shown.down, shown.across), (69, 0), BOTH, UNICODE)
    assert text_of(lines[-1]).startswith(f"▌{token(TOKENS, 69)}")
    some = replace(attention(5, shown.down, shown.across), positions=tuple(range(0, 28, 2)))
    last = text_of(matrix_lines(shown, some, (69, 0), BOTH, UNICODE)[-1])
    assert last.startswith(f"▌{label(TOKENS, 26, 9, UNICODE)}"), "of sampled queries only the first one is known"


def test_few_queries_take_a_line_each_and_larger_weights_are_darker() -> None:
    shown = view((0, 5), (0, 5), 40, 20, True, True)
    assert (shown.down, shown.across, shown.tall, shown.wide) == (5, 5, True, 3)
    lines = matrix_lines(shown, attention(5, 5, 5, (0, 5)), (0, 0), BOTH, UNICODE)
    assert [text_of(line).split()[0].strip("▌") for line in lines[1:]] == [token(TOKENS, at) for at in range(5)]
    assert [level(share, (0.001, 1.0)) for share in (0, 9e-4, 0.001, 0.02, 0.3, 1)] == [0, 0, 1, 4, 7, LEVELS]
    shown = view((0, 2), (0, 2), 20, 3, False, False)
    shares = ((1.0, None), (0.001, 0.999))
    matrix = AttentionCells(0, 0, 0, (0, 1, 2), (0, 1, 2), (0, 1), shares, False)
    lines = matrix_lines(shown, matrix, (0, 1), (None, None), ASCII)
    assert [text_of(line).rstrip() for line in lines[1:]] == ["@@@+", "...@@@"]


def test_shades_span_the_weights_of_a_head_and_a_uniform_one_looks_uniform() -> None:
    def of(*shares: float) -> AttentionCells:
        return AttentionCells(0, 0, 0, (0, 1), tuple(range(len(shares) + 1)), (0,), (shares,), False)

    assert ends_of(of(0.5, 0.02)) == (0.02, 0.5)
    assert ends_of(of(1.0, 1e-9)) == (0.001, 1.0)
    uniform = of(*[0.05] * 20)
    assert ends_of(uniform) == (0.005, 0.05)
    assert {level(share, ends_of(uniform)) for share in uniform.shares[0] if share} == {LEVELS}


def test_figures_of_a_narrow_row_never_touch() -> None:
    row = one_row()
    tiny = replace(row, columns=[replace(column, entropy=6.8217e-24) for column in row.columns])
    [line] = [text_of(line) for line in row_lines(tiny, 3, TOKENS, 27, 14, UNICODE) if "entropy" in text_of(line)]
    assert line.split() == ["entropy", "6.8e−24", "6.8e−24"]


def test_zooming_keeps_the_cursor_and_stays_in_the_matrix() -> None:
    assert zoomed((0, 100), 100, 50, 0.5) == (25, 75)
    assert zoomed((0, 100), 100, 0, 0.5) == (0, 50)
    assert zoomed((90, 100), 100, 99, 2) == (80, 100)
    assert zoomed((40, 44), 100, 41, 0.5) == (40, 44), "never less than four"
    assert zoomed((0, 3), 3, 1, 0.5) == (0, 3)
    assert panned((10, 20), 25) == (16, 26)
    assert panned((10, 20), 4) == (4, 14)
    assert panned((10, 20), 15) == (10, 20)


# One row


def test_a_row_shows_the_largest_weights_the_rest_and_figures() -> None:
    row = one_row()
    lines = [text_of(line) for line in row_lines(row, 3, TOKENS, 50, 14, UNICODE)]
    assert lines[0].split() == ["key", "unscaled", "×", "1", "file", "×", "0.177"]
    narrow = text_of(row_lines(row, 3, None, 30, 14, UNICODE)[0])
    assert narrow.split()[1:] == ["unscaled", "file"], "never in colour alone"
    shown = lines[1:10]
    assert f"▌{token(TOKENS, 3)}"[:8] in "".join(shown), "the key with the cursor"
    own = row.columns[-1]
    best = row.keys[own.weights.index(max(own.weights))]
    [line] = [line for line in shown if line[1:].startswith(label(TOKENS, best, 12, UNICODE).rstrip()[:8])][:1]
    assert f"{max(own.weights):.2f}" in line
    assert "more" in lines[10]
    assert lines[11].split()[0] == "entropy"
    assert f"{own.entropy:.2f}" in lines[11]
    assert lines[12].split()[0] == "gradient"
    words = [word for word in lines[12].split() if word in ("dead", "flows")]
    assert words == ["dead" if column.dead else "flows" for column in row.columns]
    assert lines[13].split()[0] == "satur"


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [40, 50, 70])
def test_a_bar_is_as_long_as_its_weight_is_large_and_a_full_one_all_of_it(glyphs: Glyphs, width: int) -> None:
    row = one_row()
    steps = len(glyphs.lengths) - 1
    full: list[float] = []
    for line in row_lines(row, 3, TOKENS, width, 14, glyphs)[1:10]:
        bars = [
            (text.rstrip(), line[at + 1][0]) for at, (text, role) in enumerate(line) if role in ("unscaled", "scaled")
        ]
        for bar, number in bars:
            length = sum(glyphs.lengths.index(sign) for sign in bar)
            if "0.2" < number.strip() < "2":
                full.append(length / steps / float(number))
    assert full
    assert max(full) - min(full) < 2
    assert max(full) < width / 2


@given(query=st.integers(0, 69), key=st.integers(0, 69), width=st.integers(24, 70), height=st.integers(1, 80))
def test_a_row_fits_any_size_and_its_keys_can_be_clicked(query: int, key: int, width: int, height: int) -> None:
    row = one_row(query % 3)
    for tokens in (TOKENS, None):
        lines = row_lines(row, key, tokens, width, height, UNICODE)
        assert len(lines) <= height
        assert {line_width(line) for line in lines} == {width}
        found = [key_at(row, key, tokens, width, height, y, UNICODE) for y in range(height)]
        for y, each in enumerate(found):
            if each is not None:
                name = token(tokens, each)
                assert text_of(lines[y])[1:].startswith(name[:4])
        if height >= 8:
            assert key in found


def test_what_unsaturates_a_row_is_told() -> None:
    row = one_row()
    assert row.threshold is not None
    own = row.columns[-1]
    words = {
        0.5: "this row saturates at × 0.5",
        1.5: "this row recovers at × 0.5",
    }
    for ratio, told in words.items():
        changed = replace(row, threshold=0.5, columns=(replace(own, saturation=ratio),))
        assert threshold_words(changed, 40, UNICODE) == told
        assert threshold_words(changed, 20, UNICODE) == told.removeprefix("this row ")
    assert threshold_words(replace(row, threshold=None), 40, UNICODE) == "never saturates"
    assert threshold_words(replace(row, threshold=None, visible=1), 40, UNICODE) == "sees one key"


# Tokens and finding


def test_tokens_are_printable_and_found() -> None:
    assert token(["Ġthe", "\n", "▁", "a\x1b[0m", "é"], 0) == "the"
    assert [token(["Ġthe", "\n", "▁", "a\x1b[0m", "é"], at) for at in range(1, 5)] == ["\\n", "␣", "a\\x1b[0m", "é"]
    assert token(None, 17) == token(["a"], 17) == "17"
    assert label(["dimension"], 0, 6, UNICODE) == "dimen…"
    assert label(["日本語"], 0, 5, UNICODE) == "日本…"
    layers = CAPTURE.layers
    assert find("3/7", layers, LAYER, TOKENS, 0) == (3, 7)
    assert find("12", layers, LAYER, TOKENS, 0) == 12
    at = next(n for n, each in enumerate(TOKENS) if each == "query")
    assert find("QUERY", layers, LAYER, TOKENS, 0) == at
    again = find("query", layers, LAYER, TOKENS, at)
    assert isinstance(again, int)
    assert "query" in TOKENS[again]
    assert again != at or TOKENS.count("query") == 1
    assert find("9/0", layers, LAYER, TOKENS, 0) == "no layer 9; the file has layers 0 to 5"
    assert find("0/12", layers, LAYER, TOKENS, 0) == "no head 12; layer 0 has heads 0 to 11"
    assert find("70", layers, LAYER, TOKENS, 0) == "no query 70; the last one is 69"
    assert find("zebra", layers, LAYER, TOKENS, 0) == "no token contains zebra"
    some = replace(LAYER, rows="rows")
    assert find("query", layers, some, TOKENS, 0) == "the file has some queries only; give the number of one"
    assert find("zebra", layers, LAYER, None, 0) == "the file has no tokens; a head is 3/7, a query 12"
