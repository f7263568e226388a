"""Histograms: counting, adding, scaling, and their quantiles."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.statistics.counting import count, histogram
from attn_tui.core.statistics.histogram import BinAxis, Histogram
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

AXIS = BinAxis(-3.0, 5.0, 16)
some_values = stn.arrays(float, st.integers(0, 50), elements=st.floats(-20, 20))


def of(values: Any, axis: BinAxis = AXIS) -> Histogram:
    return histogram(count(np.array(values), axis), axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_counts_are_those_of_numpy(dtype: str) -> None:
    values = np.random.default_rng(0).normal(0, 4, (30, 70)).astype(dtype)
    counted = of(values)
    expected, _ = np.histogram(values, AXIS.bins, (AXIS.low, AXIS.high))
    assert [*counted.counts] == expected.tolist()
    assert counted.underflow == np.count_nonzero(values < AXIS.low)
    assert counted.overflow == np.count_nonzero(values > AXIS.high)


@given(some_values)
def test_every_value_is_counted(values: Any) -> None:
    counted = of(values)
    assert counted.total == len(values)
    assert sum(counted.onto([-1e9, AXIS.low, 1.0, AXIS.high, 1e9])) == pytest.approx(len(values))


@for_each("dtype", ["float32", "float64"])
@for_each("axis", [AXIS, BinAxis(0.0, 0.5, 200), BinAxis(-12.0, 0.0, 240), BinAxis(0.0, np.log(128), 200)])
def test_both_ends_of_an_axis_belong_to_it(axis: BinAxis, dtype: str) -> None:
    counted = of(np.array([axis.low, axis.high], dtype), axis)
    assert (counted.underflow, counted.overflow) == (0, 0)
    assert (counted.counts[0], counted.counts[-1]) == (1, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_far_away_are_under_or_over(dtype: str) -> None:
    counted = of(np.array([-np.inf, -1e30, 1e30, np.inf], dtype))
    assert (counted.underflow, counted.overflow) == (2, 2)


def test_values_just_beyond_an_axis_are_not_rounded_onto_it() -> None:
    """The last bin counts values that equal the end in float32, not those a thousandth of a bin beyond it."""
    for axis in (AXIS, BinAxis(0.0, 0.5, 200), BinAxis(-12.0, 0.0, 240)):
        margin = 0.001 * (axis.high - axis.low) / axis.bins
        counted = of(np.array([axis.low - margin, axis.high + margin]), axis)
        assert (counted.underflow, counted.overflow) == (1, 1)


def test_no_values_are_an_empty_histogram() -> None:
    counted = of(np.empty((0, 7)))
    assert counted.total == 0
    assert counted.onto([0.0, 1.0]) == [0.0]


def test_a_multiplier_stretches_the_axis_and_keeps_the_counts() -> None:
    values = np.random.default_rng(0).normal(size=100)
    scaled = of(values).scaled(0.125)
    assert scaled.axis == BinAxis(-0.375, 0.625, 16)
    assert [*scaled.counts] == [*of(0.125 * values, scaled.axis).counts]


def test_parts_of_a_bin_count_in_proportion() -> None:
    counted = of([0.1, 0.2, 0.3, 0.4])  # one bin, from 0 to 0.5
    assert counted.onto([0.0, 0.125, 0.5]) == [1.0, 3.0]


@given(some_values, st.lists(st.floats(-6, 8) | st.sampled_from([*np.linspace(-3.0, 5.0, 17)]), max_size=20))
def test_counts_between_edges_are_interpolated_linearly(values: Any, x: list[float]) -> None:
    counted, edges = of(values), np.linspace(AXIS.low, AXIS.high, AXIS.bins + 1)
    cumulative = np.cumsum([counted.underflow, *counted.counts])
    expected = np.interp(x, edges, cumulative, left=0, right=counted.total)
    assert counted.below(x) == pytest.approx(expected)


@given(some_values, st.lists(st.floats(0, 1), max_size=20))
def test_quantiles_are_the_inverse_of_that_interpolation(values: Any, shares: list[float]) -> None:
    counted, edges = of(values), np.linspace(AXIS.low, AXIS.high, AXIS.bins + 1)
    cumulative = np.cumsum([counted.underflow, *counted.counts])
    expected = np.interp(np.multiply(shares, counted.total), cumulative, edges)
    assert counted.quantiles(shares) == pytest.approx(expected)
