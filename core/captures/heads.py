"""Measure one head of a capture.

The statistics are the Lab's; only the source of the scores differs. Scores are used twice, block by block: first for
their mean, spread and extremes, which no formula gives in advance, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.formats import FORMATS
from ..message import message
from ..plain import plain
from ..scales import Normalise
from ..statistics import reading, tally
from ..statistics.measurement import Column, Measurement
from ..statistics.survey import Survey
from .capture import HeadSubject, Layer
from .computing.blocks import (
    KEPT,
    LARGEST,
    SMALLEST,
    Block,
    block_places,
    fits_float32,
    logits_of_block,
    require_size,
    score_blocks,
)
from .computing.rounded import rounded_pass
from .head import CaptureFile, Head, read_head
from .rules import Rule, file_rule, first_position, multipliers, named_rule, shown_multiplier

__all__ = ["LARGEST", "SMALLEST", "Rule", "file_rule", "measure_head", "named_rule", "stream_head"]

# Scores are multiplied in float32 where q and k have at most 16 bits, unless logits are larger than this.
_SHORT = 32.0
_FEW_BITS = tuple(name for name, each in FORMATS.items() if each.rounded)
# Heads of fewer scores are multiplied in float64: this costs no more, and σ of a row of few keys keeps its digits.
_FEW_SCORES = 1 << 12

# Return the logits of a block of scores.
Logits: TypeAlias = Callable[[Block], FloatArray]


def measure_head(capture: CaptureFile, layer: Layer, head: int, rules: Sequence[Rule]) -> Measurement[HeadSubject]:
    """Measure the head under each rule, in this order; raise CaptureError if it cannot be read."""
    *_, (_, result) = stream_head(capture, layer, head, rules)
    assert result is not None, "a stream ends with its result"
    return result


def stream_head(
    capture: CaptureFile, layer: Layer, head: int, rules: Sequence[Rule]
) -> Iterator[tuple[float, Measurement[HeadSubject] | None]]:
    """Yield pairs of the finished fraction, 0 to 1, and the result, which comes with the last one.

    Statistics describe these texts, so no bias is removed. Their standard errors, over the texts of a batch, need at
    least two texts. Rows of padding tokens are left out. Raise CaptureError if the head cannot be read or statistics
    of its logits overflow or underflow.
    """
    data = read_head(capture, layer, head)
    where = message("{path}: {place}, head {head}", path=plain(capture.path), place=layer.place, head=head)
    for rule in rules:
        require_size(rule.multiplier, "scale", where)
        require_size(rule.computed.cap(layer.softcap) or 0.0, "soft-cap", where)
    columns: list[Column] = []
    passes = _runs(rules, layer, data)
    many = layer.batch * layer.queries * layer.keys > _FEW_SCORES
    for number, each in enumerate(passes):
        if isinstance(each, Rule):
            steps = rounded_pass(data, layer, each, where)
        else:
            unbent = each.logits is None and each.normalise == "none"
            short = unbent and many and layer.dtype in _FEW_BITS and fits_float32(data)
            steps = _pass(data, each, where, short)
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


def subject_of(layer: Layer, head: int, data: Head, rules: Sequence[Rule]) -> HeadSubject:
    """Return what a measurement of this head under these rules is of."""
    by_row = {rule.name: (rule.setting, first_position(rule, data)) for rule in rules if rule.setting is not None}
    return HeadSubject(layer, head, data.understood, by_row)


def _range_of_rows(rule: Rule, layer: Layer, data: Head) -> tuple[float, float] | None:
    """Return the smallest and the largest multiplier of q·k in rows that see two keys; None if all have the same."""
    by = multipliers(rule, layer, data)
    if not callable(by):
        return None
    least, most = math.inf, -math.inf
    for draws, rows in tally.blocks(tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])):
        shape = data.q[draws, rows].shape[:2]
        seen: npt.NDArray[np.intp] = np.full(shape, data.k.shape[1], np.intp)
        if data.visibility is not None:
            shown = ~data.visibility.hidden(draws, rows)
            seen = np.broadcast_to(np.asarray(np.count_nonzero(shown, axis=-1), np.intp), shape)
        found = np.broadcast_to(by(seen, draws, rows), shape)[seen > 1]
        if found.size:
            least, most = min(least, float(found.min())), max(most, float(found.max()))
    factor = layer.own_factor if rule.normalise == "none" else 1.0
    return (least * factor, most * factor) if least < most else None


@dataclass(frozen=True, eq=False)
class _Pass:
    """How the logits of some columns are computed: from normalised q and k, by a function, then multiplied."""

    normalise: Normalise
    logits: Logits | None  # None: the scores
    multipliers: list[tuple[str, float]]  # by rule


def _runs(rules: Sequence[Rule], layer: Layer, data: Head) -> list[_Pass | Rule]:
    """Return the passes in the order of the rules; each rule in a number format has its own."""
    found: list[_Pass | Rule] = []
    for exact, alike in groupby(rules, key=lambda rule: rule.computed.is_exact):
        some = [*alike]
        found += _passes(some, layer, data) if exact else some
    return found


def _passes(rules: Sequence[Rule], layer: Layer, data: Head) -> list[_Pass]:
    """Group rules into passes.

    Rules that only multiply scores share a pass if they normalise alike. A soft-cap, a bias, or a multiplier that
    differs between rows transforms the logits of each rule differently.
    """
    found = [(rule, multipliers(rule, layer, data)) for rule in rules]
    if not data.biases and all(rule.computed.cap(layer.softcap) is None for rule in rules):
        numbers = [(rule, c) for rule, c in found if not callable(c)]
        if len(numbers) == len(rules):
            alike = groupby(numbers, key=_normalise)
            return [_Pass(how, None, [(rule.name, c) for rule, c in same]) for how, same in alike]
    return [
        _Pass(
            rule.normalise,
            partial(logits_of_block, data, rule.computed.cap(layer.softcap), c),
            [(rule.name, 1.0)],
        )
        for rule, c in found
    ]


def _normalise(each: tuple[Rule, float]) -> Normalise:
    return each[0].normalise


def _pass(data: Head, each: _Pass, where: str, short: bool = False) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of one head twice; the columns come with the last pair. `short`: in float32."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    parts = len(block_places(shape, data))
    kept: list[Block] | None = [] if shape.draws * shape.rows * shape.keys <= KEPT else None
    survey = Survey()
    for done, block in enumerate(_surveyed(survey, data, each, where, short), start=1):
        if kept is not None:
            kept.append(block)
        yield done / parts / 2, ()
    axis = survey.axis(1024, margin=1e-6 if short else 1e-9)
    if short and max(c for _, c in each.multipliers) * axis.high > _SHORT:
        del kept
        yield from _pass(data, each, where)
        return
    result = tally.Tally(shape, each.multipliers, survey.centre, 3 * survey.std, axis, data.sink)
    again = (
        (_bent(block, each.logits) for block in score_blocks(data, each.normalise, short)) if kept is None else kept
    )
    for done, block in enumerate(again, start=1):
        scores, offsets = block.scores, block.offsets
        if offsets is None:
            scores -= survey.centre
        else:
            offsets = offsets - survey.centre
        tally.add(result, block.draws, block.rows, scores, block.hidden, offsets)
        yield (1 + done / parts) / 2, reading.columns(result, shape.draws, unbiased=False) if done == parts else ()


def _surveyed(survey: Survey, data: Head, each: _Pass, where: str, short: bool) -> Iterator[Block]:
    """Yield the blocks of logits and add them to a survey; raise CaptureError if statistics overflow or underflow."""
    largest = 0.0
    for block in score_blocks(data, each.normalise, short):
        if block.offsets is not None:
            survey.add_rows(block.scores, block.offsets[..., 0], block.hidden)
        else:
            seen = _visible(block)
            size = max(-float(seen.min(initial=0)), float(seen.max(initial=0)))
            largest = max(largest, math.inf if math.isnan(size) else size)
            if largest > LARGEST:
                break
            block = _bent(block, each.logits)
            survey.add(_visible(block))
        yield block
    require_size(largest, "largest score", where)
    largest = max(-survey.low, survey.high, 0.0)
    require_size(largest, "largest score" if each.logits is None else "largest logit", where)
    for _, c in each.multipliers:
        require_size(c * largest, "largest logit", where)


def _visible(block: Block) -> FloatArray:
    """Return the scores of a block that are not hidden."""
    return block.scores if block.hidden is None else block.scores[~block.hidden]


def _bent(block: Block, logits: Logits | None) -> Block:
    """Return a block of logits instead of scores; hidden ones are 0."""
    return block if logits is None else replace(block, scores=logits(block))
