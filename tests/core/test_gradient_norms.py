"""The distribution of gradient norms over rows."""

import math

import numpy as np
import pytest
from attn_tui.core.attention.row_gradients import norm_statistics


def test_statistics_of_norms() -> None:
    norms = np.array([[3.0, 1.0, 2.0, 10.0], [0.0, 0.0, 0.0, 5.0]])
    found = norm_statistics(norms)
    assert found.median == pytest.approx([2.5, 0])
    assert found.mean == pytest.approx([4, 1.25])
    assert found.rms == pytest.approx([math.sqrt(114 / 4), 2.5])
    assert found.top1_share == pytest.approx([100 / 114, 1])


@pytest.mark.parametrize(("rows", "top"), [(1, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_one_per_cent_of_rows_is_rounded_up(rows: int, top: int) -> None:
    norms = np.random.default_rng(0).permutation(np.sqrt(np.arange(1.0, rows + 1)))
    expected = np.arange(rows - top + 1, rows + 1).sum() / np.arange(1, rows + 1).sum()
    assert norm_statistics(norms).top1_share == pytest.approx(expected)


def test_norms_that_are_all_zero_have_no_share() -> None:
    with np.errstate(all="raise"):
        found = norm_statistics(np.zeros((2, 5), np.float32))
    assert np.all(np.isnan(found.top1_share))
    assert np.all(found.rms == 0)
