"""Expectations of softmax as functions of the logit standard deviation s, from a few dozen exact values.

On x = s/(s + 3) every expectation, times 1 + s/3 if it decays like 1/s, is smooth from s = 0 to s = ∞, so one
Chebyshev polynomial represents the whole curve, both ends included. Causal rows see 1, 2, … keys: expectations are
smooth in ln n too, so sixteen curves between 8 and 8192 keys are enough to interpolate all lengths between.

The curves of causal rows, and of the numbers of keys that the app steps through, are in a file, which `python -m
attn_tui.core.theory.curves` writes in a second. Others are computed when needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..parameters import FIELD, MaskName
from .quadrature import ONE_HOT_KEYS, expectations

KEPT_CURVES = tuple(2**power for power in range(1, 14))  # numbers of keys whose curves are in the file
_DEGREE = 64  # enough for 10⁴ keys
ONE_HOT_NOISE = 1e-9  # below, a share of one-hot rows is noise: towards s = 0 it decays faster than a polynomial
_CENTRE = 3.0  # the s in the middle of the axis: softmax saturates at s = 1.2 (two keys) to 5.3 (10⁶ keys)
NAMES = (
    "entropy",
    "entropy_fraction",
    "max_weight",
    "one_hot_rows",
    "sum_squared_weights",
    "jacobian_norm_squared",
    "weight_times_complement",
    "jacobian_along_logits",
)
_OF_SEVERAL = ("entropy_fraction", "one_hot_rows")  # means over the rows that see at least two keys
_ONE_LESS = np.array([False, False, True, True, True, False, False, False])  # those that tend to 1, not to 0


class Curves(NamedTuple):
    """Curves over s of the expectations of some rows; each value is the mean over those that the statistic counts."""

    coefficients: FloatArray  # Chebyshev, shape (degree, statistics), of (1 + s/3)·(value, or 1 − value)
    missing: frozenset[str]  # undefined statistics

    def at(self, s: FloatArray) -> Mapping[str, FloatArray]:
        """Return each defined statistic, by name, at standard deviations s >= 0; all arrays have shape (points,)."""
        values = zip(NAMES, self._values(s).T, strict=True)
        return {name: each for name, each in values if name not in self.missing}

    def mean(self, s: FloatArray, weights: FloatArray) -> dict[str, float]:
        """Return the mean of each defined statistic over standard deviations s with weights (points,)."""
        values = zip(NAMES, (weights @ self._values(s)).tolist(), strict=True)
        return {name: each for name, each in values if name not in self.missing}

    def _values(self, s: FloatArray) -> FloatArray:
        angles = np.arccos(2 * s / (s + _CENTRE) - 1)
        basis = np.cos(np.multiply.outer(angles, np.arange(len(self.coefficients))))
        values = basis @ self.coefficients * (_CENTRE / (s + _CENTRE))[:, np.newaxis]
        return np.maximum(np.where(_ONE_LESS, 1 - values, values), 0)


def curves(n_keys: int, n_queries: int, mask: MaskName) -> Curves:
    """Return the curves of rows that all see n_keys keys (1 to 10⁶) or, if causal, 1, 2, … n_keys in turn.

    The first call for a number of keys outside KEPT_CURVES takes a tenth of a second.
    """
    return _equal_rows(n_keys) if mask == "none" else _causal_rows(n_keys, n_queries)


def causal_lengths(n_keys: int, n_queries: int) -> FloatArray:
    """Return the number of keys each row sees under a causal mask, top-left aligned; shape (n_queries,)."""
    return np.minimum(np.arange(1.0, n_queries + 1), n_keys)


def make_curves() -> FloatArray:
    """Compute the file's contents: coefficients (degree, lengths, statistics) for KEPT_CURVES, then for _LENGTHS."""
    return _chebyshev(_samples(np.array([*KEPT_CURVES, *_LENGTHS]), _DEGREE))


FILE = Path(__file__).with_name("curves.npy")


@lru_cache(maxsize=1)
def _kept() -> FloatArray:
    return np.load(FILE)


@lru_cache(maxsize=256)
def _equal_rows(n: int) -> Curves:
    """Return the curves of rows with n keys."""
    if n == 1:
        coefficients = np.zeros((1, len(NAMES)))
    elif n in KEPT_CURVES:
        coefficients = np.ascontiguousarray(_kept()[:, KEPT_CURVES.index(n)])
    else:
        coefficients = _chebyshev(_samples(np.array([float(n)]), _DEGREE if n <= 10_000 else 80))[:, 0]
    missing = {*_OF_SEVERAL} if n == 1 else {"one_hot_rows"} if n > ONE_HOT_KEYS else set[str]()
    return Curves(coefficients, frozenset(missing))


@lru_cache(maxsize=16)
def _causal_rows(n_keys: int, n_queries: int) -> Curves:
    """Return the curves of the mean over causal rows."""
    lengths, counts = np.unique(causal_lengths(n_keys, n_queries), return_counts=True)
    several = lengths > 1  # the value of a row with a single key is 0 or 1 at every s, and its coefficients are 0
    if not several.any():
        return _equal_rows(1)
    weights, ladder = counts[several] @ _weights(lengths[several]), _kept()[:, len(KEPT_CURVES) :]
    coefficients = np.tensordot(weights, ladder, (0, 1)) / n_queries
    coefficients[:, [NAMES.index(name) for name in _OF_SEVERAL]] *= n_queries / counts[several].sum()
    return Curves(coefficients, frozenset())


def _weights(lengths: FloatArray) -> FloatArray:
    """Return interpolation weights (given lengths, len(_LENGTHS)) for lengths from 2 on."""
    exact, rungs = _LENGTHS[:_EXACT], _LENGTHS[_EXACT:]
    middle, half = math.log(_LONGEST * (exact[-1] + 1)) / 2, math.log(_LONGEST / (exact[-1] + 1)) / 2
    orders = np.arange(len(rungs))
    at_lengths = np.cos(np.multiply.outer(np.arccos(np.clip((np.log(lengths) - middle) / half, -1, 1)), orders))
    at_rungs = np.cos(np.multiply.outer(np.arccos(np.clip((np.log(rungs) - middle) / half, -1, 1)), orders))
    interpolated = (2 * at_lengths @ at_rungs.T - 1) / len(rungs)  # T_0 counts once, all others twice
    same = lengths[:, None] == exact
    return np.hstack([same, np.where(same.any(axis=1, keepdims=True), 0, interpolated)])


def _samples(lengths: FloatArray, points: int) -> FloatArray:
    """Return (1 + s/3)·(value, or 1 − value) at the Chebyshev points: (points, lengths, statistics)."""
    x = (1 + np.cos(_angles(points))) / 2
    samples = np.empty((points, len(lengths), len(NAMES)))
    for sample, s in zip(samples, (_CENTRE * x / (1 - x)).tolist(), strict=True):
        e = expectations(lengths, s)
        values = (
            e.entropy,
            e.entropy / np.log(lengths),
            e.max_weight,
            e.one_hot,
            e.sum_squared_weights,
            e.jacobian_norm_squared,
            (1 - e.sum_squared_weights) / lengths,
            e.jacobian_along_logits,
        )
        stacked = np.stack(values, axis=1)
        sample[:] = np.where(_ONE_LESS, 1 - stacked, stacked) * (1 + s / _CENTRE)
    return samples


def _chebyshev(samples: FloatArray) -> FloatArray:
    """Return Chebyshev coefficients from samples at the Chebyshev points, along the first axis."""
    points = len(samples)
    coefficients = np.tensordot(np.cos(np.outer(np.arange(points), _angles(points))), samples, 1) * (2 / points)
    coefficients[0] /= 2
    return coefficients


def _angles(points: int) -> FloatArray:
    """Return the arc cosines of the Chebyshev points of the first kind."""
    return (np.arange(points) + 0.5) * math.pi / points


# The lengths from which all causal rows are interpolated: the shortest exactly, then Chebyshev points in ln n.
_EXACT = 6
_LONGEST = int(FIELD["n_queries"].high)  # a causal row sees no more keys than queries up to it
_LENGTHS = np.concatenate(
    [
        np.arange(2.0, 2 + _EXACT),
        np.exp((math.log(_LONGEST * (2 + _EXACT)) + math.log(_LONGEST / (2 + _EXACT)) * np.cos(_angles(16))) / 2),
    ]
)


if __name__ == "__main__":
    np.save(FILE, make_curves())
