"""One layer of a capture: where its numbers are, and how its scores were used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..message import message
from ..plain import plain, quoted
from .beside.evidence import locate_evidence
from .beside.roles import EVIDENCE, find_roles, is_cross
from .beside.tensors import Masking, hides_padding, masks_of, roles_of
from .capture import Corner, Layer, Meaning
from .masks import Sizes
from .metadata.layer import LayerMetadata
from .naming import Axes, Pair
from .stored import Stored
from .vectors.layout import Located
from .vectors.sizes import locate_vectors

# Modules whose queries and keys are of one text: what an encoder has, and what a model's blocks call attention.
_SELF = re.compile(
    r"self|(?:^|[._])encoder\.|(?:transformer|model|(?:^|\.)(?:h|blocks?)\.\d).*\.(?:attn1?|attention|mha)\b"
)

_ITSELF = message(
    "taken as self-attention: rows of tokens that no query sees are left out; metadata 'attention' says it, self or "
    "cross"
)


@dataclass(frozen=True)
class StoredLayer:
    """A layer and the location of its numbers in the files."""

    layer: Layer
    q: tuple[Located, ...]  # parts, whose components follow each other
    k: tuple[Located, ...]
    masks: tuple[Masking, ...] = ()
    lengths: tuple[int, ...] | None = None  # of the texts of a padded batch, for masks that hide no padding
    roles: Mapping[str, Stored] = field(default_factory=dict[str, Stored])  # other arrays, by role
    evidence: Mapping[str, Located] = field(default_factory=dict[str, Located])  # v, o, lse and weights, by role


@dataclass(frozen=True)
class Given:
    """What the user or the whole file says of every layer; None if neither does."""

    axes: Axes | None
    lengths: tuple[int, ...] | None  # of the texts
    mask_true: Meaning | None


def build_layer(
    position: int, pair: Pair, metadata: LayerMetadata, arrays: Mapping[str, Stored], given: Given
) -> tuple[StoredLayer, list[str], set[str]]:
    """Return the layer of a pair of tensors, a note for every assumption, and the names of the tensors used.

    Raise CaptureError if the pair is not a valid layer.
    """
    vectors = locate_vectors(pair, metadata, arrays, given.axes)
    q, k, sizes = vectors.q[0], vectors.k[0], vectors.sizes
    notes = [*vectors.notes, *_notes_on_vectors(pair, metadata, k.size("head"))]
    found = find_roles(pair, arrays)
    masks, mask_names, mask_notes = masks_of(pair, found, metadata, arrays, sizes, given.mask_true)
    roles, refusal, role_notes = roles_of(pair, found, arrays, sizes, metadata)
    causal, alignment, unaligned, causal_notes = _causal(metadata, sizes, "rows" in roles, "slopes" in roles)
    notes += [*causal_notes, *mask_notes, *role_notes]
    evidence = {
        role: located
        for role, name in found.roles.items()
        if role in EVIDENCE and (located := locate_evidence(role, pair.word(name), arrays[name], q, k))
    }
    notes += [
        message("{name} is used for every layer without its own", name=quoted(array.name))
        for role, array in roles.items()
        if role in found.shared or (role == "slopes" and "bias" in found.shared)
    ]
    modules = f"{pair.before} {metadata.name or ''}".lower()
    cross = metadata.cross if metadata.cross is not None else is_cross(modules)
    if masks and not cross:
        itself = (
            metadata.cross is False
            or causal is not None
            or given.lengths is not None
            or _SELF.search(modules) is not None
        )
        placed = causal is not None or alignment is not None or "rows" in roles or "query_mask" in found.roles
        notes += [] if placed or sizes[2] == sizes[3] else [_note_on_queries(sizes, metadata.cross is False)]
        notes += [] if itself or sizes[2] != sizes[3] else [_ITSELF]
    known = hides_padding(masks, sizes, arrays.get(found.roles.get("causal_mask", "")))
    lengths, mismatch = _padding(None if metadata.unmasked else given.lengths, sizes, cross, metadata.left_padded)
    if known:
        mismatch = ""
    elif lengths is not None:
        notes.append(
            message(
                "the file has lengths but no mask{of_padding}: keys beyond each text's length are treated as padding",
                of_padding=" of padding" if masks else "",
            )
        )
    layer = Layer(
        position=position,
        index=pair.index if pair.numbered or metadata.index is None else metadata.index,
        name=metadata.name or plain(pair.label),
        heads=sizes[1],
        kv_heads=k.size("head"),
        batch=sizes[0],
        queries=sizes[2],
        keys=sizes[3],
        d_k=vectors.d_k,
        dtype=q.array.dtype,
        scale=metadata.scale,
        causal=causal,
        softcap=metadata.softcap,
        mask=plain(masks[0].array.name) if masks else None,
        head_scales=metadata.head_scales,
        prescaled=metadata.prescaled,
        unknown_factor=metadata.unknown_factor,
        over_queries=metadata.over_queries,
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
        observed=metadata.observed,
        numbered=pair.numbered or metadata.index is not None,
        refusal=metadata.refusal or found.refusal or refusal or mismatch or unaligned,
        q=tuple(each.described() for each in vectors.q),
        k=tuple(each.described() for each in vectors.k),
    )
    used = {*pair.names, *mask_names, *(array.name for array in roles.values())}
    used |= {located.array.name for located in evidence.values()}
    return StoredLayer(layer, vectors.q, vectors.k, masks, lengths, roles, evidence), notes, used


def _notes_on_vectors(pair: Pair, metadata: LayerMetadata, kv_heads: int) -> list[str]:
    """Return notes on other numbers of heads than the metadata's, and on projections."""
    notes: list[str] = []
    if metadata.unknown_factor:
        notes.append("q or k has an unknown factor inside, such as a learned gain, which is measured as a part of it")
    if metadata.over_queries:
        notes.append("softmax ran over the queries: statistics are those of a softmax over the keys")
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
    return notes


def _note_on_queries(sizes: Sizes, itself: bool) -> str:
    """Return what is assumed of queries that are masked, and of which the file does not tell what tokens they are.

    `itself`: the file says that they are of the text of the keys.
    """
    _, _, queries, keys = sizes
    if itself:
        return message(
            "{queries} queries of {keys} tokens: every query counts, since neither metadata 'rows' nor 'alignment' "
            "tell which tokens they are",
            queries=queries,
            keys=keys,
        )
    return message(
        "taken as cross-attention, with {queries} queries and {keys} keys: every query counts; "
        "metadata 'rows' or 'alignment' tell which tokens they are, and 'attention' that they are "
        "of another text",
        queries=queries,
        keys=keys,
    )


def _padding(
    lengths: tuple[int, ...] | None, sizes: Sizes, cross: bool, left: bool
) -> tuple[tuple[int, ...] | None, str]:
    """Return the texts' lengths if some keys are padding, and why they cannot be the layer's, or empty."""
    batch, _, _, keys = sizes
    if lengths is None:
        return None, ""
    if len(lengths) == batch and max(lengths) <= keys:
        if min(lengths) == keys:
            return None, ""
        return (
            (None, "the metadata's lengths are of texts padded on the left; save a mask") if left else (lengths, "")
        )
    if cross:  # they are of the other text, whose keys have none
        return None, ""
    return None, message("the metadata's lengths do not match {batch} texts of {keys} tokens", batch=batch, keys=keys)


def _name(roles: Mapping[str, Stored], role: str) -> str | None:
    return plain(roles[role].name) if role in roles else None


def _causal(
    metadata: LayerMetadata, sizes: Sizes, sampled: bool, sloped: bool
) -> tuple[Corner | None, Corner | None, str, list[str]]:
    """Return the corner of a causal mask, that of queries and keys, why it cannot be told, and notes.

    Both corners are the same for a square. With `sampled` queries their positions are known. The logits are `sloped`
    if they depend on the distances of queries and keys.
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
    if (metadata.window or metadata.chunk or sloped) and not (said or square):
        unaligned = message(
            "metadata 'alignment' is missing for a window, chunks or slopes, with {queries} queries and {keys} keys",
            queries=queries,
            keys=keys,
        )
    return None, said, unaligned, notes
