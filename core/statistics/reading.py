"""Tallies of parts merged into one, and the statistics of a tally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray
from ..message import message
from .counting import count, histogram
from .histogram import BinAxis, Histogram
from .measurement import HISTOGRAMS, NOTHING, Column, Estimate, HistogramName
from .summary import estimates, estimates_of_norms
from .tally import GRADIENTS, Shape, Tally


def merge(parts: Iterable[Tally]) -> Tally:
    """Return the tally of everything in the parts, of which there is at least one; none is changed.

    Parts of different draws merge exactly, in any order. Parts of one draw, split between its rows, agree to the last
    digits of float64, and their counts exactly. Draws are identified by number: a later batch continues the numbers
    of an earlier one, and the merged shape has as many draws as the largest. The merged tally holds the sums of all
    draws from the first to the last that a part holds.
    """
    merged: Tally | None = None
    for part in parts:
        merged = _copy(part) if merged is None else _add(merged, part)
    if merged is None:
        raise ValueError("nothing to merge")
    return merged


def _copy(part: Tally) -> Tally:
    copy = replace(part, scratch=[])
    copy.score_sums = _placed(part.score_sums, part.held, part.held)
    copy.row_sums = _placed(part.row_sums, part.held, part.held)
    copy.counts = {which: counts.copy() for which, counts in part.counts.items()}
    copy.largest_weights = part.largest_weights.copy()
    if part.gradient_norms is not None:
        copy.gradient_norms = part.gradient_norms.copy()
    return copy


def _add(merged: Tally, part: Tally) -> Tally:
    if _setup(merged) != _setup(part):
        raise ValueError(
            message(
                "tallies of different measurements cannot be merged: {merged}, {part}",
                merged=_setup(merged),
                part=_setup(part),
            )
        )
    held = slice(min(merged.held.start, part.held.start), max(merged.held.stop, part.held.stop))

    def both(one: Mapping[str, FloatArray], two: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        first, second = _placed(one, merged.held, held), _placed(two, part.held, held)
        return {name: first[name] + second[name] for name in first} if first and second else first or second

    merged.score_sums = both(merged.score_sums, part.score_sums)
    merged.row_sums = both(merged.row_sums, part.row_sums)
    norms = [_placed_norms(each, held) for each in (merged, part) if each.gradient_norms is not None]
    merged.gradient_norms = None if not norms else norms[0] if len(norms) == 1 else _join(*norms)
    merged.shape = Shape(max(merged.shape.draws, part.shape.draws), part.shape.rows, part.shape.keys)
    merged.held = held
    merged.smallest = min(merged.smallest, part.smallest)
    merged.largest = max(merged.largest, part.largest)
    merged.counts = {which: counts + part.counts[which] for which, counts in merged.counts.items()}
    merged.largest_weights += part.largest_weights
    merged.averaged += part.averaged
    return merged


def _setup(tally: Tally) -> tuple[object, ...]:
    """Return what tallies to be merged must have in common; two bands of NaN count as equal."""
    t, wanted = tally, ({*tally.statistics}, {*tally.histograms})
    return t.shape.rows, t.shape.keys, [*t.rules], t.centre, repr(t.band), t.axis, t.sink, wanted


def _join(one: FloatArray, two: FloatArray) -> FloatArray:
    """Combine two arrays of norms (2, rules, draws, rows measured), NaN where unseen."""
    return np.where(np.isnan(one), two, one)


def _placed(sums: Mapping[str, FloatArray], some: slice, held: slice) -> dict[str, FloatArray]:
    """Return new arrays of the sums of the draws `held`, zero except for those of `some`, which `sums` has."""
    found: dict[str, FloatArray] = {}
    for name, values in sums.items():
        found[name] = np.zeros((*values.shape[:-1], held.stop - held.start))
        found[name][..., some.start - held.start : some.stop - held.start] = values
    return found


def _placed_norms(tally: Tally, held: slice) -> FloatArray:
    """Return the tally's norms as those of the draws `held`, NaN where unseen."""
    norms, own = tally.gradient_norms, tally.held
    assert norms is not None
    found = np.full((*norms.shape[:2], held.stop - held.start, norms.shape[3]), np.nan, norms.dtype)
    found[..., own.start - held.start : own.stop - held.start, :] = norms
    return found


def columns(tally: Tally, draws: int, unbiased: bool) -> tuple[Column, ...]:
    """Return the columns of the first `draws` draws; exactly their blocks must have been added."""
    axis = BinAxis(tally.axis.low + tally.centre, tally.axis.high + tally.centre, tally.axis.bins)
    logits = histogram(tally.counts["logits", 0], axis) if "logits" in tally.histograms else None
    result: list[Column] = []
    sums = {name: sums_of[..., :draws] for name, sums_of in (tally.score_sums | tally.row_sums).items()}
    multipliers = [multiplier for _, multiplier in tally.rules]
    found = estimates(sums, tally.centre, multipliers, unbiased, tally.statistics)
    for index, (rule, multiplier) in enumerate(tally.rules):
        measured = found[index]
        every = tally.gradient_norms
        norms = None if every is None else every[:, index, :draws]
        if tally.sink is None:
            measured["sink_weight"] = NOTHING
        if norms is not None:
            measured |= {**estimates_of_norms(norms[0]), **estimates_of_norms(norms[1], "grad_logits")}
        if tally.smallest <= tally.largest:
            measured["logit_min"] = Estimate(multiplier * (tally.centre + tally.smallest), None)
            measured["logit_max"] = Estimate(multiplier * (tally.centre + tally.largest), None)
        histograms: dict[HistogramName, Histogram] = {} if logits is None else {"logits": logits.scaled(multiplier)}
        for name, of_name in tally.axes.items():
            if name != "logits":
                histograms[name] = histogram(tally.counts[name, index], of_name)
        if norms is not None and {*HISTOGRAMS} <= {*tally.histograms}:
            of_queries = norms[0][~np.isnan(norms[0])]
            logs = np.log10(np.maximum(of_queries, np.finfo(norms.dtype).tiny))
            histograms["gradient"] = histogram(count(logs, GRADIENTS), GRADIENTS)
        row = tuple((tally.largest_weights[index] / tally.averaged).tolist()) if tally.averaged else ()
        result.append(Column(rule, multiplier, measured, histograms, keys=tally.shape.keys, average_row=row))
    return tuple(result)
