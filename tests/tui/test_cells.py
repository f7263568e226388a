"""Texts with wide characters are padded and broken by cells."""

from itertools import pairwise

from attn_tui.tui.language.cells import broken, cells, joining, pieces, to_left, to_right
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

MIXED = st.text("注意力权重，。；：、（）“”abc √d_k=64 ×", max_size=60)


def test_a_chinese_character_takes_two_cells_and_padding_counts_them() -> None:
    assert cells("softmax 的熵") == 12
    assert cells("√d_k") == 4
    assert to_left("熵", 6) + "|" == "熵    |"
    assert to_right("熵 1", 6) == "  熵 1"
    assert to_left("最大权重", 6) == to_right("最大权重", 6) == "最大权重"
    assert to_left("abc", 5) == "abc  "


@for_each(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("注意力权重之和为一", 8, ["注意力权", "重之和为", "一"]),
        ("权重之和为一，每行如此。", 12, ["权重之和为", "一，每行如", "此。"]),
        ("除以 √d_k 之后方差是 1", 10, ["除以 √d_k", "之后方差是", "1"]),
        ("这是注意力（softmax）的熵", 12, ["这是注意力", "（softmax）", "的熵"]),
        ("打开“实验”面板", 8, ["打开“实", "验”面板"]),
        ("isn’t it", 4, ["isn’t", "it"]),
        ("log(n)…(d_k) 64", 6, ["log(n)…", "(d_k)", "64"]),
        ("1/(2√…d_k) 可见键…", 10, ["1/(2√…d_k)", "可见键…"]),
        ("", 8, []),
        ("attn-tui-with-a-long-name", 8, ["attn-tui-with-a-long-name"]),
    ],
)
def test_lines_end_after_spaces_and_between_wide_characters(text: str, width: int, lines: list[str]) -> None:
    assert broken(text, width) == lines


@given(MIXED)
def test_pieces_are_the_whole_text_and_respect_punctuation(text: str) -> None:
    found = pieces(text)
    assert "".join(found) == text
    for before, after in pairwise(found):
        assert before[-1] not in "（“"
        assert after[0] not in "，。；：、）”" or before[-1] == " "


@given(MIXED, st.integers(4, 30))
def test_only_lines_of_one_piece_are_longer(text: str, width: int) -> None:
    for line in broken(text, width):
        assert cells(line) <= width or len(pieces(line)) == 1


@given(st.text("abc def", max_size=40), st.integers(3, 20))
def test_english_breaks_at_spaces_alone(text: str, width: int) -> None:
    words = [word for line in broken(text, width) for word in line.split()]
    assert words == text.split()


def test_widths_are_those_of_the_library_that_draws() -> None:
    differing = [hex(code) for code in range(0x20, 0x10000) if cells(chr(code)) != cell_len(chr(code))]
    assert not differing


def test_no_space_is_between_wide_characters() -> None:
    assert joining("熵", " 随 d_k") == "随 d_k"
    assert joining("熵 / ln n", " 随 d_k") == " 随 d_k"
    assert joining("熵", " over d_k") == " over d_k"
    assert joining("", " 随") == " 随"
