"""The map over d_k and keys: its values, its legend, and the line on which softmax saturates."""

import math
from dataclasses import replace

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.request import Cache
from attn_tui.core.questions.sweep import Points
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.saturation import saturation
from attn_tui.tui.compute.measure import ExactCells, Predict
from attn_tui.tui.panes.sweep.map_view import D_KS, N_KEYS, MapResults, layout, map_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from cases import for_each, present
from line_texts import text_of

ENTROPY = STATISTIC["entropy_fraction"]
P = Parameters(n_queries=4, batch=2)


def predicted(p: Parameters) -> MapResults:
    mapped = MapResults(p)
    for answer in Predict(p, D_KS, N_KEYS).work(Cache()):
        if isinstance(answer, ExactCells):
            mapped.exact.update(answer.cells)
    assert mapped.predicted
    return mapped


@pytest.fixture(scope="module")
def plain() -> MapResults:
    return predicted(P)


def texts(mapped: MapResults, width: int = 140, height: int = 18, glyphs: Glyphs = UNICODE) -> list[str]:
    return [text_of(line) for line in map_lines(mapped, ENTROPY, False, (64, 128), width, height, glyphs)]


def test_each_cell_has_its_exact_value_its_shade_and_its_side_of_the_line(plain: MapResults) -> None:
    for d_k, n in ((1, 2), (64, 128), (4096, 8192)):
        columns = predict(replace(P, d_k=d_k, n_keys=n)).columns
        for index, column in enumerate(columns):
            assert plain.value((d_k, n), index, ENTROPY) == column.values["entropy_fraction"]
    assert not plain.needs_measuring(ENTROPY)
    assert plain.needs_measuring(STATISTIC["dead_rows"])
    for n in N_KEYS:
        ((edge, saturates),) = plain.edges(n, 0)
        assert saturates
        assert edge == pytest.approx(2 * math.log(n), abs=0.51)
    assert all(plain.edges(n, 1) == () for n in N_KEYS)
    lines = texts(plain)
    row = next(line for line in lines if line.startswith("  128 "))
    left = row[: len(row) // 2]
    cell, at = layout(140, 16).cell, left.index("│S") - 6
    assert (at - 0.5) / cell - 0.5 <= math.log2(9.5) <= (at + 1.5) / cell - 0.5
    assert "│" not in row[len(row) // 2 :]
    assert "softmax is saturated on the side of S" in lines[-1]
    lines = texts(plain)
    row = next(line for line in lines if line.startswith("  128 "))[6:58]
    levels = [UNICODE.shades.index(sign) for sign in row if sign in UNICODE.shades]
    assert levels == sorted(levels, reverse=True)
    assert lines[-2].count("[") == len(UNICODE.shades)
    assert "exact" in lines[0]


@pytest.mark.parametrize("rule", ["sqrt_d_k", "8/d", "log_d_k", "ssmax", "log(n)/sqrt(d)", "custom"])
def test_the_line_is_where_theory_says_that_softmax_saturates(rule: str) -> None:
    mapped = predicted(replace(P, scale=rule, multiplier=0.5))
    for n in (4, 128, 8192):
        for index, name in enumerate(("none", rule)):
            known = present(saturation(replace(mapped.parameters, n_keys=n), name))
            for d_k in (2, 4, 16, 64, 700, 4096):
                before = [saturated for edge, saturated in mapped.edges(n, index) if edge < d_k]
                inside = any(first <= d_k <= last for first, last in known.saturated_at)
                assert (before[-1] if before else False) == inside, (n, name, d_k)


def test_missing_cells_gaps_and_a_saturated_start_are_marked() -> None:
    mapped = predicted(replace(P, softcap=30.0))
    assert mapped.needs_measuring(ENTROPY)
    assert "measured: 0 of 169 so far" in texts(mapped)[0]
    assert "··" in texts(mapped)[3]
    assert "· not measured yet" in texts(mapped)[-2]
    lines = texts(predicted(replace(P, scale="8/d")))
    row = next(line for line in lines if line.startswith("  128 "))
    assert row[76:].lstrip().startswith("S")
    gaps = texts(predicted(replace(P, scale="log_d_k")))
    assert all("··" in line for line in gaps[1:14])
    assert "· undefined" in gaps[-2]


@pytest.mark.slow
def test_measured_cells_give_the_line_where_theory_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attn_tui.tui.panes.sweep.map_view.N_KEYS", (16, 256))
    p = replace(P, softcap=1000.0, scale="d_k", n_queries=16)  # a cap that changes next to nothing
    mapped = MapResults(p)
    last = 0.0
    for answer in mapped.sweep.work(Cache()):
        if isinstance(answer, Points):
            found = ((each.point.parameters, each) for each in answer.points)
            mapped.measured.update({(p.d_k, p.n_keys): each for p, each in found})
            last = answer.fraction
    assert last == 1
    assert len(mapped.measured) == 2 * len(D_KS)
    ((edge, saturates),) = mapped.edges(256, 0)
    assert saturates
    assert 8 <= edge <= 16  # 2 ln 256 is 11.1
    assert mapped.edges(256, 1) == ()


@for_each("glyphs", [UNICODE, ASCII])
@for_each("size", [(40, 8), (72, 10), (80, 18), (120, 30), (200, 50)])
def test_the_map_fits_every_size(plain: MapResults, glyphs: Glyphs, size: tuple[int, int]) -> None:
    lines = texts(plain, *size, glyphs)
    assert len(lines) <= size[1]
    assert all(len(line) == size[0] for line in lines)
    assert "".join(lines).isascii() or not glyphs.ascii
    assert any("+" in line for line in lines)


@pytest.mark.parametrize("size", [(60, 12), (140, 16), (200, 45)])
def test_a_click_on_a_cell_names_its_place(size: tuple[int, int]) -> None:
    at = layout(*size)
    assert at.place_at(6, 1) == (1, at.rows[0])
    assert at.place_at(6 + at.cell * 12, at.tall * len(at.rows)) == (4096, at.rows[-1])
    assert at.place_at(0, 5) is None
    assert at.place_at(6, 0) is None
    if len(at.panels) == 2:
        assert at.place_at(at.width + 2 + 6 + at.cell, 1) == (2, 8192)
