"""Counts of values: on the axis of a histogram, and within a band."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, Counts, FloatArray
from .histogram import Axis, Histogram

Chosen: TypeAlias = slice | npt.NDArray[np.intp]  # indices of rows

_GOLDEN = (math.sqrt(5) - 1) / 2


def count(values: FloatArray, axis: Axis) -> Counts:
    """Return the counts (bins + 2,) of values on an axis: below it, in each bin, above it.

    One pass of `bincount` over bin numbers is several times faster than np.histogram, which searches edges. The axis
    is treated as a millionth longer, so that both its ends belong to it after rounding.
    """
    number = values.dtype.type
    per_unit = axis.bins / (axis.high - axis.low) * (1 - 1e-6)
    position = np.multiply(values, number(per_unit))
    position += number(1 + 5e-7 * axis.bins - axis.low * per_unit)
    np.clip(position, 0, number(axis.bins + 1), out=position)
    return np.bincount(position.ravel().astype(np.uint16), minlength=axis.bins + 2)


def histogram(counts: Counts, axis: Axis) -> Histogram:
    """Return the histogram of counts from `count`, or of a sum of such counts."""
    below, *inside, above = counts.tolist()
    return Histogram(axis, tuple(inside), below, above)


def count_inside(band: float, scores: FloatArray, hidden: BoolArray | None, offsets: FloatArray | None) -> list[int]:
    """Count, for each draw, the visible scores (draws, rows, n) within ±band; none if the band is NaN."""
    if math.isnan(band):
        return [0] * len(scores)
    own = 0.0 if offsets is None else offsets
    inside = scores >= np.asarray(-band - own, scores.dtype)
    inside &= scores <= np.asarray(band - own, scores.dtype)
    if hidden is not None:
        inside &= ~hidden.reshape(scores.shape)
    return [int(np.count_nonzero(each)) for each in inside]


def visible_of(values: FloatArray, hidden: BoolArray | None, counted: Chosen) -> FloatArray:
    """Return the values (counted rows, n) without the hidden ones."""
    return values if hidden is None else values[~hidden[counted]]


def counted_rows(every: int, first: int, rows: int) -> Chosen | None:
    """Select which of `rows` rows, starting at row `first` of all draws, are counted: one in each group of `every`.

    Its position in the group advances by the golden ratio, so that under a causal mask every position is counted in
    turn, whatever common factors the sizes have.
    """
    if every == 1:
        return slice(None)
    groups = np.arange(first // every, (first + rows - 1) // every + 1)
    chosen = groups * every + (groups * _GOLDEN % 1 * every).astype(np.intp) - first
    chosen = chosen[(chosen >= 0) & (chosen < rows)]
    return chosen if chosen.size else None
