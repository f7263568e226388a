"""The scores of a head, block by block, so that a long text needs little memory.

A block holds only the keys that its queries may see: with a causal mask half of all scores are never computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.normalise import normalised
from ...attention.softmax import softcap
from ...message import message
from ...scales import Normalise
from ...statistics import tally
from ..files import CaptureError
from ..head import Head
from ..rules import OfRows

# The rows of a block with a causal mask: fewer would compute fewer hidden scores, and cost more for each block.
_STRIP = 256
_LEAST, _MOST = 2.0**-20, 2.0**20  # of scores in float32
# Scores, scales and logits of these sizes have statistics in float64: fourth powers of scores are the most extreme.
# They include every number of float32 that is not 0.
SMALLEST, LARGEST = 1e-50, 1e50
# The most scores of a head that are kept from the first pass to the second.
KEPT = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    """The scores of some queries of some texts, (draws, rows, keys), and the keys that are hidden; None: none are.

    What `offsets` (draws, rows, 1) holds is still to be added: softmax ignores it, and float32 would lose digits.
    """

    draws: slice
    rows: slice
    keys: slice
    scores: FloatArray
    hidden: BoolArray | None
    offsets: FloatArray | None = None


def block_places(shape: tally.Shape, data: Head) -> list[tuple[slice, slice, slice]]:
    """Return the draws, rows and keys of every block."""
    found: list[tuple[slice, slice, slice]] = []
    limits = data.visibility
    bounded = limits is not None and not (limits.after is None and limits.before is None and limits.chunk is None)
    for draws, rows in tally.blocks(shape):
        if limits is None or not bounded:
            found.append((draws, rows, slice(0, shape.keys)))
            continue
        for first in range(rows.start, rows.stop, _STRIP):
            some = slice(first, min(first + _STRIP, rows.stop))
            found.append((draws, some, limits.span(some)))
    return found


def score_blocks(data: Head, how: Normalise, short: bool) -> Iterator[Block]:
    """Yield blocks of q·kᵀ, in float32 if `short`, else in float64.

    Hidden scores are 0; those that overflow are infinite or NaN.
    """
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    of: slice | None = None
    k, common = data.k, None
    for draws, rows, keys in block_places(shape, data):
        if of != draws and short:
            of, (k, common) = draws, _centred(data.k[draws], _seen(data, draws))
        elif of != draws:
            of, k = draws, vectors(data.k[draws], how)
        q = data.q[draws, rows] if short else vectors(data.q[draws, rows], how)
        with np.errstate(over="ignore", invalid="ignore"):
            scores: FloatArray = q @ k[:, keys].mT
        hidden = None
        if data.visibility is not None:
            hidden = np.broadcast_to(data.visibility.hidden(draws, rows, keys), scores.shape)
            np.copyto(scores, 0, where=hidden)
        offsets = None if common is None else q.astype(np.float64) @ common.astype(np.float64).mT
        yield Block(draws, rows, keys, scores, hidden, offsets)


def logits_of_block(
    data: Head,
    cap: float | None,
    multiplier: float | OfRows,
    block: Block,
) -> FloatArray:
    """Return the logits of a block: multiplied, soft-capped as in Gemma 2, biases added; hidden ones are 0."""
    scores, hidden = block.scores, block.hidden
    if callable(multiplier):
        shown = np.ones_like(scores, np.bool_) if hidden is None else ~hidden
        logits = scores * multiplier(np.count_nonzero(shown, axis=-1), block.draws, block.rows)[..., np.newaxis]
    else:
        logits = scores * multiplier
    if cap is not None:
        logits = softcap(logits, cap, out=logits)
    for bias in data.biases:
        logits += bias.of(block.draws, block.rows)[..., block.keys]
    if hidden is not None:
        np.copyto(logits, 0, where=hidden)
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


def fits_float32(data: Head) -> bool:
    """Return whether products of these q and k, and their fourth powers, are safe in float32."""
    if data.q.dtype != np.float32 or data.k.dtype != np.float32:
        return False
    largest = float(np.abs(data.q).max()) * float(np.abs(data.k).max())
    return largest >= _LEAST and largest * data.q.shape[-1] <= _MOST


def _seen(data: Head, draws: slice) -> BoolArray | None:
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


def vectors(of: FloatArray, how: Normalise) -> FloatArray:
    """Return queries or keys in float64, normalised."""
    found = of.astype(np.float64, copy=False)
    if how == "none":
        return found
    # A power of two changes no digit, and keeps the squares of extreme vectors in range.
    _, exponents = np.frexp(np.abs(found).max(axis=-1, keepdims=True))
    return normalised(np.ldexp(found, -exponents), how)
