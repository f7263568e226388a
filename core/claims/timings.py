"""Running times of the steps of attention, compared with each other on this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from ..arrays import FloatArray
from ..statistics.measurement import Estimate
from .claim import Reading

_TURNS = 80


def time_of_dividing(tokens: int, d_k: int, fold: bool) -> Reading:
    """Measure the extra time that a scale adds to q·k, dividing the scores or folded into the queries.

    Products are written to preallocated memory, so the only extra allocation is what a division itself needs.
    """
    q, k = _vectors(tokens, d_k), _vectors(tokens, d_k).T
    root, scores = math.sqrt(d_k), np.empty((tokens, tokens), np.float32)

    def plain() -> object:
        return np.matmul(q, k, out=scores)

    def divided() -> object:
        return np.matmul(q / root, k, out=scores) if fold else np.matmul(q, k, out=scores) / root

    return Reading(Estimate(_ratio(divided, plain) - 1, None))


def time_of_additive(tokens: int, d_k: int) -> Reading:
    """Measure the time of additive scores over that of dot products, with queries and keys already projected."""
    q, k, v = _vectors(tokens, d_k), _vectors(tokens, d_k), _vectors(1, d_k)[0]
    ratio = _ratio(lambda: np.tanh(q[:, np.newaxis] + k) @ v, lambda: q @ k.T)
    return Reading(Estimate(ratio, None))


def _vectors(count: int, d_k: int) -> FloatArray:
    return np.random.default_rng(0).standard_normal((count, d_k), dtype=np.float32)


def _ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """Return the time of `one` over that of `other`.

    They alternate, and the lower quartile of each counts: other load mostly adds time. There is no standard error,
    because disturbances are not independent from one turn to the next.
    """
    times = _times(one), _times(other)
    turns = [(_seconds(one, times[0]), _seconds(other, times[1])) for _ in range(_TURNS)]
    quartiles = np.quantile(np.array(turns), 0.25, axis=0)
    return float(quartiles[0] / quartiles[1])


def _times(work: Callable[[], object]) -> int:
    """Return how many repetitions of the work a clock can time; run it once first to warm up."""
    work()
    return max(1, math.ceil(0.5e-3 / _seconds(work, 1)))


def _seconds(work: Callable[[], object], times: int) -> float:
    """Return the seconds that one repetition takes, averaged over `times`."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times
