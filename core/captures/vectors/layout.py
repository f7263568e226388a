"""Identify the axes of a stored array, and read one head of it as [batch, token, d_k]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from ...message import message
from ...plain import quoted
from ..capture import Tensor
from ..files import CaptureError
from ..naming import HEADS_FIRST, TOKENS_FIRST, Axes, Pair
from ..stored import AnyArray, AtHand, Stored

FLAT = "head*d_k"  # a projection's output, with concatenated heads
ACCEPTED = message(
    "batch, head, token, d_k or head*d_k, separated by commas, each at most once, including token and d_k"
)

_SPELLINGS = {
    "batch": ("batch", "batches", "b"),
    "head": ("head", "heads", "h", "n_heads", "num_heads"),
    "token": ("token", "tokens", "t", "seq", "seq_len", "sequence", "pos", "position", "positions"),
    "d_k": ("d_k", "d", "d_head", "head_dim", "dim"),
    FLAT: (FLAT, "heads*d_k", "head·d_k", "heads·d_k", "h*d", "heads*d", "hidden"),
}
_WORD = {spelling: word for word, spellings in _SPELLINGS.items() for spelling in spellings}


@dataclass(frozen=True)
class Located:
    """A stored array with a name for every axis, in memory order."""

    array: Stored
    axes: Axes
    shape: tuple[int, ...]

    def size(self, axis: str) -> int:
        """Return the length of an axis; 1 if the array does not have it."""
        return self.shape[self.axes.index(axis)] if axis in self.axes else 1

    def described(self) -> Tensor:
        """Return where it is, as plain values; axes are in the order that readers of the file show."""
        order = slice(None, None, -1) if self.array.fortran else slice(None)
        axes, shape = self.axes[order], self.shape[order]
        return Tensor(self.array.path, self.array.name, axes, shape, shape == self.array.shape)

    def read_head(self, stream: BinaryIO, head: int, at_hand: AtHand) -> AnyArray:
        """Return one head, [batch, token, d_k], in the stored type."""
        along = self.axes.index("head") if "head" in self.axes else None
        values = self.array.read(stream, self.shape, along, head, at_hand)
        left = [axis for axis in self.axes if axis != "head"]
        if "batch" not in left:
            values, left = values[np.newaxis], ["batch", *left]
        return values.transpose([left.index(axis) for axis in ("batch", "token", "d_k")])


def parse_axes(text: str, where: str) -> Axes:
    """Return the axes named by the user or the file, in order; raise CaptureError if they are invalid."""
    words = tuple(_WORD.get(part.strip().lower()) for part in text.strip().strip("[]()").split(","))
    known = tuple(word for word in words if word is not None)
    complete = "token" in known and (("d_k" in known) != (FLAT in known)) and not {"head", FLAT} <= set(known)
    if len(known) < len(words) or len(set(known)) < len(known) or not complete:
        raise CaptureError(
            "{where} {text} are invalid; must be {accepted}", where=where, text=quoted(text), accepted=ACCEPTED
        )
    return known


def find_axes(
    q: Stored, k: Stored, pair: Pair, given: Axes | None, heads: int | None, d_k: int | None
) -> tuple[Axes, str | None]:
    """Return the axes of a pair, and a note if they were assumed.

    They come from, in this order: the given axes, a flat projection, the naming convention, the number of heads, the
    axis in which grouped queries and keys differ, and finally the default [batch, head, token, d_k].
    """
    ndim = len(q.shape)
    if len(k.shape) != ndim or not 2 <= ndim <= 4:
        raise CaptureError(
            "{where} has shape {shown} and its keys {of_keys}; both must be [batch, head, token, d_k], "
            "[head, token, d_k] or [token, d_k]",
            where=q.where,
            shown=q.shown,
            of_keys=k.shown,
        )
    if given is not None:
        return _fit(given, q), None
    if heads is not None and ndim < 4 and _is_flat(q.shape, heads, d_k):
        return ("batch", "token", FLAT)[-ndim:], None
    if pair.words.projection and pair.inside and ndim == 3 and heads is None:
        raise CaptureError(
            "{where} has shape {shown}, like a projection with concatenated heads: add heads (and "
            "kv_heads) to the metadata, or name the axes if they are different",
            where=q.where,
            shown=q.shown,
        )
    if pair.words.axes is not None:
        axes = _fit(pair.words.axes, q)
        return axes, message(
            "axes assumed to be {axes}, the order of {maker}; override with --axes",
            axes=_list(axes),
            maker=pair.words.maker,
        )
    axes, reason = _guess(q.shape, k.shape, heads)
    return axes, message("axes assumed to be {axes}{reason}; override with --axes", axes=_list(axes), reason=reason)


def locate(array: Stored, axes: Axes, heads: int | None) -> Located:
    """Return the array with its axes in memory order; a flat projection is split into `heads` heads."""
    named: list[tuple[str, int]] = []
    for axis, length in zip(axes, array.shape, strict=True):
        if axis != FLAT:
            named.append((axis, length))
        elif heads is None:
            raise CaptureError(
                "{where} must be split into heads: add heads (and kv_heads) to the metadata", where=array.where
            )
        elif length % heads:
            raise CaptureError(
                "{where} holds {length} numbers per token, which {heads} heads cannot share",
                where=array.where,
                length=length,
                heads=heads,
            )
        else:
            named.append((FLAT, length))
    if array.fortran:
        named.reverse()
    split = [part for axis, length in named for part in _split(axis, length, heads)]
    return Located(array, tuple(axis for axis, _ in split), tuple(length for _, length in split))


def _is_flat(shape: tuple[int, ...], heads: int, d_k: int | None) -> bool:
    """Return whether the last of two or three axes holds `heads` heads."""
    if shape[-1] % heads:
        return False
    if d_k is not None and heads > 1:
        return shape[-1] == heads * d_k
    return heads not in shape[:-1] if len(shape) == 3 else heads > 1


def _guess(q: tuple[int, ...], k: tuple[int, ...], heads: int | None) -> tuple[Axes, str]:
    """Return the axes for bare names, and the reason, as the rest of a sentence."""
    default, other = HEADS_FIRST[-len(q) :], TOKENS_FIRST[-len(q) :]
    if len(q) == 2:
        return default, ", one head"
    places = {len(q) - 3: default, len(q) - 2: other}
    named = [place for place in places if heads and q[place] == heads and heads % k[place] == 0]
    if len(named) == 1:
        return places[named[0]], message(" to match the metadata's {heads} heads", heads=heads)
    grouped = [place for place in places if q[place] != k[place]]
    if len(grouped) == 1 and q[grouped[0]] % k[grouped[0]] == 0:
        place = grouped[0]
        return places[place], message(", since {q} query heads can share {k} key heads", q=q[place], k=k[place])
    return default, ""


def _fit(axes: Axes, array: Stored) -> Axes:
    """Return the axes without batch, or batch and head, if the array has fewer."""
    fitted = axes
    for optional in ("batch", "head"):
        if len(fitted) > len(array.shape):
            fitted = tuple(axis for axis in fitted if axis != optional)
    if len(fitted) != len(array.shape):
        raise CaptureError(
            "{where} has shape {shown}, but {axes} names only {count} axes",
            where=array.where,
            shown=array.shown,
            axes=_list(axes),
            count=len(axes),
        )
    return fitted


def _split(axis: str, length: int, heads: int | None) -> tuple[tuple[str, int], ...]:
    return (("head", heads), ("d_k", length // heads)) if axis == FLAT and heads else ((axis, length),)


def _list(axes: Axes) -> str:
    return f"[{', '.join(axes)}]"
