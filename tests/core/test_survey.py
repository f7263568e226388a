"""The mean, spread and extremes of numbers that arrive in blocks."""

import math

import numpy as np
import pytest
from attn_tui.core.statistics.counting import RunningStatistics


@pytest.mark.parametrize("centre", [0.0, 1e6])
def test_blocks_together_have_the_mean_and_spread_of_all_numbers(centre: float) -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.normal(centre + shift, 1 + abs(shift), (3, count)) for shift, count in ((0, 5), (7, 40), (-30, 11))]
    everything, survey = np.concatenate([block.ravel() for block in blocks]), RunningStatistics()
    for block in blocks:
        survey.add(block)
    survey.add(np.zeros(0))
    assert survey.count == everything.size
    assert survey.centre == pytest.approx(everything.mean(), rel=1e-12)
    assert survey.std == pytest.approx(everything.std(), rel=1e-9)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_axis_has_room_for_the_number_farthest_from_the_mean(sign: int) -> None:
    numbers, survey = sign * np.array([1.0, 1.0, 1.0, 9.0]), RunningStatistics()
    survey.add(numbers)
    away = numbers - numbers.mean()
    axis = survey.axis(8)
    assert axis.low == -axis.high
    assert np.abs(away).max() <= axis.high < 1.001 * np.abs(away).max()


def test_nothing_has_no_spread() -> None:
    survey = RunningStatistics()
    assert survey.centre == 0
    assert math.isnan(survey.std)
    assert survey.axis(4).high == 1
