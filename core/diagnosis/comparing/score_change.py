"""Compare the scores of two heads in a way that does not depend on a basis shared by q and k.

q·kᵀ does not change if q and k are rotated, or their components permuted, alike; nor do v·vᵀ and o·vᵀ for a basis
that v and o share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import BoolArray, FloatArray
from ..fitting.evidence import unit
from ..subject import Subject, spread_rows

# The standard deviation of a relative rounding error over half a unit in the last place.
_SPREAD = 0.42
# Numbers of float32 are sums of many products, in an order that differs between kernels.
_LEAST = 2.0**-20
# Differences up to these multiples of the rounding of the stored numbers are noise. The input of a layer is rounded
# too, and from the second layer on it carries the noise of those before: a Llama of 20 layers in bfloat16 and float16
# differs from its float32 self by 4 units in the first layer, 16 to 25 in the second and at most 42 in the others.
_FIRST, _LATER = 8.0, 48.0
_TOKENS = 256  # of which products of values are compared


@dataclass(frozen=True)
class ScoreChange:
    """How the scores of the other head differ from `factor` times those of the reference."""

    factor: float
    change: float  # root mean square of the difference, over that of rounding
    relative: float  # the same over that of the scores about their mean in a row
    by_rows: bool  # whether the difference is a constant in each row, which softmax ignores
    correlation: float  # within rows


def limit(first: bool) -> float:
    """Return the change up to which scores are the same; `first`: no layer comes before."""
    return _FIRST if first else _LATER


def half_unit(format: str) -> float:
    """Return half a unit in the last place of 1, at least what sums in float32 leave."""
    return max(unit(format), _LEAST)


def half_unit_of(subject: Subject) -> float:
    """Return half a unit in the last place of 1 for a head: the root mean square of those of q and of k."""
    of_q, of_k = half_unit(subject.format), half_unit(subject.k_format or subject.format)
    return math.sqrt((of_q * of_q + of_k * of_k) / 2)


def score_change(one: Subject, other: Subject, most: float) -> ScoreChange:
    """Compare the scores of visible pairs; changes up to `most` are noise."""
    shown = _shown(one) | _shown(other)
    s, t = one.scores, other.scores
    noise, noise_there = _noise(one), _noise(other)
    centred, moved = _centred(s, shown)[shown], _centred(t, shown)[shown]
    s, t = s[shown], t[shown]
    tolerance = max(0.5 * most * max(noise / (_rms(s) or 1.0), noise_there / (_rms(t) or 1.0)), 1e-9)
    spread, other_spread = _rms(centred), _rms(moved)
    correlation = float(np.mean(centred * moved)) / (spread * other_spread) if spread and other_spread else 1.0

    def result(a: FloatArray, b: FloatArray, by_rows: bool) -> ScoreChange:
        size = float(np.vdot(a, a))
        factor = float(np.vdot(a, b)) / size if size else 1.0
        if factor <= 0 or abs(factor - 1) <= tolerance or _rms(b - factor * a) > 0.5 * _rms(b):
            factor = 1.0
        left, rounding = _rms(b - factor * a), math.hypot(factor * noise, noise_there)
        return ScoreChange(factor, _over(left, rounding), _over(left, spread), by_rows, correlation)

    raw = result(s, t, False)
    if raw.change > most:
        within = result(centred, moved, True)
        if within.change <= most:
            return within
    return raw


def product_change(a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray], format: str) -> float:
    """Return how products of rows, a[0]·a[1]ᵀ and b[0]·b[1]ᵀ, differ, over the rounding of their factors.

    Arrays are [texts, tokens, d]; a's and b's widths may differ.
    """
    some, others = spread_rows(a[0].shape[1], _TOKENS), spread_rows(a[1].shape[1], _TOKENS)
    one: FloatArray = a[0][:, some] @ a[1][:, others].mT
    other: FloatArray = b[0][:, some] @ b[1][:, others].mT
    step = _SPREAD * half_unit(format)
    noise = step * math.sqrt(2 * (_product(*a) + _product(*b)))
    return _over(_rms(other - one), noise)


def _shown(subject: Subject) -> BoolArray:
    if subject.seen is not None:
        return subject.seen
    return np.ones(subject.scores.shape, np.bool_)


def _noise(subject: Subject) -> float:
    """Return the root mean square of what rounding q and k does to a score."""
    return _SPREAD * half_unit_of(subject) * math.sqrt(2 * _product(subject.q, subject.k))


def _product(q: FloatArray, k: FloatArray) -> float:
    """Return the mean over pairs of Σ q_c² k_c²."""
    products: FloatArray = np.mean(np.square(q), axis=1) * np.mean(np.square(k), axis=1)
    return float(products.sum()) / len(products)


def _centred(scores: FloatArray, shown: BoolArray) -> FloatArray:
    """Return scores less the mean of the visible ones of their row."""
    count = np.maximum(np.count_nonzero(shown, axis=-1, keepdims=True), 1)
    mean = np.where(shown, scores, 0).sum(axis=-1, keepdims=True) / count
    return scores - mean


def _over(difference: float, size: float) -> float:
    """Return a ratio; 0 if there is no difference, ∞ if only the size is 0."""
    if difference == 0:
        return 0.0
    return difference / size if size else math.inf


def _rms(values: FloatArray) -> float:
    return math.sqrt(float(np.mean(np.square(values)))) if values.size else 0.0
