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
from ...attention.softmax import Softmax, softcap_slopes, softcapped, softmax_of

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
    found: list[FloatArray] = list(model.inner) if slopes else []
    place = count + len(model.outer)
    cap = math.exp(min(max(float(theta[place]), -30.0), 300.0)) if model.free_softcap else model.softcap
    z = raw
    if cap is not None:
        z = softcapped(raw, cap)
        if slopes:
            slope = softcap_slopes(z, cap)
            found = [feature * slope for feature in found]
            if model.free_softcap:
                found.append(z - raw * slope)
    for number, feature in enumerate(model.outer):
        z = z + theta[count + number] * feature
        if slopes:
            found.insert(count + number, feature)
    if model.bias is not None:
        z = z + model.bias
    sink = float(theta[-1]) if model.free_sink else model.sink
    return Logits(z, tuple(found), sink)


def dot(a: FloatArray, b: FloatArray, axis: Axis = -1) -> FloatArray:
    """Return the sums of products along an axis."""
    if axis == -1:
        return cast(FloatArray, np.vecdot(a, b))
    return np.einsum("...ij,...ij->...j", a, b)


def softmax(model: Model, found: Logits) -> Softmax:
    """Return the softmax of a model's visible logits; along queries, the sums and sinks are those of keys."""
    hidden = None if model.seen is None else ~model.seen
    if model.axis == -1:
        return softmax_of(found.z, hidden, found.sink)
    turned = softmax_of(found.z.mT, None if hidden is None else hidden.mT, found.sink)
    return turned._replace(weights=turned.weights.mT)
