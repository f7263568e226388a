"""Softmax of a few scores step by step: figures worked out by hand, and the same numbers in every format."""

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.softmax import logits_below, row_statistics, row_sums, shift_rows, softmax
from attn_tui.core.attention.worked_example import (
    FEWEST,
    MOST,
    Example,
    WorkedExample,
    multiplier_curves,
    multiplier_of,
    parse_scores,
    relevant,
    scores_text,
    start_scores,
    step_score,
    work_out,
    work_out_sides,
)
from attn_tui.core.errors import ParameterError
from attn_tui.core.parameters import Parameters
from attn_tui.core.tables.softmax import softmax_table
from attn_tui.core.tables.table import written
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

some_scores = st.lists(st.floats(-30, 30), min_size=FEWEST, max_size=MOST).map(tuple)


def worked(scores: tuple[float, ...] = start_scores(64), multiplier: float = 1.0, **asked: float) -> WorkedExample:
    return work_out(Example(scores, **asked), multiplier, "float64")


def test_two_logits_are_a_logistic_curve() -> None:
    found = worked((0.0, math.log(3)))
    np.testing.assert_allclose(found.weights, [1 / 4, 3 / 4], rtol=1e-15)
    np.testing.assert_allclose(found.powers, [1 / 3, 1], rtol=1e-15)
    np.testing.assert_allclose(found.complement, [3 / 16, 3 / 16], rtol=1e-15)
    np.testing.assert_allclose(found.jacobian, [[3 / 16, -3 / 16], [-3 / 16, 3 / 16]], rtol=1e-15)
    assert found.entropy == pytest.approx(math.log(4) - 0.75 * math.log(3), rel=1e-14)
    assert found.effective_keys == pytest.approx(4 / 3**0.75, rel=1e-14)
    assert found.entropy_fraction == pytest.approx(2 - 0.75 * math.log2(3), rel=1e-14)
    assert found.jacobian_norm == pytest.approx(3 / 8, rel=1e-15)
    assert found.sum_squared_weights == pytest.approx(10 / 16, rel=1e-15)


def test_the_default_scores_unscaled() -> None:
    """By hand, 1 − max p = (e⁻¹⁴ + e⁻²⁴ + …)/Z = 8.3153e-7."""
    found = worked()
    rest = math.exp(-14) + math.exp(-24) + math.exp(-34) + math.exp(-48)
    assert found.complement[4] == pytest.approx(rest / (1 + rest) ** 2, rel=1e-14)
    assert found.complement[4] == pytest.approx(8.31565e-7, rel=1e-6)
    assert found.weights[0] == pytest.approx(1.42516e-21, rel=1e-5)
    assert found.jacobian_norm < 0.01


def test_the_default_scores_scaled_by_the_root_of_64() -> None:
    """Logits −3 −1.25 0 1.25 3; e^x sums to 24.912, and e³/24.912 = 0.80625."""
    found = worked(multiplier=0.125)
    assert found.logits == (-3, -1.25, 0, 1.25, 3)
    total = sum(math.exp(x) for x in (-3, -1.25, 0, 1.25, 3))
    assert total == pytest.approx(24.9122, rel=1e-5)
    assert found.max_weight == pytest.approx(math.exp(3) / total, rel=1e-14)
    assert found.max_weight == pytest.approx(0.80625, abs=1e-5)
    assert found.weights[3] == pytest.approx(0.14011, abs=1e-5)
    assert found.complement[4] == pytest.approx(0.15621, abs=1e-5)


@given(some_scores, st.sampled_from([1.0, 0.125, 0.01]), st.sampled_from([0.25, 1.0, 8.0]))
@settings(max_examples=30)
def test_steps_agree_with_the_statistics_of_rows(scores: tuple[float, ...], c: float, temperature: float) -> None:
    found = worked(scores, c, temperature=temperature)
    shifted = shift_rows(np.array([found.logits]))
    row = row_statistics(row_sums(logits_below(shifted, 1.0), shifted), shifted.visible)
    np.testing.assert_allclose(sum(found.weights), 1, rtol=1e-14)
    assert found.entropy == pytest.approx(row.entropy[0], rel=1e-10, abs=1e-90)
    assert found.jacobian_norm**2 == pytest.approx(row.jacobian_norm_squared[0], rel=1e-10, abs=1e-90)
    assert sum(found.complement) == pytest.approx(row.complement[0], rel=1e-10, abs=1e-90)
    assert found.max_weight == pytest.approx(row.max_weight[0], rel=1e-14)


@given(some_scores)
@settings(max_examples=30)
def test_every_row_of_the_jacobian_sums_to_zero(scores: tuple[float, ...]) -> None:
    found = worked(scores)
    assert np.abs(np.sum(found.jacobian, axis=0)).max() <= 1e-15
    np.testing.assert_array_equal(found.jacobian, np.transpose(found.jacobian))
    np.testing.assert_array_equal(np.diagonal(found.jacobian), found.complement)


def test_the_jacobian_is_the_slope_of_the_weights() -> None:
    found, step = worked(multiplier=0.125), 1e-5
    for column in range(5):
        moved = np.eye(5)[column] * step
        slope = (softmax(found.logits + moved) - softmax(found.logits - moved)) / (2 * step)
        np.testing.assert_allclose([row[column] for row in found.jacobian], slope, atol=1e-10)


@pytest.mark.parametrize("shift", [800.0, -800.0, 1000.0, 0.1])
def test_a_shift_is_in_every_logit_and_moves_no_weight(shift: float) -> None:
    scores = (0.1, 0.7, 1.3, -7.7)
    found, before = worked(scores, shift=shift), worked(scores)
    np.testing.assert_allclose(np.subtract(found.logits, before.logits), shift, rtol=1e-12)
    np.testing.assert_allclose(found.weights, before.weights, rtol=1e-12)
    assert 0 < found.moved == np.abs(np.subtract(found.weights, before.weights)).max() <= 1e-13


def test_a_temperature_divides_every_logit() -> None:
    """A temperature of √64 has the same effect as the scale 1/√64."""
    np.testing.assert_array_equal(worked(temperature=8.0).weights, worked(multiplier=0.125).weights)


def test_one_hot_weights_keep_their_digits() -> None:
    found = worked((0.0, 300.0))
    tiny = math.exp(-300)
    assert found.complement == pytest.approx([tiny, tiny], rel=1e-13)
    assert found.entropy == pytest.approx(301 * tiny, rel=1e-13)
    assert found.jacobian_norm == pytest.approx(2 * tiny, rel=1e-13)
    assert worked((-1000.0, 1000.0)).jacobian_norm == 0


@pytest.mark.parametrize(
    ("number_format", "largest", "overflow"),
    [("float16", 11.0, 0), ("float16", 11.2, 1), ("float32", 88.7, 0), ("float32", 88.8, 1), ("float64", 709.0, 0)],
)
def test_naive_exponentials_overflow_beyond_the_largest_number(
    number_format: str, largest: float, overflow: int
) -> None:
    naive = work_out(Example((0.0, largest)), 1.0, number_format).naive
    assert naive.overflow == overflow
    assert (naive.weights is None) == bool(overflow)
    if naive.weights is not None:
        assert naive.powers[1] == pytest.approx(math.exp(largest), rel=1e-3)
        assert naive.error is not None
        assert naive.error < 1e-3


def test_a_shift_of_800_overflows_every_format() -> None:
    for number_format in ("float64", "float32", "bfloat16", "float16"):
        naive = work_out(Example(shift=800), 0.125, number_format).naive
        assert naive.overflow == 5
        assert np.isinf(naive.powers).all()
        assert naive.weights is naive.error is None


def test_a_saturating_format_replaces_overflow_by_its_largest_number() -> None:
    """e^10 and e^24 both become 448 and get half the weight each; the last one should get all of it."""
    naive = work_out(Example(), 1.0, "float8_e4m3fn").naive
    assert naive.powers == (0, 0, 1, 448, 448)
    assert naive.overflow == 2
    assert naive.error == pytest.approx(1 - 448 / 897, abs=1e-4)


def test_exponentials_that_are_all_zero_give_no_weights() -> None:
    naive = work_out(Example(shift=-1000), 1.0, "float32").naive
    assert not any(naive.powers)
    assert naive.overflow == 0
    assert naive.weights is None


def test_written_scores_are_read_back() -> None:
    for scores in (start_scores(64), (0.1, -1e-3, 1000.0)):
        assert parse_scores(scores_text(scores)) == scores


@for_each("text", ["", "1", "1,x", "1,,2", "nan,1", "inf,1", "1001,0", ",".join("123456789")])
def test_invalid_scores_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_scores(text)
    assert "must be" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("asked", [{"temperature": 0.0}, {"temperature": 101.0}, {"shift": 1e4}, {"shift": math.nan}])
def test_temperature_and_shift_have_bounds(asked: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Example(**asked)


def test_there_are_two_to_eight_scores() -> None:
    fewest, most = Example((1.0, 2.0)), Example((0.0,) * MOST)
    with pytest.raises(ParameterError, match="scores: must be 2 to 8 numbers, not 1"):
        fewest.without(0)
    with pytest.raises(ParameterError, match="scores: must be 2 to 8 numbers, not 9"):
        most.with_one_more(0)
    assert fewest.with_one_more(1, 5.0).scores == (1, 5, 2)
    assert fewest.with_one_more(1, 5.0).without(0).scores == (5, 2)


def test_scores_step_by_whole_numbers_and_by_tenths() -> None:
    assert (step_score(0.25, 1), step_score(0.25, -1)) == (1, 0)
    assert (step_score(0.25, 1, True), step_score(0.25, -1, True)) == (0.3, 0.2)
    assert step_score(1000, 1) == 1000


def test_only_the_parameters_of_the_rule_are_relevant() -> None:
    asked = Parameters(d_k=256, n_keys=7, seed=3, precision="float16")
    assert relevant(asked) == Parameters(d_k=256, precision="float16")
    assert relevant(asked.with_value("scale", "none")) == Parameters(scale="none", precision="float16")
    assert multiplier_of(asked) == 1 / 16


def test_a_rule_that_normalises_has_no_multiplier_for_scores() -> None:
    with pytest.raises(ParameterError, match=r"scale 10·cos\(q, k\) normalises"):
        multiplier_of(Parameters(scale="cosine_10"))


@pytest.mark.parametrize("example", [Example(), Example((1.0, -1000.0, 0.5), 0.01, 800)], ids=["notes", "extreme"])
def test_every_format_holds_the_same_numbers(example: Example) -> None:
    asked = Parameters()
    sides = [work_out(example, c, asked.precision) for c in (1.0, 0.125)]
    found = json.loads(written(softmax_table(example, asked, sides), "json"))
    assert found["schema"] == "attn-tui/softmax-1"
    assert found["scores"] == list(example.scores)
    rows = list(csv.DictReader(io.StringIO(written(softmax_table(example, asked, sides), "csv"))))
    for column, side in zip(found["columns"], sides, strict=True):
        assert column["weights"] == list(side.weights)
        assert column["jacobian"] == [list(row) for row in side.jacobian]
        mine = [row for row in rows if row["scale"] == column["scale"]["rule"]]
        assert [float(row["value"]) for row in mine if row["quantity"] == "weights"] == column["weights"]
        flat = [value for line in column["jacobian"] for value in line]
        assert [float(row["value"]) for row in mine if row["quantity"] == "jacobian"] == flat
        for name in ("entropy", "jacobian_norm", "naive_error"):
            (row,) = (row for row in mine if row["quantity"] == name)
            assert (float(row["value"]) if row["value"] else None) == column[name]
    markdown = written(softmax_table(example, asked, sides), "markdown")
    assert f"{sides[1].entropy:.4g}" in markdown
    tables = [[line.count("|") for line in part.splitlines() if line[:1] == "|"] for part in markdown.split("\n\n")]
    assert all(len(set(counts)) <= 1 for counts in tables[:-1])


def test_both_sides_follow_what_a_and_b_are() -> None:
    p = Parameters(d_k=16, against="d_k,components=laplace,precision=bfloat16", precision="float16")
    a, b = work_out_sides(Example(), p)
    assert (a, b) == (work_out(Example(), 1 / 16, "bfloat16"), work_out(Example(), 1 / 4, "float16"))
    assert relevant(p).against == "d_k,precision=bfloat16"
    assert relevant(replace(p, against="components=laplace", scale="none")).against == "none"
    with pytest.raises(ParameterError, match="normalises queries and keys"):
        work_out_sides(Example(), Parameters(against="rms_none"))


@settings(max_examples=50)
@given(some_scores, st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(0.01, 100))
def test_curves_over_the_multiplier_are_worked_examples(
    scores: tuple[float, ...], a: float, b: float, temperature: float
) -> None:
    example = Example(scores, temperature=temperature, shift=3.0)
    curves = multiplier_curves(example, (a, b))
    over = curves.multipliers
    assert over[0] <= min(a, b) / 4 < 2 * max(a, b) <= over[-1]
    assert {math.log2(over[0]) % 1, math.log2(over[-1]) % 1} == {0}
    np.testing.assert_allclose(np.diff(np.log(over)), math.log(over[-1] / over[0]) / (len(over) - 1), rtol=1e-9)
    for at in (0, len(over) // 2, len(over) - 1):
        found = work_out(example, over[at], "float64")
        np.testing.assert_allclose([row[at] for row in curves.weights], found.weights, rtol=1e-9, atol=1e-300)
        assert curves.entropy_fraction[at] == pytest.approx(found.entropy_fraction, abs=1e-9)
        assert curves.jacobian_norm[at] == pytest.approx(found.jacobian_norm, rel=1e-6, abs=1e-9)
    assert max(curves.jacobian_norm) <= 0.5 + 1e-12


def test_curves_keep_their_range_while_a_multiplier_changes_a_little() -> None:
    ranges = {multiplier_curves(Example(), (1.0, d_k**-0.5)).multipliers for d_k in range(17, 64)}
    assert len(ranges) == 1


def test_the_scores_to_start_with_are_multiples_of_the_spread_of_a_score() -> None:
    """Those of study notes at d_k 64; at d_k 4 one key takes 97 % unscaled and 81 % scaled, so both are shared."""
    assert start_scores(64) == (-24.0, -10.0, 0.0, 10.0, 24.0) == Example().scores
    assert start_scores(4) == (-6.0, -2.5, 0.0, 2.5, 6.0)
    most = [worked(start_scores(4), multiplier).max_weight for multiplier in (1.0, 0.5)]
    assert most == [pytest.approx(0.968, abs=1e-3), pytest.approx(0.806, abs=1e-3)]
