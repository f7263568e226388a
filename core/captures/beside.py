"""The tensors of a layer beside its queries and keys, checked against their sizes: masks, biases, sinks, scales, …"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .capture import Meaning
from .files import CaptureError, plain, quoted
from .masks import Sizes, mask_note, mask_shape
from .metadata import LayerMetadata
from .naming import EVIDENCE, Found, Pair
from .stored import FLOATS, Stored

_RESULTS = re.compile(
    r"score|prob|weight|pattern|attn|attention|logit|value|out|context|hidden|proj|norm|hook_|^[vozVOZ]$|^[QK]cur$|query|key",
    re.IGNORECASE,
)  # words of results of attention, and of queries and keys that are not used
LARGEST = 1 << 28  # numbers in one head's scores, queries and keys, mask, or bias


@dataclass(frozen=True)
class Masking:
    """A mask of a layer, and what True means in it; None if its values have to tell."""

    array: Stored
    meaning: Meaning | None
    sure: bool = True  # whether the file or the user says so


def masks_of(
    pair: Pair,
    found: Found,
    metadata: LayerMetadata,
    arrays: Mapping[str, Stored],
    sizes: Sizes,
    mask_true: Meaning | None,
) -> tuple[tuple[Masking, ...], set[str], list[str]]:
    """Return the layer's masks, the names of tensors that are masks, and notes.

    The mask is the one named in the metadata, the one beside the layer's tensors, or the shared one; a mask of
    padding keys is applied in addition.
    """
    names = {role: found.roles[role] for role in ("mask", "padding") if role in found.roles}
    if metadata.unmasked:
        return (), {*names.values()}, []
    if metadata.mask is not None and metadata.mask not in arrays:
        raise CaptureError(
            f"{arrays[pair.q].where}: the metadata names the mask {quoted(metadata.mask)}, which is not in the file"
        )
    used, notes, masks = {*names.values()}, list[str](), list[Masking]()
    shared = found.shared
    if metadata.mask is not None:
        names = {"mask": metadata.mask}
        used.add(metadata.mask)
        shared = frozenset[str]()
    for role, name in names.items():
        if role in shared:
            notes.append(f"{quoted(name)} is used as the mask of every layer without its own")
        mask = arrays[name]
        if mask.format is None or (mask.format.kind not in "biuf" and mask.dtype not in FLOATS):
            raise CaptureError(f"{mask.where} holds {plain(mask.dtype)}; must be bool, integer or floating-point")
        mask.require_modest()
        shape = mask_shape(mask, sizes)
        if shape[0] * shape[2] * shape[3] > LARGEST:
            raise CaptureError(f"{mask.where} is too large; must have at most {LARGEST} numbers per head")
        note = mask_note(mask, sizes)
        notes += [] if note is None else [note]
        meaning: Meaning | None = mask_true or metadata.mask_true
        if meaning is None and role == "padding" and mask.dtype not in FLOATS:
            meaning = "hidden"
            notes.append(f"{quoted(name)}: True is taken as hidden, as in nn.MultiheadAttention; see --mask-true")
        elif meaning is None and name.rpartition(".")[2].partition("-")[0] != "attn_mask":
            meaning = "visible"
        masks.append(Masking(mask, meaning, meaning is None or (mask_true or metadata.mask_true) is not None))
    return tuple(masks), used, notes


def roles_of(
    found: Found, arrays: Mapping[str, Stored], sizes: Sizes, metadata: LayerMetadata
) -> tuple[dict[str, Stored], str]:
    """Return the tensors of a layer that are understood, by role, and why it is refused for others; or empty."""
    batch, heads, queries, _ = sizes
    understood: dict[str, Stored] = {}
    refusal = ""
    for role, name in found.roles.items():
        if role in ("mask", "padding"):
            continue
        array, fault = arrays[name], ""
        count = math.prod(array.shape)
        floats = array.dtype in FLOATS
        per_head = count == heads and max(array.shape, default=1) == heads
        try:
            array.require_modest()
            if role == "rows":
                whole = array.format is not None and array.format.kind in "iu"
                if not whole or array.shape != (queries,):
                    fault = f"must be {queries} whole numbers, the position of each query"
            elif not floats:
                fault = "must hold floating-point numbers"
            elif role == "bias":
                shape = mask_shape(array, _bias_sizes(array, sizes, "rows" in found.roles), heads_first=True)
                if shape[0] * shape[2] * shape[3] > LARGEST:
                    fault = f"must have at most {LARGEST} numbers per head"
            elif role in ("slopes", "sinks") and not per_head:
                fault = f"must hold a number for each of {heads} heads"
            elif role == "scales" and scales_shape(array.shape, heads, queries) is None:
                fault = f"must be [heads], [queries] or [heads, queries], here {heads} and {queries}"
            elif role == "scales" and (metadata.scale is not None or metadata.head_scales is not None):
                fault = "and the metadata both give the scale; keep one of them"
        except CaptureError as error:
            fault = str(error).removeprefix(array.where).strip()
        if not fault and role in EVIDENCE:
            wanted = {"lse": (batch, heads, queries), "weights": sizes}.get(role)
            if wanted is not None and math.prod(wanted) != count:
                continue
        if not fault:
            understood[role] = array
        elif role not in EVIDENCE:
            refusal = refusal or f"tensor {quoted(name)} of shape {array.shown} {fault}"
    if metadata.head_scales is not None:
        if metadata.scale is not None:
            refusal = refusal or "the metadata has both scale and head_scales; keep one of them"
        elif len(metadata.head_scales) != heads:
            refusal = refusal or f"metadata head_scales has {len(metadata.head_scales)} numbers for {heads} heads"
    if metadata.window is not None and metadata.chunk is not None:
        refusal = refusal or "the metadata has both window and chunk; keep one of them"
    return understood, refusal


def _bias_sizes(bias: Stored, sizes: Sizes, sampled: bool) -> Sizes:
    """Return the sizes that a bias must have: of sampled queries, it may have rows for all."""
    batch, heads, queries, keys = sizes
    whole = sampled and len(bias.shape) >= 2 and bias.shape[-2] == keys
    return batch, heads, keys if whole else queries, keys


def shaped_like_scores_or_heads(pair: Pair, unused: Iterable[Stored], sizes: Sizes) -> str:
    """Return why a layer is refused for an unused tensor with a number for each score or head, or empty.

    The tensor belongs to the module of q and k. One named like a result, such as scores, may have such a shape.
    """
    _, heads, queries, keys = sizes
    for array in unused:
        word = array.name.removeprefix(pair.before).removesuffix(pair.after)
        own = array.name == pair.named(word) and "." not in word and bool(pair.before or pair.after)
        long = tuple(length for length in array.shape if length > 1)
        scores = len(array.shape) > 1 and array.shape[-2:] == (queries, keys)
        if own and (scores or long == (heads,)) and not _RESULTS.search(word):
            named = f"tensor {quoted(array.name)} of shape {array.shown}"
            return f"{named} may change attention, and attn-tui does not know it"
    return ""


def scales_shape(shape: tuple[int, ...], heads: int, queries: int) -> tuple[int, int] | None:
    """Return the shape of a tensor of multipliers as (heads or 1, queries or 1); None if it fits neither or both."""
    long = tuple(length for length in shape if length != 1)
    if len(long) > 2:
        return None
    if not long:
        return 1, 1
    if len(long) == 2:
        return (heads, queries) if long == (heads, queries) else None
    if long[0] == heads == queries:
        # [heads, 1] and [heads, 1, 1] can only be of heads, and [1, queries] only of queries.
        if len(shape) > 1 and shape[-1] == 1:
            return heads, 1
        return (1, queries) if len(shape) > 1 else None
    return (heads, 1) if long[0] == heads else (1, queries) if long[0] == queries else None
