"""The divided bar of one query's weights."""

import math

import numpy as np
import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.one_query import row_weights
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import RowWeights
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.plots.weights import pieces, weight_lines
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from line_texts import text_of


def row_of(p: Parameters) -> tuple[RowWeights, ...]:
    draws = Draws()
    run(p, draws)
    return row_weights(p, draws)


def test_the_weights_of_a_query_are_those_of_softmax_in_order() -> None:
    a, b = row_of(Parameters(d_k=64, n_keys=16, n_queries=8, batch=4))
    for row in (a, b):
        assert row.keys == len(row.largest) == 16
        assert math.isclose(sum(row.largest), 1, rel_tol=1e-6)
        assert [*row.largest] == sorted(row.largest, reverse=True)
    logits = 8 * np.log(b.largest)  # A multiplies by 1, B by 1/8
    weights = np.exp(logits - logits.max())
    np.testing.assert_allclose(a.largest, weights / weights.sum(), rtol=1e-3, atol=1e-9)


@for_each(
    "change",
    [
        {"mask": "causal"}, {"precision": "float16"}, {"mechanism": "additive"}, {"scale": "rms_sqrt_d_k"},
        {"softcap": 2.0}, {"against": "components=uniform"}, {"correlation": 0.5},
    ],
)  # fmt: skip
def test_the_effective_keys_of_a_query_are_like_those_of_all(change: dict[str, object]) -> None:
    p = Parameters(d_k=16, n_keys=64, n_queries=64, batch=4)
    for name, value in change.items():
        p = p.with_value(name, value)  # pyright: ignore[reportArgumentType]
    for row, column in zip(row_of(p), run(p).columns, strict=True):
        mean = column.measured["effective_keys"].value
        assert row.effective is not None
        assert mean is not None
        assert mean / 5 < row.effective < 5 * mean


def test_a_query_that_sees_one_key_gives_it_everything() -> None:
    assert row_of(Parameters(n_keys=1, n_queries=2, batch=2))[0] == RowWeights(1, (1.0,), 1.0)


def test_nan_weights_have_no_effective_keys() -> None:
    p = Parameters(d_k=256, n_keys=64, n_queries=64, batch=2, std_q=100.0, std_k=100.0, precision="float16")
    assert row_of(p.with_value("arithmetic", "eager"))[0].effective is None


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=300), st.integers(0, 200), st.booleans())
def test_each_piece_ends_where_its_share_does(weights: list[float], room: int, ascii_only: bool) -> None:
    total = sum(weights)
    row = RowWeights(len(weights), tuple(sorted((each / total for each in weights), reverse=True)), 2.0)
    spans = pieces(row, room, "scaled", ASCII if ascii_only else UNICODE)
    text = text_of(tuple(spans))
    assert len(text) == room
    assert text.isascii() or not ascii_only
    solid = (ASCII if ascii_only else UNICODE).shades[-1]
    first = len(text) - len(text.lstrip(f"{solid} %.<>0123456789"))
    assert first >= round(row.largest[0] * room)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_saturated_query_is_one_piece_and_a_healthy_one_is_many(glyphs: Glyphs) -> None:
    p = Parameters(d_k=256, n_keys=64, n_queries=8, batch=2)
    row = row_of(p)
    for width in (30, 80, 200):
        lines = weight_lines(row, run(p).columns, width, glyphs)
        assert {line_width(line) for line in lines} == {width}
    unscaled, scaled = (text_of(line) for line in lines)
    assert unscaled.count(glyphs.shades[2]) < scaled.count(glyphs.shades[2])
    assert scaled.rstrip().endswith("keys count")
