"""Dropout that was on: weights that are 0 at random, the others divided by the share that is kept."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import FloatArray
from ..fitting.evidence import FittingEvidence, arithmetics, smallest, unit
from ..fitting.model import LogitModel, dot, logits

_ROWS = 16  # that are searched for dropped keys
_LOGITS = 2.0**-17  # relative: what rounding of large logits in float32 does to weights
_EXPLAINED = 0.25  # share of rows; the greedy search misses the keys of the others
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)


def shows_in_weights(observed: FittingEvidence, model: LogitModel, theta: FloatArray) -> bool:
    """Return whether weights are 0 as often as the others, all enlarged by the same factor, say."""
    predicted = logits(model, theta).softmax.weights
    p = observed.evidence.values
    large = predicted > 64 * smallest(observed.evidence.format)
    kept = p[large] > 0
    if kept.size < 20 or not 0.3 < kept.mean() < 0.998:
        return False
    with np.errstate(divide="ignore"):
        factors = np.log(p[large][kept] / predicted[large][kept])
    low, middle, high = np.quantile(factors, (0.2, 0.5, 0.8))
    even = high - low < 0.02 + 4 * unit(observed.evidence.format)
    return bool(even and abs(math.exp(middle) * float(kept.mean()) - 1) < 0.03 + 4 / math.sqrt(kept.size))


def shows_in_output(observed: FittingEvidence, model: LogitModel, theta: FloatArray) -> bool:
    """Return whether outputs are explained, to within rounding, by leaving out a few keys of each row.

    Keys are left out one after another, the one that explains most first, with one common factor for the others. This
    is a strong test: a row has as many numbers as a value has components, and few keys are dropped.
    """
    v = observed.evidence.v
    assert v is not None
    weights = logits(model, theta).softmax.weights
    texts, rows, _ = np.nonzero(observed.weight[..., :1] > 0)
    effective = 1 / np.maximum(np.square(weights[texts, rows]).sum(axis=-1), 1e-12)
    order = np.argsort(np.where(effective > 1.5, effective, np.inf), kind="stable")[:_ROWS]
    # Of rows that dropping keys explains: the factor, and the weight dropped.
    explained: list[tuple[float, float]] = []
    away = 0
    coarsest = arithmetics(observed.subject, observed.evidence)[-1]
    relative = max(unit(observed.evidence.format), unit(coarsest.sides or coarsest.scores), _LOGITS)
    for number in order.tolist():
        text, row = int(texts[number]), int(rows[number])
        p, target = weights[text, row], observed.target[text, row]
        rounding = 4 * relative * _length(target)
        rounding += 2 * unit(observed.evidence.v_format) * _length(p[:, np.newaxis] * v[text])
        if _length(p @ v[text] - target) <= 3 * rounding:
            continue
        away += 1
        left, factors, dropped = _after_dropping(p, v[text], target, rounding)
        explained += [(float(factors[at]), float(dropped[at])) for at in np.flatnonzero(left <= rounding)[:1]]
    if away < 4 or len(explained) < max(3, _EXPLAINED * away):
        return False
    # All rows have the factor of one share, and lost about this share of their weight: not one factor of all outputs.
    factors, dropped = np.array(explained).T
    factor = float(np.median(factors))
    alike = np.abs(factors / factor - 1) < 0.02 + 8 * unit(observed.evidence.format)
    return bool(factor > 1 and alike.mean() > 0.5 and 0.3 < float(dropped[alike].mean()) / (1 - 1 / factor) < 3)


def _after_dropping(
    p: FloatArray, v: FloatArray, target: FloatArray, enough: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what is left of the target without the best keys, their factor and their weight, for each of _SHARES."""
    products = p[:, np.newaxis] * v
    sizes = dot(products, products)
    factor: FloatArray = 1 / (1 - np.array(_SHARES))
    every = np.arange(len(factor))
    kept = np.ones((len(factor), len(p)), np.bool_)
    output = factor[:, np.newaxis] * products.sum(axis=0)
    best = np.full(len(factor), np.inf), np.ones(len(factor)), np.zeros(len(factor))
    for _ in range(max(len(target) // 2, 1)):
        # Changing the state of key j adds ∓factor·p_j v_j to the output.
        by = factor[:, np.newaxis]
        gain = 2 * np.where(kept, -1.0, 1.0) * by * ((target - output) @ products.T) - by * by * sizes
        key = gain.argmax(axis=1)
        searched = (gain[every, key] > 0) & (best[0] > enough)
        if not searched.any():
            break
        kept[every[searched], key[searched]] ^= True
        whole: FloatArray = kept @ products
        size = dot(whole, whole)
        np.divide(whole @ target, size, out=factor, where=searched & (size > 0))
        output = factor[:, np.newaxis] * whole
        left = np.sqrt(np.square(target - output).sum(axis=-1))
        better = searched & (left < best[0])
        for numbers, new in zip(best, (left, factor, np.where(kept, 0.0, p).sum(axis=-1)), strict=True):
            numbers[better] = new[better]
    return best


def _length(numbers: FloatArray) -> float:
    return math.sqrt(float(np.square(numbers).sum()))
