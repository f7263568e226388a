"""Reduce rows to sums per draw, and sums to estimates with standard errors.

Sums are kept per draw because draws are independent, while rows of one draw share its keys. Every statistic is a
smooth function of sums, so the delete-one jackknife over draws gives all standard errors, and removes the bias of
order 1/draws that squares, roots and ratios of sample means have (Efron & Stein 1981).

A mean has the textbook standard error. What depends on squares and fourth powers is skewed over draws: there the
farther end of a skewness-corrected interval decides (`skewness_factors`), because ± goes both ways. An interval of
95 % takes Student's t for the number of draws: 2.13 standard errors of 16 draws, 3.18 of 4.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.softmax import RowStatistics
from .catalogue import DEAD, EVERY, ONE_HOT, STATISTIC
from .measurement import NOTHING, Estimate

GROUPS = 16  # groups of draws that the standard errors of medians leave out one at a time
_NORMAL = 1.96  # normal deviate of a 95 % interval
# The statistics whose standard errors are widened for skewness.
_SKEWED = frozenset(
    {"logit_variance", "logit_std", "logit_excess_kurtosis", "row_mean_share", "median", "rms", "top1_share"}
)

Sums: TypeAlias = Mapping[str, FloatArray]  # sums over the rows of each draw; every array (draws,), or (rules, draws)


class RowMoments(NamedTuple):
    """Moments of each row's scores; arrays of shape (draws, rows)."""

    visible: FloatArray  # keys that the row sees; (1, 1) if all see the same number
    mean: FloatArray  # minus a centre common to all rows
    m2: FloatArray  # population central moments, about the row's mean
    m3: FloatArray
    m4: FloatArray


def power_sums(
    scores: FloatArray, unit: float, scratch: FloatArray, squares: FloatArray, higher: bool = True
) -> FloatArray:
    """Return the sums (4, rows) of the first four powers of the scores (rows, n), 0 where hidden.

    Without `higher`, those of third and fourth powers are 0.

    The scores' own precision is enough, because their centre and their rows' offsets have been subtracted. `unit` is
    a power of two: the powers are those of scores/unit, so that they stay in range. `scratch` and `squares` (rows, n)
    are overwritten.
    """
    if unit != 1:
        scores = np.multiply(scores, scores.dtype.type(1 / unit), out=scratch)
    sums = np.zeros((4, len(scores)), scores.dtype)
    np.matmul(scores, np.ones(scores.shape[1], scores.dtype), out=sums[0])
    np.vecdot(scores, scores, out=sums[1])
    if higher:
        np.multiply(scores, scores, out=squares)
        np.vecdot(squares, scores, out=sums[2])
        np.vecdot(squares, squares, out=sums[3])
    return sums if unit == 1 else sums * unit ** np.arange(1.0, 5)[:, np.newaxis]


def row_moments(visible: FloatArray, powers: FloatArray, offsets: FloatArray | float, precision: float) -> RowMoments:
    """Return each row's moments from its power sums (4, draws, rows), which are of this precision.

    If all scores of a row are equal, the difference of sums is rounding, whose root would look like a deviation.
    """
    e1, e2, e3, e4 = powers / np.maximum(visible, 1)
    m2 = e2 - e1 * e1
    differ = m2 > 32 * precision * e2
    return RowMoments(
        visible=visible,
        mean=e1 + offsets,
        m2=np.where(differ, m2, 0),
        m3=np.where(differ, e3 - e1 * (3 * e2 - 2 * e1 * e1), 0),
        m4=np.where(differ, e4 - e1 * (4 * e3 - e1 * (6 * e2 - 3 * e1 * e1)), 0),
    )


def sums_of_scores(moments: RowMoments) -> Sums:
    """Return the sums behind the statistics of logits."""
    n, u, m2, m3, m4 = moments.visible, moments.mean, moments.m2, moments.m3, moments.m4
    u2, rows = u * u, u.shape[-1]
    return {
        "pairs": _over_rows(n, rows),
        "x": _over_rows(n * u),
        "x2": _over_rows(n * (m2 + u2)),
        "x3": _over_rows(n * (m3 + u * (3 * m2 + u2))),
        "x4": _over_rows(n * (m4 + u * (4 * m3 + u * (6 * m2 + u2)))),
        "within": _over_rows(n * m2),
        "row_variance": _over_rows((n > 0) * m2),
        "saturation": _over_rows(np.sqrt(m2) / _thresholds(n)),
    }


def _thresholds(visible: FloatArray) -> FloatArray:
    """Return √(2 ln visible), the standard deviation of logits at which softmax over that many keys saturates.

    It is infinite for rows that see fewer than two keys: their weights cannot change.
    """
    return np.sqrt(2 * np.log(np.where(visible > 1, visible, np.inf)))


def sums_of_rows(rows: RowStatistics, visible: FloatArray) -> Sums:
    """Return the sums behind the statistics of attention weights; visible (draws, rows) as in `RowMoments`.

    `rows` may have an axis of rules before these.
    """
    seen, several, length = visible > 0, visible > 1, rows.entropy.shape[-1]
    may_die = several & (visible - 1 >= (DEAD * visible) ** 2)  # where equal weights are not dead
    return {
        "rows": _over_rows(seen, length),
        "entropy": _over_rows(rows.entropy),
        "several": _over_rows(several, length),
        "fraction": _over_rows(several * rows.entropy / np.log(np.where(several, visible, 2))),
        "effective": _over_rows(seen * np.exp(rows.entropy)),
        "max_weight": _over_rows(rows.max_weight),
        "one_hot": _over_rows(several & (rows.max_weight > ONE_HOT)),
        "squared": _over_rows(rows.sum_squared_weights),
        "first": _over_rows(rows.first_key_weight),
        "uniform": _over_rows(seen / np.maximum(visible, 1), length),
        "sink": _over_rows(seen - rows.sum_squared_weights - rows.complement),  # 1 − Σp
        "jacobian": _over_rows(np.sqrt(rows.jacobian_norm_squared)),
        "jacobian2": _over_rows(rows.jacobian_norm_squared),
        "may_die": _over_rows(may_die, length),
        "dead": _over_rows(may_die & (rows.jacobian_norm_squared < DEAD**2)),
        "complement": _over_rows(rows.complement / np.maximum(visible, 1)),
    }


def estimates(
    sums: Sums, centre: float, multipliers: Sequence[float], unbiased: bool, names: Collection[str] = EVERY
) -> list[dict[str, Estimate]]:
    """Return an estimate of every statistic at each multiplier, NOTHING of those not in `names`.

    `centre` is the constant that was subtracted from the scores. With `unbiased`, the estimates are for the
    population of draws, with the bias of order 1/draws removed; without, they describe only these draws.
    """
    # Entry b of each array is the sum over all draws but draw b; the last entry, over all draws.
    left_out: dict[str, FloatArray] = {}
    for axes in (1, 2):
        alike = {name: sums_of for name, sums_of in sums.items() if sums_of.ndim == axes}
        if alike:
            each: FloatArray = np.stack([*alike.values()])
            total = each.sum(axis=-1, keepdims=True)
            without: FloatArray = np.concatenate([total - each, total], axis=-1)
            left_out |= dict(zip(alike, without, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = _statistics(left_out, centre, np.array(multipliers)[:, np.newaxis])
        found = {name: each for name, each in found.items() if name in names}
        shape = len(multipliers), next(iter(left_out.values())).shape[-1]
        whole = np.empty((len(found), *shape))
        for row, each in zip(whole, found.values(), strict=True):
            row[...] = each
        pairs = np.stack(_jackknife([*found], whole, unbiased))
    known: Any = pairs.astype(object)  # (2, statistics, rules)
    known[~np.isfinite(pairs)] = None
    nothing, by_rule = dict.fromkeys(STATISTIC, NOTHING), known.transpose(2, 0, 1).tolist()
    return [nothing | dict(zip(found, map(Estimate, *pairs), strict=True)) for pairs in by_rule]


def estimates_of_norms(norms: FloatArray, of: str = "grad_q") -> Mapping[str, Estimate]:
    """Return the statistics of gradients whose names begin with `of`, from norms (draws, rows) without NaN.

    Medians are not functions of sums: standard errors come from the jackknife that leaves out one of at most GROUPS
    groups of draws, which is also consistent for quantiles if a group has many rows (Shao & Wu 1989). The share of
    the top 1 % counts whole rows; its error includes what the part of a row beyond 1 % adds.
    """
    draws = len(norms)
    groups = min(draws, GROUPS)
    order = np.argsort(norms, axis=None)[: np.count_nonzero(~np.isnan(norms))]  # NaN is last
    rising = norms.ravel()[order].astype(np.float64)
    group = np.repeat(range(groups), [draws // groups + (each < draws % groups) for each in range(groups)])
    group = group[order // max(norms.shape[1], 1)]
    values = _of_norms(rising)
    left_out = [_of_norms(rising[group != each]) for each in range(groups)]
    spreads = _standard_errors([*values], np.array([[*each.values()] for each in left_out]).T).tolist()
    spreads[-1] = math.hypot(spreads[-1], _share_beyond(rising))
    found: dict[str, Estimate] = {}
    for (name, value), spread in zip(values.items(), spreads, strict=True):
        stderr = spread if math.isfinite(value) and math.isfinite(spread) else None
        found[f"{of}_{name}"] = Estimate(value if math.isfinite(value) else None, stderr)
    return {name: each for name, each in found.items() if name in STATISTIC}


def _of_norms(rising: FloatArray) -> dict[str, float]:
    """Return median, mean, root mean square and concentration of sorted norms (rows,); NaN if there are none.

    The share of the top 1 % is that of Σ‖·‖² in the largest one per cent of rows, their number rounded up: one row of
    up to 100, two of 101.
    """
    rows, squares = len(rising), np.square(rising)
    total, largest = float(squares.sum()), float(squares[rows - -(-rows // 100) :].sum())
    return {
        "median": float(rising[(rows - 1) // 2 : rows // 2 + 1].sum()) / (2 - rows % 2) if rows else math.nan,
        "mean": float(rising.sum()) / rows if rows else math.nan,
        "rms": math.sqrt(total / rows) if rows else math.nan,
        "top1_share": largest / total if total else math.nan,
    }


def skewness_factors(values: FloatArray) -> FloatArray:
    """Return by how much to widen the standard error of each mean over m values (…, m), at least 1.

    The 95 % interval, corrected for the values' skewness γ, reaches z + |γ|(2z² + 1)/(6√m) standard errors towards
    their tail, z = 1.96 (Johnson 1978, Modified t tests; Hall 1992, On the removal of skewness by transformation).
    The factor is the ratio to z. From γ² is subtracted what m normal values show by chance.
    """
    m = values.shape[-1]
    away = values - values.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        away /= np.abs(away).max(axis=-1, keepdims=True)  # so that no power overflows
        squares = np.square(away)
        observed = np.square((squares * away).mean(axis=-1)) / squares.mean(axis=-1) ** 3
    excess = observed - 6 * (m - 2) / ((m + 1) * (m + 3))
    skewness = np.sqrt(np.where(excess > 0, excess, 0))
    return 1 + skewness * (2 * _NORMAL**2 + 1) / (6 * _NORMAL * math.sqrt(m))


def _standard_errors(names: Iterable[str], without: FloatArray) -> FloatArray:
    """Return the standard error of each statistic from its values (statistics, …, m) without one of m draws."""
    m, away = without.shape[-1], without - without.mean(axis=-1, keepdims=True)
    found = np.sqrt((m - 1) / m * np.vecdot(away, away))
    skewed = [at for at, name in enumerate(names) if name in _SKEWED]
    found[skewed] *= skewness_factors(without[skewed])
    return found


def _share_beyond(rising: FloatArray) -> float:
    """Return the share of Σ‖·‖² by which the largest 1 % of rows (rows,), rounded up to whole rows, exceed 1 %."""
    rows, squares = len(rising), np.square(rising)
    top, total = -(-rows // 100), float(squares.sum())
    return (top - rows / 100) * float(squares[rows - top]) / total if total else 0.0


def _over_rows(values: npt.NDArray[Any], alike: int = 1) -> FloatArray:
    """Sum over the rows of each draw: (…, draws, rows) -> (…, draws); a single row stands for `alike` rows."""
    found = np.add.reduce(values, axis=-1, dtype=np.float64)
    return found * alike if values.shape[-1] == 1 else found


def _statistics(s: Sums, centre: float, c: FloatArray) -> Mapping[str, FloatArray]:
    """Compute the statistics from sums over any set of draws, at multipliers c (rules, 1); NaN if undefined."""
    mean = s["x"] / s["pairs"]
    x2, x3, x4 = s["x2"] / s["pairs"], s["x3"] / s["pairs"], s["x4"] / s["pairs"]
    variance = np.maximum(x2 - mean**2, 0)
    fourth = x4 - mean * (4 * x3 - mean * (6 * x2 - 3 * mean * mean))
    # If all scores are equal, rounding leaves a variance near ε·x², which must not be a divisor.
    spread = np.where(variance > 1e-12 * x2, variance, np.nan)
    rows = s["rows"]
    values: dict[str, FloatArray] = {
        "logit_mean": c * (centre + mean),
        "logit_variance": c**2 * variance,
        "logit_std": c * np.sqrt(variance),
        "logit_excess_kurtosis": fourth / spread**2 - 3,
        "logit_variance_within_row": c**2 * s["row_variance"] / rows,
        "row_mean_share": 1 - s["within"] / s["pairs"] / spread,
        "saturation": c * s["saturation"] / s["several"],
        "entropy": s["entropy"] / rows,
        "entropy_fraction": s["fraction"] / s["several"],
        "effective_keys": s["effective"] / rows,
        "max_weight": s["max_weight"] / rows,
        "one_hot_rows": s["one_hot"] / s["several"],
        "sum_squared_weights": s["squared"] / rows,
        "first_key_weight": s["first"] / rows,
        "first_key_over_uniform": s["first"] / s["uniform"],
        "sink_weight": s["sink"] / rows,
        "jacobian_norm": s["jacobian"] / rows,
        "jacobian_norm_squared": s["jacobian2"] / rows,
        "dead_rows": s["dead"] / s["may_die"],
        "weight_times_complement": s["complement"] / rows,
    }
    if "nan" in s:
        values |= {"weight_lost": s["lost"] / rows, "nan_rows": s["nan"] / (rows + s["nan"])}
    if "misplaced" in s:
        every = rows + s["nan"]
        values |= {
            "score_overflow": s["overflow"] / every,
            "naive_exp_overflow": s["beyond"] / every,
            "weight_error": s["misplaced"] / rows,
        }
    if "inside" in s:
        values["logit_within_3sd"] = s["inside"] / s["pairs"]
    return values


def _jackknife(names: Sequence[str], values: FloatArray, unbiased: bool) -> tuple[FloatArray, FloatArray]:
    """Return the values and standard errors of statistics from arrays (statistics, rules, draws + 1).

    These are each statistic without one draw in turn, and of all draws; a single draw has no standard error.
    """
    draws = values.shape[-1] - 1
    plain, without = values[..., -1], values[..., :-1]
    if draws == 1:
        return plain, np.full_like(plain, np.nan)
    mean = without.mean(axis=-1)
    value = np.where(np.isfinite(mean) & unbiased, draws * plain - (draws - 1) * mean, plain)
    return value, _standard_errors(names, without)
