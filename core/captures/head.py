"""Read one head of a capture: its queries and keys, and everything that changes its logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation, Terms
from ..attention.visibility import Bias, Slope, Visibility
from ..message import message, plain
from .axes import NamedAxes
from .capture import NO_EXTRAS, CaptureContents, Extras, Layer, MaskTensor, values_of
from .features import LARGEST
from .files import CaptureError, Identity, NotFiniteError, ValuesNotFiniteError, require_unchanged
from .files.stored import AnyArray, AtHand, Opener, Stored, stream_of
from .layers import StoredLayer, scales_shape
from .masks import MaskConvention, mask_shape, query_mask, read_mask

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False)
class CaptureFile(CaptureContents):
    """A capture and the location of its numbers in its files; `read_head` reads them."""

    stored: tuple[StoredLayer, ...]  # in the order of `layers`
    identities: tuple[tuple[Path, Identity], ...]  # of the files when they were opened
    at_hand: AtHand = field(default_factory=AtHand, compare=False)  # read with the last heads
    # The keys and values read last, with what they are of: the query heads of a group use the same.
    latest: dict[str, tuple[tuple[int, int], FloatArray]] = field(
        default_factory=dict[str, "tuple[tuple[int, int], FloatArray]"], compare=False
    )

    @cached_property
    def identity(self) -> dict[Path, Identity]:
        """The identity of each file when it was opened."""
        return dict(self.identities)

    def described(self) -> CaptureContents:
        """Return the contents without locations, which can be sent to a process without NumPy."""
        return CaptureContents(**values_of(CaptureContents, self))


@dataclass(frozen=True, eq=False)
class HeadData:
    """One query head and the key head it uses, and what its logits consist of beside scaled scores."""

    q: FloatArray  # [batch, queries, d_k], float64 if the file holds float64, else float32
    k: FloatArray  # [batch, keys, d_k]
    visibility: Visibility | None  # None: every query may attend to every key
    positions: npt.NDArray[np.int64]  # [queries] of the queries, among the keys
    biases: tuple[Bias | Slope, ...] = ()  # added to the logits after the soft-cap
    sink: float | None = None  # the logit of no key
    # The file's multiplier of q·k as stored, or those of texts and queries, [batch or 1, queries or 1].
    scale: float | FloatArray | None = None
    extras: Extras = NO_EXTRAS  # how the numbers above were found
    row_factors: FloatArray | None = None  # that the stored queries contain, [batch or 1, queries or 1]

    def terms(self, texts: slice, rows: slice, keys: slice = slice(None)) -> Terms:
        """Return which keys are hidden from some queries, and what their logits gain."""
        shape = (*self.q[texts, rows].shape[:2], len(range(self.k.shape[1])[keys]))
        return Computation(biases=self.biases, visibility=self.visibility).terms(shape, texts, rows, keys)


def read_head(capture: CaptureFile, layer: Layer, head: int) -> HeadData:
    """Return the numbers of one head; query head h uses key head h // (heads / kv_heads).

    Raise CaptureError if a number is not finite, or if the file has changed since it was opened.
    """
    if not 0 <= head < layer.heads:
        raise CaptureError(
            "{path}: {place} has heads 0 to {heads}, not {head}",
            path=plain(capture.path),
            place=layer.place,
            heads=layer.heads - 1,
            head=head,
        )
    if layer.refusal:
        raise CaptureError(
            "{path}: {place}: {refusal}", path=plain(capture.path), place=layer.place, refusal=layer.refusal
        )
    stored = capture.stored[layer.position]
    q = _vectors(capture, stored.q, head, layer.heads)
    wide = np.float64 if "float64" in (q.dtype, stored.k[0].array.dtype) else np.float32

    def read_keys() -> FloatArray:
        return _finite(_vectors(capture, stored.k, head, layer.heads), wide, stored.k[0].array, layer, head)

    k = read_once(capture, "k", layer, head // (layer.heads // layer.kv_heads), read_keys)
    positions = _positions(capture, stored)
    if positions.max() >= layer.keys:  # the queries are of another text
        layer = replace(layer, cross=True)
        stored = replace(stored, layer=layer)
    mask, left_out, biases, used, lengths = _mask_and_biases(capture, stored, head, positions)
    visibility = _visibility(layer, positions, mask, left_out)
    if not (stored.declared or layer.evidence):
        _require_filled(k, mask, stored.k[0].array)
    sink, scale = _of_head(capture, stored, "sinks", head), _scale(capture, stored, head)
    inside = stored.added.get("row_factors")
    return HeadData(
        q=_finite(q, wide, stored.q[0].array, layer, head),
        k=k,
        visibility=visibility,
        positions=positions,
        biases=biases,
        sink=sink,
        scale=scale,
        extras=Extras(
            masks=used,
            positions=None if "rows" not in stored.added else tuple(map(int, positions)),
            lengths=lengths,
            padding=visibility is not None and visibility.mask is not None and visibility.self_attention,
            slope=next((bias.slope for bias in biases if isinstance(bias, Slope)), None),
            sink=sink,
            scales=_tensor_of_scales(stored) if isinstance(scale, np.ndarray) else None,
        ),
        row_factors=None if inside is None else _of_rows(capture, layer, inside, head),
    )


def read_once(capture: CaptureFile, what: str, layer: Layer, head: int, read: Callable[[], FloatArray]) -> FloatArray:
    """Return what `read` returns for a key head, or its latest result if that was for the same one."""
    place = (layer.position, head)
    if what not in capture.latest or capture.latest[what][0] != place:
        capture.latest.pop(what, None)
        values = read()
        values.flags.writeable = False
        capture.latest[what] = place, values
    return capture.latest[what][1]


def read_finite_queries(capture: CaptureFile, layer: Layer, head: int) -> BoolArray:
    """Return which queries of a head hold finite numbers only, [batch, queries]."""
    q = _vectors(capture, capture.stored[layer.position].q, head, layer.heads)
    return np.asarray(np.isfinite(q).all(axis=-1))


def read_evidence(capture: CaptureFile, layer: Layer, head: int, role: str) -> FloatArray | None:
    """Return v, o, lse or weights of one head in float64; None if the file does not have it.

    v is [batch, keys, d_v], o is [batch, queries, d_v], lse is [batch, queries], weights are [batch, queries, keys].
    Raise CaptureError for weights on keys that the file does not have, and ValuesNotFiniteError if v holds NaN or
    infinity; the others, which attention returned, may hold them.
    """
    located = capture.stored[layer.position].evidence.get(role)
    if located is None:
        return None
    index = head // (layer.heads // located.size("head"))

    def read() -> FloatArray:
        values = located.read_head(_opener(capture, located.array), index, capture.at_hand)
        values = values.astype(np.float64)
        if role == "v" and not (finite := np.isfinite(values)).all():
            raise _not_finite(located.array, layer, head, finite, ValuesNotFiniteError)
        return values

    values = read_once(capture, role, layer, index, read) if role == "v" else read()
    if role == "weights":  # of a cache that the keys do not fill
        if values[..., layer.keys :].any():
            raise located.array.error(
                "{where} of shape {shown} has weights on more keys than the {keys} that are there; save all keys",
                keys=layer.keys,
            )
        values = values[..., : layer.keys]
    return values[..., 0] if role == "lse" else values


_FEW = 4  # queries, of which a mask is not told by chance


def shows_no_later_key(stored: StoredLayer) -> bool:
    """Return whether the weights of a layer's first head are exactly 0 on all later keys, the last query aligned
    with the last key.

    False without weights, for few queries, and where the queries are not known to be the last tokens of the text.
    """
    layer, located = stored.layer, stored.evidence.get("weights")
    told = layer.cross or layer.rows is not None or not _FEW <= layer.queries <= layer.keys
    if located is None or told or layer.refusal:
        return False
    weights = located.read_head(partial(stream_of, located.array), 0, {})
    later = ~np.tri(layer.queries, weights.shape[-1], layer.keys - layer.queries, dtype=np.bool_)
    return not weights[:, later].any() and bool(weights[:, -1].any())


def _opener(capture: CaptureFile, array: Stored) -> Opener:
    """Return what opens the array's file, which must not have changed, also if what it holds is at hand."""
    expected = capture.identity.get(array.path)
    require_unchanged(array.path, expected)
    return partial(stream_of, array, expected)


def _vectors(capture: CaptureFile, parts: Sequence[NamedAxes], head: int, heads: int) -> AnyArray:
    """Return one head of queries or keys, [batch, tokens, d_k], whose components may be in several tensors."""
    found = [
        part.read_head(_opener(capture, part.array), head // (heads // part.size("head")), capture.at_hand)
        for part in parts
    ]
    return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


def _require_filled(k: AnyArray, mask: BoolArray | None, array: Stored) -> None:
    """Raise CaptureError if several last keys are zeros that no mask hides: the end of a cache that is not filled."""
    seen: BoolArray = np.all(k == 0, axis=(0, 2))
    if mask is not None:
        seen = seen & np.any(mask, axis=(0, 1))
    filled = len(seen) - int(np.argmin(seen[::-1]))
    if filled < len(seen) - 1:
        raise array.error(
            "{where}: keys {first} to {last} are zeros and not hidden, like a cache that is not filled; save the "
            "first {first} keys, or say metadata 'lengths'",
            first=filled,
            last=len(seen) - 1,
        )


def _positions(capture: CaptureFile, stored: StoredLayer) -> npt.NDArray[np.int64]:
    """Return the position of each query among the keys; raise CaptureError if there is no such key."""
    layer, rows = stored.layer, stored.added.get("rows")
    if rows is None:
        first = layer.keys - layer.queries if layer.alignment == "bottom_right" else 0
        return first + np.arange(layer.queries)
    positions = rows.read(_opener(capture, rows), rows.shape, at_hand=capture.at_hand).astype(np.int64)
    among_keys = layer.causal or layer.window or layer.chunk or "slopes" in stored.added
    if positions.min() < 0 or (among_keys and positions.max() >= layer.keys):
        raise rows.error("{where} must hold positions from 0 to {keys}", keys=layer.keys - 1)
    return positions


def _of_head(capture: CaptureFile, stored: StoredLayer, role: str, head: int) -> float | None:
    """Return the number of one head in a tensor that has one for each; raise CaptureError if it is too large."""
    array = stored.added.get(role)
    if array is None:
        return None
    values = array.read(_opener(capture, array), (math.prod(array.shape),), at_hand=capture.at_hand)
    value = float(values[head])
    lowest = 0.0 if role == "slopes" else -LARGEST
    if not lowest <= value <= LARGEST:
        accepted = message("a number from {least:g} to {most:g}", least=lowest, most=LARGEST)
        raise array.error(
            "{where}: head {head} has {value:g}; must be {accepted}", head=head, value=value, accepted=accepted
        )
    return value


def _scale(capture: CaptureFile, stored: StoredLayer, head: int) -> float | FloatArray | None:
    """Return the file's multiplier of q·k as stored, for the head, or for each of its texts and queries."""
    layer, array = stored.layer, stored.added.get("scales")
    if layer.head_scales is not None:
        return layer.head_scales[head]
    if array is None:
        return layer.scale
    scales = _of_rows(capture, layer, array, head)
    return float(scales[0, 0]) if scales.size == 1 else scales


def _of_rows(capture: CaptureFile, layer: Layer, array: Stored, head: int) -> FloatArray:
    """Return a head's multipliers or factors of texts and queries, [batch or 1, queries or 1]."""
    shape = scales_shape(array.shape, layer.sizes)
    assert shape is not None, "a layer without such a shape is refused"
    values = (
        array.read(_opener(capture, array), array.shape, at_hand=capture.at_hand).reshape(shape).astype(np.float64)
    )
    of_head = values[:, head if shape[1] > 1 else 0]
    if not (np.isfinite(of_head) & (of_head > 0)).all():
        raise array.error("{where}: head {head} has a scale that is not a positive number", head=head)
    return of_head


def _tensor_of_scales(stored: StoredLayer) -> tuple[Path, str, tuple[int, int, int]] | None:
    """Return the tensor of multipliers and its shape, (batch or 1, heads or 1, queries or 1)."""
    array = stored.added["scales"]
    shape = scales_shape(array.shape, stored.layer.sizes)
    return None if shape is None else (array.path, array.name, shape)


def _finite(
    values: AnyArray, wide: type[np.float32] | type[np.float64], array: Stored, layer: Layer, head: int
) -> FloatArray:
    """Return the values as a contiguous array of a computable dtype; raise CaptureError if one is not finite."""
    if values.dtype == np.float16 and wide is np.float32:
        numbers = _halves().take(values.view(np.uint16), mode="clip")
    else:
        with np.errstate(all="ignore"):  # a signalling NaN is reported below, once
            numbers = np.ascontiguousarray(values, dtype=wide)
    finite = np.isfinite(numbers)
    if not finite.all():
        raise _not_finite(array, layer, head, finite)
    return numbers


@cache
def _halves() -> FloatArray:
    """Return all float16 numbers in float32, by their bits; NumPy converts three times slower than this is read."""
    with np.errstate(all="ignore"):
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _not_finite(
    array: Stored, layer: Layer, head: int, finite: BoolArray, kind: type[NotFiniteError] = NotFiniteError
) -> NotFiniteError:
    bad = int(finite.size - np.count_nonzero(finite))
    return kind(
        "{where}: layer {index}, head {head} has {bad} of {size} values that are NaN or infinite; all must be finite",
        where=array.where,
        index=layer.index,
        head=head,
        bad=bad,
        size=finite.size,
    )


def _mask_and_biases(
    capture: CaptureFile, stored: StoredLayer, head: int, positions: npt.NDArray[np.int64]
) -> tuple[
    BoolArray | None, BoolArray | None, tuple[Bias | Slope, ...], tuple[MaskTensor, ...], tuple[int, ...] | None
]:
    """Return the keys that masks and lengths let queries see, queries that do not count, what logits gain, how the
    masks were understood, and the lengths of texts, unless a mask hides padding."""
    layer, lengths = stored.layer, stored.lengths
    mask: BoolArray | None = None
    left_out: BoolArray | None = None
    used: list[MaskTensor] = []
    biases: list[Bias | Slope] = []
    for convention in stored.masks:
        if convention.of_queries:
            out, one = _left_out(capture, convention, layer, positions)
            left_out = out if left_out is None else left_out | out
            used.append(one)
    tensors = [(convention, False) for convention in stored.masks if not convention.of_queries]
    if "bias" in stored.added:
        tensors.append((MaskConvention(stored.added["bias"], "visible", stored.declared), True))
    for convention, is_bias in tensors:
        visible, added, one = _mask_or_bias(capture, convention, is_bias, layer, head, positions)
        used.append(one)
        if visible is not None:
            mask = visible if mask is None else mask & visible
        if added is not None:
            biases.append(Bias(added))
    if mask is not None and not mask.any(axis=1).all():  # it hides keys from all queries: padding
        lengths = None
    if lengths is not None:
        within = np.arange(layer.keys) < np.array(lengths)[:, np.newaxis, np.newaxis]
        mask = within if mask is None else mask & within
    slope = _of_head(capture, stored, "slopes", head)
    if slope is not None:
        biases.append(Slope(slope, positions, layer.keys))
    return mask, left_out, tuple(biases), tuple(used), lengths


def _mask_or_bias(
    capture: CaptureFile,
    masking: MaskConvention,
    is_bias: bool,
    layer: Layer,
    head: int,
    positions: npt.NDArray[np.int64],
) -> tuple[BoolArray | None, FloatArray | None, MaskTensor]:
    """Return the keys that a tensor lets queries see, what it adds to logits, and how it was understood.

    Where only some queries are stored, a bias may have rows for all tokens.
    """
    array = masking.array
    whole = (
        is_bias
        and layer.rows is not None
        and not layer.cross
        and len(array.shape) >= 2
        and array.shape[-2] == layer.keys
    )
    if whole and layer.queries == layer.keys > 1 and (positions != np.arange(layer.keys)).any():
        raise array.error(
            "{where} may have its rows in the order of the queries or of the keys; save the queries in the order "
            "of the keys"
        )
    sizes = (layer.batch, layer.heads, layer.keys if whole else layer.queries, layer.keys)
    places = positions if layer.of_one_text else None
    visible, added, form = read_mask(
        _opener(capture, array), array, head, sizes, capture.at_hand, masking.meaning, is_bias, masking.sure, places
    )
    shape = mask_shape(array, sizes, is_bias)
    place = head if shape[1] > 1 else 0
    used = MaskTensor(
        array.path, array.name, shape, place, form, added is not None, visible is not None, of_tokens=whole
    )
    if whole and visible is not None and visible.shape[1] > 1:
        visible = visible[:, positions]
    if whole and added is not None and added.shape[1] > 1:
        added = added[:, positions]
    return visible, added, used


def _left_out(
    capture: CaptureFile, masking: MaskConvention, layer: Layer, positions: npt.NDArray[np.int64]
) -> tuple[BoolArray, MaskTensor]:
    """Return the queries, [batch or 1, queries], that a mask of queries leaves out, and how it was understood."""
    array, count = query_mask(masking.array, layer.sizes, layer.rows is not None)
    sizes = (layer.batch, 1, 1, count)
    visible, added, form = read_mask(
        _opener(capture, array), array, 0, sizes, capture.at_hand, masking.meaning, sure=masking.sure
    )
    if visible is None or added is not None:
        raise CaptureError(
            "{where} has values that are not a mask's of queries; must be bool or 0 and 1", where=array.where
        )
    left_out = ~visible[:, 0]
    of_tokens = count != layer.queries
    shape = len(visible), count
    used = MaskTensor(array.path, array.name, shape, 0, form, of_queries=True, of_tokens=of_tokens)
    return left_out[:, positions] if of_tokens else left_out, used


def _visibility(
    layer: Layer, positions: npt.NDArray[np.int64], mask: BoolArray | None, left_out: BoolArray | None
) -> Visibility | None:
    """Combine masks, a causal mask, a window and chunks; None if they hide nothing."""
    before, after = layer.window or (None, None)
    if layer.causal is not None:
        after = 0
    if after is not None and after + int(positions.min()) >= layer.keys - 1:
        after = None
    if mask is not None and bool(mask.all()):
        mask = None
    if left_out is not None and not left_out.any():
        left_out = None
    if mask is None and left_out is None and before is None and after is None and layer.chunk is None:
        return None
    return Visibility(
        keys=layer.keys,
        positions=positions,
        mask=mask,
        before=before,
        after=after,
        chunk=layer.chunk,
        self_attention=layer.of_one_text,
        left_out=left_out,
    )
