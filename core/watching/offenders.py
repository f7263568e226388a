"""Which heads grow, how fast, and when they pass the limit of logits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import FloatArray
from .limits import LIMIT, RECENT, Offender
from .step import Step, logits

_FEWEST = 4  # steps that have a growth rate
_SURE = 2.0  # standard errors from none that a growth rate must be
_LEAST = 5e-4  # of ln(value) over the steps fitted to: less shows as × 1.000, and foretells nothing


def offenders(history: Sequence[Step], limit: float = LIMIT) -> list[Offender]:
    """Return the heads of the last step, worst first: over the limit, those that pass it soon, the rest by size.

    A growth rate is the least-squares slope of ln(largest |logit|) over the last RECENT steps of the history.
    """
    if not history:
        return []
    last = history[-1]
    now = logits(last)
    if now is None:
        return []
    growth = _growth(history[-RECENT:], now.shape)
    found: list[Offender] = []
    for layer, count in enumerate(last.heads):
        for head in range(count):
            value, rate = float(now[layer, head]), float(growth[layer, head])
            if not math.isnan(value):
                passes = _steps_until(value, rate, limit)
                found.append(Offender(layer, head, value, None if math.isnan(rate) else rate, passes, limit))
    return sorted(found, key=_badness)


def _steps_until(value: float, rate: float, limit: float) -> float | None:
    if value > limit:
        return 0.0
    if not rate > 0 or value <= 0:
        return None
    return math.log(limit / value) / rate


def _badness(each: Offender) -> tuple[int, float]:
    if each.over:
        return 0, -each.value
    return (2, -each.value) if each.passes_in is None else (1, each.passes_in)


def _growth(steps: Sequence[Step], shape: tuple[int, ...]) -> FloatArray:
    """Return the slope of ln(largest |logit|) per step, [layer, head]; NaN where it is not known or is noise."""
    pairs = [(step.step, found) for step in steps if (found := logits(step)) is not None and found.shape == shape]
    if len(pairs) < _FEWEST:
        return np.full(shape, math.nan)
    x = np.array([step for step, _ in pairs], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(np.stack([found for _, found in pairs]))
        x -= x.mean()
        spread = float(x @ x)
        slope = np.tensordot(x, y, 1) / spread
        misfit = y - y.mean(axis=0) - x[:, np.newaxis, np.newaxis] * slope
        error = np.sqrt((misfit**2).sum(axis=0) / (len(x) - 2) / spread)
        least = np.maximum(_SURE * error, _LEAST / (x[-1] - x[0]))
        return np.where(np.isfinite(slope) & (np.abs(slope) > least), slope, math.nan)
