"""Measure a captured head in a number format: its queries and keys as they are multiplied in it.

What is rounded is that of `attention.precision`, and the statistics are the Lab's; unlike there, overflow and the
error of weights are of all rows. A bias is stored in the format, but not in float8, and ALiBi only in eager
arithmetic: fused kernels take its slope in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation
from ..attention.formats import number_format
from ..attention.precision import Losses, losses_of, nan_rows
from ..attention.softmax import Softmax
from ..statistics import reading, tally
from ..statistics.measurement import Column
from ..statistics.survey import Survey
from .blocks import KEPT, LARGEST, Block, block_of, block_places, logits_of, require_size, score_blocks, vectors_of
from .head import Head

_BINS = 1024


def rounded_pass(data: Head, c: Computation, rule: str, where: str) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of a head twice, as in exact arithmetic; the column comes with the last pair."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    parts = len(block_places(shape, data))
    kept: list[tuple[Block, FloatArray]] | None = [] if shape.draws * shape.rows * shape.keys <= KEPT else None
    survey = Survey()
    for done, (block, logits) in enumerate(_blocks(data, c), start=1):
        survey.add(logits[_counted(block, logits, data)])
        if kept is not None:
            kept.append((block, logits))
        yield done / parts / 2, ()
    result = tally.Tally(shape, [(rule, 1.0)], survey.centre, 3 * survey.std, survey.axis(_BINS), data.sink)
    exact = replace(c, precision="float64")
    for done, ((block, logits), scores) in enumerate(
        zip(_blocks(data, c) if kept is None else kept, score_blocks(data, exact), strict=True), start=1
    ):
        found = c.weights(logits, block.hidden)
        reference = _reference(exact, scores, where)
        lost = losses_of(reference, block.scores, logits, found, c.precision, block.hidden, data.sink)
        tally.add_sums(result, block.draws, _sums(lost, block))
        logits = logits.astype(np.float64) - survey.centre
        tally.add(result, block.draws, block.rows, logits, block.hidden, rounded=found)
        yield (1 + done / parts) / 2, reading.columns(result, shape.draws, unbiased=False) if done == parts else ()


def rounded_row(data: Head, c: Computation, text: int, query: int) -> tuple[FloatArray, Softmax]:
    """Return the logits (1, 1, keys) of one query, and its weights."""
    draws, rows = slice(text, text + 1), slice(query, query + 1)
    if number_format(c.precision).scaled:  # the scale depends on all queries
        q, k = vectors_of(data, c, draws)
        q = q[:, rows]
    else:
        q, k = vectors_of(data, c, draws, rows)
    block = block_of(c, q, k, draws, rows, slice(0, data.k.shape[1]))
    logits = c.logits(block.scores, block.terms)
    return logits, c.weights(logits, block.hidden)


def _blocks(data: Head, c: Computation) -> Iterator[tuple[Block, FloatArray]]:
    """Yield the blocks of a head, and their logits."""
    for block in score_blocks(data, c):
        yield block, c.logits(block.scores, block.terms)


def _counted(block: Block, logits: FloatArray, data: Head) -> BoolArray:
    """Return which logits are visible, finite and not of a NaN row."""
    counted: BoolArray = np.isfinite(logits)
    counted &= ~nan_rows(logits, block.hidden, data.sink is not None)[..., np.newaxis]
    return counted if block.hidden is None else counted & ~block.hidden


def _reference(c: Computation, block: Block, where: str) -> FloatArray:
    """Return the logits in float64 of a block of scores; raise CaptureError if they overflow."""
    logits = logits_of(c, block)
    with np.errstate(invalid="ignore"):
        largest = float(np.abs(logits).max(initial=0))
    if not largest <= LARGEST:
        require_size(math.inf if math.isnan(largest) else largest, "largest logit", where)
    return logits


def _sums(lost: Losses, block: Block) -> dict[str, FloatArray]:
    """Return the sums (draws,) over rows of their shares of overflow, and of the misplaced weight of rows not NaN."""
    keys = block.scores.shape[-1]
    seen = np.full(block.scores.shape[:-1], keys)
    if block.hidden is not None:
        seen = keys - np.count_nonzero(block.hidden, axis=-1)
    shares = {"overflow": lost.score_overflow, "beyond": lost.exp_overflow}
    found = {name: (count / np.maximum(seen, 1)).sum(axis=-1) for name, count in shares.items()}
    return found | {"misplaced": np.nansum(lost.weight_error, axis=-1)}
