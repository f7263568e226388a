"""Which keys a query may attend to, and what is added to its logits, from the stored forms of masks and biases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..message import message
from ..plain import quoted
from .beside.meaning import Positions, as_flags, hides_too_much, meaning_by_values, two_meanings
from .beside.understood import Form
from .capture import Meaning
from .files import CaptureError
from .stored import AtHand, Stored

# Additive masks hide a key with −inf, the smallest number of their format, or −10000 (BERT).
HIDDEN = -1e4
_LOWEST = -1e9  # hides a key in any case
_FARTHEST = 1 << 30  # keys before or after a query, more than there are; sums with positions are in int32

Sizes = tuple[int, int, int, int]  # batch, heads, queries, keys


def mask_shape(mask: Stored, sizes: Sizes, heads_first: bool = False) -> Sizes:
    """Return the mask's shape with all four axes, 1 for missing ones; raise CaptureError if it cannot fit.

    The first of three axes is the batch with all its heads, as in nn.MultiheadAttention and BLOOM, the batch, or that
    of heads; with `heads_first`, heads precede the batch.
    """
    batch, heads, _, _ = sizes
    shape = mask.shape
    if len(shape) == 1:
        shape = (1, 1, 1, *shape)
    elif len(shape) == 2:
        of_batch = shape[0] == batch and not heads_first
        shape = (shape[0], 1, 1, shape[1]) if of_batch else (1, 1, *shape)
    elif len(shape) == 3 and shape[0] == batch * heads > (heads if heads_first else max(batch, heads)):
        shape = (batch, heads, *shape[1:])
    elif len(shape) == 3:
        of_batch = shape[0] in (1, batch) and not (heads_first and shape[0] == heads)
        if not (heads_first or of_batch) and 1 < shape[0] == heads and batch % heads == 0:
            raise CaptureError(
                "{where} has shape {shown}; its first axis may be that of heads or, as in Swin, of the windows of an "
                "image: save it as [1, heads, queries, keys] or [batch, 1, queries, keys]",
                where=mask.where,
                shown=mask.shown,
            )
        shape = (shape[0], 1, *shape[1:]) if of_batch else (1, *shape)
    fits = len(shape) == 4 and shape[3] == sizes[3]
    if not fits or any(have not in (1, want) for have, want in zip(shape, sizes, strict=True)):
        raise CaptureError(
            "{where} has shape {shown}; must be [keys], [batch, keys], [queries, keys], [batch * heads, queries, "
            "keys] or [batch, heads, queries, keys], here {sizes}; all but the last may be 1",
            where=mask.where,
            shown=mask.shown,
            sizes=list(sizes),
        )
    return (shape[0], shape[1], shape[2], shape[3])


def query_mask(mask: Stored, sizes: Sizes, sampled: bool) -> tuple[Stored, int]:
    """Return a mask of queries as [batch, queries], and the number of these queries, all tokens if `sampled`.

    Raise CaptureError if its shape cannot fit.
    """
    batch, _, queries, keys = sizes
    shape = mask.shape[:-1] if len(mask.shape) > 2 and mask.shape[-1] == 1 else mask.shape
    for count in (queries, keys) if sampled else (queries,):
        if shape[-1:] == (count,) and shape[:-1] in ((), (1,), (batch,), (1, 1), (batch, 1)):
            return replace(mask, shape=(shape[0] if len(shape) > 1 else 1, count)), count
    raise CaptureError(
        "{where} has shape {shown}; must be [queries] or [batch, queries], here {sizes}",
        where=mask.where,
        shown=mask.shown,
        sizes=[batch, queries],
    )


def mask_note(mask: Stored, sizes: Sizes) -> str | None:
    """Return a note if the mask's axes were ambiguous."""
    batch, heads, queries, _ = sizes
    if len(mask.shape) == 2 and batch == queries > 1 and mask.shape[0] == batch:
        return message("{name}: axes assumed to be [batch, keys]", name=quoted(mask.name))
    if len(mask.shape) == 3 and batch == heads > 1 and mask.shape[0] == batch:
        return message("{name}: axes assumed to be [batch, queries, keys]", name=quoted(mask.name))
    return None


@dataclass(frozen=True, eq=False)
class Bias:
    """Numbers that are added to the logits of a head."""

    values: FloatArray  # [batch or 1, queries or 1, keys]

    def of(self, draws: slice, rows: slice) -> FloatArray:
        """Return the numbers for some queries of some texts: [texts or 1, rows or 1, keys]."""
        own = self.values if len(self.values) == 1 else self.values[draws]
        return own if own.shape[1] == 1 else own[:, rows]


@dataclass(frozen=True, eq=False)
class Slope:
    """A slope times the distance of query and key, subtracted from the logits of a head (ALiBi).

    Press et al. 2021, arXiv 2108.12409: m·(j − i) for key j ≤ i. Models without a causal mask use −m·|i − j|.
    """

    slope: float
    positions: Positions
    keys: int

    def of(self, draws: slice, rows: slice) -> FloatArray:
        """Return the numbers for some queries: [1, rows, keys]; the same for all texts."""
        distances = np.abs(self.positions[rows, np.newaxis] - np.arange(self.keys))
        return -self.slope * distances[np.newaxis].astype(np.float64)


def read_mask(
    stream: BinaryIO,
    mask: Stored,
    head: int,
    sizes: Sizes,
    at_hand: AtHand,
    meaning: Meaning | None = "visible",
    heads_first: bool = False,
    sure: bool = True,
    own: Positions | None = None,
) -> tuple[BoolArray | None, FloatArray | None, Form]:
    """Return one head of a mask or bias: visible keys, and numbers to add, [batch or 1, queries or 1, keys] each; and
    how its values were understood.

    `meaning` is what True and 1 mean; None if it has to be found out from the values. Raise CaptureError if it cannot
    be, or if it is not `sure` and would hide every key of a text, or every query's own key. `own` are the positions
    of the queries among the keys; None if they are of another text.
    """
    shape = mask_shape(mask, sizes, heads_first)
    index = head if shape[1] > 1 else 0
    if mask.fortran and len(mask.shape) == 3 and min(shape[:2]) > 1:  # one axis of batch and heads
        values = mask.read(stream, (*shape[:1:-1], *shape[:2]), 3, index, at_hand).transpose()
    elif mask.fortran:
        values = mask.read(stream, shape[::-1], 2, index, at_hand).transpose()
    else:
        values = mask.read(stream, shape, 1, index, at_hand)
    flags = None if heads_first else as_flags(values)
    if flags is not None:
        meaning = meaning or meaning_by_values(flags, mask, own)
        visible = flags if meaning == "visible" else ~flags
        if not sure and hides_too_much(visible, own):
            raise two_meanings(mask)
        return visible, None, meaning
    if values.dtype.kind in "biu":
        raise CaptureError(
            "{where} has values that are not a mask's; must be bool or 0/1, or numbers added to the logits",
            where=mask.where,
        )
    with np.errstate(all="ignore"):
        added = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    threshold = _threshold(added, heads_first)
    visible = added > threshold
    if np.isnan(added).any() or np.isposinf(added).any():
        raise CaptureError(
            "{where} holds NaN or +∞; must be numbers added to the logits, or −∞ to hide a key", where=mask.where
        )
    if heads_first and visible.all() and _is_like_a_mask(added):
        raise CaptureError(
            "{where} holds only 0 and 1, like a mask, and would be added to the logits; rename it 'mask', or "
            "'causal_mask', if 1 means visible",
            where=mask.where,
        )
    if heads_first or (added[visible] != 0).any():
        return None if visible.all() else visible, np.where(visible, added, 0), threshold
    return visible, None, threshold


_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which keys a query may attend to, worked out for some queries at a time: for all they may fill gigabytes."""

    keys: int
    positions: Positions
    mask: BoolArray | None  # [batch or 1, queries or 1, keys]; None: all
    before: int | None = None  # keys before its own that a query sees; None: all
    after: int | None = None  # keys after its own; 0 with a causal mask
    chunk: int | None = None  # a query sees keys of its own chunk of this size
    self_attention: bool = True  # whether each query belongs to the key at its position
    left_out: BoolArray | None = None  # queries that do not count, [batch or 1, queries]; None: none

    @property
    def queries(self) -> int:
        return len(self.positions)

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

    def of(self, draws: slice, rows: slice, span: slice = _ALL) -> BoolArray:
        """Return the visible keys, of those in `span`, of some queries of some texts: [texts or 1, rows, keys]."""
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
            own = self.mask if len(self.mask) == 1 else self.mask[draws]
            limits.append((own if own.shape[1] == 1 else own[:, rows])[..., span])
        if not limits:
            return np.broadcast_to(np.True_, (1, len(places), len(keys)))
        visible = limits[0]
        for limit in limits[1:]:
            visible = visible & limit
        return np.broadcast_to(visible, (len(visible) if visible.ndim == 3 else 1, len(places), len(keys)))

    def hidden(self, draws: slice, rows: slice, span: slice = _ALL) -> BoolArray:
        """Return the hidden keys of some queries of some texts, all keys of a padding query; shaped as `of`."""
        hidden = ~self.of(draws, rows, span)
        padding = self.padding
        if padding is None:
            return hidden
        return hidden | (padding if len(padding) == 1 else padding[draws])[:, rows, np.newaxis]

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


def _threshold(added: FloatArray, is_bias: bool) -> float:
    """Return the number at and below which a key is hidden.

    A mask that has been added to a bias is a little above or below −10000. Numbers as large as those of a long ALiBi
    hide only if none lies between them and half of their size.
    """
    with np.errstate(invalid="ignore"):
        mask_alone = not is_bias and not ((added != 0) & (added > HIDDEN)).any()
        if mask_alone:
            return HIDDEN
        between = ((added > 0.9 * HIDDEN) & (added < 0.45 * HIDDEN)).any()
    return _LOWEST if between else 0.9 * HIDDEN


def _is_like_a_mask(values: FloatArray) -> bool:
    """Return whether values are 0 and 1, and both are there: nanoGPT's buffer `attn.bias` is a causal mask."""
    ones, zeros = values == 1, values == 0
    return bool(ones.any() and zeros.any() and (ones | zeros).all())
