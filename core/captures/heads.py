"""Measure one head of a capture.

The statistics are the Lab's; only the source of the scores differs. Scores are used twice, block by block: first for
their mean, spread and extremes, which no formula gives in advance, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from ..arrays import FloatArray
from ..attention.computation import Computation
from ..message import message, plain
from ..statistics import reading, tally
from ..statistics.counting import RunningStatistics
from ..statistics.measurement import HISTOGRAMS, Column, HistogramName, Measurement
from .blocks import (
    LARGEST,
    SMALLEST,
    Block,
    are_kept,
    block_places,
    fits_float32,
    logits_of,
    require_size,
    rounded_pass,
    score_blocks,
)
from .capture import HeadSubject, Layer
from .head import CaptureFile, HeadData, read_head
from .rules import Rule, computation, file_rule, first_position, named_rule, shown_multiplier

__all__ = ["LARGEST", "SMALLEST", "Rule", "file_rule", "measure_head", "named_rule", "stream_head"]

# Scores are multiplied in float32 where q and k have at most 32 bits, unless logits are larger than this. Statistics
# of a single row are then within 4e-6 of those in float64, and means over many rows, of larger logits, within 1e-6.
_SHORT, _SHORT_OF_MANY, _MANY_ROWS = 32.0, 256.0, 1024
_FEW_ROWS = 16
# Heads of fewer scores are multiplied in float64: this costs no more, and σ of a row of few keys keeps its digits.
_FEW_SCORES = 1 << 12


def measure_head(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    rules: Sequence[Rule],
    histograms: Sequence[HistogramName] = HISTOGRAMS,
) -> Measurement[HeadSubject]:
    """Measure the head under each rule, in this order; raise CaptureError if it cannot be read."""
    *_, (_, result) = stream_head(capture, layer, head, rules, histograms)
    assert result is not None, "a stream ends with its result"
    return result


def stream_head(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    rules: Sequence[Rule],
    histograms: Sequence[HistogramName] = HISTOGRAMS,
) -> Iterator[tuple[float, Measurement[HeadSubject] | None]]:
    """Yield pairs of the finished fraction, 0 to 1, and the result, which comes with the last one.

    Statistics describe these texts, so no bias is removed. Their standard errors, over the texts of a batch, need at
    least two texts. Rows of padding tokens are left out. `histograms` are those counted, which takes a sixth of the
    time; the average row comes with that of weights. Raise CaptureError if the head cannot be read or statistics of
    its logits overflow or underflow.
    """
    data = read_head(capture, layer, head)
    where = message("{path}: {place}, head {head}", path=plain(capture.path), place=layer.place, head=head)
    for rule in rules:
        require_size(rule.multiplier, "scale", where)
        require_size(rule.computed.cap(layer.softcap) or 0.0, "soft-cap", where)
    columns: list[Column] = []
    passes = _passes(rules, layer, data)
    many = layer.batch * layer.queries * layer.keys > _FEW_SCORES
    most = _SHORT if layer.batch * layer.queries < _MANY_ROWS else _SHORT_OF_MANY
    for number, each in enumerate(passes):
        c = each.computation
        if c.precision != "float64":
            steps = rounded_pass(data, c, each.multipliers[0][0], where, histograms)
        else:
            plain_scores = not each.alone and c.norms == ("none", "none")
            short = plain_scores and many and fits_float32(data)
            short = short and max(m for _, m in each.multipliers) * _least_reach(data) <= most
            steps = _pass(data, each, where, histograms, most if short else 0.0)
        for fraction, found in steps:
            columns += found
            yield (number + fraction) / len(passes), None
    shown = [
        replace(
            column,
            multiplier=shown_multiplier(rule, layer, data),
            multipliers=_range_of_rows(rule, layer, data),
            apart=rule.computed.apart,
        )
        for column, rule in zip(columns, rules, strict=True)
    ]
    yield 1.0, Measurement(subject_of(layer, head, data, rules), layer.batch, layer.batch, tuple(shown))


def _least_reach(data: HeadData) -> float:
    """Return how far scores are from their mean at least, by a few rows: if that is too far, float32 is not tried."""
    draws, rows = slice(0, 1), slice(None, None, -(-data.q.shape[1] // _FEW_ROWS))
    scores = data.q[draws, rows] @ data.k[draws].mT
    if data.visibility is not None:
        scores = scores[~data.visibility.hidden(draws, rows)]
    return float(np.ptp(scores)) / 2 if scores.size else 0.0


def subject_of(layer: Layer, head: int, data: HeadData, rules: Sequence[Rule]) -> HeadSubject:
    """Return what a measurement of this head under these rules is of."""
    by_row = {rule.name: (rule.setting, first_position(rule, data)) for rule in rules if rule.setting is not None}
    return HeadSubject(layer, head, data.extras, by_row)


def _range_of_rows(rule: Rule, layer: Layer, data: HeadData) -> tuple[float, float] | None:
    """Return the smallest and the largest multiplier of q·k in rows that see two keys; None if all have the same."""
    c = computation(rule, layer, data)
    if isinstance(c.multiplier, float):
        return None
    least, most = math.inf, -math.inf
    keys = data.k.shape[1]
    for draws, rows in tally.blocks(tally.Shape(data.q.shape[0], data.q.shape[1], keys)):
        shape = data.q[draws, rows].shape[:2]
        terms = c.terms((*shape, keys), draws, rows)
        seen = np.full(shape, keys) if terms.hidden is None else np.count_nonzero(~terms.hidden, axis=-1)
        found = np.broadcast_to(np.asarray(terms.multiplier)[..., 0], shape)[seen > 1]
        if found.size:
            least, most = min(least, float(found.min())), max(most, float(found.max()))
    factor = layer.own_factor if rule.normalise == "none" else 1.0
    return (least * factor, most * factor) if least < most else None


@dataclass(frozen=True, eq=False)
class _Pass:
    """A pass over the scores, or over the logits of a single computation."""

    computation: Computation
    alone: bool  # whether its logits are not in proportion to the scores
    multipliers: list[tuple[str, float]]  # by rule


def _passes(rules: Sequence[Rule], layer: Layer, data: HeadData) -> list[_Pass]:
    """Group rules into passes, in their order.

    Rules that only multiply scores share a pass if they normalise alike. A number format, a soft-cap, a bias, or a
    multiplier that differs between rows transforms the logits of each rule differently.
    """
    passes: list[_Pass] = []
    for exact, alike in groupby(rules, key=lambda rule: rule.computed.is_exact):
        some = [(rule.name, computation(rule, layer, data)) for rule in alike]
        if not exact or any(_is_alone(c) for _, c in some):
            passes += [_Pass(c, True, [(name, 1.0)]) for name, c in some]
            continue
        for _, same in groupby(some, key=lambda pair: pair[1].norms):
            together = [*same]
            passes.append(_Pass(together[0][1], False, [(name, _number(c)) for name, c in together]))
    return passes


def _is_alone(c: Computation) -> bool:
    """Return whether logits are not in proportion to the scores."""
    return bool(c.biases) or c.softcap is not None or not isinstance(c.multiplier, float)


def _number(c: Computation) -> float:
    assert isinstance(c.multiplier, float)
    return c.multiplier


def _pass(
    data: HeadData, each: _Pass, where: str, histograms: Sequence[HistogramName], most: float = 0.0
) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of one head twice; the columns come with the last pair.

    In float32 if logits reach no further than `most` from their mean, else in float64.
    """
    short = most > 0
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    places = block_places(shape, data, short)
    parts = len(places)
    kept: list[Block] | None = [] if are_kept(places, 4 if short else 8) else None
    survey = RunningStatistics()
    for done, block in enumerate(_surveyed(survey, data, each, where, short), start=1):
        if kept is not None:
            kept.append(block)
        yield done / parts / 2, ()
    axis = survey.axis(1024, margin=1e-6 if short else 1e-9)
    if short and max(c for _, c in each.multipliers) * axis.high > most:
        del kept
        yield from _pass(data, each, where, histograms)
        return
    band = 3 * survey.std
    result = tally.Tally(shape, each.multipliers, survey.centre, band, axis, data.sink, histograms=histograms)
    blocks = score_blocks(data, each.computation, short)
    again = (_logits(block, each) for block in blocks) if kept is None else kept
    for done, block in enumerate(again, start=1):
        scores, offsets = block.scores, block.offsets
        if offsets is None:
            scores -= survey.centre
        else:
            offsets = offsets - survey.centre
        tally.add(result, block.draws, block.rows, scores, block.hidden, offsets, edge=block.terms.edge)
        yield (1 + done / parts) / 2, reading.columns(result, shape.draws, unbiased=False) if done == parts else ()


def _surveyed(survey: RunningStatistics, data: HeadData, each: _Pass, where: str, short: bool) -> Iterator[Block]:
    """Yield the blocks of logits and add them to a survey; raise CaptureError if statistics overflow or underflow."""
    largest = 0.0
    for block in score_blocks(data, each.computation, short):
        if block.offsets is not None:
            survey.add_rows(block.scores, block.offsets[..., 0], block.hidden, block.terms.edge)
        else:
            seen = _visible(block)
            size = max(-float(seen.min(initial=0)), float(seen.max(initial=0)))
            largest = max(largest, math.inf if math.isnan(size) else size)
            if largest > LARGEST:
                break
            block = _logits(block, each)
            survey.add(_visible(block))
        yield block
    require_size(largest, "largest score", where)
    largest = max(-survey.low, survey.high, 0.0)
    require_size(largest, "largest score" if not each.alone else "largest logit", where)
    for _, c in each.multipliers:
        require_size(c * largest, "largest logit", where)


def _visible(block: Block) -> FloatArray:
    """Return the scores of a block that are not hidden."""
    return block.scores if block.hidden is None else block.scores[~block.hidden]


def _logits(block: Block, each: _Pass) -> Block:
    """Return a block of logits instead of scores, unless they are in proportion; hidden ones are 0."""
    return replace(block, scores=logits_of(each.computation, block)) if each.alone else block
