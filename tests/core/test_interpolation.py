"""Linear interpolation between points."""

import numpy as np
import pytest
from attn_tui.core.statistics.histogram import interpolated
from hypothesis import given
from hypothesis import strategies as st

numbers = st.floats(-1e3, 1e3).map(lambda number: round(number, 6))  # NumPy overflows on steeper lines


@given(st.lists(numbers, min_size=1, max_size=9).map(sorted), st.data())
def test_interpolation_agrees_with_numpy(x: list[float], data: st.DataObject) -> None:
    y = data.draw(st.lists(numbers, min_size=len(x), max_size=len(x)))
    at = data.draw(st.lists(numbers | st.sampled_from(x), max_size=20))
    assert interpolated(at, x, y) == pytest.approx(np.interp(at, x, y), abs=1e-9)


def test_at_a_jump_the_last_value_counts() -> None:
    assert interpolated([1.0], [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]) == [5.0]
