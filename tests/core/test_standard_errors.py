"""Standard errors of skewed values, shares and medians; `test_coverage.py` has their spread over seeds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.lab.sampling import rough_statistics
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.summary import estimates_of_norms, skewness_factors


def test_a_mean_of_skewed_values_has_a_wider_error() -> None:
    """Of 99 zeros and a one, the squared skewness is 98²/99; normal values have 6·98/(101·103) of it by chance."""
    values = np.zeros(100)
    values[7] = 1
    skewness = math.sqrt(98**2 / 99 - 6 * 98 / (101 * 103))
    z = 1.96  # the interval reaches z + γ(2z² + 1)/(6√m): Johnson 1978
    expected = 1 + skewness * (2 * z * z + 1) / (6 * z * math.sqrt(100))
    assert skewness_factors(values) == pytest.approx(expected, rel=1e-12)
    assert skewness_factors(1e-200 * values) == pytest.approx(expected, rel=1e-12)
    assert skewness_factors(np.arange(100.0)) == 1


def test_the_share_of_the_top_rows_has_an_error_for_the_part_of_a_row_beyond_one_per_cent() -> None:
    """Two equal draws of 90 rows: 2 rows are 1.1 % of 180, a fifth of a row too many."""
    norms = np.ones((2, 90))
    norms[:, 3] = 5
    total = 2 * (89 + 25)
    share = estimates_of_norms(norms)["grad_q_top1_share"]
    assert share.value == pytest.approx(50 / total)
    assert share.stderr == pytest.approx(0.2 * 25 / total)


def test_errors_are_lower_bounds_where_the_moments_they_need_do_not_exist() -> None:
    """The error of a variance needs fourth moments, which Student's t has from 5 degrees of freedom on."""
    heavy = Parameters(components="student_t", degrees_of_freedom=4)
    assert "logit_variance" in rough_statistics(heavy, "none", 16)
    assert "logit_variance" not in rough_statistics(replace(heavy, degrees_of_freedom=5), "none", 16)
    assert "logit_variance" not in rough_statistics(replace(heavy, softcap=30.0), "none", 16)
    shared = Parameters(correlation=0.5)  # one direction a draw: 15 of them say little about its size
    assert "logit_variance" in rough_statistics(shared, "none", 15)
    assert "logit_variance" not in rough_statistics(shared, "none", 16)
    assert rough_statistics(Parameters(), "none", 2) == frozenset()


def test_errors_of_medians_leave_out_one_of_sixteen_groups_of_draws() -> None:
    norms = np.random.default_rng(0).lognormal(size=(32, 50))
    first, *others = (
        estimates_of_norms(norms[[*order, *range(3, 32)]])["grad_q_median"].stderr
        for order in ((0, 1, 2), (1, 0, 2), (0, 2, 1))
    )
    assert [other == first for other in others] == [True, False]
