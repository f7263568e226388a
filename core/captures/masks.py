"""Read masks and biases: which keys are visible, and what is added to logits, from their stored forms."""

from __future__ import annotations

from dataclasses import replace
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
