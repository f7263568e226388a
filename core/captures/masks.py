"""Which keys a query may attend to, from the forms that masks are stored in."""

from __future__ import annotations

from typing import BinaryIO, Literal

import numpy as np

from ..arrays import BoolArray
from .files import AnyArray, CaptureError, Stored, quoted, read_index

# An additive mask hides a key by −inf, by the smallest number of its format, or by BERT's −10000.
HIDDEN = -1e4

Sizes = tuple[int, int, int, int]  # batch, heads, queries, keys


def mask_shape(mask: Stored, sizes: Sizes) -> Sizes:
    """The mask's shape with all four axes, 1 where it has none; raises CaptureError where it cannot fit."""
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
            f"{mask.where} has shape {mask.shown}; [keys], [batch, keys], [queries, keys] or "
            f"[batch, heads, queries, keys] is accepted, here {list(sizes)} with 1 for any but the last"
        )
    return (shape[0], shape[1], shape[2], shape[3])


def mask_note(mask: Stored, sizes: Sizes) -> str | None:
    """What had to be assumed to tell the mask's axes."""
    batch, heads, queries, _ = sizes
    if len(mask.shape) == 2 and batch == queries > 1 and mask.shape[0] == batch:
        return f"{quoted(mask.name)}: axes taken as [batch, keys]"
    if len(mask.shape) == 3 and batch == heads > 1 and mask.shape[0] == batch:
        return f"{quoted(mask.name)}: axes taken as [batch, queries, keys]"
    return None


def read_mask(stream: BinaryIO, mask: Stored, head: int, sizes: Sizes) -> BoolArray:
    """One head of the mask, [batch or 1, queries or 1, keys]: True where the key may be attended to."""
    shape = mask_shape(mask, sizes)
    index = head if shape[1] > 1 else 0
    if mask.fortran:
        values = read_index(stream, mask, shape[::-1], 2, index).transpose()
    else:
        values = read_index(stream, mask, shape, 1, index)
    return _visible(values, mask)


def causal_mask(queries: int, keys: int, corner: Literal["top_left", "bottom_right"]) -> BoolArray:
    """[queries, keys]: query i sees keys 0 to i, counted from the corner the mask is aligned with."""
    offset = 0 if corner == "top_left" else keys - queries
    return np.tri(queries, keys, offset, dtype=np.bool_)


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
        flags = added  # 0 and 1 as floats: a 1 is no additive mask's
    if bool(np.all((flags == 0) | (flags == 1))):
        return flags == 1
    raise CaptureError(
        f"{mask.where} holds other values than a mask's: bool or 0/1 (1 may be attended to), or numbers that are "
        f"added, 0 and −inf (or below {HIDDEN:g}), are accepted; biases are not"
    )
