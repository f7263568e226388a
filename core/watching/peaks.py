"""How large the logits of every head became over the steps of a run, and where each head first passed the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from .step import Heads, Peaks, WatchStep, logits

_AT_ONCE = 64  # steps whose arrays are stacked


def peaks_of(steps: Iterable[WatchStep], limit: float) -> dict[Heads, Peaks]:
    """Return the peaks over these steps, and over those dropped before each, for each set of heads that they have."""
    by_heads: dict[Heads, list[Peaks]] = {}
    for step in steps:
        for heads, dropped in step.dropped.items():
            _add(by_heads, heads, dropped)
        table = logits(step)
        if table is not None:
            at = np.full(table.shape, float(step.step))
            _add(by_heads, heads_of(step), Peaks(table, at, np.where(table > limit, at, math.inf)))
    return {heads: _joined(parts) for heads, parts in by_heads.items()}


def heads_of(step: WatchStep) -> Heads:
    """Return which heads a step has."""
    return step.layers, step.heads


def _add(found: dict[Heads, list[Peaks]], heads: Heads, part: Peaks) -> None:
    parts = found.setdefault(heads, [])
    parts.append(part)
    if len(parts) == _AT_ONCE:
        parts[:] = [_joined(parts)]


def _joined(parts: Sequence[Peaks]) -> Peaks:
    """Return the peaks over all parts; of equal ones, that of the first part."""
    if len(parts) == 1:
        return parts[0]
    largest = np.array([part.largest for part in parts])
    largest_step = np.array([part.largest_step for part in parts])
    at = np.where(np.isnan(largest), -math.inf, largest).argmax(axis=0)[None]
    return Peaks(
        np.take_along_axis(largest, at, axis=0)[0],
        np.take_along_axis(largest_step, at, axis=0)[0],
        np.min([part.first_over for part in parts], axis=0),
    )
