"""Which keys a query may attend to, from the stored forms of masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Literal

import numpy as np

from ..arrays import BoolArray
from .files import CaptureError, quoted
from .stored import AnyArray, AtHand, Stored

# Additive masks hide a key with −inf, the smallest number of their format, or −10000 (BERT).
HIDDEN = -1e4
_BLOCK = 1 << 20  # entries of a mask worked out at once

Sizes = tuple[int, int, int, int]  # batch, heads, queries, keys


def mask_shape(mask: Stored, sizes: Sizes) -> Sizes:
    """Return the mask's shape with all four axes, 1 for missing ones; raise CaptureError if it cannot fit."""
    batch, _, _, _ = sizes
    shape = mask.shape
    if len(shape) == 1:
        shape = (1, 1, 1, *shape)
    elif len(shape) == 2:
        shape = (shape[0], 1, 1, shape[1]) if shape[0] == batch else (1, 1, *shape)
    elif len(shape) == 3:
        shape = (shape[0], 1, *shape[1:]) if shape[0] in (1, batch) else (1, *shape)
    fits = len(shape) == 4 and shape[3] == sizes[3]
    if not fits or any(have not in (1, want) for have, want in zip(shape, sizes, strict=True)):
        raise CaptureError(
            f"{mask.where} has shape {mask.shown}; must be [keys], [batch, keys], [queries, keys] or "
            f"[batch, heads, queries, keys], here {list(sizes)}; all but the last may be 1"
        )
    return (shape[0], shape[1], shape[2], shape[3])


def mask_note(mask: Stored, sizes: Sizes) -> str | None:
    """Return a note if the mask's axes were ambiguous."""
    batch, heads, queries, _ = sizes
    if len(mask.shape) == 2 and batch == queries > 1 and mask.shape[0] == batch:
        return f"{quoted(mask.name)}: axes assumed to be [batch, keys]"
    if len(mask.shape) == 3 and batch == heads > 1 and mask.shape[0] == batch:
        return f"{quoted(mask.name)}: axes assumed to be [batch, queries, keys]"
    return None


def read_mask(stream: BinaryIO, mask: Stored, head: int, sizes: Sizes, at_hand: AtHand) -> BoolArray:
    """Return one head of the mask, [batch or 1, queries or 1, keys]: True where the key may be attended to."""
    shape = mask_shape(mask, sizes)
    index = head if shape[1] > 1 else 0
    if mask.fortran:
        values = mask.read(stream, shape[::-1], 2, index, at_hand).transpose()
    else:
        values = mask.read(stream, shape, 1, index, at_hand)
    return _visible(values, mask)


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which keys a query may attend to, worked out for some queries at a time: for all they may fill gigabytes."""

    queries: int
    keys: int
    mask: BoolArray | None  # [batch or 1, queries or 1, keys]; None: all
    diagonal: int | None  # query i sees keys up to i + diagonal; None: all

    def of(self, draws: slice, rows: slice) -> BoolArray:
        """Return the visible keys of some queries of some texts: [texts or 1, rows, keys]."""
        places = np.arange(self.queries)[rows, np.newaxis]
        shape = (1, len(places), self.keys)
        visible = np.broadcast_to(np.True_, shape)
        if self.diagonal is not None:
            visible = (np.arange(self.keys) <= places + self.diagonal)[np.newaxis]
        if self.mask is not None:
            own = self.mask if len(self.mask) == 1 else self.mask[draws]
            visible = visible & (own if own.shape[1] == 1 else own[:, rows])
        return visible

    def hidden(self, draws: slice, rows: slice) -> BoolArray:
        """Return the hidden keys of some queries of some texts, all keys of a padding query; shaped as `of`."""
        hidden = ~self.of(draws, rows)
        padding = self._padding
        if padding is None:
            return hidden
        return hidden | (padding if len(padding) == 1 else padding[draws])[:, rows, np.newaxis]

    @cached_property
    def _padding(self) -> BoolArray | None:
        """Which queries, [batch or 1, queries], are of a token that no query may attend to; None if none are.

        In self-attention such a token is padding, and its own attention is meaningless.
        """
        if self.mask is None or self.queries != self.keys:
            return None
        if self.mask.shape[1] == 1:  # with a causal mask, too, a token may attend to itself
            seen = self.mask[:, 0]
        else:
            seen = np.zeros((len(self.mask), self.keys), np.bool_)
            step = max(1, _BLOCK // self.mask[:, 0].size)
            for first in range(0, self.queries, step):
                seen |= self.of(slice(None), slice(first, first + step)).any(axis=1)
        return None if seen.all() else ~seen


def visibility(
    queries: int, keys: int, mask: BoolArray | None, causal: Literal["top_left", "bottom_right"] | None
) -> Visibility | None:
    """Combine a mask [batch or 1, queries or 1, keys] and a causal mask; None if they hide nothing.

    With a causal mask, query i sees keys 0 to i, counted from the corner it is aligned with.
    """
    diagonal = None if causal is None else 0 if causal == "top_left" else keys - queries
    if diagonal is not None and diagonal >= keys - 1:
        diagonal = None
    if mask is not None and bool(mask.all()):
        mask = None
    return None if mask is None and diagonal is None else Visibility(queries, keys, mask, diagonal)


def _visible(values: AnyArray, mask: Stored) -> BoolArray:
    if values.dtype.kind == "b":
        return values.astype(np.bool_)
    if values.dtype.kind in "iu":
        flags = values
    else:
        with np.errstate(all="ignore"):
            added = values.astype(np.float64)
        hidden = added <= HIDDEN
        if bool(np.all(hidden | (added == 0))):
            return ~hidden
        flags = added  # 0 and 1 as floats; additive masks contain no 1
    if bool(np.all((flags == 0) | (flags == 1))):
        return flags == 1
    raise CaptureError(
        f"{mask.where} has values that are not a mask's; must be bool or 0/1 (1 may be attended to), or additive "
        f"with 0 and −inf (or at most {HIDDEN:g}); biases are not supported"
    )
