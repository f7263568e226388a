"""One layer of a capture: its sizes, checked, and how its scores were used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..message import message
from .beside.evidence import locate_evidence
from .beside.roles import CROSS, EVIDENCE, find_roles
from .beside.tensors import LARGEST, Masking, hides_padding, masks_of, roles_of
from .capture import Layer, Meaning
from .files import CaptureError, plain, quoted
from .layout import FLAT, Located, find_axes, locate
from .masks import Sizes
from .metadata.layer import LayerMetadata
from .naming import Axes, Pair
from .stored import FLOATS, Stored

MOST_HEADS = 1 << 14  # of a layer
_MOST_SCORES = 1 << 34  # of a head; they are never all in memory
MOST_TEXTS = 1 << 16  # of a batch

_SELF = re.compile(r"self|encoder|transformer|model|(?:^|\.)(?:h|blocks?)\.\d")


@dataclass(frozen=True)
class StoredLayer:
    """A layer and the location of its numbers in the files."""

    layer: Layer
    q: tuple[Located, ...]  # parts, whose components follow each other
    k: tuple[Located, ...]
    masks: tuple[Masking, ...] = ()
    lengths: tuple[int, ...] | None = None  # of the texts of a padded batch without a mask
    roles: Mapping[str, Stored] = field(default_factory=dict[str, Stored])  # other arrays, by role
    evidence: Mapping[str, Located] = field(default_factory=dict[str, Located])  # v, o, lse and weights, by role


def build_layer(
    position: int,
    pair: Pair,
    metadata: LayerMetadata,
    arrays: Mapping[str, Stored],
    given: Axes | None,
    lengths: tuple[int, ...] | None,
    mask_true: Meaning | None = None,
) -> tuple[StoredLayer, list[str], set[str]]:
    """Return the layer of a pair of tensors, a note for every assumption, and the names of the tensors used.

    `given` are the axes, and `mask_true` is the meaning of masks, that the user named. Raise CaptureError if the pair
    is not a valid layer.
    """
    q, k = arrays[pair.q], arrays[pair.k]
    for array in (arrays[name] for name in pair.names):
        _require_numbers(array)
        array.require_modest()
    axes, note = find_axes(q, k, pair, given, metadata.heads, None if pair.rotary else metadata.d_k)
    notes = [] if note is None else [note]
    located_q, located_k = [locate(q, axes, metadata.heads)], [locate(k, axes, _flat_kv_heads(q, k, axes, metadata))]
    if pair.rotary is not None:
        for name, parts in zip(pair.rotary, (located_q, located_k), strict=True):
            parts.append(_further(arrays[name], axes, parts[0]))
    sizes = _sizes(located_q[0], located_k[0])
    d_k = sum(part.size("d_k") for part in located_q)
    _require_consistent(located_q[0], sizes, d_k, metadata)
    kv_heads = located_k[0].size("head")
    if metadata.kv_heads not in (None, kv_heads):
        notes.append(
            message(
                "k has {kv_heads} heads, but the metadata says {said}; using {kv_heads}",
                kv_heads=kv_heads,
                said=metadata.kv_heads,
            )
        )
    if pair.words.projection and pair.inside:
        notes.append(
            message(
                "{q} and {k} are used unchanged: rotary embedding and QK-norm, if the model has them, are "
                "not applied",
                q=pair.words.q,
                k=pair.words.k,
            )
        )
    found = find_roles(pair, arrays)
    modules = f"{pair.before} {metadata.name or ''}".lower()
    cross = metadata.cross if metadata.cross is not None else any(word in modules for word in CROSS)
    masks, mask_names, mask_notes = masks_of(pair, found, metadata, arrays, sizes, mask_true)
    roles, refusal, role_notes = roles_of(pair, found, arrays, sizes, metadata)
    causal, alignment, unaligned, causal_notes = _causal(metadata, sizes, "rows" in roles)
    notes += [*causal_notes, *mask_notes, *role_notes]
    evidence = {
        role: located
        for role, name in found.roles.items()
        if role in EVIDENCE
        and (located := locate_evidence(role, pair.word(name), arrays[name], located_q[0], located_k[0]))
    }
    notes += [
        message("{name} is used for every layer without its own", name=quoted(array.name))
        for role, array in roles.items()
        if role in found.shared or (role == "slopes" and "bias" in found.shared)
    ]
    padded = None
    said = metadata.cross is not None or causal is not None or lengths is not None or _SELF.search(modules)
    if masks and not cross and sizes[2] == sizes[3] and not said:
        notes.append(
            "taken as self-attention: rows of tokens that no query sees are left out; metadata 'attention' says it, "
            "self or cross"
        )
    placed = causal is not None or alignment is not None or "rows" in roles or "query_mask" in found.roles
    if masks and not cross and sizes[2] != sizes[3] and not placed and metadata.cross is None:
        notes.append(
            message(
                "taken as cross-attention, with {queries} queries and {keys} keys: every query counts; "
                "metadata 'rows' or 'alignment' tell which tokens they are, and 'attention' that they are "
                "of another text",
                queries=sizes[2],
                keys=sizes[3],
            )
        )
    known = hides_padding(masks, sizes, arrays.get(found.roles.get("causal_mask", "")))
    if not known and not metadata.unmasked and lengths is not None:
        if len(lengths) == sizes[0] and max(lengths) <= sizes[3]:
            padded = lengths if min(lengths) < sizes[3] else None
        elif not cross:  # those of the other text, whose keys have none
            refusal = refusal or message(
                "the metadata's lengths do not match {batch} texts of {keys} tokens", batch=sizes[0], keys=sizes[3]
            )
    if padded is not None:
        of_padding = " of padding" if masks else ""
        notes.append(
            message(
                "the file has lengths but no mask{of_padding}: keys beyond each text's length are treated as padding",
                of_padding=of_padding,
            )
        )
    layer = Layer(
        position=position,
        index=pair.index if pair.numbered or metadata.index is None else metadata.index,
        name=metadata.name or plain(pair.label),
        heads=sizes[1],
        kv_heads=kv_heads,
        batch=sizes[0],
        queries=sizes[2],
        keys=sizes[3],
        d_k=d_k,
        dtype=q.dtype,
        scale=metadata.scale,
        causal=causal,
        softcap=metadata.softcap,
        mask=plain(masks[0].array.name) if masks else None,
        head_scales=metadata.head_scales,
        prescaled=metadata.prescaled,
        window=metadata.window,
        chunk=metadata.chunk,
        cross=cross,
        bias=_name(roles, "bias") or _name(roles, "slopes"),
        sinks=_name(roles, "sinks"),
        scales=_name(roles, "scales"),
        rows=_name(roles, "rows"),
        alignment=alignment or "top_left",
        evidence=tuple(role for role in EVIDENCE if role in evidence),
        scores=metadata.scores,
        numbered=pair.numbered or metadata.index is not None,
        refusal=metadata.refusal or found.refusal or refusal or unaligned,
        q=tuple(each.described() for each in located_q),
        k=tuple(each.described() for each in located_k),
    )
    used = {*pair.names, *mask_names, *(array.name for array in roles.values())}
    used |= {located.array.name for located in evidence.values()}
    return StoredLayer(layer, tuple(located_q), tuple(located_k), masks, padded, roles, evidence), notes, used


def _name(roles: Mapping[str, Stored], role: str) -> str | None:
    return plain(roles[role].name) if role in roles else None


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


def _sizes(q: Located, k: Located) -> Sizes:
    """Return [batch, heads, queries, keys]; raise CaptureError if q and k do not match, or are too large."""
    where = message(
        "{where} of shape {shown} and {name} of {other}",
        where=q.array.where,
        shown=q.array.shown,
        name=quoted(k.array.name),
        other=k.array.shown,
    )
    hint = "check the axes"
    for axis, problem in (("batch", "batch elements"), ("d_k", "numbers per vector (d_k)")):
        if q.size(axis) != k.size(axis):
            raise CaptureError(
                "{where} have {of_q} and {of_k} {problem}; {hint}",
                where=where,
                of_q=q.size(axis),
                of_k=k.size(axis),
                problem=problem,
                hint=hint,
            )
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


Corner: TypeAlias = Literal["top_left", "bottom_right"]


def _causal(
    metadata: LayerMetadata, sizes: Sizes, sampled: bool
) -> tuple[Corner | None, Corner | None, str, list[str]]:
    """Return the corner of a causal mask, that of queries and keys, why it cannot be told, and notes.

    Both corners are the same for a square. With `sampled` queries their positions are known.
    """
    _, _, queries, keys = sizes
    found, said = metadata.causal, metadata.alignment
    notes: list[str] = []
    if found is None:
        notes.append("the file does not specify whether attention is causal; assuming it is not")
    if found == "top_left" or found == "bottom_right":
        return found, found, "", notes
    square = queries == keys or sampled
    if metadata.flash and not square and found in ("yes", "no", None):
        notes.append("window_size is taken as flash-attention's: the last query is aligned with the last key")
    if found == "yes" and (said or square):
        return said or "top_left", said or "top_left", "", notes
    if found == "yes":
        notes.append(
            message(
                "causal with {queries} queries and {keys} keys, alignment not specified; assuming "
                "top-left, like PyTorch's is_causal",
                queries=queries,
                keys=keys,
            )
        )
        return "top_left", "top_left", "", notes
    unaligned = ""
    if (metadata.window or metadata.chunk) and not (said or square):
        unaligned = message(
            "metadata 'alignment' is missing for a window or chunks, with {queries} queries and {keys} keys",
            queries=queries,
            keys=keys,
        )
    return None, said, unaligned, notes
