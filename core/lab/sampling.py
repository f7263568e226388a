"""Reproducible nested draws: component j of every query and key is the same number whatever d_k is.

A draw's components come in chunks of CHUNK columns, each chunk from a generator of its own, seeded by (seed,
side, draw, chunk). So d_k = 65 shares its first 64 components with d_k = 64, and no number depends on what was
drawn before it. Making normals costs more than multiplying them, so `Draws` keeps what it has made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from .components import LAWS

CHUNK = 64
Side: TypeAlias = Literal["query", "key", "shared", "value", "upstream"]
_STREAM: dict[Side, int] = {"query": 0, "key": 1, "shared": 2, "value": 3, "upstream": 4}
WEIGHTS = 5  # the stream that mechanisms draw their own weights from


def chunks(d_k: int) -> int:
    """How many chunks hold this many components."""
    return -(-d_k // CHUNK)


def vectors(p: Parameters, side: Side) -> int:
    """How many vectors a draw has on this side."""
    return {"query": p.n_queries, "key": p.n_keys, "shared": 1, "value": p.n_keys, "upstream": p.n_queries}[side]


def components(p: Parameters, side: Side, draw: int, chunk: int) -> FloatArray:
    """One chunk of standardised components; (CHUNK, vectors) float32, a row for each component."""
    seed = np.random.SeedSequence(p.seed, spawn_key=(_STREAM[side], draw, chunk))
    rng = np.random.Generator(np.random.SFC64(seed))
    law = "normal" if side in ("value", "upstream") else p.components
    return LAWS[law].sample(rng, (CHUNK, vectors(p, side)), p.degrees_of_freedom)


@dataclass(eq=False)
class Draws:
    """The components made so far for one seed, law and shape; another question of `grow` starts anew."""

    _key: tuple[object, ...] | None = None
    _sides: dict[Side, FloatArray] = field(default_factory=dict[Side, FloatArray])  # (batch, capacity, vectors)
    _made: int = 0  # components that are there

    @cached_property
    def loss(self) -> Draws:
        """The values and upstream gradients made so far: they are d_v wide, not d_k."""
        return Draws()

    def grow(self, p: Parameters, sides: tuple[Side, ...]) -> Iterator[float]:
        """Make what is missing for d_k components, yielding the finished part after each piece of work."""
        key = (p.seed, p.components, p.degrees_of_freedom, p.n_queries, p.n_keys, p.batch, sides)
        if key != self._key:
            self._key, self._sides, self._made = key, {}, 0
        first, last = self._made // CHUNK, chunks(p.d_k)
        for chunk in range(first, last):
            columns = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            for number, side in enumerate(sides):
                room = self._room(side, (p.batch, columns.stop, vectors(p, side)))
                for draw in range(p.batch):
                    room[draw, columns] = components(p, side, draw, chunk)
                    yield (chunk - first + (number + (draw + 1) / p.batch) / len(sides)) / (last - first)
            self._made = columns.stop

    def of(self, side: Side, draws: slice, d_k: int) -> FloatArray:
        """The first d_k components of some draws; (draws, d_k, vectors), to be read only."""
        return self._sides[side][draws, :d_k]

    def _room(self, side: Side, shape: tuple[int, int, int]) -> FloatArray:
        """The array of one side, with room for this many components at least; it doubles when it is full."""
        old = self._sides.get(side)
        batch, wanted, width = shape
        if old is None or old.shape[1] < wanted:
            capacity = wanted if old is None else max(wanted, 2 * old.shape[1])
            self._sides[side] = np.empty((batch, capacity, width), dtype=np.float32)
            if old is not None:
                self._sides[side][:, : self._made] = old[:, : self._made]
        return self._sides[side]
