"""A model of how logits were made: linear in its coefficients, bent by a soft-cap, masked, perhaps with a sink.

Coefficients are, in this order: one for each inner feature (the first is the multiplier of the scores), one for each
outer feature, the logarithm of the soft-cap if it is free, and the sink's logit if it is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, cast

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.softmax import Softmax, softcap_slopes, softcapped, softmax_of

Axis: TypeAlias = Literal[-1, -2]


@dataclass(frozen=True, eq=False)
class LogitModel:
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
    dropout: bool = False  # whether weights may be 0 anywhere
    latest: list[Logits] = field(default_factory=list["Logits"], init=False, repr=False)  # the one asked for last

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.inner) + len(self.outer) + self.free_softcap + self.free_sink

    @cached_property
    def hidden(self) -> BoolArray | None:
        """The keys that are not seen."""
        return None if self.seen is None else ~self.seen

    @cached_property
    def seeing(self) -> BoolArray | None:
        """The rows that see a key."""
        return None if self.seen is None else np.asarray(self.seen.any(axis=-1))


@dataclass(frozen=True, eq=False)
class Logits:
    """The logits of a model at some coefficients."""

    theta: FloatArray
    z: FloatArray  # [texts, rows, keys]; must not be changed
    cap: float | None
    sink: float | None
    hidden: BoolArray | None
    axis: Axis

    @cached_property
    def softmax(self) -> Softmax:
        """The softmax of the visible ones; along queries, the sums and sinks are those of keys."""
        if self.axis == -1:
            return softmax_of(self.z, self.hidden, self.sink)
        turned = softmax_of(self.z.mT, None if self.hidden is None else self.hidden.mT, self.sink)
        return turned._replace(weights=turned.weights.mT)


def logits(model: LogitModel, theta: FloatArray) -> Logits:
    """Return the logits at these coefficients; the latest of a model are kept."""
    if not model.latest or not np.array_equal(model.latest[0].theta, theta):
        place = len(model.inner) + len(model.outer)
        cap = math.exp(min(max(float(theta[place]), -30.0), 300.0)) if model.free_softcap else model.softcap
        z = _before_softcap(model, theta)
        if cap is not None:
            z = softcapped(z, cap)
        for coefficient, feature in zip(theta[len(model.inner) :], model.outer, strict=False):
            z = z + coefficient * feature
        if model.bias is not None:
            z = z + model.bias
        sink = float(theta[-1]) if model.free_sink else model.sink
        model.latest[:] = [Logits(theta.copy(), z, cap, sink, model.hidden, model.axis)]
    return model.latest[0]


def _before_softcap(model: LogitModel, theta: FloatArray) -> FloatArray:
    raw: FloatArray = theta[0] * model.inner[0]
    for coefficient, feature in zip(theta[1:], model.inner[1:], strict=False):
        raw += coefficient * feature
    return raw


def derivatives(model: LogitModel, z: Logits) -> list[FloatArray]:
    """Return the derivatives of logits with respect to all coefficients but the sink."""
    if z.cap is None:
        return [*model.inner, *model.outer]
    raw = _before_softcap(model, z.theta)
    capped = softcapped(raw, z.cap)
    slope = softcap_slopes(capped, z.cap)
    of_cap = [capped - raw * slope] if model.free_softcap else []
    return [*(feature * slope for feature in model.inner), *model.outer, *of_cap]


def dot(a: FloatArray, b: FloatArray, axis: Axis = -1) -> FloatArray:
    """Return the sums of products along an axis."""
    if axis == -1:
        return cast(FloatArray, np.vecdot(a, b))
    return np.einsum("...ij,...ij->...j", a, b)
