"""Which keys a query may attend to, and what is added to its logits: worked out for some queries at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray

Numbers = TypeVar("Numbers", FloatArray, BoolArray)
Rows: TypeAlias = slice | npt.NDArray[np.intp]  # some of the queries

_ALL = slice(None)
_FARTHEST = 1 << 30  # keys before or after a query, more than there are; sums with positions are in int32


def part_of(values: Numbers, draws: slice, rows: Rows) -> Numbers:
    """Return [draws or 1, rows or 1, …] of numbers [batch or 1, queries or 1, …]."""
    of_draws = values if len(values) == 1 else values[draws]
    return of_draws if of_draws.shape[1] == 1 else of_draws[:, rows]


@dataclass(frozen=True, eq=False)
class Bias:
    """Numbers that are added to the logits of a head."""

    values: FloatArray  # [batch or 1, queries or 1, keys]

    def of(self, draws: slice, rows: Rows) -> FloatArray:
        """Return the numbers for some queries of some draws: [draws or 1, rows or 1, keys]."""
        return part_of(self.values, draws, rows)


@dataclass(frozen=True, eq=False)
class Slope:
    """A slope times the distance of query and key, subtracted from the logits of a head (ALiBi).

    Press et al. 2021, arXiv 2108.12409: m·(j − i) for key j ≤ i. Models without a causal mask use −m·|i − j|.
    """

    slope: float
    positions: npt.NDArray[np.int64]  # [queries] among the keys
    keys: int

    def of(self, draws: slice, rows: Rows) -> FloatArray:
        """Return the numbers for some queries: [1, rows, keys]; the same for all draws."""
        distances = np.abs(self.positions[rows, np.newaxis] - np.arange(self.keys))
        return -self.slope * distances[np.newaxis].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which keys a query may attend to; for all queries at once the answer may fill gigabytes."""

    keys: int
    positions: npt.NDArray[np.int64]  # [queries] among the keys
    mask: BoolArray | None = None  # [batch or 1, queries or 1, keys]; None: all
    before: int | None = None  # keys before its own that a query sees; None: all
    after: int | None = None  # keys after its own; 0 with a causal mask
    chunk: int | None = None  # a query sees keys of its own chunk of this size
    self_attention: bool = True  # whether each query belongs to the key at its position
    left_out: BoolArray | None = None  # queries that do not count, [batch or 1, queries]; None: none

    def span(self, rows: slice) -> slice:
        """Return the keys outside which all these queries see none, a causal mask, a window and chunks considered."""
        first, last = int(self.positions[rows].min()), int(self.positions[rows].max())
        low, high = 0, self.keys
        if self.after is not None:
            high = min(high, last + self.after + 1)
        if self.before is not None:
            low = max(low, first - self.before)
        if self.chunk is not None:
            low, high = max(low, first // self.chunk * self.chunk), min(high, (last // self.chunk + 1) * self.chunk)
        return slice(low, high) if low < high else slice(0, self.keys)

    def of(self, draws: slice, rows: Rows, span: slice = _ALL) -> BoolArray:
        """Return the visible keys, of those in `span`, of some queries of some draws: [draws or 1, rows, keys]."""
        places = self.positions[rows, np.newaxis].astype(np.int32)
        keys = np.arange(self.keys, dtype=np.int32)[span]
        limits: list[BoolArray] = []
        if self.after is not None:
            limits.append(keys <= places + min(self.after, _FARTHEST))
        if self.before is not None:
            limits.append(keys >= places - min(self.before, _FARTHEST))
        if self.chunk is not None:
            limits.append(keys // self.chunk == places // self.chunk)
        if self.mask is not None:
            limits.append(part_of(self.mask, draws, rows)[..., span])
        if not limits:
            return np.broadcast_to(np.True_, (1, len(places), len(keys)))
        visible = limits[0]
        for limit in limits[1:]:
            visible = visible & limit
        return np.broadcast_to(visible, (len(visible) if visible.ndim == 3 else 1, len(places), len(keys)))

    def hidden(self, draws: slice, rows: Rows, span: slice = _ALL) -> BoolArray:
        """Return the hidden keys of some queries of some draws, all keys of a padding query; shaped as `of`."""
        edge = self.edge(rows, span)
        if edge.start:
            hidden = np.zeros((1, len(self.positions[rows]), len(range(self.keys)[span])), np.bool_)
            hidden[..., edge] = ~self.of(draws, rows, slice((span.start or 0) + edge.start, span.stop))
            return hidden
        hidden = ~self.of(draws, rows, span)
        padding = self.padding
        if padding is None:
            return hidden
        return hidden | (padding if len(padding) == 1 else padding[draws])[:, rows, np.newaxis]

    def edge(self, rows: Rows, span: slice = _ALL) -> slice:
        """Return the keys of a span, counted from its first, outside which these queries see all."""
        others = self.before, self.chunk, self.mask, self.left_out
        if self.after is None or any(limit is not None for limit in others):
            return _ALL
        seen = int(self.positions[rows].min()) + self.after + 1 - (span.start or 0)
        return slice(min(max(seen, 0), len(range(self.keys)[span])), None)

    @cached_property
    def padding(self) -> BoolArray | None:
        """Which queries, [batch or 1, queries], do not count; None if all do.

        In self-attention, a token that the mask hides from all queries is padding, and its own attention is
        meaningless. That a causal or sliding window hides it from most of them says nothing.
        """
        if self.mask is None or not self.self_attention:
            return self.left_out
        seen: BoolArray = np.any(self.mask, axis=1)
        padding = ~seen[:, self.positions]
        if self.left_out is not None:
            padding = padding | self.left_out
        return padding if padding.any() else None
