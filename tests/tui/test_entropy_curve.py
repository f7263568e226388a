"""The exact entropy over d_k in the Lab."""

import math

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.request import Cache
from attn_tui.core.theory.predict import predict
from attn_tui.tui.compute.measure import ExactCells, PredictEntropy
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.page import PictureColumns
from attn_tui.tui.views.plots.lab_pictures import WIDTHS, Curve, curves_of, entropy_lines
from stage import SMALL, Stage, played


def curves(p: Parameters) -> tuple[Curve, ...]:
    *_, answer = PredictEntropy(p, WIDTHS, (p.n_keys,)).work(Cache())
    assert isinstance(answer, ExactCells)
    return curves_of(answer.cells)


def test_the_curves_are_the_theory_of_each_width() -> None:
    unscaled, scaled = (dict(curve) for curve in curves(SMALL))
    assert [*unscaled] == [*scaled] == [*WIDTHS]
    at_64 = [column.values["entropy"] for column in predict(SMALL.with_value("d_k", 64)).columns]
    assert [unscaled[64], scaled[64]] == at_64
    assert unscaled[4096] < 0.2 * unscaled[1]
    assert scaled[4096] == pytest.approx(scaled[1], rel=0.05)
    assert scaled[64] < math.log(SMALL.n_keys)


def test_widths_at_which_a_rule_has_no_multiplier_are_left_out() -> None:
    assert min(dict(curves(SMALL.with_value("scale", "log_d_k"))[1])) > 1


def test_where_no_value_is_exact_the_box_says_so_within_its_width() -> None:
    p = SMALL.with_value("softcap", 30.0)
    lines = entropy_lines(curves(p), (), p, PictureColumns(8, 14, 8), 5, UNICODE)
    assert lines
    assert all(line_width(line) == 30 and line[0][0].startswith(" ") for line in lines)


@played(size=(120, 40), settled=True)
async def test_the_cursor_moves_with_d_k_and_the_curves_stay(stage: Stage) -> None:
    asked = [each.request for each in stage.engine.asked if isinstance(each.request, PredictEntropy)]
    before = stage.text
    await stage.press("up", "up")
    await stage.at_rest()
    assert [each.request for each in stage.engine.asked if isinstance(each.request, PredictEntropy)] == asked
    assert len(asked) == 1
    assert before != stage.text


@played(size=(100, 30), settled=True)
async def test_a_low_screen_gets_the_curves_once_it_is_high(stage: Stage) -> None:
    assert not any(isinstance(each.request, PredictEntropy) for each in stage.engine.asked)
    await stage.resize(160, 50)
    await stage.at_rest()
    assert sum(isinstance(each.request, PredictEntropy) for each in stage.engine.asked) == 1
