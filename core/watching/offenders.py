"""Which heads grow, how fast, and when they pass the limit of logits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from ..arrays import FloatArray
from .growth import slopes
from .limits import LIMIT, RECENT, Offender
from .step import Step, logits

_FORESIGHT = 10  # times the steps that growth was seen over; beyond, nothing is foretold


def offenders(history: Sequence[Step], limit: float = LIMIT) -> list[Offender]:
    """Return the heads of the last step, worst first: over the limit, those that pass it soon, the rest by size.

    A growth rate is the slope of ln(largest |logit|) over the last RECENT steps that have these heads.
    """
    if not history:
        return []
    last = history[-1]
    now = logits(last)
    if now is None:
        return []
    recent = [*islice(_tables(reversed(history), last.heads), RECENT)][::-1]
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 and negative numbers have no logarithm
        flat = np.log([table.ravel() for _, table in recent])
    growth, span = (each.reshape(now.shape) for each in slopes(np.array([step for step, _ in recent], float), flat))
    found: list[Offender] = []
    for layer, count in enumerate(last.heads):
        for head in range(count):
            value, rate = float(now[layer, head]), float(growth[layer, head])
            if not math.isnan(value):
                passes = _steps_until(value, rate, limit, _FORESIGHT * float(span[layer, head]))
                found.append(Offender(layer, head, value, None if math.isnan(rate) else rate, passes, limit))
    return sorted(found, key=_badness)


def _tables(steps: Iterable[Step], heads: tuple[int, ...]) -> Iterator[tuple[int, FloatArray]]:
    for step in steps:
        table = logits(step) if step.heads == heads else None
        if table is not None:
            yield step.step, table


def _steps_until(value: float, rate: float, limit: float, most: float) -> float | None:
    """Return the steps until a head passes the limit at its rate; None if it does not within `most` steps."""
    if value > limit:
        return 0.0
    if not rate > 0 or value <= 0:
        return None
    steps = math.log(limit / value) / rate
    return steps if steps <= most else None


def _badness(each: Offender) -> tuple[int, float]:
    if each.over:
        return 0, -each.value
    return (2, -each.value) if each.passes_in is None else (1, each.passes_in)
