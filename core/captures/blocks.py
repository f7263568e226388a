"""The scores of a head, block by block, so that a long text needs little memory.

A block holds only the keys that its queries may see: with a causal mask half of all scores are never computed.

In a number format, queries and keys are as they are multiplied in it. What is rounded is that of
`attention.precision`, and the statistics are the Lab's; unlike there, overflow and the error of weights are of all
rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation, Terms
from ..attention.formats import number_format
from ..attention.precision import Losses, losses_of, nan_rows
from ..attention.softmax import Softmax
from ..message import message
from ..statistics import reading, tally
from ..statistics.counting import RunningStatistics
from ..statistics.measurement import Column, HistogramName
from .features import LARGEST, SMALLEST
from .files import CaptureError
from .head import HeadData

_ALL = slice(None)
_BINS = 1024  # of the histogram of logits
# The rows of a block with a causal mask: fewer would compute fewer hidden scores, and cost more for each block.
_STRIP = 256
# The rows of a block in float32, unless they have more entries: a product of fewer takes longer for each.
_LONG, _MOST_ENTRIES = 128, 1 << 21
_LEAST, _MOST = 2.0**-20, 2.0**20  # of scores in float32
# The most bytes of a head's scores, of those that may be seen, that are kept from the first pass to the second.
_KEPT = 36 << 20


@dataclass(frozen=True, eq=False)
class Block:
    """The scores of some queries of some texts, (draws, rows, keys), and what their logits consist of beside them.

    What `offsets` (draws, rows, 1) holds is still to be added: softmax ignores it, and float32 would lose digits.
    """

    draws: slice
    rows: slice
    scores: FloatArray
    terms: Terms
    offsets: FloatArray | None = None

    @property
    def hidden(self) -> BoolArray | None:
        """The keys that are hidden; None: none are."""
        return self.terms.hidden


def are_kept(places: Sequence[tuple[slice, ...]], itemsize: int) -> bool:
    """Return whether the scores of these blocks are kept from the first pass to the second."""
    return itemsize * sum(math.prod(cut.stop - cut.start for cut in place) for place in places) <= _KEPT


def block_places(shape: tally.Shape, data: HeadData, short: bool = False) -> list[tuple[slice, slice, slice]]:
    """Return the draws, rows and keys of every block; of more rows if it is `short`, in float32."""
    blocks: list[tuple[slice, slice, slice]] = []
    limits = data.visibility
    if limits is not None and limits.after is None and limits.before is None and limits.chunk is None:
        limits = None
    size = max(tally.BLOCK, min(_LONG * shape.keys, _MOST_ENTRIES)) if short else tally.BLOCK
    for draws, rows in tally.blocks(shape, size):
        if limits is None:
            blocks.append((draws, rows, slice(0, shape.keys)))
            continue
        for first in range(rows.start, rows.stop, _STRIP):
            some = slice(first, min(first + _STRIP, rows.stop))
            blocks.append((draws, some, limits.span(some)))
    return blocks


def score_blocks(data: HeadData, c: Computation, short: bool = False) -> Iterator[Block]:
    """Yield blocks of q·kᵀ, in float64 or, if `short`, in float32; or as they are rounded to a number format.

    Hidden scores are 0 if nothing is rounded; those that overflow are infinite or NaN.
    """
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    exact = c.precision == "float64"
    of: slice | None = None
    q, k, common = data.q, data.k, None
    for draws, rows, keys in block_places(shape, data, short):
        if of != draws and short:
            of, q = draws, data.q[draws]
            k, common = _centred(data.k[draws], _seen(data, draws))
        elif of != draws:
            of, (q, k) = draws, vectors_of(data, c, draws)
        block = block_of(c, q[:, rows], k[:, keys], draws, rows, keys, short)
        if exact and block.hidden is not None:
            edge = block.terms.edge
            np.copyto(block.scores[..., edge], 0, where=block.hidden[..., edge])
        if common is not None:
            offsets = q[:, rows].astype(np.float64) @ common.astype(np.float64).mT
            block = replace(block, offsets=offsets)
        yield block


def block_of(
    c: Computation, q: FloatArray, k: FloatArray, draws: slice, rows: slice, keys: slice, short: bool = False
) -> Block:
    """Return the block of these queries and keys, as they are multiplied."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.mT if short else c.scores(q, k)
    return Block(draws, rows, scores, c.terms(scores.shape, draws, rows, keys))


def logits_of(c: Computation, block: Block) -> FloatArray:
    """Return the logits of a block; hidden ones are 0."""
    logits = c.logits(block.scores, block.terms)
    if block.hidden is not None:
        np.copyto(logits, 0, where=block.hidden)
    return logits


def require_size(size: float, what: str, where: str) -> None:
    """Raise CaptureError if statistics of logits overflow or underflow with a scale, score or logit of this size."""
    if size != 0 and not SMALLEST <= size <= LARGEST:
        fault = message("underflow") if size < SMALLEST else message("overflow")
        raise CaptureError(
            "{where}: logits {fault} float64: the {what} must be from {smallest:g} to {largest:g}, not {size:g}",
            where=where,
            fault=fault,
            what=what,
            smallest=SMALLEST,
            largest=LARGEST,
            size=size,
        )


def fits_float32(data: HeadData) -> bool:
    """Return whether products of these q and k, and their fourth powers, are safe in float32."""
    if data.q.dtype != np.float32 or data.k.dtype != np.float32:
        return False
    largest = float(np.abs(data.q).max()) * float(np.abs(data.k).max())
    return largest >= _LEAST and largest * data.q.shape[-1] <= _MOST


def _seen(data: HeadData, draws: slice) -> BoolArray | None:
    """Return which keys the mask lets some query see, (draws or 1, keys); None if there is no mask."""
    mask = None if data.visibility is None else data.visibility.mask
    if mask is None:
        return None
    seen: BoolArray = np.any(mask if len(mask) == 1 else mask[draws], axis=1)
    return seen


def _centred(k: FloatArray, seen: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    """Return keys (draws, keys, d_k) less the mean of those that are seen, and the mean (draws, 1, d_k).

    Padding may lie far from all other keys: its mean would cost the scores of these their digits.
    """
    common = mean_of_seen(k, seen).astype(np.float32)
    return k - common, common


def mean_of_seen(k: FloatArray, seen: BoolArray | None) -> FloatArray:
    """Return the mean of the keys (draws, keys, d_k) that are `seen` (draws or 1, keys): float64 (draws, 1, d_k)."""
    if seen is None:
        return k.mean(axis=1, keepdims=True, dtype=np.float64)
    shares = seen / np.maximum(np.count_nonzero(seen, axis=-1, keepdims=True), 1)
    return shares[:, np.newaxis] @ k.astype(np.float64)


def vectors_of(data: HeadData, c: Computation, draws: slice, rows: slice = _ALL) -> tuple[FloatArray, FloatArray]:
    """Return some queries, and all keys, of some texts as they are multiplied."""
    q, k = data.q[draws, rows], data.k[draws]
    if c.norms != ("none", "none"):
        q, k = _in_range(q), _in_range(k)
    with np.errstate(over="ignore", invalid="ignore"):
        return c.vectors(q, k)


def _in_range(vectors: FloatArray) -> FloatArray:
    """Return vectors that are to be normalised, in float64, with squares in its range.

    A power of two changes no digit.
    """
    found = vectors.astype(np.float64, copy=False)
    _, exponents = np.frexp(np.abs(found).max(axis=-1, keepdims=True))
    return np.ldexp(found, -exponents)


def rounded_pass(
    data: HeadData, c: Computation, rule: str, where: str, histograms: Sequence[HistogramName]
) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of a head twice, as in exact arithmetic; the column comes with the last pair."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    places = block_places(shape, data)
    parts = len(places)
    kept: list[tuple[Block, FloatArray]] | None = [] if are_kept(places, 8) else None
    survey = RunningStatistics()
    for done, (block, logits) in enumerate(_blocks(data, c), start=1):
        survey.add(logits[_counted(block, logits, data)])
        if kept is not None:
            kept.append((block, logits))
        yield done / parts / 2, ()
    band, axis = 3 * survey.std, survey.axis(_BINS)
    result = tally.Tally(shape, [(rule, 1.0)], survey.centre, band, axis, data.sink, histograms=histograms)
    exact = replace(c, precision="float64")
    for done, ((block, logits), scores) in enumerate(
        zip(_blocks(data, c) if kept is None else kept, score_blocks(data, exact), strict=True), start=1
    ):
        weights = c.weights(logits, block.hidden)
        reference = _reference(exact, scores, where)
        lost = losses_of(reference, block.scores, logits, weights, c.precision, block.hidden, data.sink)
        tally.add_sums(result, block.draws, _sums(lost, block))
        logits = logits.astype(np.float64) - survey.centre
        tally.add(result, block.draws, block.rows, logits, block.hidden, rounded=weights)
        yield (1 + done / parts) / 2, reading.columns(result, shape.draws, unbiased=False) if done == parts else ()


def rounded_row(data: HeadData, c: Computation, text: int, query: int) -> tuple[FloatArray, Softmax]:
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


def _blocks(data: HeadData, c: Computation) -> Iterator[tuple[Block, FloatArray]]:
    """Yield the blocks of a head, and their logits."""
    for block in score_blocks(data, c):
        yield block, c.logits(block.scores, block.terms)


def _counted(block: Block, logits: FloatArray, data: HeadData) -> BoolArray:
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
