"""Scores with a factor for each query, key and component: what a missing or extra QK-norm leaves behind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.softmax import softmax
from ..fitting.evidence import FittingEvidence
from ..fitting.model import LogitModel, dot
from ..subject import spread_rows

_MOST_KEYS = 512
_SOME_KEYS = 256  # of weights
_STEPS, _TRIAL = 60, 15
_HOPEFUL = 0.05  # of the first squares: what is left after _TRIAL steps if factors explain anything


@dataclass(frozen=True, eq=False)
class _Head:
    """The first text of what is observed of a head; of weights some keys, which tell as much as all."""

    q: FloatArray  # [rows, d_k]
    k: FloatArray  # [keys, d_k]
    v: FloatArray | None  # [keys, d_v]; None: the target is ln p
    target: FloatArray  # [rows, numbers]
    weight: FloatArray  # [rows, numbers]
    bias: FloatArray | None  # [rows, keys]
    seen: BoolArray | None  # [rows, keys]
    sink: float | None


# What is left of each number of a row, and how it changes with the logits: [rows, numbers], [rows, numbers, keys].
_Response: TypeAlias = "tuple[FloatArray, FloatArray]"


class Free(NamedTuple):
    """Which factors are fitted."""

    rows: bool = False  # a, each of its own; else all are the multiplier
    keys: bool = False  # b; else 1
    components: bool = False  # w; else 1


def left_with_factors(observed: FittingEvidence, model: LogitModel, multiplier: float, of: Free) -> float:
    """Return the distance of weights or outputs with logits a_i·b_j·Σ_c w_c q_ic k_jc, with the best factors.

    Gauss–Newton steps in ln b and w, from a = `multiplier`; ln a of each row is eliminated. Return ∞ if there are too
    many keys, too few numbers, or a soft-cap.
    """
    head = _head(observed, model)
    rows, keys, width = len(head.q), len(head.k), head.q.shape[1]
    numbers = int(np.count_nonzero(head.weight))
    free = rows * of.rows + keys * of.keys + width * of.components
    if keys > _MOST_KEYS or min(numbers, observed.numbers) < 2 * (free + 1) or model.softcap is not None:
        return math.inf
    a: FloatArray = np.full((rows, 1), math.log(multiplier), np.float64)
    b: FloatArray = np.zeros(keys, np.float64)
    w: FloatArray = np.ones_like(head.q[0])
    factors, z, (r, change) = _response(head, a, b, w)
    first = cost = float(np.vdot(r, r))
    damping = 1e-3
    for number in range(_STEPS):
        if number == _TRIAL and cost > _HOPEFUL * first:
            break
        by_key = change * z[:, np.newaxis]  # with ln b; its sum over keys is how r changes with ln a
        slopes = [by_key] if of.keys else []
        if of.components:
            slopes.append((change * factors[:, np.newaxis]) @ head.k * head.q[:, np.newaxis])
        by_row = by_key.sum(axis=-1) * of.rows
        step_a, step = _step(by_row, np.concatenate(slopes, axis=-1) if slopes else None, r, damping)
        moved_b = np.add(b, step[:keys]) if of.keys else b
        moved_w = np.add(w, step[-width:]) if of.components else w
        moved_a = np.add(a, step_a)
        attempt = _response(head, moved_a, moved_b, moved_w)
        left = float(np.vdot(attempt[2][0], attempt[2][0]))
        if left < cost:
            done = left > 0.9999 * cost
            a, b, w, (factors, z, (r, change)), cost = moved_a, moved_b, moved_w, attempt, left
            damping *= 0.2
            if done:
                break
        else:
            damping *= 8
            if damping > 1e6:
                break
    return math.sqrt(cost / max(numbers, 1))


def _head(observed: FittingEvidence, model: LogitModel) -> _Head:
    subject, v = observed.subject, observed.evidence.v
    keys = slice(None) if v is not None else spread_rows(subject.k.shape[1], _SOME_KEYS)
    weight = observed.weight[0]
    seen = None if model.seen is None else model.seen[0][:, keys]
    if v is not None:
        weight = np.broadcast_to(weight, observed.target[0].shape)
    else:
        weight = weight[:, keys] if seen is None else weight[:, keys] * seen
    return _Head(
        subject.q[0] if subject.row_scales is None else subject.q[0] * subject.row_scales[0][:, np.newaxis],
        subject.k[0][keys],
        None if v is None else v[0],
        observed.target[0] if v is not None else observed.target[0][:, keys],
        weight,
        None if model.bias is None else model.bias[0][:, keys],
        seen,
        model.sink,
    )


def _response(head: _Head, a: FloatArray, b: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, _Response]:
    """Return a_i b_j, the logits without a bias, and what these leave."""
    factors = np.exp(a) * np.exp(b)
    z = factors * ((head.q * w) @ head.k.T)
    shown = z if head.bias is None else z + head.bias
    weight = head.weight
    if head.v is None:
        square = weight * weight
        total = square.sum(axis=-1, keepdims=True)
        share = np.divide(square, total, out=np.zeros_like(square), where=total > 0)
        away = shown - head.target
        r = (away - dot(share, away)[:, np.newaxis]) * weight
        return factors, z, (r, weight[..., np.newaxis] * (np.eye(len(head.k)) - share[:, np.newaxis]))
    p = softmax(shown, None if head.seen is None else ~head.seen, head.sink)
    o = p @ head.v
    change = p[:, np.newaxis] * (head.v.T - o[..., np.newaxis]) * weight[..., np.newaxis]
    return factors, z, ((o - head.target) * weight, change)


def _step(
    by_row: FloatArray, slopes: FloatArray | None, r: FloatArray, damping: float
) -> tuple[FloatArray, FloatArray]:
    """Return the step of ln a, [rows, 1], and of what is common to all rows.

    `by_row` is how r changes with ln a, [rows, numbers], `slopes` how with the others, [rows, numbers, others].
    """
    size = np.maximum(dot(by_row, by_row), 1e-300) * (1 + damping)
    along = dot(by_row, r)
    if slopes is None:
        return _limited(-along / size)[:, np.newaxis], np.zeros(0)
    shared: FloatArray = (slopes.mT @ by_row[..., np.newaxis])[..., 0]
    flat = slopes.reshape(-1, slopes.shape[-1])
    normal = flat.T @ flat
    diagonal = np.diagonal(normal).copy()
    normal -= (shared / size[:, np.newaxis]).T @ shared
    slope = flat.T @ r.reshape(-1) - (shared * (along / size)[:, np.newaxis]).sum(axis=0)
    least = 1e-9 * diagonal.max() + 1e-300  # one-hot rows do not depend on factors
    np.fill_diagonal(normal, np.diagonal(normal) + damping * diagonal + least)
    step = _limited(np.linalg.solve(normal, -slope))
    return _limited(-(along + shared @ step) / size)[:, np.newaxis], step


def _limited(step: Any) -> FloatArray:
    """Return a step that changes no factor by more than e."""
    return cast(FloatArray, np.minimum(np.maximum(step, -1.0), 1.0))
