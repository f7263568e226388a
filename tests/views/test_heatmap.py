"""The map of heads: readable without colours, with the cursor always visible."""

import pytest
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.status import Status
from attn_tui.tui.panes.capture.heatmap import MARGIN, HeadMap, map_lines, mark_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of

ENTROPY = STATISTIC["entropy"]
SHARE = STATISTIC["entropy_fraction"]


def full(layers: int, heads: int) -> HeadMap:
    """Return a map whose values grow from the first head to the last."""
    values = {(y, x): float(y * heads + x) for y in range(layers) for x in range(heads)}
    return HeadMap(range(layers), [heads] * layers, values)


@st.composite
def maps(draw: st.DrawFn) -> tuple[HeadMap, tuple[int, int]]:
    """Draw a map of layers with different numbers of heads, some unreadable, some pending, and a cursor."""
    heads = draw(st.lists(st.integers(1, 90), min_size=1, max_size=40))
    value = st.none() | st.floats(-1e6, 1e6)
    values = {(y, x): draw(value) for y in range(len(heads)) for x in range(0, heads[y], 7) if draw(st.booleans())}
    y = draw(st.integers(0, len(heads) - 1))
    return HeadMap(range(len(heads)), heads, values), (y, draw(st.integers(0, heads[y] - 1)))


@given(drawn=maps(), width=st.integers(12, 80), height=st.integers(5, 40), glyphs=st.sampled_from([UNICODE, ASCII]))
def test_the_cursor_is_visible_at_any_size(
    drawn: tuple[HeadMap, tuple[int, int]], width: int, height: int, glyphs: Glyphs
) -> None:
    head_map, cursor = drawn
    lines = map_lines(head_map, ENTROPY, cursor, width, height, glyphs)
    assert len(lines) <= height
    assert {line_width(line) for line in lines} == {width}
    chosen = [(line, text) for line in lines for text, role in line if role == "cursor"]
    assert len(chosen) == 1
    assert text_of(chosen[0][0]).startswith(f"{cursor[0]:>3} ")
    assert all(text_of(line).isascii() for line in lines) or not glyphs.ascii


def test_a_larger_value_has_a_darker_shade() -> None:
    cells = text_of(map_lines(full(2, 12), ENTROPY, (1, 0), 40, 10, UNICODE)[2])[MARGIN:]
    cells += text_of(map_lines(full(2, 12), ENTROPY, (0, 0), 40, 10, UNICODE)[3])[MARGIN:]
    shades = cells[0:72:3]
    assert shades == cells[1:72:3]
    assert (shades[0], shades[-1]) == ("░", "█")
    order = [UNICODE.shades.index(shade) for shade in shades]
    assert order == sorted(order)
    assert len(set(order)) == 4


def test_a_map_with_one_cell_per_head_is_readable_without_colours() -> None:
    lines = map_lines(full(1, 36), ENTROPY, (0, 18), 40, 10, ASCII)
    cells = text_of(lines[2])[MARGIN:].replace("5", "", 1)  # under the cursor
    assert [ASCII.shades.index(sign) for sign in cells] == sorted(ASCII.shades.index(sign) for sign in cells)
    assert (cells[0], cells[-1]) == (".", "@")


@for_each("glyphs", [UNICODE, ASCII])
@for_each("width", [40, 80, 120])
def test_the_cell_with_the_cursor_shows_its_digit(width: int, glyphs: Glyphs) -> None:
    for head in (0, 18, 35):
        line = map_lines(full(1, 36), ENTROPY, (0, head), width, 10, glyphs)[2]
        (under,) = [text for text, role in line if role == "cursor"]
        assert str(10 * head // 36) in under


def test_unreadable_heads_are_marked_and_pending_ones_are_dots() -> None:
    head_map = HeadMap([0], [4], {(0, 0): 1.0, (0, 1): None, (0, 2): 2.0})
    line = map_lines(head_map, ENTROPY, (0, 0), 16, 10, UNICODE)[2]
    assert text_of(line)[MARGIN:].split() == ["0", "!", "██", "·"]
    assert ("!".ljust(3), "alert") in line
    assert text_of(map_lines(head_map, ENTROPY, (0, 0), 16, 10, ASCII)[2])[MARGIN:].split()[-1] == "-"
    lines = map_lines(HeadMap([0], [2], {(0, 0): None, (0, 1): None}), ENTROPY, (0, 0), 20, 10, UNICODE)
    assert text_of(lines[2])[MARGIN:].split() == ["!", "!"]
    lines = map_lines(HeadMap([0, 1], [2, 2], {}), ENTROPY, (1, 1), 20, 10, UNICODE)
    assert text_of(lines[-1]).strip() == "measuring"
    assert [text_of(line)[MARGIN:].split() for line in lines[2:4]] == [["·", "·"]] * 2
    for glyphs in (UNICODE, ASCII):
        head_map = HeadMap([0], [16], {(0, 0): 0.0, (0, 1): 1.0})
        cells = text_of(map_lines(head_map, ENTROPY, (0, 0), 20, 10, glyphs)[2])[MARGIN:]
        assert cells[0] != cells[2], glyphs


def test_a_label_that_does_not_fit_is_said_in_short() -> None:
    statistic = STATISTIC["first_key_weight"]
    said = [text_of(map_lines(full(1, 2), statistic, (0, 0), width, 10, UNICODE)[0]) for width in (40, 18)]
    assert said[0].startswith(statistic.label)
    assert said[1].split(",")[0].strip() == statistic.short_label != statistic.label


@pytest.mark.parametrize("values", [(2.0, 2.0, 2.0), (5.0, 4.99999, 4.99998)])
def test_values_that_are_equal_but_for_noise_have_one_shade_and_one_number(values: tuple[float, ...]) -> None:
    heads = {(0, head): value for head, value in enumerate(values)}
    lines = map_lines(HeadMap([0], [3], heads), ENTROPY, (0, 0), 20, 9, UNICODE)
    assert text_of(lines[2])[MARGIN:].split() == ["0", "░░", "░░"]
    assert text_of(lines[-1]).strip() == f"all {values[0]:.0f}"


def test_the_title_the_legend_and_the_numbers_of_layers_are_those_of_the_file() -> None:
    assert text_of(map_lines(full(2, 2), SHARE, (0, 0), 40, 10, UNICODE)[0]).strip() == "entropy / ln n, by head"
    lines = map_lines(HeadMap([3, 17], [1, 1], {}), ENTROPY, (0, 0), 20, 10, UNICODE)
    assert [text_of(line).split()[0] for line in lines[2:4]] == ["3", "17"]
    head_map = HeadMap([0], [2], {(0, 0): 0.25, (0, 1): 0.5})
    assert text_of(map_lines(head_map, SHARE, (0, 0), 40, 10, UNICODE)[-1]).strip() == "░ 25 %  to  █ 50 %"
    assert text_of(map_lines(head_map, ENTROPY, (0, 0), 40, 10, UNICODE)[-1]).strip() == "░ 0.25  to  █ 0.5"


@for_each("heads", [8, 12, 32, 64])
@for_each("width", [21, 42])
def test_head_numbers_are_over_their_columns(heads: int, width: int) -> None:
    head_map = full(1, heads)
    for cursor in (0, heads // 2, heads - 1):
        lines = map_lines(head_map, ENTROPY, (0, cursor), width, 10, UNICODE)
        ruler = text_of(lines[1])
        roles = [role for _, role in lines[2]]
        at = sum(len(text) for text, _ in lines[2][: roles.index("cursor")])
        cells = len(lines[2][roles.index("cursor")][0])
        if cells >= 2 or cursor % 4 == 0:
            shown = ruler[at:].split(" ")[0]
            assert shown in ("", str(cursor))  # left out if numbers would overlap
        if cells == 3:
            assert ruler[at:].startswith(str(cursor))


def test_heads_that_are_not_healthy_are_marked() -> None:
    heads = {(0, 0): 1.0, (0, 1): 2.0, (0, 2): 3.0, (0, 3): 3.0}
    statuses: dict[tuple[int, int], Status | None] = {
        (0, 0): "saturated",
        (0, 1): "healthy",
        (0, 2): "sink",
        (0, 3): None,
    }
    head_map = HeadMap([0], [4], heads, statuses)
    wide = map_lines(head_map, ENTROPY, (0, 3), 40, 10, UNICODE)
    assert text_of(wide[2])[MARGIN:].rstrip() == "░░S▓▓ ██s9"
    assert text_of(wide[-1]).strip() == "░ 1  to  █ 3"
    assert [text_of(line).rstrip() for line in mark_lines(head_map, 40, UNICODE)] == ["S saturated  s sink"]
    cramped = map_lines(head_map, ENTROPY, (0, 3), 8, 10, UNICODE)
    assert text_of(cramped[2])[MARGIN:] == "S▓s9"
    assert [text_of(line) for line in mark_lines(head_map, 11, UNICODE)] == ["S saturated", "s sink     "]
    healthy = HeadMap([0], [1], {(0, 0): 1.0}, {(0, 0): "healthy"})
    assert mark_lines(healthy, 40, UNICODE) == []


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_map_with_one_cell_per_head_says_statuses_in_letters_and_explains_them(glyphs: Glyphs) -> None:
    statuses: dict[tuple[int, int], Status | None] = {(0, 3): "saturated", (0, 7): "sink", (0, 9): "healthy"}
    head_map = HeadMap([0], [36], {(0, x): float(x) for x in range(36)}, statuses)
    lines = [text_of(line) for line in map_lines(head_map, ENTROPY, (0, 0), 40, 10, glyphs)]
    cells = lines[2][MARGIN:]
    assert (cells[3], cells[7]) == ("S", "s")
    assert cells[9] in glyphs.shades[1:]
    assert "S saturated  s sink" in text_of(mark_lines(head_map, 40, UNICODE)[0])


def test_heads_that_hardly_differ_in_saturation_have_one_shade_and_uniform_ones_are_dim() -> None:
    uniform = HeadMap([0], [3], {(0, 0): 0.003, (0, 1): 0.004, (0, 2): 0.9}, {(0, 0): "uniform", (0, 1): "uniform"})
    lines = map_lines(uniform, STATISTIC["saturation"], (0, 2), 40, 10, UNICODE)
    assert text_of(lines[2])[MARGIN:].split() == ["░░u░░u9"]
    assert [role for text, role in lines[2] if "u" in text] == ["dim", "dim"]
