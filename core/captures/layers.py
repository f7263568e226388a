"""One layer of a capture: its sizes, checked, and how its scores were used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .capture import Layer
from .files import CaptureError, plain, quoted
from .layout import FLAT, Located, find_axes, locate
from .masks import Sizes, mask_note, mask_shape
from .metadata import LayerMetadata
from .naming import Axes, Pair, shared_mask
from .stored import FLOATS, Stored

LARGEST = 1 << 28  # numbers in one head's scores, queries and keys, or mask
MOST_HEADS = 1 << 14  # of a layer
MOST_TEXTS = 1 << 16  # of a batch


@dataclass(frozen=True)
class StoredLayer:
    """A layer and the location of its numbers in the files."""

    layer: Layer
    q: Located
    k: Located
    mask: Stored | None
    lengths: tuple[int, ...] | None  # of the texts of a padded batch without a mask


def build_layer(
    position: int,
    pair: Pair,
    metadata: LayerMetadata,
    arrays: Mapping[str, Stored],
    given: Axes | None,
    lengths: tuple[int, ...] | None,
) -> tuple[StoredLayer, list[str]]:
    """Return the layer of a pair of tensors, and a note for every assumption.

    `given` are the axes named by the user or the file. Raise CaptureError if the pair is not a valid layer.
    """
    q, k = arrays[pair.q], arrays[pair.k]
    for array in (q, k):
        _require_numbers(array)
        array.require_modest()
    axes, note = find_axes(q, k, pair, given, metadata.heads, metadata.d_k)
    notes = [] if note is None else [note]
    located_q = locate(q, axes, metadata.heads)
    located_k = locate(k, axes, _flat_kv_heads(q, k, axes, metadata))
    sizes = _sizes(located_q, located_k)
    _require_consistent(located_q, sizes, metadata)
    kv_heads = located_k.size("head")
    if metadata.kv_heads not in (None, kv_heads):
        notes.append(f"k has {kv_heads} heads, but the metadata says {metadata.kv_heads}; using {kv_heads}")
    if pair.words.projection and pair.inside:
        notes.append(
            f"{pair.words.q} and {pair.words.k} are used unchanged: rotary embedding and QK-norm, if the model has "
            "them, are not applied"
        )
    causal, causal_notes = _causal(metadata, sizes)
    mask, mask_notes = _mask(pair, metadata, arrays, sizes)
    notes += [*causal_notes, *mask_notes]
    padded = None
    if mask is None and not metadata.unmasked and lengths is not None and len(lengths) == sizes[0]:
        padded = lengths if min(lengths) < sizes[3] >= max(lengths) else None
    if padded is not None:
        notes.append("the file has lengths but no mask: keys beyond each text's length are treated as padding")
    layer = Layer(
        position=position,
        index=pair.index,
        name=metadata.name or plain(pair.label),
        heads=sizes[1],
        kv_heads=kv_heads,
        batch=sizes[0],
        queries=sizes[2],
        keys=sizes[3],
        d_k=located_q.size("d_k"),
        dtype=q.dtype,
        scale=metadata.scale,
        causal=causal,
        softcap=metadata.softcap,
        mask=None if mask is None else plain(mask.name),
    )
    return StoredLayer(layer, located_q, located_k, mask, padded), notes


def _require_numbers(array: Stored) -> None:
    """Raise CaptureError, with the reason, unless the array holds floating-point numbers."""
    if array.dtype in FLOATS:
        if 0 in array.shape:
            raise CaptureError(f"{array.where} is empty: its shape is {array.shown}")
        return
    if array.dtype == "object":
        reason = "holds pickled Python objects, which are never loaded"
    elif array.dtype == "void":
        reason = "has lost its type, as bfloat16 does in NumPy's formats: save it as .safetensors"
    elif array.dtype == "structured":
        reason = "is a structured array: save q and k as separate arrays"
    else:
        reason = f"holds {plain(array.dtype)}"
    raise CaptureError(f"{array.where} {reason}; must be one of {', '.join(FLOATS)}")


def _flat_kv_heads(q: Stored, k: Stored, axes: Axes, metadata: LayerMetadata) -> int | None:
    """Return the number of heads in flat keys: their width over that of a query head."""
    if FLAT not in axes or metadata.heads is None:
        return metadata.kv_heads
    place = axes.index(FLAT)
    return max(k.shape[place] * metadata.heads // q.shape[place], 1)


def _sizes(q: Located, k: Located) -> Sizes:
    """Return [batch, heads, queries, keys]; raise CaptureError if q and k do not match, or are too large."""
    where = f"{q.array.where} of shape {q.array.shown} and {quoted(k.array.name)} of {k.array.shown}"
    hint = "check the axes"
    for axis, problem in (("batch", "batch elements"), ("d_k", "numbers per vector (d_k)")):
        if q.size(axis) != k.size(axis):
            raise CaptureError(f"{where} have {q.size(axis)} and {k.size(axis)} {problem}; {hint}")
    heads, kv_heads = q.size("head"), k.size("head")
    if heads % kv_heads:
        raise CaptureError(f"{where}: {heads} query heads cannot share {kv_heads} key heads; {hint}")
    batch, queries, keys = q.size("batch"), q.size("token"), k.size("token")
    for words, count, most in (("heads", heads, MOST_HEADS), ("texts", batch, MOST_TEXTS)):
        if count > most:
            raise CaptureError(f"{where}: must have at most {most} {words}, not {count}; {hint}")
    for what, count in (
        (f"{queries} queries × {keys} keys make {queries * keys} scores per head", queries * keys),
        ("the queries and keys of one head have too many numbers", batch * (queries + keys) * q.size("d_k")),
    ):
        if count > LARGEST:
            raise CaptureError(f"{q.array.where}: {what}; must be at most {LARGEST}")
    return batch, heads, queries, keys


def _require_consistent(q: Located, sizes: Sizes, metadata: LayerMetadata) -> None:
    """Raise CaptureError if metadata and shape disagree: the axes are probably different ones."""
    heads, d_k = sizes[1], q.size("d_k")
    for words, expected, actual in ((f"{heads} heads", metadata.heads, heads), (f"d_k {d_k}", metadata.d_k, d_k)):
        if expected not in (None, actual):
            raise CaptureError(f"{q.array.where} has {words}, but the metadata says {expected}; check the axes")


def _causal(metadata: LayerMetadata, sizes: Sizes) -> tuple[Literal["top_left", "bottom_right"] | None, list[str]]:
    """Return the corner that a causal mask is aligned with; both are the same for a square."""
    if metadata.causal == "top_left" or metadata.causal == "bottom_right":
        return metadata.causal, []
    if metadata.causal is None:
        return None, ["the file does not specify whether attention is causal; assuming it is not"]
    if metadata.causal == "no":
        return None, []
    _, _, queries, keys = sizes
    if queries == keys:
        return "top_left", []
    return "top_left", [
        f"causal with {queries} queries and {keys} keys, alignment not specified; assuming top-left, like PyTorch's "
        "is_causal"
    ]


def _mask(
    pair: Pair, metadata: LayerMetadata, arrays: Mapping[str, Stored], sizes: Sizes
) -> tuple[Stored | None, list[str]]:
    """Return the layer's mask: the one named in the metadata, the one beside its tensors, or the shared one."""
    if metadata.unmasked:
        return None, []
    if metadata.mask is not None and metadata.mask not in arrays:
        raise CaptureError(
            f"{arrays[pair.q].where}: the metadata names the mask {quoted(metadata.mask)}, which is not in the file"
        )
    notes: list[str] = []
    name = metadata.mask or pair.mask
    if name is None:
        name = shared_mask(arrays)
        if name is None:
            return None, []
        notes.append(f"{quoted(name)} is used as the mask of every layer without its own")
    mask = arrays[name]
    if mask.format is None or (mask.format.kind not in "biuf" and mask.dtype not in FLOATS):
        raise CaptureError(f"{mask.where} holds {plain(mask.dtype)}; must be bool, integer or floating-point")
    mask.require_modest()
    shape = mask_shape(mask, sizes)
    if shape[0] * shape[2] * shape[3] > LARGEST:
        raise CaptureError(f"{mask.where} is too large; must have at most {LARGEST} numbers per head")
    note = mask_note(mask, sizes)
    return mask, notes if note is None else [*notes, note]
