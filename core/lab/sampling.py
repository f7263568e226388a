"""Reproducible nested draws of components: component j of every vector is the same number whatever d_k is.

The components of a draw come in chunks of CHUNK columns, each from a separate generator seeded by (seed, side, draw,
chunk). So d_k = 65 shares its first 64 components with d_k = 64, and no number depends on what was drawn before it.
Drawing normal numbers costs more than multiplying them, so `Draws` keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..parameters import ComponentLaw, Parameters

CHUNK = 64
Side: TypeAlias = Literal["query", "key", "shared", "value", "upstream"]
_STREAM: dict[Side, int] = {"query": 0, "key": 1, "shared": 2, "value": 3, "upstream": 4}
WEIGHTS = 5  # the stream of the mechanisms' weights


@dataclass(frozen=True)
class Law:
    """A symmetric law with mean 0 and variance 1; both functions take the degrees of freedom of Student's t."""

    sample: Callable[[np.random.Generator, tuple[int, ...], int], FloatArray]  # -> float32 of that shape
    fourth_moment: Callable[[int], float]


def _normal(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.standard_normal(shape, dtype=np.float32)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return (rng.random(shape, dtype=np.float32) - np.float32(0.5)) * np.float32(math.sqrt(12))


def _laplace(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.laplace(scale=math.sqrt(0.5), size=shape).astype(np.float32)


def _rademacher(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.integers(0, 2, shape, dtype=np.int8).astype(np.float32) * 2 - 1


def _student_t(rng: np.random.Generator, shape: tuple[int, ...], degrees: int) -> FloatArray:
    return (rng.standard_t(degrees, shape) * math.sqrt((degrees - 2) / degrees)).astype(np.float32)


def _student_t_fourth(degrees: int) -> float:
    return 3 * (degrees - 2) / (degrees - 4) if degrees > 4 else math.inf


LAWS: dict[ComponentLaw, Law] = {
    "normal": Law(_normal, lambda _: 3.0),
    "uniform": Law(_uniform, lambda _: 1.8),
    "laplace": Law(_laplace, lambda _: 6.0),
    "rademacher": Law(_rademacher, lambda _: 1.0),
    "student_t": Law(_student_t, _student_t_fourth),
}


def chunks(d_k: int) -> int:
    """Return the number of chunks that hold d_k components."""
    return -(-d_k // CHUNK)


def vectors(p: Parameters, side: Side) -> int:
    """Return the number of vectors that a draw has on this side."""
    return {"query": p.n_queries, "key": p.n_keys, "shared": 1, "value": p.n_keys, "upstream": p.n_queries}[side]


def components(p: Parameters, side: Side, draw: int, chunk: int) -> FloatArray:
    """Draw one chunk of standardised components: (CHUNK, vectors) float32, one row for each component."""
    seed = np.random.SeedSequence(p.seed, spawn_key=(_STREAM[side], draw, chunk))
    rng = np.random.Generator(np.random.SFC64(seed))
    law = "normal" if side in ("value", "upstream") else p.components
    return LAWS[law].sample(rng, (CHUNK, vectors(p, side)), p.degrees_of_freedom)


def drawn_from(p: Parameters, sides: tuple[Side, ...]) -> tuple[object, ...]:
    """Return everything that determines components, except their number."""
    return p.seed, p.components, p.degrees_of_freedom, p.n_queries, p.n_keys, p.batch, sides


@dataclass(eq=False)
class Draws:
    """The components drawn so far for one seed, law and shape; `grow` with other ones discards them.

    Several callers may alternate in growing the same components.
    """

    _key: tuple[object, ...] | None = None
    _sides: dict[Side, FloatArray] = field(default_factory=dict[Side, FloatArray])  # (batch, capacity, vectors)
    _made: int = 0  # components drawn

    @cached_property
    def loss(self) -> Draws:
        """The values and upstream gradients drawn so far: they are d_v wide, not d_k."""
        return Draws()

    @cached_property
    def other(self) -> Draws:
        """The components of a second setting, whose law or number of keys differs."""
        return Draws()

    def grow(self, p: Parameters, sides: tuple[Side, ...]) -> Iterator[float]:
        """Draw the missing ones of d_k components, yielding the finished fraction after each piece of work."""
        key = drawn_from(p, sides)
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
            self._made = max(self._made, columns.stop)

    def of(self, side: Side, draws: slice, d_k: int) -> FloatArray:
        """Return the first d_k components of some draws, (draws, d_k, vectors); the array is shared: do not write."""
        return self._sides[side][draws, :d_k]

    def _room(self, side: Side, shape: tuple[int, int, int]) -> FloatArray:
        """Return the array of one side with at least this shape; its capacity doubles when it is full."""
        old = self._sides.get(side)
        batch, wanted, width = shape
        if old is None or old.shape[1] < wanted:
            capacity = wanted if old is None else max(wanted, 2 * old.shape[1])
            self._sides[side] = np.empty((batch, capacity, width), dtype=np.float32)
            if old is not None:
                self._sides[side][:, : self._made] = old[:, : self._made]
        return self._sides[side]
