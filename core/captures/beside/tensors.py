"""The tensors of a layer beside its queries and keys, checked against their sizes: masks, biases, sinks, scales, …"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...message import message
from ...plain import plain, quoted
from ..capture import Meaning
from ..files import CaptureError
from ..masks import Sizes, mask_note, mask_shape, query_mask
from ..metadata.layer import LayerMetadata
from ..naming import Pair
from ..stored import FLOATS, Said, Stored, said
from .roles import EVIDENCE, MASKS, Found, meaning_of

LARGEST = 1 << 28  # numbers in one head's scores, queries and keys, mask, or bias


@dataclass(frozen=True)
class Masking:
    """A mask of a layer, and what True means in it; None if its values have to tell."""

    array: Stored
    meaning: Meaning | None
    sure: bool = True  # whether the file or the user says so
    of_queries: bool = False  # whether it tells which queries count, and not which keys they see


def masks_of(
    pair: Pair,
    found: Found,
    metadata: LayerMetadata,
    arrays: Mapping[str, Stored],
    sizes: Sizes,
    mask_true: Meaning | None,
) -> tuple[tuple[Masking, ...], set[str], list[str]]:
    """Return the layer's masks, the names of tensors that are masks, and notes.

    The mask is the one named in the metadata, the one beside the layer's tensors, or the shared one; masks of the
    other roles are applied in addition.
    """
    names = {role: found.roles[role] for role in MASKS if role in found.roles}
    if metadata.unmasked:
        return (), {*names.values()}, []
    if metadata.mask is not None and metadata.mask not in arrays:
        raise CaptureError(
            "{where}: the metadata names the mask {mask}, which is not in the file",
            where=arrays[pair.q].where,
            mask=quoted(metadata.mask),
        )
    used, notes, masks = {*names.values()}, list[str](), list[Masking]()
    shared = found.shared
    if metadata.mask is not None and metadata.mask not in names.values():
        names["mask"] = metadata.mask
        used.add(metadata.mask)
        shared -= {"mask"}
    told, sampled = mask_true or metadata.mask_true, "rows" in found.roles or metadata.rows is not None
    for role, name in names.items():
        if role in shared:
            notes.append(message("{name} is used as the mask of every layer without its own", name=quoted(name)))
        masking, own = _masking(arrays[name], role, pair.word(name), told, sizes, sampled)
        masks.append(masking)
        notes += own
    return tuple(masks), used, notes


def _masking(
    mask: Stored, role: str, word: str, told: Meaning | None, sizes: Sizes, sampled: bool
) -> tuple[Masking, list[str]]:
    """Return a mask of this role and last word of its name, and notes; raise CaptureError if it cannot be one.

    `told` is what the user or the file says that True means, and `sampled` whether only some queries are stored.
    """
    if mask.format is None or (mask.format.kind not in "biuf" and mask.dtype not in FLOATS):
        raise CaptureError(
            "{where} holds {dtype}; must be bool, integer or floating-point",
            where=mask.where,
            dtype=plain(mask.dtype),
        )
    mask.require_modest()
    meaning = told or meaning_of(word, "f" if mask.dtype in FLOATS else mask.format.kind)
    of_queries = role == "query_mask"
    masking = Masking(mask, meaning, meaning is None or told is not None, of_queries)
    notes: list[str | None] = []
    if told is None and meaning == "hidden":
        notes.append(
            message(
                "{name}: True is taken as hidden, as in nn.MultiheadAttention; see --mask-true",
                name=quoted(mask.name),
            )
        )
    elif told == "visible" and role == "padding":
        notes.append(
            message(
                "{name}: True is taken as visible, as said of all masks; in nn.MultiheadAttention it is hidden",
                name=quoted(mask.name),
            )
        )
    if of_queries:
        query_mask(mask, sizes, sampled)
    else:
        shape = mask_shape(mask, sizes)
        if shape[0] * shape[2] * shape[3] > LARGEST:
            raise CaptureError(
                "{where} is too large; must have at most {largest} numbers per head",
                where=mask.where,
                largest=LARGEST,
            )
        notes.append(mask_note(mask, sizes))
    return masking, [note for note in notes if note is not None]


def hides_padding(masks: Iterable[Masking], sizes: Sizes, causal: Stored | None) -> bool:
    """Return whether a mask may tell the padding of each text; one of `causal` attention alone does not."""
    return any(
        not each.of_queries and each.array != causal and (sizes[0] == 1 or mask_shape(each.array, sizes)[0] > 1)
        for each in masks
    )


def roles_of(
    pair: Pair, found: Found, arrays: Mapping[str, Stored], sizes: Sizes, metadata: LayerMetadata
) -> tuple[dict[str, Stored], str, list[str]]:
    """Return the arrays of a layer that are understood, by role; why it is refused for others, or empty; and notes.

    Numbers of the metadata count as arrays.
    """
    there = {role: arrays[name] for role, name in found.roles.items() if role not in (*MASKS, *EVIDENCE)}
    refusal, notes = "", list[str]()
    if "bias" in there and pair.word(there["bias"].name) == "alibi" and _is_of_heads(there["bias"], sizes):
        there["slopes"] = there.pop("bias")
        if "slopes" in found.roles:
            refusal = message(
                "{name} and 'alibi' both hold slopes; keep one of them", name=quoted(found.roles["slopes"])
            )
    for role, values in (("sinks", metadata.sinks), ("slopes", metadata.slopes), ("rows", metadata.rows)):
        if values is not None:
            name = {"slopes": "alibi_slopes"}.get(role, role)
            if role in there:
                refusal = message(
                    "{what} and the metadata both give {role}; keep one of them", what=there[role].what, role=role
                )
            there[role] = said(arrays[pair.q].path, name, values)
    understood: dict[str, Stored] = {}
    for role, array in there.items():
        try:
            array.require_modest()
            fault = _fault(role, array, sizes, "rows" in there, metadata)
        except CaptureError as error:
            fault = str(error).removeprefix(array.where).strip()
        if not fault:
            understood[role] = array
            note = {"scales": scales_note, "bias": _bias_note}.get(role, _no_note)(array, sizes)
            notes += [] if note is None else [note]
        else:
            refusal = refusal or message(
                "{what} of shape {shown} {fault}", what=array.what, shown=array.shown, fault=fault
            )
    if metadata.head_scales is not None:
        if metadata.scale is not None:
            refusal = refusal or "the metadata has both scale and head_scales; keep one of them"
        elif len(metadata.head_scales) != sizes[1]:
            refusal = refusal or message(
                "metadata head_scales has {count} numbers for {sizes} heads",
                count=len(metadata.head_scales),
                sizes=sizes[1],
            )
    return understood, refusal, notes


def _fault(role: str, array: Stored, sizes: Sizes, sampled: bool, metadata: LayerMetadata) -> str:
    """Return what is wrong with an array of a role, or empty; raise CaptureError for a shape that does not fit."""
    _, heads, queries, _ = sizes
    if role == "rows":
        whole = array.format is not None and array.format.kind in "iu"
        return (
            ""
            if whole and array.shape == (queries,)
            else message("must be {queries} whole numbers, the position of each query", queries=queries)
        )
    if role in ("slopes", "sinks") and isinstance(array, Said):
        return "" if array.shape == (heads,) else message("must hold a number for each of {heads} heads", heads=heads)
    if array.dtype not in FLOATS:
        return "must hold floating-point numbers"
    if role == "bias":
        shape = mask_shape(array, _bias_sizes(array, sizes, sampled), heads_first=True)
        return (
            message("must have at most {largest} numbers per head", largest=LARGEST)
            if shape[0] * shape[2] * shape[3] > LARGEST
            else ""
        )
    if role in ("slopes", "sinks"):
        return (
            "" if _is_of_heads(array, sizes) else message("must hold a number for each of {heads} heads", heads=heads)
        )
    if role != "scales":
        return ""
    if array.fortran and len(array.shape) > 1:
        return "is in Fortran order; save it in C order"
    if scales_shape(array.shape, sizes) is None:
        return message(
            "must be [heads], [queries], [heads, queries] or [batch, heads, queries, 1], here {heads} "
            "heads, {queries} queries and {sizes} texts; axes may be 1",
            heads=heads,
            queries=queries,
            sizes=sizes[0],
        )
    if metadata.scale is not None or metadata.head_scales is not None:
        return "and the metadata both give the scale; keep one of them"
    return ""


def _is_of_heads(array: Stored, sizes: Sizes) -> bool:
    """Return whether an array has one number for each head."""
    return math.prod(array.shape) == sizes[1] == max(array.shape, default=1)


def _bias_sizes(bias: Stored, sizes: Sizes, sampled: bool) -> Sizes:
    """Return the sizes that a bias must have: of sampled queries, it may have rows for all."""
    batch, heads, queries, keys = sizes
    whole = sampled and len(bias.shape) >= 2 and bias.shape[-2] == keys
    return batch, heads, keys if whole else queries, keys


def _bias_note(bias: Stored, sizes: Sizes) -> str | None:
    """Return a note if the first axis of a bias may be that of texts or of heads."""
    if len(bias.shape) != 3 or not sizes[0] == sizes[1] == bias.shape[0] > 1:
        return None
    return message("{name}: axes assumed to be [head, queries, keys]", name=quoted(bias.name))


def _no_note(array: Stored, sizes: Sizes) -> None:
    return None


def scales_shape(shape: tuple[int, ...], sizes: Sizes) -> tuple[int, int, int] | None:
    """Return the shape of multipliers as (batch or 1, heads or 1, queries or 1); None if it cannot be told."""
    fits = _scales_shapes(shape, sizes)
    unclear = len(shape) == 1 and sizes[1] == sizes[2] == shape[0] > 1
    return fits[0] if fits and not unclear else None


def scales_note(array: Stored, sizes: Sizes) -> str | None:
    """Return a note if the axes of multipliers are ambiguous."""
    fits = _scales_shapes(array.shape, sizes)
    if len(fits) < 2:
        return None
    axes = [axis for axis, length in zip(("batch", "heads", "queries"), fits[0], strict=True) if length > 1]
    return message(
        "{name}: axes assumed to be [{axes}]; [batch, heads, queries, 1] is unambiguous",
        name=quoted(array.name),
        axes=", ".join(axes),
    )


def _scales_shapes(shape: tuple[int, ...], sizes: Sizes) -> list[tuple[int, int, int]]:
    """Return the meanings of the shape, (batch or 1, heads or 1, queries or 1), the most common first."""
    lengths = dict(zip("bhq", sizes, strict=False)) | {"1": 1}
    orders = {0: [""], 1: ["h", "q", "b"], 2: ["hq", "bq", "bh", "q1"], 3: ["bhq", "hq1"], 4: ["bhq1"]}
    found: dict[tuple[int, int, int], None] = {}
    for order in orders.get(len(shape), [])[:: -1 if shape[-1:] == (1,) and len(shape) == 3 else 1]:
        if all(length in (1, lengths[axis]) for axis, length in zip(order, shape, strict=True)):
            own = dict(zip(order, shape, strict=True))
            found[own.get("b", 1), own.get("h", 1), own.get("q", 1)] = None
    return list(found)
