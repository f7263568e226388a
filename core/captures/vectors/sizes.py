"""Find the queries and keys of a layer, and check that their sizes agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...message import message
from ...plain import plain, quoted
from ..beside.tensors import LARGEST
from ..files import CaptureError
from ..masks import Sizes
from ..metadata.layer import LayerMetadata
from ..naming import Axes, Pair
from ..stored import FLOATS, Stored
from .layout import FLAT, Located, find_axes, locate

MOST_HEADS = 1 << 14  # of a layer
_MOST_SCORES = 1 << 34  # of a head; they are never all in memory
MOST_TEXTS = 1 << 16  # of a batch


@dataclass(frozen=True)
class Vectors:
    """The queries and keys of a layer."""

    q: tuple[Located, ...]  # parts, whose components follow each other
    k: tuple[Located, ...]
    sizes: Sizes
    d_k: int
    notes: tuple[str, ...]  # what was assumed


def locate_vectors(pair: Pair, metadata: LayerMetadata, arrays: Mapping[str, Stored], given: Axes | None) -> Vectors:
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


def _further(array: Stored, axes: Axes, first: Located) -> Located:
    """Return the tensor of further components, whose heads may be shared: it may lack their axis."""
    if FLAT in axes:
        raise CaptureError("{where}: rotary components must have separate axes for heads and d_k", where=array.where)
    without = tuple(axis for axis in axes if axis != "head")
    if len(array.shape) not in (len(axes), len(without)):
        raise CaptureError(
            "{where} has shape {shown}; must have the axes of {name}",
            where=array.where,
            shown=array.shown,
            name=quoted(first.array.name),
        )
    part = locate(array, axes if len(array.shape) == len(axes) else without, None)
    for axis in ("batch", "token"):
        if part.size(axis) != first.size(axis):
            raise CaptureError(
                "{where} of shape {shown} and {name} of {other} must have the same batch and tokens",
                where=array.where,
                shown=array.shown,
                name=quoted(first.array.name),
                other=first.array.shown,
            )
    if first.size("head") % part.size("head"):
        raise CaptureError(
            "{where}: {heads} heads cannot share {parts}",
            where=array.where,
            heads=first.size("head"),
            parts=part.size("head"),
        )
    return part


def _require_numbers(array: Stored) -> None:
    """Raise CaptureError, with the reason, unless the array holds floating-point numbers."""
    if array.dtype in FLOATS:
        if 0 in array.shape:
            raise CaptureError("{where} is empty: its shape is {shown}", where=array.where, shown=array.shown)
        return
    if array.dtype == "object":
        reason = "holds pickled Python objects, which are never loaded"
    elif array.dtype == "void":
        reason = "has lost its type, as bfloat16 does in NumPy's formats: save it as .safetensors"
    elif array.dtype == "structured":
        reason = "is a structured array: save q and k as separate arrays"
    else:
        reason = message("holds {dtype}", dtype=plain(array.dtype))
    raise CaptureError(
        "{where} {reason}; must be one of {floats}", where=array.where, reason=reason, floats=", ".join(FLOATS)
    )


def _flat_kv_heads(q: Stored, k: Stored, axes: Axes, metadata: LayerMetadata) -> int | None:
    """Return the number of heads in flat keys: their width over that of a query head."""
    if FLAT not in axes or metadata.heads is None:
        return metadata.kv_heads
    place = axes.index(FLAT)
    return max(k.shape[place] * metadata.heads // q.shape[place], 1)


def _both(q: Located, k: Located) -> str:
    """Return which tensors these are, and their shapes, for messages."""
    return message(
        "{where} of shape {shown} and {name} of {other}",
        where=q.array.where,
        shown=q.array.shown,
        name=quoted(k.array.name),
        other=k.array.shown,
    )


def _require_as_wide(q: Located, k: Located) -> None:
    """Raise CaptureError if queries and keys have other numbers of components."""
    if q.size("d_k") != k.size("d_k"):
        raise CaptureError(
            "{where} have {of_q} and {of_k} numbers per vector (d_k); check the axes",
            where=_both(q, k),
            of_q=q.size("d_k"),
            of_k=k.size("d_k"),
        )


def _sizes(q: Located, k: Located) -> Sizes:
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
            raise CaptureError("{where}: {what}; must be at most {most}", where=q.array.where, what=what, most=most)
    return batch, heads, queries, keys


def _require_consistent(q: Located, sizes: Sizes, d_k: int, metadata: LayerMetadata) -> None:
    """Raise CaptureError if metadata and shape disagree: the axes are probably different ones."""
    heads = sizes[1]
    for words, expected, actual in (
        (message("{heads} heads", heads=heads), metadata.heads, heads),
        (f"d_k {d_k}", metadata.d_k, d_k),
    ):
        if expected not in (None, actual):
            raise CaptureError(
                "{where} has {words}, but the metadata says {expected}; check the axes",
                where=q.array.where,
                words=words,
                expected=expected,
            )
