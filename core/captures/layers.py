"""One layer of a capture: where its numbers are, and how its scores were used."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..message import message, plain, quoted
from .axes import LARGEST, NamedAxes, locate_evidence, locate_vectors
from .capture import Corner, Layer, Meaning, Sizes, StatedLayer, values_of
from .features import ADDED, EVIDENCE, FEATURE, FEATURES, SHARED, TENSORS
from .files import CaptureError
from .files.stored import FLOATS, Numbers, Stored, numbers
from .masks import MaskConvention, hides_padding, mask_shape, masks_of
from .metadata import LayerMetadata
from .naming import Axes, NamePair

# Names of biases that are of positions alone: other layers of a model have them too.
OF_POSITIONS = ("position_bias", "relative_position_bias", "alibi", "alibi_slopes", "slopes")
# Modules whose queries and keys are of different texts: BART's encoder_attn, ESPnet's src_attn, diffusers' attn2, …
_CROSS = re.compile(
    r"cross_?att|(?:^|[._])cross(?:[._]|$)|encoder_attn|enc_?dec_?att|(?:^|[._])(?:enc|src|context|x)_?attn\b"
    r"|multihead_attn|transformer_blocks\.\d+\.attn2\b"
)
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
    q: tuple[NamedAxes, ...]  # parts, whose components follow each other
    k: tuple[NamedAxes, ...]
    masks: tuple[MaskConvention, ...] = ()
    lengths: tuple[int, ...] | None = None  # of the texts of a padded batch, for masks that hide no padding
    added: Mapping[str, Stored] = field(default_factory=dict[str, Stored])  # biases, sinks, scales, … by feature
    evidence: Mapping[str, NamedAxes] = field(default_factory=dict[str, NamedAxes])  # v, o, lse and weights
    declared: bool = False  # whether the file has our schema


@dataclass(frozen=True)
class FileFacts:
    """What the user or the whole file says of every layer; None if neither does."""

    axes: Axes | None
    lengths: tuple[int, ...] | None  # of the texts
    mask_true: Meaning | None
    declared: bool = False  # whether the file has our schema, so that names mean what docs/capture-format.md says


def build_layer(
    position: int, pair: NamePair, metadata: LayerMetadata, arrays: Mapping[str, Stored], given: FileFacts
) -> tuple[StoredLayer, list[str], set[str]]:
    """Return the layer of a pair of tensors, a note for every assumption, and the names of the tensors used.

    Raise CaptureError if the pair is not a valid layer.
    """
    vectors = locate_vectors(pair, metadata, arrays, given.axes)
    q, k, sizes = vectors.q[0], vectors.k[0], vectors.sizes
    notes = [pair.said] if pair.said else []
    notes += [*vectors.notes, *_notes_on_vectors(pair, metadata, k.size("head"))]
    tensors, shared, twice = _tensors(pair, arrays)
    masks, mask_names, mask_notes = masks_of(
        pair, tensors, shared, metadata, arrays, sizes, given.mask_true, given.declared
    )
    added, refusal, added_notes = _added(pair, tensors, arrays, sizes, metadata)
    causal, alignment, unaligned, causal_notes = _causal(metadata, sizes, "rows" in added, "slopes" in added)
    notes += [*causal_notes, *mask_notes, *added_notes]
    evidence = {
        feature: located
        for feature in EVIDENCE
        if feature in tensors
        and (located := locate_evidence(feature, pair.word(tensors[feature]), arrays[tensors[feature]], q, k))
    }
    notes += [
        message("{name} is used for every layer without its own", name=quoted(array.name))
        for feature, array in added.items()
        if feature in shared or (feature == "slopes" and "bias" in shared)
    ]
    modules = f"{pair.before} {metadata.name or ''}".lower()
    cross = _is_cross(modules) if metadata.attention is None else metadata.attention == "cross"
    if masks and not cross:
        itself = metadata.attention == "self" or causal is not None or given.lengths is not None
        placed = alignment is not None or "rows" in added or "query_mask" in tensors
        notes += [] if placed or sizes[2] == sizes[3] else [_note_on_queries(sizes, metadata.attention == "self")]
        notes += [] if itself or _SELF.search(modules) or sizes[2] != sizes[3] else [_ITSELF]
    known = hides_padding(masks, sizes, arrays.get(tensors.get("causal_mask", "")))
    lengths, mismatch = _padding(None if metadata.unmasked else given.lengths, sizes, cross, metadata.left_padded)
    if not known and lengths is not None:
        of_padding = " of padding" if masks else ""
        notes.append(
            message(
                "the file has lengths but no mask{of_padding}: keys beyond each text's length are treated as padding",
                of_padding=of_padding,
            )
        )
    if "row_factors" in added:
        notes.append("every query contains its own factor (row_factors), which is measured as a part of it")
    named = {feature: plain(array.name) for feature, array in added.items()}
    layer = Layer(
        **values_of(StatedLayer, metadata),
        position=position,
        index=pair.index if metadata.index is None else metadata.index,
        name=metadata.name or plain(pair.label),
        heads=sizes[1],
        kv_heads=k.size("head"),
        batch=sizes[0],
        queries=sizes[2],
        keys=sizes[3],
        d_k=vectors.d_k,
        dtype=q.array.dtype,
        causal=causal,
        mask=plain(masks[0].array.name) if masks else None,
        k_dtype=k.array.dtype if k.array.dtype != q.array.dtype else None,
        cross=cross,
        bias=named.get("bias") or named.get("slopes"),
        sinks=named.get("sinks"),
        scales=named.get("scales"),
        row_factors=named.get("row_factors"),
        rows=named.get("rows"),
        alignment=alignment or "top_left",
        evidence=tuple(evidence),
        numbered=pair.numbered or metadata.index is not None,
        features=tuple(
            feature.name
            for feature in FEATURES
            if (
                feature.changes
                and getattr(metadata, feature.name, None) != getattr(LayerMetadata, feature.name, None)
            )
            or (feature.name in SHARED and feature.name in tensors)
        ),
        refusal=metadata.refusal or twice or refusal or ("" if known else mismatch) or unaligned,
        q=tuple(part.described() for part in vectors.q),
        k=tuple(part.described() for part in vectors.k),
    )
    used = {*pair.names, *mask_names, *(array.name for array in added.values())}
    used |= {located.array.name for located in evidence.values()}
    return StoredLayer(layer, vectors.q, vectors.k, masks, lengths, added, evidence, given.declared), notes, used


def _notes_on_vectors(pair: NamePair, metadata: LayerMetadata, kv_heads: int) -> list[str]:
    """Return notes on other numbers of heads than the metadata's, and on projections."""
    notes: list[str] = []
    if None in metadata.prescaled:
        notes.append("q or k has an unknown factor inside, such as a learned gain, which is measured as a part of it")
    if metadata.attention == "heads":
        notes.append("queries and keys are the heads of one token: attention does not run over tokens")
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


def _causal(
    metadata: LayerMetadata, sizes: Sizes, sampled: bool, sloped: bool
) -> tuple[Corner | None, Corner | None, str, list[str]]:
    """Return the corner of a causal mask, that of queries and keys, why it cannot be told, and notes.

    Both corners are the same for a square. With `sampled` queries their positions are known. The logits are `sloped`
    if they depend on the distances of queries and keys.
    """
    _, _, queries, keys = sizes
    causal, said = metadata.causal, metadata.alignment
    notes: list[str] = []
    if causal is None:
        notes.append("the file does not specify whether attention is causal; assuming it is not")
    if causal == "top_left" or causal == "bottom_right":
        return causal, causal, "", notes
    square = queries == keys or sampled
    if metadata.flash and not square:
        notes.append("window_size is taken as flash-attention's: the last query is aligned with the last key")
    if causal == "yes":
        if not square:
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


def _tensors(pair: NamePair, names: Collection[str]) -> tuple[dict[str, str], set[str], str]:
    """Return the names of a layer's tensors by feature, the features whose tensor every layer shares, and a refusal.

    The refusal, empty if there is none, names two tensors of one feature.
    """
    tensors: dict[str, str] = {}
    shared: set[str] = set()
    refusal = ""
    for feature, words in TENSORS.items():
        candidates = [name for name in map(pair.named, words) if name in names]
        if feature in pair.given:
            candidates = [pair.given[feature]]
        elif not candidates and feature in SHARED and (pair.before or pair.after):
            candidates = [word for word in words if word in names and _is_for(word, pair)]
            shared |= {feature} if candidates else set()
        if len(candidates) > 1 and feature not in ("mask", *EVIDENCE):
            one, other = quoted(candidates[0]), quoted(candidates[1])
            refusal = message("{one} and {other} are both there; keep one of them", one=one, other=other)
        if candidates:
            tensors[feature] = candidates[0]
    return tensors, shared, refusal


def _is_for(word: str, pair: NamePair) -> bool:
    """Return whether a tensor that all layers may share is for this one, by its module: nn.Transformer's masks, and
    biases of relative positions, which T5 adds in self-attention only."""
    module = pair.before.lower()
    cross = _is_cross(module)
    if cross and word in OF_POSITIONS:
        return False
    if word.startswith("memory_"):
        return cross
    if word.startswith("src_"):
        return not cross and "decoder" not in module
    return not (word.startswith("tgt_") and (cross or "encoder" in module))


def _is_cross(modules: str) -> bool:
    """Return whether modules of these names, in lower case, have queries and keys of different texts."""
    return bool(_CROSS.search(modules))


def _added(
    pair: NamePair, tensors: Mapping[str, str], arrays: Mapping[str, Stored], sizes: Sizes, metadata: LayerMetadata
) -> tuple[dict[str, Stored], str, list[str]]:
    """Return what is added to a layer's logits, or scales them, by feature; a refusal, or empty; and notes.

    Numbers of the metadata count as arrays.
    """
    there = {feature: arrays[name] for feature, name in tensors.items() if feature in ADDED}
    refusal, notes = "", list[str]()
    if "bias" in there and pair.word(there["bias"].name) == "alibi" and _is_of_heads(there["bias"], sizes):
        if "slopes" in there:
            name = quoted(there["slopes"].name)
            refusal = message("{name} and 'alibi' both hold slopes; keep one of them", name=name)
        there["slopes"] = there.pop("bias")
    for feature in ("sinks", "slopes", "rows"):
        values: tuple[float, ...] | None = getattr(metadata, feature)
        if values is None:
            continue
        if feature in there:
            what = there[feature].what
            refusal = message("{what} and the metadata both give {role}; keep one of them", what=what, role=feature)
        there[feature] = numbers(arrays[pair.q].path, FEATURE[feature].key, values)
    added: dict[str, Stored] = {}
    for feature, array in there.items():
        try:
            array.require_modest()
            fault = _fault(feature, array, sizes, "rows" in there, metadata)
        except CaptureError as error:
            fault = str(error).removeprefix(array.where).strip()
        if not fault:
            added[feature] = array
            note = {"scales": scales_note, "bias": _bias_note}.get(feature)
            said = note and note(array, sizes)
            notes += [said] if said else []
        elif not refusal:
            refusal = message("{what} of shape {shown} {fault}", what=array.what, shown=array.shown, fault=fault)
    if metadata.head_scales is not None and metadata.scale is not None:
        refusal = refusal or "the metadata has both scale and head_scales; keep one of them"
    elif metadata.not_finite and len(metadata.not_finite) != sizes[1]:
        count = len(metadata.not_finite)
        fault = message("metadata not_finite has {count} pairs for {heads} heads", count=count, heads=sizes[1])
        refusal = refusal or fault
    elif metadata.head_scales is not None and len(metadata.head_scales) != sizes[1]:
        count = len(metadata.head_scales)
        fault = message("metadata head_scales has {count} numbers for {sizes} heads", count=count, sizes=sizes[1])
        refusal = refusal or fault
    return added, refusal, notes


def _fault(feature: str, array: Stored, sizes: Sizes, sampled: bool, metadata: LayerMetadata) -> str:
    """Return what is wrong with an array of a feature, or empty; raise CaptureError for a shape that does not fit."""
    batch, heads, queries, _ = sizes
    if feature == "rows":
        whole = array.format is not None and array.format.kind in "iu" and array.shape == (queries,)
        return (
            "" if whole else message("must be {queries} whole numbers, the position of each query", queries=queries)
        )
    if feature in ("slopes", "sinks") and (isinstance(array, Numbers) or array.dtype in FLOATS):
        return (
            "" if _is_of_heads(array, sizes) else message("must hold a number for each of {heads} heads", heads=heads)
        )
    if array.dtype not in FLOATS:
        return "must hold floating-point numbers"
    if feature == "bias":
        shape = mask_shape(array, _bias_sizes(array, sizes, sampled), heads_first=True)
        large = shape[0] * shape[2] * shape[3] > LARGEST
        return message("must have at most {largest} numbers per head", largest=LARGEST) if large else ""
    if array.fortran and len(array.shape) > 1:
        return "is in Fortran order; save it in C order"
    if scales_shape(array.shape, sizes) is None:
        return message(
            "must be [heads], [queries], [heads, queries] or [batch, heads, queries, 1], here {heads} "
            "heads, {queries} queries and {sizes} texts; axes may be 1",
            heads=heads,
            queries=queries,
            sizes=batch,
        )
    if feature == "row_factors":
        return ""
    stated = metadata.scale is not None or metadata.head_scales is not None
    return "and the metadata both give the scale; keep one of them" if stated else ""


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
    shapes: dict[tuple[int, int, int], None] = {}
    for order in orders.get(len(shape), [])[:: -1 if shape[-1:] == (1,) and len(shape) == 3 else 1]:
        if all(length in (1, lengths[axis]) for axis, length in zip(order, shape, strict=True)):
            own = dict(zip(order, shape, strict=True))
            shapes[own.get("b", 1), own.get("h", 1), own.get("q", 1)] = None
    return list(shapes)
