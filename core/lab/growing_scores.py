"""Scores that a sweep grows from one d_k to the next.

Draws are nested: the scores at one d_k are those at a smaller one plus the products of the columns between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from ..statistics import tally
from .sampling import CHUNK, Side, chunks, components
from .scoring import factors_of

# Fewer new columns than this are not stored in the scores, but added again at the next point: that costs no more, and
# saves writing the scores back.
SHORT = 16

# The most columns added at a time, and the components (16 MB) a part draws at once: many narrow draws take fewer.
STRIDE = 16 * CHUNK
ROOM = 1 << 22

# Scores computed at once: enough for efficient matrix products, few enough to be summed in a cache.
PIECE = 1 << 18


class ScoreBlock(NamedTuple):
    """Scores of some rows of some draws; they may be overwritten, and all pieces share the same memory."""

    draws: slice
    rows: slice
    scores: FloatArray  # (draws, rows, keys) minus their mean and `of_query`
    of_query: FloatArray | None  # (draws, rows, 1) still to be added to all scores of a row


@dataclass(eq=False)
class GrowingScores:
    """The centred scores of some rows of some draws over their first `width` columns; `width` only grows."""

    parameters: Parameters  # their d_k is ignored
    draws: slice
    rows: slice
    width: int = 0
    scores: FloatArray = field(init=False)  # (draws, rows, keys) without `of_query`
    of_query: FloatArray | None = None  # (draws, rows, 1) the part that all scores of a row share
    stride: int = field(init=False)  # columns added at a time
    made: list[FloatArray] = field(init=False)  # for each side, components from the chunk of column `width` on
    _room: FloatArray = field(init=False)  # reused by all pieces: allocating costs more than the arithmetic

    def __post_init__(self) -> None:
        p, draws, rows = self.parameters, self.draws.stop - self.draws.start, self.rows.stop - self.rows.start
        self.scores = np.empty((draws, rows, p.n_keys), np.float32)
        self._room = np.empty(min(self.scores.size, max(PIECE, p.n_keys)), np.float32)
        self.stride = min(max(ROOM // (draws * (rows + p.n_keys)) // CHUNK, 1) * CHUNK, STRIDE)
        vectors: tuple[int, ...] = (rows, p.n_keys, 1) if p.correlation else (rows, p.n_keys)
        self.made = [np.empty((draws, 0, number), np.float32) for number in vectors]

    def grow(self, width: int) -> None:
        """Add columns until there are `width`."""
        while self.width < width:
            for _ in self._add(min(width, self.width + self.stride), keep=True):
                pass

    def at(self, width: int) -> Iterator[ScoreBlock]:
        """Yield the scores at a larger width, piece by piece; the iterator must be exhausted."""
        self.grow(width - self.stride)
        return self._add(width, keep=width - self.width >= SHORT)

    def _add(self, end: int, keep: bool) -> Iterator[ScoreBlock]:
        """Yield the scores over the columns up to `end`; with `keep`, store them as the start of further growth."""
        factors = factors_of(self.parameters, self.columns(end))
        of_query = self.of_query
        if factors.of_query is not None:
            of_query = factors.of_query if of_query is None else of_query + factors.of_query
        # For a single column, NumPy's matrix product is slower than its broadcast product.
        product = np.multiply if end - self.width == 1 else np.matmul
        for draws, rows in tally.blocks(tally.Shape(*self.scores.shape), PIECE):
            kept = self.scores[draws, rows]
            out = self._room[: kept.size].reshape(kept.shape)
            product(factors.q[draws, :, rows].mT, factors.k[draws], out=out)
            if factors.of_key is not None:
                out += factors.of_key[draws]
            if self.width:
                out += kept
            if keep:
                kept[...] = out
            yield ScoreBlock(
                slice(self.draws.start + draws.start, self.draws.start + draws.stop),
                slice(self.rows.start + rows.start, self.rows.start + rows.stop),
                out,
                None if of_query is None else of_query[draws, rows],
            )
        if keep:
            done = end // CHUNK - self.width // CHUNK
            if done:
                self.made = [block[:, done * CHUNK :].copy() for block in self.made]
            self.width, self.of_query = end, of_query

    def columns(self, end: int) -> list[FloatArray]:
        """Return the components of columns `width` to `end`, (draws, columns, vectors) for each side."""
        first = self.width // CHUNK
        sides: tuple[Side, ...] = ("query", "key", "shared")
        missing = range(first + self.made[0].shape[1] // CHUNK, chunks(end))
        if missing:
            for number, old in enumerate(self.made):
                new = [self._chunk(sides[number], chunk) for chunk in missing]
                self.made[number] = np.concatenate([old, *new], axis=1)
        return [block[:, self.width - first * CHUNK : end - first * CHUNK] for block in self.made]

    def _chunk(self, side: Side, chunk: int) -> FloatArray:
        rows = self.rows if side == "query" else slice(None)
        draws = range(self.draws.start, self.draws.stop)
        return np.stack([components(self.parameters, side, draw, chunk)[:, rows] for draw in draws])
