"""Find where softmax saturates: the widths at which a few keys hold all the weight of a row."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..errors import ParameterError
from ..parameters import FIELD, ROUNDED, MaskName, Parameters, ScaleName, rows_differ
from ..scales import RuleSetting, multiplier, multipliers, row_multiplier, scale_rule
from .curves import causal_lengths
from .prediction import REACH, WAY, Interval, Saturation
from .score_moments import capped_deviation, is_capped_normal, is_normalised, score_moments, score_variance

_WIDTHS = np.arange(int(FIELD["d_k"].low), int(FIELD["d_k"].high) + 1)
_ROUNDING = 1e-12  # relative: a deviation this near the threshold is on it, as that of √(2 ln n)/√d_k is at every d_k
_LADDER: list[int] = sorted({*range(1, 25), *map(round, np.geomspace(24, float(_WIDTHS[-1]), 86).tolist())})


def saturation(parameters: Parameters, rule: ScaleName) -> Saturation | None:
    """Return where softmax saturates under a rule, the other parameters as given; None if it is not known.

    It is known if the standard deviation of the logits within a row is, at every d_k: for dot products, cosines and,
    averaged over their weights, bilinear scores of q and k as drawn or, without correlation, normalised; and for
    soft-capped dot products of normal q and k. It is that of exact arithmetic. It does not exist if no row sees two
    keys. Raise ParameterError if the rule has no multiplier at this d_k.
    """
    p = parameters
    multiplier(rule, p.setting)  # or raise
    threshold = _threshold(p.n_keys, p.n_queries, p.mask)
    if threshold is None:
        return None
    decides = p.precision not in ROUNDED and p.mechanism != "bilinear"
    if p.softcap:
        return _capped(p, rule, threshold, decides)
    found = _at_widths(p.unchecked(d_k=int(_WIDTHS[0])), rule, threshold)
    if found is None:
        return None
    spreads, reaches, saturated_at = found
    spread, reach = (float(curve[at - _WIDTHS[0]]) for curve, at in ((spreads, p.d_k), (reaches, max(p.d_k, REACH))))
    low, high = (float(spreads[d_k - _WIDTHS[0]]) / threshold for d_k in WAY)
    return Saturation(threshold, spread, reach, saturated_at, (low, high), decides)


@lru_cache(maxsize=64)
def _at_widths(
    p: Parameters, rule: ScaleName, threshold: float
) -> tuple[FloatArray, FloatArray, tuple[Interval, ...]] | None:
    """Return the deviations of logits at each of _WIDTHS, the largest up to each, and where they saturate.

    None if they are not known; the d_k of `p` does not matter.
    """
    component, rows = _component(p, rule), _rows(p, rule, threshold)
    if component is None or rows is None:
        return None
    spreads = _spreads(rule, _alike(rule, p.setting)) * component * rows
    spreads = np.where(np.abs(spreads - threshold) <= _ROUNDING * threshold, threshold, spreads)
    return spreads, np.fmax.accumulate(spreads), _intervals(spreads >= threshold)


def _component(p: Parameters, rule: ScaleName) -> FloatArray | float | None:
    """Return the standard deviation of a score within a row over √d_k, at each of _WIDTHS; None if not known."""
    how, dot = scale_rule(rule).normalise, replace(p, mechanism="dot_product")
    if p.mechanism == "cosine":
        if how == "layer_norm":
            return _normalised(rule) / _WIDTHS if is_normalised(dot, rule) else None
        return _normalised("cosine_1") if is_normalised(dot, "cosine_1") else None
    if p.mechanism not in ("dot_product", "bilinear"):
        return None
    gain = p.gain if p.mechanism == "bilinear" else 1.0  # Wᵀq is on average as long as q, times the gain
    if how == "none":
        return gain * math.sqrt(score_moments(p).variance_within_row / p.d_k)
    if not is_normalised(dot, rule):
        return None
    found = gain * p.norm_gain**2 * _normalised(rule)
    if p.mechanism == "bilinear" and how == "layer_norm":  # the components of Wᵀq, unlike those of q, have a mean
        found *= np.sqrt(1 - 1 / _WIDTHS)
    return found


def _rows(p: Parameters, rule: ScaleName, threshold: float) -> float | None:
    """Return the mean over rows of their ratios to saturation, over that of a row with the rule's multiplier.

    It is 1 unless rows have multipliers of their own; None if these do not depend on the row and on d_k separately.
    """
    if not rows_differ(p, rule):
        return 1.0
    lengths, counts = np.unique(causal_lengths(p.n_keys, p.n_queries), return_counts=True)
    several = lengths > 1
    factors: list[float] = []
    for n in lengths[several].tolist():
        ends = [p.setting._replace(d_k=d_k, n_keys=at) for d_k in (64, 65) for at in (int(n), p.n_keys)]
        try:
            low, whole, other, other_whole = (row_multiplier(rule, end) for end in ends)
        except ParameterError:
            return None
        if not math.isclose(low * other_whole, other * whole, rel_tol=1e-9):
            return None
        factors.append(low / whole / math.sqrt(2 * math.log(n)))
    return threshold * float(np.average(factors, weights=counts[several]))


def _capped(p: Parameters, rule: ScaleName, threshold: float, decides: bool) -> Saturation | None:
    """Return where softmax saturates with a soft-cap."""
    plain = scale_rule(rule).normalise == "none" and not rows_differ(p, rule)
    if not (plain and is_capped_normal(p)):
        return None
    alike = replace(Parameters(), **{name: getattr(p, name) for name in ("softcap", "mean_q", "std_q", "std_k")})
    setting = _alike(rule, p.setting)
    spread = capped_deviation(p, p.d_k, multiplier(rule, p.setting))
    reach = max(spread, p.softcap / 3)  # no logit is larger than the cap
    given = multipliers(rule, setting, np.array(WAY, np.float64)).tolist()
    low, high = (
        math.nan if math.isnan(value) else capped_deviation(p, d_k, value) / threshold
        for d_k, value in zip(WAY, given, strict=True)
    )
    return Saturation(threshold, spread, reach, _capped_at(alike, rule, setting, threshold), (low, high), decides)


@lru_cache(maxsize=64)
def _capped_at(p: Parameters, rule: ScaleName, setting: RuleSetting, threshold: float) -> tuple[Interval, ...]:
    """Return the intervals of d_k at which soft-capped logits are saturated.

    Between widths 8 % apart that are both saturated, or both not, all are; between others, there is one edge.
    """
    values = multipliers(rule, setting, _WIDTHS.astype(np.float64))

    @cache
    def is_saturated(width: int) -> bool:
        value = values[width - int(_WIDTHS[0])]
        return not math.isnan(value) and capped_deviation(p, width, value) >= threshold

    saturated = np.zeros(len(_WIDTHS), np.bool_)
    if p.softcap < threshold:  # no capped logit has a larger deviation than the cap
        return ()
    for first, last in pairwise(_LADDER):
        before, edge = is_saturated(first), last
        if is_saturated(last) != before:
            edge = first + bisect_right(range(first, last), False, key=lambda d_k, at=before: is_saturated(d_k) != at)
        saturated[first - 1 : edge - 1], saturated[edge - 1 : last] = before, is_saturated(last)
    return _intervals(saturated)


def saturation_of(parameters: Parameters, rules: Iterable[ScaleName]) -> dict[ScaleName, Saturation | None]:
    """Return where softmax saturates under each rule that has a multiplier at this d_k."""
    by_rule: dict[ScaleName, Saturation | None] = {}
    for rule in rules:
        with suppress(ParameterError):
            by_rule[rule] = saturation(parameters, rule)
    return by_rule


@lru_cache(maxsize=64)
def _threshold(n_keys: int, n_queries: int, mask: MaskName) -> float | None:
    """Return √(2 ln n), or its harmonic mean over the rows that see n >= 2 keys; None if there are none.

    So σ over this threshold is the mean over rows of σ over their own thresholds.
    """
    lengths = causal_lengths(n_keys, n_queries) if mask == "causal" else np.array([float(n_keys)])
    several = lengths[lengths > 1]
    return float(1 / np.mean(1 / np.sqrt(2 * np.log(several)))) if several.size else None


def _alike(rule: ScaleName, setting: RuleSetting) -> RuleSetting:
    """Return the setting with only what the rule needs besides d_k, so that settings alike to it are equal."""
    needs = [name for name in scale_rule(rule).needs if name != "d_k"]
    return RuleSetting(**{name: getattr(setting, name) for name in needs})


@lru_cache(maxsize=64)
def _spreads(rule: ScaleName, setting: RuleSetting) -> FloatArray:
    """Return √d_k times the rule's multiplier at each of _WIDTHS; NaN where it has none."""
    return np.sqrt(_WIDTHS) * multipliers(rule, setting, _WIDTHS.astype(np.float64))


@lru_cache(maxsize=16)
def _normalised(rule: ScaleName) -> FloatArray:
    """Return the standard deviation of the score of normalised q and k over √d_k, at each of _WIDTHS."""
    return np.sqrt([score_variance(d_k, 1.0, rule) / d_k for d_k in _WIDTHS.tolist()])


def _intervals(saturated: BoolArray) -> tuple[Interval, ...]:
    """Return the first and the last of each run of _WIDTHS at which softmax is saturated."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], saturated, [False]))))
    return tuple((int(_WIDTHS[first]), int(_WIDTHS[last - 1])) for first, last in edges.reshape(-1, 2))
