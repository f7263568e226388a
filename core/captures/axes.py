"""The axes of stored arrays: their order, which head is where, and whether the sizes of a layer's tensors agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..message import message, plain, quoted
from .capture import Sizes, Tensor
from .files import CaptureError
from .files.stored import FLOATS, AnyArray, AtHand, Opener, Stored
from .metadata import LayerMetadata
from .naming import HEADS_FIRST, TOKENS_FIRST, Axes, NamePair

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
LARGEST = 1 << 28  # numbers in one head's scores, queries and keys, mask, or bias
MOST_HEADS = 1 << 14  # of a layer
_MOST_SCORES = 1 << 34  # of a head; they are never all in memory
MOST_TEXTS = 1 << 16  # of a batch
_TOGETHER = "batch*head"  # as nn.MultiheadAttention multiplies them
_AFTER_PROJECTION = ("out", "output")  # where heads are side by side, these are more than attention's output


@dataclass(frozen=True)
class NamedAxes:
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

    def read_head(self, opener: Opener, head: int, at_hand: AtHand) -> AnyArray:
        """Return one head, [batch, token, d_k], in the stored type."""
        along = self.axes.index("head") if "head" in self.axes else None
        values = self.array.read(opener, self.shape, along, head, at_hand)
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
    q: Stored, k: Stored, pair: NamePair, given: Axes | None, heads: int | None, d_k: int | None
) -> tuple[Axes, str | None]:
    """Return the axes of a pair, and a note if they were assumed.

    They come from, in this order: the given axes, a flat projection, the naming convention, the number of heads, the
    axis in which grouped queries and keys differ, and finally the default [batch, head, token, d_k].
    """
    ndim = len(q.shape)
    if len(k.shape) != ndim or not 2 <= ndim <= 4:
        raise q.error(
            "{where} has shape {shown} and its keys {of_keys}; both must be [batch, head, token, d_k], "
            "[head, token, d_k] or [token, d_k]",
            of_keys=k.shown,
        )
    if given is not None:
        return _fit(given, q), None
    if heads is not None and ndim < 4 and _is_flat(q.shape, heads, d_k):
        return ("batch", "token", FLAT)[-ndim:], None
    if pair.words.projection and pair.inside and ndim == 3 and heads is None:
        raise q.error(
            "{where} has shape {shown}, like a projection with concatenated heads: add heads (and "
            "kv_heads) to the metadata, or name the axes if they are different"
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


def locate(array: Stored, axes: Axes, heads: int | None) -> NamedAxes:
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
            raise array.error(
                "{where} holds {length} numbers per token, which {heads} heads cannot share",
                length=length,
                heads=heads,
            )
        else:
            named.append((FLAT, length))
    if array.fortran:
        named.reverse()
    split = [part for axis, length in named for part in _split(axis, length, heads)]
    return NamedAxes(array, tuple(axis for axis, _ in split), tuple(length for _, length in split))


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
        raise array.error(
            "{where} has shape {shown}, but {axes} names only {count} axes", axes=_list(axes), count=len(axes)
        )
    return fitted


def _split(axis: str, length: int, heads: int | None) -> tuple[tuple[str, int], ...]:
    return (("head", heads), ("d_k", length // heads)) if axis == FLAT and heads else ((axis, length),)


def _list(axes: Axes) -> str:
    return f"[{', '.join(axes)}]"


@dataclass(frozen=True)
class Vectors:
    """The queries and keys of a layer."""

    q: tuple[NamedAxes, ...]  # parts, whose components follow each other
    k: tuple[NamedAxes, ...]
    sizes: Sizes
    d_k: int
    notes: tuple[str, ...]  # what was assumed


def locate_vectors(
    pair: NamePair, metadata: LayerMetadata, arrays: Mapping[str, Stored], given: Axes | None
) -> Vectors:
    """Return the queries and keys of a pair, with the `given` axes, if any; raise CaptureError if they do not fit."""
    q, k = arrays[pair.q], arrays[pair.k]
    for array in (arrays[name] for name in pair.names):
        _require_numbers(array)
        array.require_modest()
    axes, note = find_axes(q, k, pair, given, metadata.heads, None if pair.rotary else metadata.d_k)
    of_q, of_k = [locate(q, axes, metadata.heads)], [locate(k, axes, _flat_kv_heads(q, k, axes, metadata))]
    if pair.rotary is not None:
        for name, parts in zip(pair.rotary, (of_q, of_k), strict=True):
            parts.append(_further(arrays[name], axes, parts[0]))
    sizes = _sizes(of_q[0], of_k[0])
    _require_as_wide(of_q[-1], of_k[-1])
    d_k = sum(part.size("d_k") for part in of_q)
    _require_consistent(of_q[0], sizes, d_k, metadata)
    return Vectors(tuple(of_q), tuple(of_k), sizes, d_k, () if note is None else (note,))


def _further(array: Stored, axes: Axes, first: NamedAxes) -> NamedAxes:
    """Return the tensor of further components, whose heads may be shared: it may lack their axis."""
    if FLAT in axes:
        raise array.error("{where}: rotary components must have separate axes for heads and d_k")
    without = tuple(axis for axis in axes if axis != "head")
    if len(array.shape) not in (len(axes), len(without)):
        raise array.error("{where} has shape {shown}; must have the axes of {name}", name=quoted(first.array.name))
    part = locate(array, axes if len(array.shape) == len(axes) else without, None)
    for axis in ("batch", "token"):
        if part.size(axis) != first.size(axis):
            raise array.error(
                "{where} of shape {shown} and {name} of {other} must have the same batch and tokens",
                name=quoted(first.array.name),
                other=first.array.shown,
            )
    if first.size("head") % part.size("head"):
        raise array.error(
            "{where}: {heads} heads cannot share {parts}", heads=first.size("head"), parts=part.size("head")
        )
    return part


def _require_numbers(array: Stored) -> None:
    """Raise CaptureError, with the reason, unless the array holds floating-point numbers."""
    if array.dtype in FLOATS:
        if 0 in array.shape:
            raise array.error("{where} is empty: its shape is {shown}")
        return
    if array.dtype == "object":
        reason = "holds pickled Python objects, which are never loaded"
    elif array.dtype == "void":
        reason = "has lost its type, as bfloat16 does in NumPy's formats: save it as .safetensors"
    elif array.dtype == "structured":
        reason = "is a structured array: save q and k as separate arrays"
    else:
        reason = message("holds {dtype}", dtype=plain(array.dtype))
    raise array.error("{where} {reason}; must be one of {floats}", reason=reason, floats=", ".join(FLOATS))


def _flat_kv_heads(q: Stored, k: Stored, axes: Axes, metadata: LayerMetadata) -> int | None:
    """Return the number of heads in flat keys: their width over that of a query head."""
    if FLAT not in axes or metadata.heads is None:
        return metadata.kv_heads
    place = axes.index(FLAT)
    return max(k.shape[place] * metadata.heads // q.shape[place], 1)


def _both(q: NamedAxes, k: NamedAxes) -> str:
    """Return which tensors these are, and their shapes, for messages."""
    return message(
        "{where} of shape {shown} and {name} of {other}",
        where=q.array.where,
        shown=q.array.shown,
        name=quoted(k.array.name),
        other=k.array.shown,
    )


def _require_as_wide(q: NamedAxes, k: NamedAxes) -> None:
    """Raise CaptureError if queries and keys have other numbers of components."""
    if q.size("d_k") != k.size("d_k"):
        raise CaptureError(
            "{where} have {of_q} and {of_k} numbers per vector (d_k); check the axes",
            where=_both(q, k),
            of_q=q.size("d_k"),
            of_k=k.size("d_k"),
        )


def _sizes(q: NamedAxes, k: NamedAxes) -> Sizes:
    """Return [batch, heads, queries, keys]; raise CaptureError if q and k do not match, or are too large."""
    where = _both(q, k)
    if q.size("batch") != k.size("batch"):
        raise CaptureError(
            "{where} have {of_q} and {of_k} batch elements; check the axes",
            where=where,
            of_q=q.size("batch"),
            of_k=k.size("batch"),
        )
    _require_as_wide(q, k)
    hint = "check the axes"
    heads, kv_heads = q.size("head"), k.size("head")
    if heads % kv_heads:
        raise CaptureError(
            "{where}: {heads} query heads cannot share {kv_heads} key heads; {hint}",
            where=where,
            heads=heads,
            kv_heads=kv_heads,
            hint=hint,
        )
    batch, queries, keys = q.size("batch"), q.size("token"), k.size("token")
    for words, count, most in (("heads", heads, MOST_HEADS), ("texts", batch, MOST_TEXTS)):
        if count > most:
            raise CaptureError(
                "{where}: must have at most {most} {words}, not {count}; {hint}",
                where=where,
                most=most,
                words=words,
                count=count,
                hint=hint,
            )
    for what, count, most in (
        (
            message(
                "{queries} queries × {keys} keys make {scores} scores per head",
                queries=queries,
                keys=keys,
                scores=queries * keys,
            ),
            queries * keys,
            _MOST_SCORES,
        ),
        ("the queries and keys of one head have too many numbers", batch * (queries + keys) * q.size("d_k"), LARGEST),
    ):
        if count > most:
            raise q.array.error("{where}: {what}; must be at most {most}", what=what, most=most)
    return batch, heads, queries, keys


def _require_consistent(q: NamedAxes, sizes: Sizes, d_k: int, metadata: LayerMetadata) -> None:
    """Raise CaptureError if metadata and shape disagree: the axes are probably different ones."""
    heads = sizes[1]
    for words, expected, actual in (
        (message("{heads} heads", heads=heads), metadata.heads, heads),
        (f"d_k {d_k}", metadata.d_k, d_k),
    ):
        if expected not in (None, actual):
            raise q.array.error(
                "{where} has {words}, but the metadata says {expected}; check the axes",
                words=words,
                expected=expected,
            )


def locate_evidence(role: str, word: str, array: Stored, q: NamedAxes, k: NamedAxes) -> NamedAxes | None:
    """Return the array of a role (v, o, lse or weights) with four axes, or None if its shape fits no order of them.

    Axes are in the order of q, or of k for v; lse is [batch, head, token] and weights are [batch, head, token, key],
    which is the last axis here, and may be as long as the cache that the keys are in. `word` is the last word of the
    array's name.
    """
    if array.dtype not in FLOATS or 0 in array.shape or (array.fortran and len(array.shape) > 1):
        return None
    side = k if role == "v" else q
    shape = array.shape
    if role == "lse" and not (len(shape) == 4 and shape[-1] == 1):
        shape = (*shape, 1)
    width = {"lse": 1, "weights": max(k.size("token"), *shape[-1:])}.get(role)
    counts = [q.size("head")]
    if role == "v":  # side by side, heads are those of q only if they are then as wide as those of k
        of_q = shape[-1:] == (q.size("head") * k.size("d_k"),)
        counts = [*counts, k.size("head")] if of_q else [k.size("head"), *counts]
    for axes in _orders(role, word, side):
        for heads in counts:
            found = _taken_apart(axes, shape, side.size("batch"), heads)
            sizes = dict(found)
            fits = (
                len(axes) == len(shape)
                and 0 not in sizes.values()
                and sizes.get("batch", 1) == side.size("batch")
                and sizes.get("head", 1) == heads
                and sizes["token"] == side.size("token")
                and sizes["d_k"] == (width or sizes["d_k"])
            )
            if fits:
                return NamedAxes(array, tuple(sizes), tuple(sizes.values()))
    return None


def _orders(role: str, word: str, side: NamedAxes) -> list[Axes]:
    """Return the orders of axes to try."""
    orders: list[Axes] = [HEADS_FIRST, TOKENS_FIRST]
    if role in ("v", "o") and "head" in side.axes and side.axes.index("head") > side.axes.index("token"):
        orders.reverse()
    if role == "weights":
        del orders[1]
    fewer = [tuple(axis for axis in order if axis not in without) for without in _MISSING for order in orders]
    fewer.append((_TOGETHER, "token", "d_k"))
    flat: list[Axes] = [("batch", "token", FLAT), ("token", FLAT)]
    if role not in ("v", "o") or word in _AFTER_PROJECTION:
        return fewer
    return [*flat, *fewer] if len(side.array.shape) < len(side.axes) else [*fewer, *flat]


_MISSING: tuple[Axes, ...] = ((), ("batch",), ("head",), ("batch", "head"))


def _taken_apart(axes: Axes, shape: tuple[int, ...], batch: int, heads: int) -> list[tuple[str, int]]:
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
