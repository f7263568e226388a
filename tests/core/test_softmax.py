"""Softmax by rows: weights, their statistics, sinks and soft-caps."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.softmax import (
    RowStatistics,
    logits_below,
    moved,
    row_statistics,
    row_sums,
    shift_rows,
    softcapped,
    softmax,
    softmax_of,
    weight_statistics,
)
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

EITHER = for_each("dtype", ["float32", "float64"])
NAMES = (
    "entropy", "max_weight", "sum_squared_weights", "complement", "first_key_weight", "jacobian_norm_squared",
)  # fmt: skip


def statistics(
    scores: Any, hidden: Any = None, multiplier: float = 1.0, dtype: str = "float64", sink: float | None = None
) -> RowStatistics:
    """The statistics of softmax(multiplier · scores); any floating-point warning but underflow is an error."""
    with np.errstate(all="raise", under="ignore"):
        shifted = shift_rows(np.array(scores, dtype), None if hidden is None else np.array(hidden))
        sums = row_sums(logits_below(shifted, multiplier), shifted)
        return row_statistics(sums, shifted.visible, None if sink is None else sink - multiplier * shifted.largest)


def by_definition(scores: Any, hidden: Any, multiplier: float, sink: float | None) -> dict[str, float]:
    """The statistics of one row by their definitions, in long doubles."""
    logits = multiplier * np.array(scores, np.longdouble)[~np.array(hidden)]
    own = slice(len(logits))
    logits = logits if sink is None else np.append(logits, np.longdouble(sink))
    weights = np.exp(logits - logits.max())
    weights /= weights.sum()
    others = np.array([np.delete(weights, i).sum() for i in range(len(weights))])[own]
    weights = weights[own]
    jacobian = np.diag(weights * others) - (1 - np.eye(len(weights))) * np.outer(weights, weights)
    return {
        "entropy": float(-sum(p * np.log(p) for p in weights if p > 0)),
        "max_weight": float(weights.max()),
        "sum_squared_weights": float((weights**2).sum()),
        "complement": float((weights * others).sum()),
        "first_key_weight": float(weights[0]),
        "jacobian_norm_squared": float((jacobian**2).sum()),
    }


rows_of_scores = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        stn.arrays(float, n, elements=st.floats(-300, 300)),
        stn.arrays(bool, n).filter(lambda hidden: not hidden.all()),
        st.floats(1e-3, 10),
    )
)


@given(rows_of_scores, st.none() | st.floats(-400, 400))
def test_row_statistics_agree_with_their_definitions(case: tuple[Any, Any, float], sink: float | None) -> None:
    scores, hidden, multiplier = case
    rows = statistics([scores], [hidden], multiplier, sink=sink)
    for name, expected in by_definition(scores, hidden, multiplier, sink).items():
        assert getattr(rows, name)[0] == pytest.approx(expected, rel=1e-11, abs=1e-12), name


@given(rows_of_scores, st.floats(-1e6, 1e6))
def test_hidden_scores_have_no_influence(case: tuple[Any, Any, float], other: float) -> None:
    scores, hidden, multiplier = case
    one = statistics([scores], [hidden], multiplier)
    two = statistics([np.where(hidden, other, scores)], [hidden], multiplier)
    for name in NAMES:
        assert getattr(one, name) == getattr(two, name)


@EITHER
@pytest.mark.parametrize(
    ("scores", "hidden"), [([[3.0], [-1e4], [0.0]], None), ([[7.0, 2.0, -1.0]], [[True, False, True]])]
)
def test_one_visible_key_takes_all_the_weight(dtype: str, scores: Any, hidden: Any) -> None:
    rows = statistics(scores, hidden, dtype=dtype)
    for name in NAMES:
        assert np.all(getattr(rows, name) == (name in ("max_weight", "sum_squared_weights", "first_key_weight"))), (
            name
        )


@EITHER
@pytest.mark.parametrize("score", [0.0, 1e4, -1e4])
def test_equal_scores_give_uniform_weights(dtype: str, score: float) -> None:
    n = 100
    rows = statistics(np.full((2, n), score), dtype=dtype)
    assert rows.entropy == pytest.approx(np.log(n), rel=1e-6)
    assert rows.max_weight == pytest.approx(1 / n)
    assert rows.sum_squared_weights == pytest.approx(1 / n)
    assert rows.complement == pytest.approx(1 - 1 / n)
    assert rows.jacobian_norm_squared == pytest.approx((1 - 1 / n) / n)


@EITHER
def test_a_row_that_sees_no_key_is_all_zeros(dtype: str) -> None:
    rows = statistics([[1e4, -1e4, 0], [1, 2, 3]], [[True, True, True], [False, False, False]], dtype=dtype)
    for name in NAMES:
        assert getattr(rows, name)[0] == 0
        assert getattr(rows, name)[1] > 0


@EITHER
@pytest.mark.parametrize("multiplier", [1.0, 0.125, 1e-6, 1000.0])
def test_logits_of_ten_thousand_cause_no_overflow(dtype: str, multiplier: float) -> None:
    rows = statistics([[1e4, -1e4, 0], [-1e4, 1e4, 1e4], [-1e4, -1e4, -1e4]], None, multiplier, dtype)
    if multiplier >= 0.125:
        assert rows.max_weight == pytest.approx([1, 1 / 2, 1 / 3])
        assert rows.entropy == pytest.approx(np.log([1, 2, 3]), abs=1e-6)
        assert rows.jacobian_norm_squared == pytest.approx([0, 1 / 4, 2 / 9], abs=1e-6)
    for name in NAMES:
        assert np.all(np.isfinite(getattr(rows, name)))


@pytest.mark.parametrize("multiplier", [1.0, 10.0, 1000.0])
def test_keys_far_below_the_largest_add_nothing_to_float32(multiplier: float) -> None:
    scores = np.zeros((2, 8192))
    scores[:, 1:] = [[-1e4], [-1e6]]
    assert statistics(scores, None, multiplier, "float32").entropy == pytest.approx([0, 0], abs=1e-6)


@EITHER
@pytest.mark.parametrize("multiplier", [1.0, 0.125, 1000.0])
def test_logits_are_clipped_below_which_a_weight_no_longer_counts(dtype: str, multiplier: float) -> None:
    shifted = shift_rows(np.array([[0.0, -1.0, -1e6]], dtype))
    below = np.array([0.0, -1.0, -1e6], dtype) * np.array(multiplier, dtype)
    logits = logits_below(shifted, multiplier)[0]
    assert logits.dtype == dtype
    clipped = logits > below
    assert clipped.tolist() == [False, multiplier == 1000, True]
    assert np.array_equal(logits[~clipped], below[~clipped])
    assert np.all(1 + np.exp(logits[clipped]) == 1)


def test_an_almost_one_hot_row_keeps_the_digits_of_its_complement() -> None:
    gap = 40.0  # 1 − max p is 4e-18, which a subtraction in float64 makes 0
    rows = statistics([[0.0, -gap, -gap]])
    assert rows.complement[0] == pytest.approx(4 * np.exp(-gap), rel=1e-12)
    assert rows.jacobian_norm_squared[0] == pytest.approx(6 * np.exp(-2 * gap), rel=1e-12)


def test_the_first_key_is_the_first_visible_one() -> None:
    rows = statistics([[5.0, 0.0, 0.0]], [[True, False, False]])
    assert rows.first_key_weight[0] == 0.5
    weights, hidden = np.array([[0.0, 0.75, 0.25]]), np.array([[True, False, False]])
    assert weight_statistics(weights, np.array([2]), hidden).first_key_weight[0] == 0.75


def test_shifting_reports_the_range_and_the_visible_keys_of_each_row() -> None:
    shifted = shift_rows(
        np.array([[3.0, 9.0, -1.0], [4.0, 5.0, 6.0], [1.0, 1.0, 1.0]]),
        np.array([[False, True, False], [False, False, False], [True, True, True]]),
    )
    assert shifted.largest.tolist() == [3, 6, 0]
    assert shifted.visible.tolist() == [2, 3, 0]
    assert shifted.below.tolist() == [[0, 0, -4], [-2, -1, 0], [0, 0, 0]]
    assert shifted.lowest == -4


def test_sums_in_given_memory_are_the_same() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 9))
    shifted = shift_rows(scores)
    alone = row_sums(logits_below(shifted, 0.5), shifted)
    lent = np.full((2, 5, 9), np.nan)
    assert np.array_equal(row_sums(logits_below(shifted, 0.5, lent[0]), shifted, lent[1]), alone)


@given(rows_of_scores, st.floats(-400, 400))
def test_a_sink_is_one_more_logit_whose_weight_is_dropped(case: tuple[Any, Any, float], sink: float) -> None:
    scores, hidden, multiplier = case
    logits = multiplier * scores
    with np.errstate(all="raise", under="ignore"):
        weights, taken, lse = softmax_of(logits, hidden, sink)
        wide = softmax(np.append(logits, sink), np.append(hidden, False))
    assert weights == pytest.approx(wide[:-1], rel=1e-12)
    assert taken == pytest.approx(wide[-1], rel=1e-12)
    assert lse == pytest.approx(np.logaddexp.reduce([*logits[~hidden], sink]), rel=1e-12, abs=1e-12)
    assert weights.sum() + taken == pytest.approx(1)
    assert np.all(weights[hidden] == 0)


def test_a_sink_far_above_takes_all_the_weight() -> None:
    with np.errstate(all="raise", under="ignore"):
        shifted = shift_rows(np.array([[1.0, 2.0, 3.0]]))
        rows = row_statistics(row_sums(logits_below(shifted, 1.0), shifted), shifted.visible, np.array([1e5]))
    for name in NAMES:
        assert getattr(rows, name)[0] == pytest.approx(0, abs=1e-300)


def test_a_sink_of_zero_is_the_off_by_one_softmax() -> None:
    logits = np.array([[1.0, -2.0, 0.5], [-30.0, -31.0, -32.0]])
    expected = np.exp(logits) / (1 + np.exp(logits).sum(axis=1, keepdims=True))
    assert softmax(logits, sink=0.0) == pytest.approx(expected, rel=1e-14)


def test_sinks_may_differ_by_head() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    sinks = np.array([-np.inf, 0.0, 2.0])
    found = softmax(logits, sink=sinks[:, np.newaxis])
    for head, sink in enumerate(sinks):
        assert found[:, head] == pytest.approx(softmax(logits[:, head], sink=sink), rel=1e-14)
    assert found[:, 0].sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("sink", [None, 0.0])
def test_softmax_of_a_row_that_sees_no_key_is_zero(sink: float | None) -> None:
    with np.errstate(all="raise"):
        weights = softmax(np.ones((2, 3)), np.array([[True] * 3, [False] * 3]), sink)
    assert np.all(weights[0] == 0)
    assert np.all(weights[1] > 0.2)


@EITHER
def test_softmax_accepts_logits_of_any_size(dtype: str) -> None:
    with np.errstate(all="raise", under="ignore"):
        weights = softmax(np.array([[1e5, 0.0, -1e5], [-1e5, -1e5, -2e5]], dtype))
    assert weights.dtype == dtype
    assert weights.tolist() == [[1, 0, 0], [0.5, 0.5, 0]]


@EITHER
def test_soft_capped_logits_keep_their_order_within_the_cap(dtype: str) -> None:
    logits = np.array([-1e4, -60.0, -1e-3, 0.0, 1e-3, 20.0, 60.0, 1e4], dtype)
    capped = softcapped(logits, 50.0)
    assert capped.dtype == dtype
    assert np.all(np.abs(capped) <= 50)
    assert np.all(np.diff(capped) > 0)
    assert capped == pytest.approx(50 * np.tanh(logits.astype(float) / 50), rel=1e-6)
    assert softcapped(logits, 1e6)[2:6] == pytest.approx(logits[2:6], rel=1e-6)


def test_soft_capping_may_overwrite_the_logits() -> None:
    logits = np.array([-3.0, 0.0, 5.0])
    expected = softcapped(logits, 2.0)
    assert softcapped(logits, 2.0, out=logits) is logits
    assert np.array_equal(logits, expected)


def test_shifted_rows_can_be_selected() -> None:
    scores = np.random.default_rng(0).normal(size=(6, 5))
    hidden = np.arange(5) > np.arange(6)[:, np.newaxis]
    some = shift_rows(scores.copy(), hidden).only(slice(1, None, 2))
    alone = shift_rows(scores[1::2].copy(), hidden[1::2])
    for name, value in alone._asdict().items():
        assert np.array_equal(getattr(some, name), value), name


def test_the_largest_weight_moved_in_rows_of_several_texts() -> None:
    p = np.array([[[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]], [[0.1, 0.9], [0.9, 0.1], [0.5, 0.5]]])
    q = p.copy()
    q[0, 1], q[1, 2] = (0.9, 0.1), (0.4, 0.6)  # the latter were equal
    assert moved(p, q).tolist() == [[False, True, False], [False, False, False]]
