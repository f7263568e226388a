"""Which keys a query may attend to, from the stored forms of masks."""

from __future__ import annotations

from typing import BinaryIO, Literal

import numpy as np

from ..arrays import BoolArray
from .files import CaptureError, quoted
from .stored import AnyArray, Stored

# Additive masks hide a key with −inf, the smallest number of their format, or −10000 (BERT).
HIDDEN = -1e4

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


def read_mask(stream: BinaryIO, mask: Stored, head: int, sizes: Sizes) -> BoolArray:
    """Return one head of the mask, [batch or 1, queries or 1, keys]: True where the key may be attended to."""
    shape = mask_shape(mask, sizes)
    index = head if shape[1] > 1 else 0
    if mask.fortran:
        values = mask.read(stream, shape[::-1], 2, index).transpose()
    else:
        values = mask.read(stream, shape, 1, index)
    return _visible(values, mask)


def causal_mask(queries: int, keys: int, corner: Literal["top_left", "bottom_right"]) -> BoolArray:
    """Return the mask [queries, keys]: query i sees keys 0 to i, counted from the corner it is aligned with."""
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
        flags = added  # 0 and 1 as floats; additive masks contain no 1
    if bool(np.all((flags == 0) | (flags == 1))):
        return flags == 1
    raise CaptureError(
        f"{mask.where} has values that are not a mask's; must be bool or 0/1 (1 may be attended to), or additive "
        f"with 0 and −inf (or at most {HIDDEN:g}); biases are not supported"
    )
