"""What True means in a mask: visible, as in scaled_dot_product_attention, or hidden, as in nn.MultiheadAttention."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...arrays import BoolArray
from ..capture import Meaning
from ..files import CaptureError
from ..stored import AnyArray, Stored

Positions = npt.NDArray[np.int64]  # [queries] of the queries among the keys


def as_flags(values: AnyArray) -> BoolArray | None:
    """Return the values as booleans if they are 0 and 1, or False and True; None if they are not.

    Zeros alone are numbers added to the logits, unless they are booleans or integers.
    """
    if values.dtype.kind == "b":
        return values.astype(np.bool_)
    if values.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            values = values.astype(np.float64)
        if not (values == 1).any():
            return None
    ones = values == 1
    return ones if bool(np.all(ones | (values == 0))) else None


def meaning_by_values(flags: BoolArray, mask: Stored, own: Positions | None) -> Meaning:
    """Return what True means in flags [batch or 1, queries or 1, keys] if only one meaning makes sense.

    `own` are the positions of the queries in self-attention; None if they are of another text. Raise CaptureError if
    both meanings make sense, or neither.
    """
    visible, hidden = _makes_sense(flags, own), _makes_sense(~flags, own)
    if visible == hidden:
        raise two_meanings(mask)
    return "visible" if visible else "hidden"


def hides_too_much(visible: BoolArray, own: Positions | None) -> bool:
    """Return whether a mask hides every key of a text, or the own key of every query."""
    if not visible.any(axis=(1, 2)).all():
        return True
    return own is not None and visible.shape[1] == len(own) > 1 and not _themselves(visible, own).any()


def two_meanings(mask: Stored) -> CaptureError:
    """Return the error for a mask whose True may mean either."""
    return CaptureError(
        "{where}: True may mean visible, as in scaled_dot_product_attention, or hidden, as in "
        "nn.MultiheadAttention; say which: --mask-true visible or hidden, or metadata mask_true",
        where=mask.where,
    )


def _makes_sense(visible: BoolArray, own: Positions | None) -> bool:
    """Return whether queries may see these keys and no others.

    Each text has keys. In self-attention, every token that some query sees also sees itself, and some see others. In
    cross-attention, queries see the same keys, or the last key that they see advances. Queries without keys are
    padding.
    """
    if not visible.any(axis=(1, 2)).all():
        return False
    if visible.shape[1] == 1 or visible.all():
        return True
    blank: BoolArray = ~np.any(visible, axis=2)
    if own is not None:
        themselves = _themselves(visible, own)
        others = np.count_nonzero(visible, axis=2) > themselves
        seen: BoolArray = np.any(visible, axis=1)
        return bool(np.all(themselves | ~seen[:, own] | blank) and np.any(others))
    alike: BoolArray = visible == np.any(visible, axis=1, keepdims=True)
    same: BoolArray = np.all(np.all(alike, axis=2) | blank, axis=1)
    last = visible.shape[2] - 1 - np.argmax(visible[:, :, ::-1], axis=2)
    farthest = np.maximum.accumulate(np.where(blank, -1, last), axis=1)
    advances: BoolArray = np.all((last == farthest) | blank, axis=1) & (np.min(last, axis=1) < farthest[:, -1])
    return bool(np.all(same | advances))


def _themselves(visible: BoolArray, own: Positions) -> BoolArray:
    """Return which queries see their own key, [batch or 1, queries]."""
    found: BoolArray = visible[:, np.arange(len(own)), own]
    return found
