"""Intervals of two standard errors contain the true value about as often as they should, or say that they may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import predict

SEEDS = 120
T = {4: 3.182, 8: 2.365, 16: 2.131, 64: 1.998}  # the 97.5 % quantile of Student's t for the draws of a batch
LEAST = 0.825  # of 120 intervals; 95 % of them cover less than this once in 10⁶ times
FIRST_KEY = {"first_key_weight", "first_key_over_uniform"}
WIDE = 4096  # draws behind the value that counts as true; fewer where each has many keys

SMALL = Parameters(d_k=16, n_keys=32, n_queries=16)
SETTINGS = {
    "16 draws": SMALL,
    "4 draws": replace(SMALL, batch=4),
    "8 draws": replace(SMALL, batch=8, n_keys=64),
    "64 draws": replace(SMALL, batch=64),
    "16 keys": replace(SMALL, n_keys=16),
    "1024 keys": replace(SMALL, n_keys=1024, n_queries=8),
    "Laplace": replace(SMALL, components="laplace"),
    "Laplace, d_k 64, 4 draws": replace(SMALL, d_k=64, components="laplace", batch=4),
    "Laplace, d_k 2": replace(SMALL, d_k=2, components="laplace"),
    "mean of q 2": replace(SMALL, mean_q=2.0),
    "Student t 9": replace(SMALL, components="student_t", degrees_of_freedom=9),
    "Student t 5": replace(SMALL, components="student_t", degrees_of_freedom=5),
    "Student t 3": replace(SMALL, components="student_t", degrees_of_freedom=3),
    "correlation 0.5": replace(SMALL, correlation=0.5),
    "correlation −0.3, 4 draws": replace(SMALL, correlation=-0.3, batch=4),
    "correlation 0.9, 64 draws": replace(SMALL, correlation=0.9, batch=64),
    "Laplace, correlation 0.5": replace(SMALL, components="laplace", correlation=0.5),
    "causal": replace(SMALL, mask="causal", n_queries=32),
}  # fmt: skip


def true_values(p: Parameters) -> Iterator[dict[str, float]]:
    """Yield, for each column, the value of every statistic over very many draws, or the exact one if it is known."""
    wide = run(replace(p, batch=min(WIDE, 2**20 // p.n_keys), seed=10**6))
    for column, predicted in zip(wide.columns, predict(p).columns, strict=True):
        found = {name: each.value for name, each in column.measured.items()} | {
            name: exact for name, exact in predicted.values.items() if exact is not None
        }
        yield {name: value for name, value in found.items() if value is not None}


def is_frequent(name: str, value: float, p: Parameters) -> bool:
    """Return whether a batch can be expected to show a share of rows: at least twenty on either side."""
    if STATISTIC[name].group == "numerics":
        return False  # of rounding in float32
    if name.startswith("first_key"):
        return p.batch * p.n_queries >= 4 * p.n_keys  # nearly one-hot rows choose the first key rarely
    if name not in ("one_hot_rows", "dead_rows", "logit_within_3sd"):
        return True
    return min(value, 1 - value) * p.batch * p.n_queries > 20


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_of_two_standard_errors_contain_the_true_value(setting: str) -> None:
    p = SETTINGS[setting]
    measured = [run(replace(p, seed=seed)).columns for seed in range(SEEDS)]
    shares: dict[tuple[str, int], float] = {}
    for index, truth in enumerate(true_values(p)):
        for name, value in truth.items():
            estimates: list[Estimate] = [columns[index].measured[name] for columns in measured]
            if any(each.is_rough or not each.stderr for each in estimates) or not is_frequent(name, value, p):
                continue
            values, stderr = np.array(estimates, float).T
            shares[name, index] = (np.abs(values - value) <= T[p.batch] * stderr).mean()
    assert len(shares) > 20
    assert {key: share for key, share in shares.items() if share < LEAST} == {}


def rough(p: Parameters) -> set[str]:
    """Return the statistics of the scaled column whose standard error is only a lower bound."""
    return {name for name, each in run(p).columns[1].measured.items() if each.is_rough}


def test_errors_are_rough_where_the_law_has_no_moments_for_them() -> None:
    heavy = replace(SMALL, components="student_t")
    assert rough(SMALL) == rough(replace(heavy, degrees_of_freedom=9)) == set()
    assert rough(replace(heavy, degrees_of_freedom=8)) == {"logit_excess_kurtosis", "grad_q_top1_share"}
    assert rough(replace(heavy, degrees_of_freedom=4)) > {"logit_variance", "logit_std", "grad_q_rms"}
    bounded = rough(replace(heavy, degrees_of_freedom=4, softcap=5.0))
    assert bounded.isdisjoint({"logit_variance", "logit_excess_kurtosis"})
    assert "grad_q_rms" in bounded


def test_errors_are_rough_where_a_few_scores_or_the_keys_of_a_draw_decide() -> None:
    """The excess kurtosis of scores is (m₄² − 3)/d_k: 33/d_k for Laplace components."""
    tails = {"logit_excess_kurtosis", "row_mean_share", "grad_q_top1_share", *FIRST_KEY}
    laplace = replace(SMALL, components="laplace")
    assert rough(replace(laplace, d_k=5)) == tails
    assert rough(replace(laplace, d_k=6)) == rough(replace(laplace, d_k=5, softcap=5.0)) == set()
    assert rough(replace(SMALL, mean_q=-1.0)) == FIRST_KEY
    assert rough(replace(SMALL, mean_q=0.9)) == rough(replace(SMALL, mean_q=1.0, std_k=0.0)) == set()


def test_errors_are_rough_where_a_shared_direction_decides() -> None:
    shared = replace(SMALL, correlation=0.2)
    assert rough(shared) == {"logit_excess_kurtosis", "logit_within_3sd", *FIRST_KEY}
    assert rough(replace(shared, batch=15)) - rough(shared) == {"logit_variance", "logit_std", "row_mean_share"}
    assert "logit_variance" in rough(replace(shared, components="laplace"))
    assert rough(replace(shared, std_k=0.0)) == set()  # nothing is shared with equal keys
