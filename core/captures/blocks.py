"""The scores of a head, block by block, so that a long text needs little memory.

A block holds only the keys that its queries may see: with a causal mask half of all scores are never computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.normalise import normalised
from ..scales import Normalise
from ..statistics import tally
from .head import Head

# The rows of a block with a causal mask: fewer would compute fewer hidden scores, and cost more for each block.
_STRIP = 256
_SMALLEST, _LARGEST = 2.0**-20, 2.0**20  # of scores in float32


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
            of, k = draws, _vectors(data.k[draws], how)
        q = data.q[draws, rows] if short else _vectors(data.q[draws, rows], how)
        with np.errstate(over="ignore", invalid="ignore"):
            scores: FloatArray = q @ k[:, keys].mT
        hidden = None
        if data.visibility is not None:
            hidden = np.broadcast_to(data.visibility.hidden(draws, rows, keys), scores.shape)
            np.copyto(scores, 0, where=hidden)
        offsets = None if common is None else q.astype(np.float64) @ common.astype(np.float64).mT
        yield Block(draws, rows, keys, scores, hidden, offsets)


def fits_float32(data: Head) -> bool:
    """Return whether products of these q and k, and their fourth powers, are safe in float32."""
    if data.q.dtype != np.float32 or data.k.dtype != np.float32:
        return False
    largest = float(np.abs(data.q).max()) * float(np.abs(data.k).max())
    return largest >= _SMALLEST and largest * data.q.shape[-1] <= _LARGEST


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


def _vectors(vectors: FloatArray, how: Normalise) -> FloatArray:
    """Return queries or keys in float64, normalised."""
    vectors = vectors.astype(np.float64, copy=False)
    if how == "none":
        return vectors
    # A power of two changes no digit, and keeps the squares of extreme vectors in range.
    _, exponents = np.frexp(np.abs(vectors).max(axis=-1, keepdims=True))
    return normalised(np.ldexp(vectors, -exponents), how)
