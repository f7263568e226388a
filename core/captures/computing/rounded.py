"""Measure a captured head in a number format: its queries and keys as they are multiplied in it.

What is rounded is that of `attention.precision`, and the statistics are the Lab's; unlike there, overflow and the
error of weights are of all rows. A bias is stored in the format, but not in float8, and ALiBi only in eager
arithmetic: fused kernels take its slope in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.formats import number_format
from ...attention.precision import (
    Losses,
    RowWeights,
    logits_of,
    losses_of,
    nan_rows,
    product_inputs,
    product_scores,
    round_to,
    row_weights,
)
from ...statistics import reading, tally
from ...statistics.measurement import Column
from ...statistics.survey import Survey
from ..capture import Layer
from ..head import Head
from ..masks import Slope
from ..rules import Rule, multipliers
from .blocks import KEPT, LARGEST, Block, block_places, logits_of_block, require_size, score_blocks, vectors

_ALL = slice(None)
_BINS = 1024


@dataclass(frozen=True, eq=False)
class RoundedBlock:
    """The scores and logits of some queries of some texts, (draws, rows, keys), in a number format."""

    draws: slice
    rows: slice
    keys: slice
    scores: FloatArray
    logits: FloatArray
    hidden: BoolArray | None  # None: no key is


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The vectors of some texts that are multiplied, as stored in the format."""

    draws: slice
    q: FloatArray  # (draws, rows, d_k)
    k: FloatArray  # (draws, keys, d_k)


def rounded_pass(data: Head, layer: Layer, rule: Rule, where: str) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of a head twice, as in exact arithmetic; the column comes with the last pair."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    parts = len(block_places(shape, data))
    kept: list[RoundedBlock] | None = [] if shape.draws * shape.rows * shape.keys <= KEPT else None
    survey = Survey()
    for done, block in enumerate(_blocks(data, layer, rule), start=1):
        survey.add(block.logits[_counted(block, data)])
        if kept is not None:
            kept.append(block)
        yield done / parts / 2, ()
    result = tally.Tally(shape, [(rule.name, 1.0)], survey.centre, 3 * survey.std, survey.axis(_BINS), data.sink)
    computed = rule.computed
    exact = score_blocks(data, rule.normalise, short=False)
    for done, (block, scores) in enumerate(
        zip(_blocks(data, layer, rule) if kept is None else kept, exact, strict=True), start=1
    ):
        found = row_weights(block.logits, computed.precision, computed.arithmetic, block.hidden, data.sink)
        reference = _reference(data, layer, rule, scores, where)
        lost = losses_of(reference, block.scores, block.logits, found, computed.precision, block.hidden, data.sink)
        tally.add_sums(result, block.draws, _sums(lost, block))
        logits = block.logits.astype(np.float64) - survey.centre
        tally.add(result, block.draws, block.rows, logits, block.hidden, rounded=found)
        yield (1 + done / parts) / 2, reading.columns(result, shape.draws, unbiased=False) if done == parts else ()


def rounded_row(data: Head, layer: Layer, rule: Rule, text: int, query: int) -> tuple[FloatArray, RowWeights]:
    """Return the logits (1, 1, keys) of one query, and its weights."""
    draws, rows = slice(text, text + 1), slice(query, query + 1)
    if number_format(rule.computed.precision).scaled:  # the scale depends on all queries
        inputs = _inputs(data, layer, rule, draws, _ALL)
        q = inputs.q[:, rows]
    else:
        inputs = _inputs(data, layer, rule, draws, rows)
        q = inputs.q
    block = _block(data, layer, rule, draws, rows, slice(0, data.k.shape[1]), q, inputs.k)
    computed = rule.computed
    return block.logits, row_weights(block.logits, computed.precision, computed.arithmetic, block.hidden, data.sink)


def _blocks(data: Head, layer: Layer, rule: Rule) -> Iterator[RoundedBlock]:
    """Yield the blocks of a head, as `score_blocks` does."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    inputs: _Inputs | None = None
    for draws, rows, keys in block_places(shape, data):
        if inputs is None or inputs.draws != draws:
            inputs = _inputs(data, layer, rule, draws, _ALL)
        yield _block(data, layer, rule, draws, rows, keys, inputs.q[:, rows], inputs.k[:, keys])


def _inputs(data: Head, layer: Layer, rule: Rule, draws: slice, rows: slice) -> _Inputs:
    """Return the vectors of some queries, and all keys, of some texts."""
    q, k = data.q[draws, rows], data.k[draws]
    if rule.normalise != "none":
        q, k = vectors(q, rule.normalise), vectors(k, rule.normalise)
    factor = _factor(data, layer, rule)
    with np.errstate(over="ignore", invalid="ignore"):
        return _Inputs(draws, *product_inputs(q, k, rule.computed.precision, factor=factor))


def _factor(data: Head, layer: Layer, rule: Rule) -> float:
    """Return what q and k are multiplied by under a rule of vectors; 1 under others."""
    if not rule.on_vectors:
        return 1.0
    by = multipliers(rule, layer, data)
    assert not callable(by), "no such rule has a multiplier for each row"
    return math.sqrt(by)


def _block(
    data: Head, layer: Layer, rule: Rule, draws: slice, rows: slice, keys: slice, q: FloatArray, k: FloatArray
) -> RoundedBlock:
    """Return the block of these queries and keys, as stored in the format."""
    computed = rule.computed
    name, arithmetic = computed.precision, computed.arithmetic
    with np.errstate(over="ignore", invalid="ignore"):
        scores = product_scores(q, k, name, arithmetic)
        hidden = None
        if data.visibility is not None:
            hidden = np.broadcast_to(data.visibility.hidden(draws, rows, keys), scores.shape)
        by = 1.0 if rule.on_vectors else multipliers(rule, layer, data)
        if callable(by):
            shown = np.ones_like(scores, np.bool_) if hidden is None else ~hidden
            by = by(np.count_nonzero(shown, axis=-1), draws, rows)[..., np.newaxis]
        eager, scaled = arithmetic == "eager", number_format(name).scaled
        biases: list[FloatArray] = []
        for each in data.biases:
            bias = each.of(draws, rows)[..., keys]
            kept = scaled or (isinstance(each, Slope) and not eager)
            biases.append(bias if kept else round_to(bias, name).values)
        logits = logits_of(scores, name, arithmetic, by, computed.cap(layer.softcap), biases)
    return RoundedBlock(draws, rows, keys, scores, logits, hidden)


def _counted(block: RoundedBlock, data: Head) -> BoolArray:
    """Return which logits are visible, finite and not of a NaN row."""
    counted: BoolArray = np.isfinite(block.logits)
    counted &= ~nan_rows(block.logits, block.hidden, data.sink is not None)[..., np.newaxis]
    return counted if block.hidden is None else counted & ~block.hidden


def _reference(data: Head, layer: Layer, rule: Rule, block: Block, where: str) -> FloatArray:
    """Return the logits in float64 of a block of scores; raise CaptureError if they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        logits = logits_of_block(data, rule.computed.cap(layer.softcap), multipliers(rule, layer, data), block)
        largest = float(np.abs(logits).max(initial=0))
    if not largest <= LARGEST:
        require_size(math.inf if math.isnan(largest) else largest, "largest logit", where)
    return logits


def _sums(lost: Losses, block: RoundedBlock) -> dict[str, FloatArray]:
    """Return the sums (draws,) over rows of their shares of overflow, and of the misplaced weight of rows not NaN."""
    keys = block.logits.shape[-1]
    seen = np.full(block.logits.shape[:-1], keys)
    if block.hidden is not None:
        seen = keys - np.count_nonzero(block.hidden, axis=-1)
    shares = {"overflow": lost.score_overflow, "beyond": lost.exp_overflow}
    found = {name: (count / np.maximum(seen, 1)).sum(axis=-1) for name, count in shares.items()}
    return found | {"misplaced": np.nansum(lost.weight_error, axis=-1)}
