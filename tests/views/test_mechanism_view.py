"""Mechanisms over d_k: a block for each statistic, as many d_k as fit, and the bounds in words."""

import pytest
from attn_tui.core.lab.mechanisms import COMPARED, MEASURED
from attn_tui.core.lab.results import MechanismRow
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.tui.panes.rules.mechanisms import bound_sentences, mechanism_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width

BOUNDS = {"additive": 8.0, "cosine": 1.0}
ROWS = [
    MechanismRow(m, rule, 1.0, d_k, {name: Estimate(0.5 / d_k, 0.1) for name in MEASURED}, d_k / 8, BOUNDS.get(m), s)
    for d_k in (4, 16, 32)
    for m, rule, s in COMPARED
]


def texts(rows: list[MechanismRow], width: int = 80, glyphs: Glyphs = UNICODE) -> list[str]:
    def text(line: Line) -> str:
        assert line_width(line) <= width
        return "".join(piece for piece, _ in line)

    return [text(line) for line in mechanism_lines(rows, width, glyphs)]


def test_each_statistic_has_a_line_for_each_mechanism_with_aligned_points() -> None:
    lines = texts(ROWS)
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
    additive, cosine = bound_sentences(ROWS)
    assert "at d_k 32 ‖v‖₁ is 8, and the largest |score| drawn is 4, 50 % of it" in additive
    assert "exceeds 1 at 2 of 3 d_k" in additive
    assert "±1" in cosine
    assert bound_sentences([row for row in ROWS if row.mechanism == "dot_product"]) == []


@pytest.mark.parametrize(("width", "missing"), [(30, "4, 16"), (38, "4"), (46, "")])
def test_if_not_all_d_k_fit_the_largest_are_shown(width: int, missing: str) -> None:
    hidden = " ".join(texts(ROWS, width)).partition("Not shown at this width: ")[2].partition(".")[0]
    assert hidden == (f"d_k {missing}" if missing else "")


def test_mechanisms_without_a_measurement_are_pending() -> None:
    assert texts([]) == ["Measuring mechanisms…"]
    lines = texts(ROWS[:-1])
    assert next(line for line in lines if line.startswith(" cosine")).split()[-1] == "…"
    assert all(line.isascii() for line in texts(ROWS[:-1], glyphs=ASCII))
