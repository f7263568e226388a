"""Masks: which tensors are a layer's, what True means in them, and which keys they let the queries of a head see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..message import message, plain, quoted
from .axes import LARGEST
from .capture import Form, Meaning, Sizes
from .features import MASKS, TENSORS
from .files import CaptureError
from .files.stored import FLOATS, AnyArray, AtHand, Opener, Stored
from .metadata import LayerMetadata
from .naming import NamePair

Positions = npt.NDArray[np.int64]  # [queries] of the queries among the keys

# Additive masks hide a key with −inf, the smallest number of their format, or −10000 (BERT).
HIDDEN = -1e4
_LOWEST = -1e9  # hides a key in any case
# Masks whose values have to tell what True means: both are common under their names.
_BY_VALUES = ("attn_mask", "src_mask", "tgt_mask", "memory_mask", "causal_mask")


@dataclass(frozen=True)
class MaskConvention:
    """A mask of a layer, and what True means in it; None if its values have to tell."""

    array: Stored
    meaning: Meaning | None
    sure: bool = True  # whether the file or the user says so
    of_queries: bool = False  # whether it tells which queries count, and not which keys they see


def masks_of(
    pair: NamePair,
    tensors: Mapping[str, str],
    shared: Collection[str],
    metadata: LayerMetadata,
    arrays: Mapping[str, Stored],
    sizes: Sizes,
    mask_true: Meaning | None,
    declared: bool,
) -> tuple[tuple[MaskConvention, ...], set[str], list[str]]:
    """Return the layer's masks, the names of tensors that are masks, and notes.

    `tensors` are the names of the layer's tensors by feature, `shared` those that belong to every layer. The mask is
    the one named in the metadata, the one beside the layer's tensors, or the shared one; others are applied too. In a
    file with our schema, as `declared`, a mask means what its name says.
    """
    names = {feature: tensors[feature] for feature in MASKS if feature in tensors}
    if metadata.unmasked:
        return (), {*names.values()}, []
    if metadata.mask is not None and metadata.mask not in arrays:
        template = "{where}: the metadata names the mask {mask}, which is not in the file"
        raise arrays[pair.q].error(template, mask=quoted(metadata.mask))
    used, notes, masks = {*names.values()}, list[str](), list[MaskConvention]()
    if metadata.mask is not None and metadata.mask not in names.values():
        names["mask"] = metadata.mask
        used.add(metadata.mask)
        shared = {*shared} - {"mask"}
    stated, sampled = mask_true or metadata.mask_true, "rows" in tensors or metadata.rows is not None
    for feature, name in names.items():
        if feature in shared:
            notes.append(message("{name} is used as the mask of every layer without its own", name=quoted(name)))
        masking, remarks = _masking(arrays[name], feature, pair.word(name), stated, sizes, sampled)
        masks.append(replace(masking, sure=masking.sure or declared))
        notes += remarks
    return tuple(masks), used, notes


def _masking(
    mask: Stored, feature: str, word: str, stated: Meaning | None, sizes: Sizes, sampled: bool
) -> tuple[MaskConvention, list[str]]:
    """Return a mask of this feature and last word of its name, and notes; raise CaptureError if it cannot be one.

    `stated` is what the user or the file says that True means, and `sampled` whether only some queries are stored.
    """
    if mask.format is None or (mask.format.kind not in "biuf" and mask.dtype not in FLOATS):
        raise mask.error("{where} holds {dtype}; must be bool, integer or floating-point", dtype=plain(mask.dtype))
    mask.require_modest()
    meaning = stated or meaning_of(word, "f" if mask.dtype in FLOATS else mask.format.kind)
    of_queries = feature == "query_mask"
    masking = MaskConvention(mask, meaning, meaning is None or stated is not None, of_queries)
    notes: list[str | None] = []
    if stated is None and meaning == "hidden":
        notes.append(
            message(
                "{name}: True is taken as hidden, as in nn.MultiheadAttention; see --mask-true",
                name=quoted(mask.name),
            )
        )
    elif stated == "visible" and feature == "padding":
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
            raise mask.error("{where} is too large; must have at most {largest} numbers per head", largest=LARGEST)
        notes.append(mask_note(mask, sizes))
    return masking, [note for note in notes if note is not None]


def hides_padding(masks: Iterable[MaskConvention], sizes: Sizes, causal: Stored | None) -> bool:
    """Return whether a mask may tell the padding of each text; one of `causal` attention alone does not."""
    return any(
        not mask.of_queries and mask.array != causal and (sizes[0] == 1 or mask_shape(mask.array, sizes)[0] > 1)
        for mask in masks
    )


def meaning_of(word: str, kind: str) -> Meaning | None:
    """Return what True means in a mask of this name, of booleans b, integers i or u, or floats f; None if its values
    have to tell.

    Masks of padding keys mean hidden, as in nn.MultiheadAttention, unless they are numbers, or integers in the
    padding_mask of Keras, where 1 is visible.
    """
    if word in TENSORS["padding"]:
        return None if kind == "f" or (kind != "b" and word == "padding_mask") else "hidden"
    return None if word in _BY_VALUES else "visible"


def mask_shape(mask: Stored, sizes: Sizes, heads_first: bool = False) -> Sizes:
    """Return the mask's shape with all four axes, 1 for missing ones; raise CaptureError if it cannot fit.

    The first of three axes is the batch with all its heads, as in nn.MultiheadAttention and BLOOM, the batch, or that
    of heads; with `heads_first`, heads precede the batch.
    """
    batch, heads, _, _ = sizes
    shape = mask.shape
    if len(shape) == 1:
        shape = (1, 1, 1, *shape)
    elif len(shape) == 2:
        of_batch = shape[0] == batch and not heads_first
        shape = (shape[0], 1, 1, shape[1]) if of_batch else (1, 1, *shape)
    elif len(shape) == 3 and shape[0] == batch * heads > (heads if heads_first else max(batch, heads)):
        shape = (batch, heads, *shape[1:])
    elif len(shape) == 3:
        of_batch = shape[0] in (1, batch) and not (heads_first and shape[0] == heads)
        if not (heads_first or of_batch) and 1 < shape[0] == heads and batch % heads == 0:
            raise mask.error(
                "{where} has shape {shown}; its first axis may be that of heads or, as in Swin, of the windows of an "
                "image: save it as [1, heads, queries, keys] or [batch, 1, queries, keys]"
            )
        shape = (shape[0], 1, *shape[1:]) if of_batch else (1, *shape)
    fits = len(shape) == 4 and shape[3] == sizes[3]
    if not fits or any(have not in (1, want) for have, want in zip(shape, sizes, strict=True)):
        raise mask.error(
            "{where} has shape {shown}; must be [keys], [batch, keys], [queries, keys], [batch * heads, queries, "
            "keys] or [batch, heads, queries, keys], here {sizes}; all but the last may be 1",
            sizes=list(sizes),
        )
    return (shape[0], shape[1], shape[2], shape[3])


def query_mask(mask: Stored, sizes: Sizes, sampled: bool) -> tuple[Stored, int]:
    """Return a mask of queries as [batch, queries], and the number of these queries, all tokens if `sampled`.

    Raise CaptureError if its shape cannot fit.
    """
    batch, _, queries, keys = sizes
    shape = mask.shape[:-1] if len(mask.shape) > 2 and mask.shape[-1] == 1 else mask.shape
    for count in (queries, keys) if sampled else (queries,):
        if shape[-1:] == (count,) and shape[:-1] in ((), (1,), (batch,), (1, 1), (batch, 1)):
            return replace(mask, shape=(shape[0] if len(shape) > 1 else 1, count)), count
    raise mask.error(
        "{where} has shape {shown}; must be [queries] or [batch, queries], here {sizes}", sizes=[batch, queries]
    )


def mask_note(mask: Stored, sizes: Sizes) -> str | None:
    """Return a note if the mask's axes were ambiguous."""
    batch, heads, queries, _ = sizes
    if len(mask.shape) == 2 and batch == queries > 1 and mask.shape[0] == batch:
        return message("{name}: axes assumed to be [batch, keys]", name=quoted(mask.name))
    if len(mask.shape) == 3 and batch == heads > 1 and mask.shape[0] == batch:
        return message("{name}: axes assumed to be [batch, queries, keys]", name=quoted(mask.name))
    return None


def read_mask(
    opener: Opener,
    mask: Stored,
    head: int,
    sizes: Sizes,
    at_hand: AtHand,
    meaning: Meaning | None = "visible",
    heads_first: bool = False,
    sure: bool = True,
    positions: Positions | None = None,
) -> tuple[BoolArray | None, FloatArray | None, Form]:
    """Return one head of a mask or bias: visible keys, and numbers to add, [batch or 1, queries or 1, keys] each; and
    how its values were understood.

    `meaning` is what True and 1 mean; None if it has to be found out from the values. Raise CaptureError if it cannot
    be, or if it is not `sure` and would hide every key of a text, or every query's own key. `positions` are those of
    the queries among the keys; None if they are of another text.
    """
    shape = mask_shape(mask, sizes, heads_first)
    index = head if shape[1] > 1 else 0
    if mask.fortran and len(mask.shape) == 3 and min(shape[:2]) > 1:  # one axis of batch and heads
        values = mask.read(opener, (*shape[:1:-1], *shape[:2]), 3, index, at_hand).transpose()
    elif mask.fortran:
        values = mask.read(opener, shape[::-1], 2, index, at_hand).transpose()
    else:
        values = mask.read(opener, shape, 1, index, at_hand)
    flags = None if heads_first else as_flags(values)
    if flags is not None:
        meaning = meaning or meaning_by_values(flags, mask, positions)
        visible = flags if meaning == "visible" else ~flags
        if not sure and hides_too_much(visible, positions):
            raise two_meanings(mask)
        return visible, None, meaning
    if values.dtype.kind in "biu":
        raise mask.error(
            "{where} has values that are not a mask's; must be bool or 0/1, or numbers added to the logits"
        )
    with np.errstate(all="ignore"):
        added = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    threshold = _threshold(added, heads_first)
    visible = added > threshold
    if np.isnan(added).any() or np.isposinf(added).any():
        raise CaptureError(
            "{where} holds NaN or +∞; must be numbers added to the logits, or −∞ to hide a key", where=mask.where
        )
    if heads_first and not sure and visible.all() and _is_like_a_mask(added):
        raise mask.error(
            "{where} holds only 0 and 1, like a mask, and would be added to the logits; rename it 'mask', or "
            "'causal_mask', if 1 means visible"
        )
    if heads_first or (added[visible] != 0).any():
        return None if visible.all() else visible, np.where(visible, added, 0), threshold
    return visible, None, threshold


def _threshold(added: FloatArray, is_bias: bool) -> float:
    """Return the number at and below which a key is hidden.

    A mask that has been added to a bias is a little above or below −10000. Numbers as large as those of a long ALiBi
    hide only if none lies between them and half of their size.
    """
    with np.errstate(invalid="ignore"):
        mask_alone = not is_bias and not ((added != 0) & (added > HIDDEN)).any()
        if mask_alone:
            return HIDDEN
        between = ((added > 0.9 * HIDDEN) & (added < 0.45 * HIDDEN)).any()
    return _LOWEST if between else 0.9 * HIDDEN


def _is_like_a_mask(values: FloatArray) -> bool:
    """Return whether values are 0 and 1, and both are there: nanoGPT's buffer `attn.bias` is a causal mask."""
    ones, zeros = values == 1, values == 0
    return bool(ones.any() and zeros.any() and (ones | zeros).all())


def as_flags(values: AnyArray) -> BoolArray | None:
    """Return the values as booleans if they are 0 and 1, or False and True; None if they are not.

    Zeros alone are numbers added to the logits, unless they are booleans or integers.
    """
    if values.dtype.kind == "b":
        return values.astype(np.bool_)
    if values.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            values = values.astype(np.float64)
        if not (values == 1).any():
            return None
    ones = values == 1
    return ones if bool(np.all(ones | (values == 0))) else None


def meaning_by_values(flags: BoolArray, mask: Stored, positions: Positions | None) -> Meaning:
    """Return what True means in flags [batch or 1, queries or 1, keys] if only one meaning makes sense.

    `positions` are those of the queries in self-attention; None if they are of another text. Raise CaptureError if
    both meanings make sense, or neither.
    """
    visible, hidden = _makes_sense(flags, positions), _makes_sense(~flags, positions)
    if visible == hidden:
        raise two_meanings(mask)
    return "visible" if visible else "hidden"


def hides_too_much(visible: BoolArray, positions: Positions | None) -> bool:
    """Return whether a mask hides every key of a text, or the own key of every query."""
    if not visible.any(axis=(1, 2)).all():
        return True
    return (
        positions is not None and visible.shape[1] == len(positions) > 1 and not _themselves(visible, positions).any()
    )


def two_meanings(mask: Stored) -> CaptureError:
    """Return the error for a mask whose True may mean either."""
    return mask.error(
        "{where}: True may mean visible, as in scaled_dot_product_attention, or hidden, as in "
        "nn.MultiheadAttention; say which: --mask-true visible or hidden, or metadata mask_true"
    )


def _makes_sense(visible: BoolArray, positions: Positions | None) -> bool:
    """Return whether queries may see these keys and no others.

    Each text has keys. In self-attention, every token that some query sees also sees itself, and some see others. In
    cross-attention, queries see the same keys, or the last key that they see advances. Queries without keys are
    padding.
    """
    if not visible.any(axis=(1, 2)).all():
        return False
    if visible.shape[1] == 1 or visible.all():
        return True
    blank: BoolArray = ~np.any(visible, axis=2)
    if positions is not None:
        themselves = _themselves(visible, positions)
        others = np.count_nonzero(visible, axis=2) > themselves
        seen: BoolArray = np.any(visible, axis=1)
        return bool(np.all(themselves | ~seen[:, positions] | blank) and np.any(others))
    alike: BoolArray = visible == np.any(visible, axis=1, keepdims=True)
    same: BoolArray = np.all(np.all(alike, axis=2) | blank, axis=1)
    last = visible.shape[2] - 1 - np.argmax(visible[:, :, ::-1], axis=2)
    farthest = np.maximum.accumulate(np.where(blank, -1, last), axis=1)
    advances: BoolArray = np.all((last == farthest) | blank, axis=1) & (np.min(last, axis=1) < farthest[:, -1])
    return bool(np.all(same | advances))


def _themselves(visible: BoolArray, positions: Positions) -> BoolArray:
    """Return which queries see their own key, [batch or 1, queries]."""
    found: BoolArray = visible[:, np.arange(len(positions)), positions]
    return found
