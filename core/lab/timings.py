"""How long the steps of attention take, compared with each other on the machine at hand."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from ..arrays import FloatArray
from ..statistics.measurement import Estimate
from .verdicts import Reading

_TURNS = 80


def cost_of_dividing(tokens: int, d_k: int, fold: bool) -> Reading:
    """How much longer q·k with its scale takes than without; the scale divides scores or is folded into queries.

    Products go to memory that is there already, so that only what a division needs for itself is added to them.
    """
    q, k = _vectors(tokens, d_k), _vectors(tokens, d_k).T
    root, scores = math.sqrt(d_k), np.empty((tokens, tokens), np.float32)

    def plain() -> object:
        return np.matmul(q, k, out=scores)

    def divided() -> object:
        return np.matmul(q / root, k, out=scores) if fold else np.matmul(q, k, out=scores) / root

    return Reading(Estimate(_ratio(divided, plain) - 1, None))


def additive_over_dot(tokens: int, d_k: int) -> Reading:
    """How many times longer additive scores take than dot products, once queries and keys have been projected."""
    q, k, v = _vectors(tokens, d_k), _vectors(tokens, d_k), _vectors(1, d_k)[0]
    ratio = _ratio(lambda: np.tanh(q[:, np.newaxis] + k) @ v, lambda: q @ k.T)
    return Reading(Estimate(ratio, None))


def _vectors(many: int, d_k: int) -> FloatArray:
    return np.random.default_rng(0).standard_normal((many, d_k), dtype=np.float32)


def _ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """How many times as long the one takes as the other.

    They take turns. Whatever else the machine does mostly adds to a time, so the lower quartile of many turns counts.
    There is no standard error, because what disturbs times is not independent from one turn to the next.
    """
    times = _times(one), _times(other)
    turns = [(_seconds(one, times[0]), _seconds(other, times[1])) for _ in range(_TURNS)]
    quartiles = np.quantile(np.array(turns), 0.25, axis=0)
    return float(quartiles[0] / quartiles[1])


def _times(work: Callable[[], object]) -> int:
    """How many times in a row to do this work so that a clock can tell; it has been done before, to warm up."""
    work()
    return max(1, math.ceil(0.5e-3 / _seconds(work, 1)))


def _seconds(work: Callable[[], object], times: int) -> float:
    """How long this work takes, done so many times in a row."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times
