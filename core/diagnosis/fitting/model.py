"""A model of how logits were made: linear in its coefficients, bent by a soft-cap, masked, perhaps with a sink.

Coefficients are, in this order: one for each inner feature (the first is the multiplier of the scores), one for each
outer feature, the logarithm of the soft-cap if it is free, and the sink's logit if it is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from ...arrays import BoolArray, FloatArray

Axis: TypeAlias = Literal[-1, -2]


@dataclass(frozen=True, eq=False)
class Model:
    """One hypothesis; arrays are [texts, rows, keys] or broadcast to it."""

    inner: tuple[FloatArray, ...]  # features before the soft-cap
    outer: tuple[FloatArray, ...] = ()  # features after it
    bias: FloatArray | None = None  # added with coefficient 1
    seen: BoolArray | None = None
    softcap: float | None = None
    free_softcap: bool = False
    sink: float | None = None
    free_sink: bool = False
    lse_factor: float = 1.0  # what the log-sum-exp is multiplied by
    v: FloatArray | None = None  # other values than the evidence's
    axis: Axis = -1  # softmax runs over keys (-1) or queries (-2)
    gaps: bool = False  # whether weights may be 0 anywhere (dropout)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.inner) + len(self.outer) + self.free_softcap + self.free_sink


@dataclass(frozen=True, eq=False)
class Logits:
    """The logits of a model and their derivatives with respect to all coefficients but the sink."""

    z: FloatArray  # [texts, rows, keys]; hidden ones are 0
    slopes: tuple[FloatArray, ...]
    sink: float | None


def logits(model: Model, theta: FloatArray, slopes: bool = True) -> Logits:
    """Return the logits at these coefficients; without `slopes` there are no derivatives."""
    count = len(model.inner)
    raw = theta[0] * model.inner[0]
    for coefficient, feature in zip(theta[1:count], model.inner[1:], strict=True):
        raw += coefficient * feature
    found = list(model.inner) if slopes else []
    place = count + len(model.outer)
    cap = math.exp(min(max(float(theta[place]), -30.0), 300.0)) if model.free_softcap else model.softcap
    z = raw
    if cap is not None:
        tanh = np.tanh(raw / cap)
        z = cap * tanh
        if slopes:
            bent = 1 - tanh * tanh
            found = [feature * bent for feature in found]
            if model.free_softcap:
                found.append(z - raw * bent)
    for number, feature in enumerate(model.outer):
        z = z + theta[count + number] * feature
        if slopes:
            found.insert(count + number, feature)
    if model.bias is not None:
        z = z + model.bias
    sink = float(theta[-1]) if model.free_sink else model.sink
    return Logits(z, tuple(found), sink)


@dataclass(frozen=True, eq=False)
class Softmax:
    """Weights [texts, rows, keys] and the log-sum-exp along the model's axis, kept as an axis of length 1."""

    p: FloatArray
    lse: FloatArray
    sink: FloatArray | float  # the weight of the sink


def dot(a: FloatArray, b: FloatArray, axis: Axis = -1) -> FloatArray:
    """Return the sums of products along an axis."""
    if axis == -1:
        return cast(FloatArray, np.vecdot(a, b))
    return np.einsum("...ij,...ij->...j", a, b)


def softmax(z: FloatArray, seen: BoolArray | None, sink: float | None, axis: Axis = -1) -> Softmax:
    """Return softmax of the visible logits; rows that see nothing get weights 0 and log-sum-exp −∞ or the sink."""
    p = z.copy() if seen is None else np.where(seen, z, -np.inf)
    top: FloatArray = p.max(axis=axis, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    elif seen is not None:
        top = np.where(np.isneginf(top), 0, top)
    p -= top
    np.exp(p, out=p)
    total = p.sum(axis=axis, keepdims=True)
    extra = 0.0 if sink is None else np.exp(sink - top)
    total = total + extra
    if seen is None:
        p /= total
        return Softmax(p, np.log(total) + top, extra / total)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + top
    safe = np.where(total > 0, total, 1)
    p /= safe
    return Softmax(p, lse, extra / safe)
