"""Find where softmax freezes: the widths at which a few keys hold all the weight of a row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..errors import ParameterError
from ..parameters import FIELD, ROUNDED, Parameters, ScaleName
from ..scales import Setting, multiplier, multipliers, scale_rule
from .curves import causal_lengths
from .normalised import is_normalised, score_variance
from .prediction import Freezing, Interval
from .score_moments import is_plain, score_moments

_WIDTHS = np.arange(int(FIELD["d_k"].low), int(FIELD["d_k"].high) + 1)


def freezing(parameters: Parameters, rule: ScaleName) -> Freezing | None:
    """Return where softmax freezes under a rule, the other parameters as given; None if it is not known.

    It is known if the standard deviation of the logits within a row is, at every d_k: for dot products of q and k as
    drawn or, without correlation, normalised; without a soft-cap and in exact arithmetic. It does not exist if no row
    sees two keys. Raise ParameterError if the rule has no multiplier at this d_k.
    """
    p = parameters
    multiplier(rule, p.setting)  # or raise
    threshold = _threshold(p)
    if threshold is None or p.precision in ROUNDED:
        return None
    component: FloatArray | float
    if is_plain(p, rule):
        # The score's standard deviation within a row is √d_k times that of one component.
        component = math.sqrt(score_moments(p).variance_within_row / p.d_k)
    elif is_normalised(p, rule):
        component = p.norm_gain**2 * _normalised(rule)
    else:
        return None
    spreads = _spreads(rule, _alike(rule, p.setting)) * component
    return Freezing(threshold, float(spreads[p.d_k - _WIDTHS[0]]), _intervals(spreads >= threshold))


def freezing_of(parameters: Parameters, rules: Iterable[ScaleName]) -> dict[ScaleName, Freezing | None]:
    """Return where softmax freezes under each rule that has a multiplier at this d_k."""
    found: dict[ScaleName, Freezing | None] = {}
    for rule in rules:
        with suppress(ParameterError):
            found[rule] = freezing(parameters, rule)
    return found


def _threshold(p: Parameters) -> float | None:
    """Return √(2 ln n), or its harmonic mean over the rows that see n >= 2 keys; None if there are none.

    So σ over this threshold is the mean over rows of σ over their own thresholds.
    """
    lengths = causal_lengths(p.n_keys, p.n_queries) if p.mask == "causal" else np.array([float(p.n_keys)])
    several = lengths[lengths > 1]
    return float(1 / np.mean(1 / np.sqrt(2 * np.log(several)))) if several.size else None


def _alike(rule: ScaleName, setting: Setting) -> Setting:
    """Return the setting with only what the rule needs besides d_k, so that settings alike to it are equal."""
    needs = [name for name in scale_rule(rule).needs if name != "d_k"]
    return replace(Setting(), **{name: getattr(setting, name) for name in needs})


@lru_cache(maxsize=64)
def _spreads(rule: ScaleName, setting: Setting) -> FloatArray:
    """Return √d_k times the rule's multiplier at each of _WIDTHS; NaN where it has none."""
    return np.sqrt(_WIDTHS) * multipliers(rule, setting, _WIDTHS.tolist())


@lru_cache(maxsize=16)
def _normalised(rule: ScaleName) -> FloatArray:
    """Return the standard deviation of the score of normalised q and k over √d_k, at each of _WIDTHS."""
    return np.sqrt([score_variance(d_k, 1.0, rule) / d_k for d_k in _WIDTHS.tolist()])


def _intervals(frozen: BoolArray) -> tuple[Interval, ...]:
    """Return the first and the last of each run of _WIDTHS at which softmax is frozen."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], frozen, [False]))))
    return tuple((int(_WIDTHS[first]), int(_WIDTHS[last - 1])) for first, last in edges.reshape(-1, 2))
