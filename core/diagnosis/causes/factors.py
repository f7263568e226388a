"""Weights whose scores carry an own factor for each query and each key: what a missing QK-norm leaves behind."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ...arrays import FloatArray
from ..fitting.evidence import Observed
from ..fitting.model import Model, dot, softmax

_ITERATIONS = 200
_MOST_KEYS = 256
_STEPS = 40


def left_in_weights(observed: Observed, model: Model, keys: bool = True) -> float:
    """Return the distance of ln p_ij = c_i + a_i·b_j·s_ij, with the best a, b and c; b is 1 unless `keys`.

    The least squares are solved for a and c, then for b, alternately.
    """
    scores = model.inner[0]
    weight = observed.weight if model.seen is None else observed.weight * model.seen
    square = weight * weight
    target = observed.target if model.bias is None else observed.target - model.bias
    total = square.sum(axis=-1, keepdims=True)
    known = total > 0
    inverse = np.divide(1, total, out=np.zeros_like(total), where=known)
    target = target - dot(square, target)[..., np.newaxis] * inverse
    of_keys: FloatArray = np.ones((scores.shape[0], 1, scores.shape[2]))
    of_rows: FloatArray = np.ones_like(total)
    distance, count = math.inf, max(int(np.count_nonzero(weight)), 1)
    for _ in range(_ITERATIONS):
        x = of_keys * scores
        x = x - dot(square, x)[..., np.newaxis] * inverse
        size: FloatArray = dot(square * x, x)[..., np.newaxis]
        of_rows = dot(square * x, target)[..., np.newaxis] / np.maximum(size, 1e-300)
        middle = dot(square, of_rows * of_keys * scores)[..., np.newaxis] * inverse
        if not keys:
            left = (of_rows * scores - middle - target) * weight
            return math.sqrt(float(np.square(left).sum()) / count)
        y = of_rows * scores
        size = dot(square * y, y, -2)[..., np.newaxis, :]
        of_keys = dot(square * y, target + middle, -2)[..., np.newaxis, :] / np.maximum(size, 1e-300)
        left = (of_rows * of_keys * scores - middle - target) * weight
        before, distance = distance, math.sqrt(float(np.square(left).sum()) / count)
        if distance > 0.999 * before:
            break
    return distance


def left_in_output(observed: Observed, model: Model, multiplier: float, by_key: bool = True) -> float:
    """Return the distance of o with logits a_i·b_j·s_ij, with the best a and b; ∞ if there are too many keys.

    b is 1 unless `by_key`. Gauss–Newton steps in the logarithms of b; each row's own factor a_i is eliminated.
    """
    scores = model.inner[0]
    texts, rows, keys = scores.shape
    v = observed.evidence.v
    assert v is not None
    if texts > 1 or keys > _MOST_KEYS or rows * v.shape[-1] < 2 * (rows + keys) or model.softcap is not None:
        return math.inf
    values, s = v[0], scores[0]
    weight = observed.weight[0, :, :1]
    target = observed.target[0]

    def output(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        z = (np.exp(a) * np.exp(b)) * s
        bias = None if model.bias is None else model.bias[0]
        soft = softmax((z if bias is None else z + bias)[np.newaxis], model.seen, model.sink)
        o = soft.p[0] @ values
        r = (o - target) * weight
        return soft.p[0], r, float(np.square(r).sum())

    a: FloatArray = np.full((rows, 1), math.log(multiplier), np.float64)
    b = zeros = cast(FloatArray, np.zeros(keys))
    p, r, cost = output(a, b)
    damping = 1e-3
    for _ in range(_STEPS):
        o = p @ values
        slope = p * (np.exp(a) * np.exp(b)) * s  # the derivative of p_ij's logit, weighted
        # [rows, d_v, keys]: how o changes with ln b_j; their sum is how it changes with ln a_i.
        changes = slope[:, np.newaxis] * (values.T - o[..., np.newaxis]) * weight[..., np.newaxis]
        by_row = changes.sum(axis=-1, keepdims=True)
        size = np.maximum(np.square(by_row).sum(axis=1, keepdims=True), 1e-300) * (1 + damping)
        shared = (by_row * changes).sum(axis=1, keepdims=True)  # [rows, 1, keys]
        along = (by_row[..., 0] * r).sum(axis=1, keepdims=True)  # [rows, 1]
        flat = changes.reshape(-1, keys)
        normal = flat.T @ flat
        diagonal = np.diagonal(normal).copy()
        normal -= (shared / size)[:, 0].T @ shared[:, 0]
        slope_b = flat.T @ r.reshape(-1) - (shared[:, 0] * (along / size[..., 0])).sum(axis=0)
        np.fill_diagonal(normal, np.diagonal(normal) + damping * diagonal + 1e-9 * diagonal.max())
        step_b = _limited(np.linalg.solve(normal, -slope_b)) if by_key else zeros
        step_a = _limited(-(along + shared[:, 0] @ step_b[:, np.newaxis]) / size[..., 0])
        moved = output(np.add(a, step_a), np.add(b, step_b))
        if moved[2] < cost:
            done = moved[2] > 0.9999 * cost
            a, b, (p, r, cost) = np.add(a, step_a), np.add(b, step_b), moved
            damping *= 0.2
            if done:
                break
        else:
            damping *= 8
            if damping > 1e6:
                break
    used = int(np.count_nonzero(weight)) * values.shape[1]
    return math.sqrt(cost / max(used, 1))


def _limited(step: Any) -> FloatArray:
    """Return a step that changes no factor by more than e."""
    return cast(FloatArray, np.minimum(np.maximum(step, -1.0), 1.0))
