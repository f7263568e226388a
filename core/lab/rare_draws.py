"""Which standard errors depend on draws too rare for a batch to contain them, so that theirs is only a lower bound.

The rules were found by counting how often ± covers the true value over many seeds (`tests/core/test_coverage.py`).
"""

from __future__ import annotations

from dataclasses import replace

from ..parameters import Parameters
from ..scales import scale_rule
from ..statistics.measurement import Column, RoughEstimate
from .sampling import LAWS

_OF_LOGITS = frozenset({"logit_variance", "logit_std", "logit_variance_within_row", "saturation"})
_OF_SHARED = frozenset({"logit_variance", "logit_std", "row_mean_share"})  # of all logits, whose rows move together
_FIRST_KEY = frozenset({"first_key_weight", "first_key_over_uniform"})
_ENOUGH = 16  # draws that give the variance of a shared direction an error, or rows that of their means
_HEAVY = 6.0  # the excess kurtosis of scores from which a few of them decide how long tails are


def rough_statistics(p: Parameters, rule: str, draws: int) -> frozenset[str]:
    """Return the names of the statistics whose standard error over `draws` draws is only a lower bound.

    The error of a mean of x needs E x², so that of a variance needs fourth moments, and that of a kurtosis eighth
    ones; Student's t with ν degrees of freedom has moments below ν only. A shared direction (a correlation) is one
    vector for all scores of a draw: what its size decides has only as many independent values as there are draws.
    The same holds for the variance of the means of few rows.
    With a mean of q at least as large as its standard deviation, all queries of a draw prefer the same keys.
    """
    names: set[str] = {"row_mean_share"} if p.n_queries * draws < _ENOUGH else set()
    degrees = p.degrees_of_freedom if p.components == "student_t" else 99
    if degrees <= 8:
        names |= {"logit_excess_kurtosis", "grad_q_top1_share"}
    if degrees <= 4:
        names |= _OF_LOGITS | _FIRST_KEY | {"grad_q_rms"}
    if p.mechanism in ("additive", "cosine") or p.softcap or scale_rule(rule).normalise != "none":
        names -= _OF_LOGITS | {"logit_excess_kurtosis"}  # bounded logits have all moments
    elif LAWS[p.components].fourth_moment(degrees) ** 2 - 3 >= _HEAVY * p.d_k:
        names |= {"logit_excess_kurtosis", "row_mean_share", "grad_q_top1_share"} | _FIRST_KEY
    if p.std_k and p.mean_q**2 >= p.std_q**2:
        names |= _FIRST_KEY
    if p.correlation and p.std_q and p.std_k:
        heavy = p.components in ("laplace", "student_t")
        names |= {"logit_excess_kurtosis", "logit_within_3sd"} | _FIRST_KEY
        if heavy or draws < _ENOUGH:
            names |= _OF_SHARED
        if heavy:
            names |= {"sum_squared_weights", "weight_times_complement", "grad_q_top1_share"}
    return frozenset(names)


def with_rough_errors(p: Parameters, column: Column, draws: int) -> Column:
    """Return the column with the estimates of `rough_statistics` marked as rough."""
    names = rough_statistics(p, column.rule, draws)
    if not names:
        return column
    measured = {
        name: RoughEstimate(*each) if name in names and each.stderr is not None else each
        for name, each in column.measured.items()
    }
    return replace(column, measured=measured)
