"""One layer of a capture: its sizes, checked, and what the file says of how its scores were used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .files import FLOATS, CaptureError, Stored, plain, quoted
from .layout import FLAT, Located, find_axes, locate
from .masks import Sizes, mask_note, mask_shape
from .metadata import Said
from .naming import Axes, Pair, shared_mask

LARGEST = 1 << 28  # numbers in the scores, in the queries and keys, or in the mask of one head


@dataclass(frozen=True)
class Layer:
    """One layer's queries and keys, and what the file says of how they were used."""

    index: int  # the layer's number in the model
    name: str
    heads: int
    kv_heads: int
    batch: int
    queries: int
    keys: int
    d_k: int
    dtype: str  # as stored
    scale: float | None  # the multiplier that the file says was used
    causal: Literal["top_left", "bottom_right"] | None
    softcap: float | None
    mask: str | None  # the name of the mask's tensor
    stored_q: Located
    stored_k: Located
    stored_mask: Stored | None
    lengths: tuple[int, ...] | None  # of the texts of a padded batch, where no mask says it

    @property
    def sizes(self) -> Sizes:
        """[batch, heads, queries, keys]: the shape of the layer's scores."""
        return self.batch, self.heads, self.queries, self.keys


def build_layer(
    pair: Pair, said: Said, arrays: Mapping[str, Stored], given: Axes | None, lengths: tuple[int, ...] | None
) -> tuple[Layer, list[str]]:
    """The layer of a pair of tensors and a note for everything that had to be assumed.

    `given` are the axes that a person or the file named. Raises CaptureError where the pair makes no layer.
    """
    q, k = arrays[pair.q], arrays[pair.k]
    for array in (q, k):
        _require_numbers(array)
    axes, note = find_axes(q, k, pair, given, said.heads, said.d_k)
    notes = [] if note is None else [note]
    located_q = locate(q, axes, said.heads)
    located_k = locate(k, axes, _flat_kv_heads(q, k, axes, said))
    sizes = _sizes(located_q, located_k)
    _require_as_said(located_q, sizes, said)
    kv_heads = located_k.size("head")
    if said.kv_heads not in (None, kv_heads):
        notes.append(f"k has {kv_heads} heads where the metadata says {said.kv_heads}; read as it is")
    if pair.words.projection and pair.inside:
        notes.append(
            f"{pair.words.q} and {pair.words.k} are read as they are: rotary embedding and QK-norm, if the model has "
            "them, come after"
        )
    causal, causal_notes = _causal(said, sizes)
    mask, mask_notes = _mask(pair, said, arrays, sizes)
    notes += [*causal_notes, *mask_notes]
    padded = None
    if mask is None and not said.unmasked and lengths is not None and len(lengths) == sizes[0]:
        padded = lengths if min(lengths) < sizes[3] else None
    if padded is not None:
        notes.append("the file has lengths and no mask: keys beyond each text's length are taken as padding")
    layer = Layer(
        index=pair.index,
        name=said.name or plain(pair.label),
        heads=sizes[1],
        kv_heads=kv_heads,
        batch=sizes[0],
        queries=sizes[2],
        keys=sizes[3],
        d_k=located_q.size("d_k"),
        dtype=q.dtype,
        scale=said.scale,
        causal=causal,
        softcap=said.softcap,
        mask=None if mask is None else plain(mask.name),
        stored_q=located_q,
        stored_k=located_k,
        stored_mask=mask,
        lengths=padded,
    )
    return layer, notes


def _require_numbers(array: Stored) -> None:
    """Refuse what holds no floating-point numbers, saying why."""
    if array.dtype in FLOATS:
        if 0 in array.shape:
            raise CaptureError(f"{array.where} is empty: its shape is {array.shown}")
        return
    if array.dtype == "object":
        reason = "holds Python objects, which are refused: no pickle is read"
    elif array.dtype == "void":
        reason = "has lost its type, as bfloat16 does in NumPy's files: save it as .safetensors"
    elif array.dtype == "structured":
        reason = "is a structured array; save q and k as arrays of their own"
    else:
        reason = f"holds {plain(array.dtype)}"
    raise CaptureError(f"{array.where} {reason}; {', '.join(FLOATS)} are accepted")


def _flat_kv_heads(q: Stored, k: Stored, axes: Axes, said: Said) -> int | None:
    """Into how many heads flat keys are split: as many as queries' d_k goes into them."""
    if FLAT not in axes or said.heads is None:
        return said.kv_heads
    place = axes.index(FLAT)
    return max(k.shape[place] * said.heads // q.shape[place], 1)


def _sizes(q: Located, k: Located) -> Sizes:
    """[batch, heads, queries, keys]; raises CaptureError where q and k do not belong together, or are too large."""
    where = f"{q.array.where} of shape {q.array.shown} and {quoted(k.array.name)} of {k.array.shown}"
    hint = "check the axes"
    for axis, problem in (("batch", "batch elements"), ("d_k", "numbers a vector (d_k)")):
        if q.size(axis) != k.size(axis):
            raise CaptureError(f"{where} have {q.size(axis)} and {k.size(axis)} {problem}; {hint}")
    heads, kv_heads = q.size("head"), k.size("head")
    if heads % kv_heads:
        raise CaptureError(f"{where}: {heads} query heads cannot share {kv_heads} key heads; {hint}")
    batch, queries, keys = q.size("batch"), q.size("token"), k.size("token")
    for what, count in (
        (f"{queries} queries × {keys} keys make {queries * keys} scores a head", queries * keys),
        ("the queries and keys of one head are too many numbers", batch * (queries + keys) * q.size("d_k")),
    ):
        if count > LARGEST:
            raise CaptureError(f"{q.array.where}: {what}; at most {LARGEST} are accepted")
    return batch, heads, queries, keys


def _require_as_said(q: Located, sizes: Sizes, said: Said) -> None:
    """The metadata and the shape must agree: where they do not, the axes are probably others."""
    for word, claimed, have in (("heads", said.heads, sizes[1]), ("d_k", said.d_k, q.size("d_k"))):
        if claimed not in (None, have):
            raise CaptureError(f"{q.array.where} has {have} {word} where the metadata says {claimed}; check the axes")


def _causal(said: Said, sizes: Sizes) -> tuple[Literal["top_left", "bottom_right"] | None, list[str]]:
    """The corner a causal mask is aligned with; a square has but one alignment."""
    if said.causal == "top_left" or said.causal == "bottom_right":
        return said.causal, []
    if said.causal is None:
        return None, ["the file does not say whether attention is causal; taken as not"]
    if said.causal == "no":
        return None, []
    _, _, queries, keys = sizes
    if queries == keys:
        return "top_left", []
    return "top_left", [
        f"causal on {queries} queries and {keys} keys without an alignment; taken as top-left, as PyTorch's is_causal"
    ]


def _mask(pair: Pair, said: Said, arrays: Mapping[str, Stored], sizes: Sizes) -> tuple[Stored | None, list[str]]:
    """The layer's mask: the one the metadata names, the one beside its tensors, or the whole file's."""
    if said.unmasked:
        return None, []
    if said.mask is not None and said.mask not in arrays:
        raise CaptureError(
            f"{arrays[pair.q].where}: the metadata names the mask {quoted(said.mask)}, which the file does not hold"
        )
    notes: list[str] = []
    name = said.mask or pair.mask
    if name is None:
        name = shared_mask(arrays)
        if name is None:
            return None, []
        notes.append(f"{quoted(name)} is taken as the mask of every layer that has none of its own")
    mask = arrays[name]
    if mask.format is None or (mask.format.kind not in "biuf" and mask.dtype not in FLOATS):
        raise CaptureError(f"{mask.where} holds {plain(mask.dtype)}; bool, whole numbers or floats are accepted")
    shape = mask_shape(mask, sizes)
    if shape[0] * shape[2] * shape[3] > LARGEST:
        raise CaptureError(f"{mask.where} is too large; at most {LARGEST} numbers a head are accepted")
    note = mask_note(mask, sizes)
    return mask, notes if note is None else [*notes, note]
