"""Standard errors are what they say: the spread of values over seeds, around the exact value if there is one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.rare_draws import rough_statistics
from attn_tui.core.lab.scoring import score_mean, score_std
from attn_tui.core.parameters import ComponentLaw, Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.summary import estimates_of_norms, skewness_factors
from measurements import LAWS

SEEDS, BATCH = 1000, 16
D, N = 16, 24


@pytest.fixture(scope="module")
def repeated() -> dict[tuple[str, str], Any]:
    """Values and standard errors of every statistic over many seeds; (rule, name) -> (2, SEEDS)."""
    p = Parameters(d_k=D, n_keys=N, n_queries=N, batch=BATCH)
    columns = [run(replace(p, seed=seed)).columns for seed in range(SEEDS)]
    estimates = {
        (first.rule, name): np.array([column[index].measured[name] for column in columns], float).T
        for index, first in enumerate(columns[0])
        for name in first.measured
    }
    return {key: values for key, values in estimates.items() if not np.isnan(values).any()}


SKEWED = ("logit_excess_kurtosis", "row_mean_share", "grad_q_median", "grad_q_rms", "grad_q_top1_share")
EXACT = {
    "logit_mean": 0.0,
    "logit_variance": D,
    "logit_std": math.sqrt(D),
    "logit_excess_kurtosis": 6 / D,
    "logit_variance_within_row": D * (1 - 1 / N),
    "row_mean_share": 1 / N,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_deviations_from_the_exact_value_have_the_spread_of_students_t(
    repeated: dict[tuple[str, str], Any], name: str
) -> None:
    """The error of a mean over 16 draws has 15 degrees of freedom and so a spread of √(15/13) = 1.07.

    For a skewed quantity it is a little larger, and the centre a little below 0: small values come with small errors.
    """
    values, stderr = repeated["none", name]
    z = (values - EXACT[name]) / stderr
    assert abs(z.mean()) < 0.2
    assert 1.0 < z.std() < 1.25
    assert abs(values.mean() - EXACT[name]) < 3.5 * values.std() / math.sqrt(len(values))


@pytest.mark.slow
def test_every_standard_error_is_the_spread_over_seeds(repeated: dict[tuple[str, str], Any]) -> None:
    """Where draws are skewed it is somewhat more, to reach the farther side (`test_coverage` says why)."""
    assert len(repeated) > len(STATISTICS)  # of two columns
    for key, (values, stderr) in repeated.items():
        claimed, spread = math.sqrt(np.square(stderr).mean()), values.std(ddof=1)
        assert 0.9 * spread <= claimed <= (1.8 if key[1] in SKEWED else 1.1) * spread, (key, claimed, spread)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("mean_q", "mean_k", "correlation"), [(0, 0, 0), (1.5, -0.5, 0), (0, 0, 0.6), (1, 1, -0.5)])
def test_scores_of_every_law_have_the_mean_and_variance_of_its_closed_form(
    law: ComponentLaw, mean_q: float, mean_k: float, correlation: float
) -> None:
    p = Parameters(
        d_k=8, n_keys=8, n_queries=8, batch=BATCH, components=law, degrees_of_freedom=13, std_q=1.5,
        mean_q=mean_q, mean_k=mean_k, correlation=correlation,
    )  # fmt: skip
    seeds = [run(replace(p, seed=seed)).columns[0].measured for seed in range(100)]
    for name, exact in (("logit_mean", score_mean(p)), ("logit_variance", score_std(p) ** 2)):
        values, stderr = np.array([measured[name] for measured in seeds], float).T
        assert abs(values.mean() - exact) < 4 * values.std() / math.sqrt(len(values)), name
        ratio = math.sqrt(np.square(stderr).mean()) / values.std(ddof=1)
        assert 0.7 < ratio < (2 if correlation and name == "logit_variance" else 1.35), name


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
