"""Merging tallies of parts of a measurement into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray
from .tally import Shape, Tally


def merge(parts: Iterable[Tally]) -> Tally:
    """Return the tally of everything in the parts, of which there is at least one; none is changed.

    Parts of different draws merge exactly, in any order. Parts of one draw, split between its rows, agree to the last
    digits of float64, and their counts exactly. Draws are identified by number: a later batch continues the numbers
    of an earlier one, and the merged shape has as many draws as the largest.
    """
    merged: Tally | None = None
    for part in parts:
        merged = _copy(part) if merged is None else _add(merged, part)
    if merged is None:
        raise ValueError("nothing to merge")
    return merged


def _copy(part: Tally) -> Tally:
    copy = replace(part, score_sums=_sum(part.score_sums, {}), scratch=[])
    copy.row_sums = [_sum(sums, {}) for sums in part.row_sums]
    copy.counts = {which: counts.copy() for which, counts in part.counts.items()}
    if part.gradient_norms is not None:
        copy.gradient_norms = part.gradient_norms.copy()
    return copy


def _add(merged: Tally, part: Tally) -> Tally:
    if _setup(merged) != _setup(part):
        raise ValueError(f"tallies of different measurements cannot be merged: {_setup(merged)}, {_setup(part)}")
    merged.shape = Shape(max(merged.shape.draws, part.shape.draws), part.shape.rows, part.shape.keys)
    merged.smallest = min(merged.smallest, part.smallest)
    merged.largest = max(merged.largest, part.largest)
    merged.score_sums = _sum(merged.score_sums, part.score_sums)
    merged.row_sums = [_sum(one, two) for one, two in zip(merged.row_sums, part.row_sums, strict=True)]
    merged.counts = {which: counts + part.counts[which] for which, counts in merged.counts.items()}
    merged.gradient_norms = _join(merged.gradient_norms, part.gradient_norms)
    return merged


def _setup(tally: Tally) -> tuple[object, ...]:
    """Return what tallies to be merged must have in common; two bands of NaN count as equal."""
    return tally.shape.rows, tally.shape.keys, [*tally.rules], tally.centre, repr(tally.band), tally.axis, tally.sink


def _join(one: FloatArray | None, two: FloatArray | None) -> FloatArray | None:
    """Combine two arrays of norms (rules, draws, rows measured), NaN where unseen; one may have fewer draws."""
    if one is None or two is None:
        return two if one is None else one
    short, long = sorted((one, two), key=lambda norms: norms.shape[1])
    joined = long.copy()
    part = joined[:, : short.shape[1]]
    np.copyto(part, short, where=np.isnan(part))
    return joined


def _sum(one: Mapping[str, FloatArray], two: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Add the sums of each draw into new arrays; one side may have fewer draws than the other, or no sums."""
    none = np.zeros(0)
    return {name: _padded_sum(one.get(name, none), two.get(name, none)) for name in one or two}


def _padded_sum(one: FloatArray, two: FloatArray) -> FloatArray:
    short, long = sorted((one, two), key=len)
    total = long.copy()
    total[: len(short)] += short
    return total
