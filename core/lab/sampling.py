"""Reproducible nested draws of components: component j of every vector is the same number whatever d_k is.

The components of a draw come in chunks of CHUNK columns, each from a separate generator seeded by (seed, side, draw,
chunk). So d_k = 65 shares its first 64 components with d_k = 64, and no number depends on what was drawn before it.
Drawing normal numbers costs more than multiplying them, so `Draws` keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..parameters import ComponentLaw, Parameters
from ..scales import scale_rule
from ..statistics.measurement import Column, RoughEstimate

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


_OF_LOGITS = frozenset({"logit_variance", "logit_std", "logit_variance_within_row", "saturation"})
_OF_SHARED = frozenset({"logit_variance", "logit_std", "row_mean_share"})  # of all logits, whose rows move together
_FIRST_KEY = frozenset({"first_key_weight", "first_key_over_uniform"})
_ENOUGH = 16  # draws that give the variance of a shared direction an error, or rows that of their means
_HEAVY = 6.0  # the excess kurtosis of scores from which a few of them decide how long tails are


def rough_statistics(p: Parameters, rule: str, draws: int) -> frozenset[str]:
    """Return the names of the statistics whose standard error over `draws` draws is only a lower bound.

    The error of a mean of x needs E x², so that of a variance needs fourth moments, and that of a kurtosis eighth
    ones; Student's t with ν degrees of freedom has moments below ν only. A shared direction (a correlation) is one
    vector for all scores of a draw: what its size decides has only as many independent values as there are draws.
    The same holds for the variance of the means of few rows.
    With a mean of q at least as large as its standard deviation, all queries of a draw prefer the same keys.
    """
    names: set[str] = {"row_mean_share"} if p.n_queries * draws < _ENOUGH else set()
    degrees = p.degrees_of_freedom if p.components == "student_t" else 99
    if degrees <= 8:
        names |= {"logit_excess_kurtosis", "grad_q_top1_share"}
    if degrees <= 4:
        names |= _OF_LOGITS | _FIRST_KEY | {"grad_q_rms"}
    if p.mechanism in ("additive", "cosine") or p.softcap or scale_rule(rule).normalise != "none":
        names -= _OF_LOGITS | {"logit_excess_kurtosis"}  # bounded logits have all moments
    elif LAWS[p.components].fourth_moment(degrees) ** 2 - 3 >= _HEAVY * p.d_k:
        names |= {"logit_excess_kurtosis", "row_mean_share", "grad_q_top1_share"} | _FIRST_KEY
    if p.std_k and p.mean_q**2 >= p.std_q**2:
        names |= _FIRST_KEY
    if p.correlation and p.std_q and p.std_k:
        heavy = p.components in ("laplace", "student_t")
        names |= {"logit_excess_kurtosis", "logit_within_3sd"} | _FIRST_KEY
        if heavy or draws < _ENOUGH:
            names |= _OF_SHARED
        if heavy:
            names |= {"sum_squared_weights", "weight_times_complement", "grad_q_top1_share"}
    return frozenset(names)


def with_rough_errors(p: Parameters, column: Column, draws: int) -> Column:
    """Return the column with the estimates of `rough_statistics` marked as rough."""
    names = rough_statistics(p, column.rule, draws)
    if not names:
        return column
    measured = {
        name: RoughEstimate(*estimate) if name in names and estimate.stderr is not None else estimate
        for name, estimate in column.measured.items()
    }
    return replace(column, measured=measured)
