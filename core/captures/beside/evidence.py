"""Find the axes of what attention returned (v, o, lse and weights), which no statistic needs but diagnoses do."""

from __future__ import annotations

from ..naming import HEADS_FIRST, TOKENS_FIRST, Axes
from ..stored import FLOATS, Stored
from ..vectors.layout import FLAT, Located

_TOGETHER = "batch*head"  # as nn.MultiheadAttention multiplies them
_AFTER_PROJECTION = ("out", "output")  # where heads are side by side, these are more than attention's output


def locate_evidence(role: str, word: str, array: Stored, q: Located, k: Located) -> Located | None:
    """Return the array of a role (v, o, lse or weights) with four axes, or None if its shape fits no order of them.

    Axes are in the order of q, or of k for v; lse is [batch, head, token] and weights are [batch, head, token, key],
    which is the last axis here. `word` is the last word of the array's name.
    """
    if array.dtype not in FLOATS or 0 in array.shape or (array.fortran and len(array.shape) > 1):
        return None
    own = k if role == "v" else q
    shape = array.shape
    if role == "lse" and not (len(shape) == 4 and shape[-1] == 1):
        shape = (*shape, 1)
    width = {"lse": 1, "weights": k.size("token")}.get(role)
    counts = [q.size("head")]
    if role == "v":  # side by side, heads are those of q only if they are then as wide as those of k
        of_q = shape[-1:] == (q.size("head") * k.size("d_k"),)
        counts = [*counts, k.size("head")] if of_q else [k.size("head"), *counts]
    for axes in _orders(role, word, own):
        for heads in counts:
            found = _split(axes, shape, own.size("batch"), heads)
            sizes = dict(found)
            fits = (
                len(axes) == len(shape)
                and 0 not in sizes.values()
                and sizes.get("batch", 1) == own.size("batch")
                and sizes.get("head", 1) == heads
                and sizes["token"] == own.size("token")
                and sizes["d_k"] == (width or sizes["d_k"])
            )
            if fits:
                return Located(array, tuple(sizes), tuple(sizes.values()))
    return None


def _orders(role: str, word: str, own: Located) -> list[Axes]:
    """Return the orders of axes to try."""
    orders: list[Axes] = [HEADS_FIRST, TOKENS_FIRST]
    if role in ("v", "o") and "head" in own.axes and own.axes.index("head") > own.axes.index("token"):
        orders.reverse()
    if role == "weights":
        del orders[1]
    fewer = [tuple(axis for axis in order if axis not in without) for without in _MISSING for order in orders]
    fewer.append((_TOGETHER, "token", "d_k"))
    flat: list[Axes] = [("batch", "token", FLAT), ("token", FLAT)]
    if role not in ("v", "o") or word in _AFTER_PROJECTION:
        return fewer
    return [*flat, *fewer] if len(own.array.shape) < len(own.axes) else [*fewer, *flat]


_MISSING: tuple[Axes, ...] = ((), ("batch",), ("head",), ("batch", "head"))


def _split(axes: Axes, shape: tuple[int, ...], batch: int, heads: int) -> list[tuple[str, int]]:
    """Return the axes and their lengths in memory order, with joint ones taken apart; 0 if they cannot be."""
    found: list[tuple[str, int]] = []
    for axis, length in zip(axes, shape, strict=False):
        if axis == FLAT:
            found += [("head", heads), ("d_k", 0 if length % heads else length // heads)]
        elif axis == _TOGETHER:
            found += [("batch", batch), ("head", 0 if length % batch else length // batch)]
        else:
            found.append((axis, length))
    return found
