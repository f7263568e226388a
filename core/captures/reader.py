"""Open a file of captured queries and keys, and read one head at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path

import numpy as np

from ..arrays import FloatArray
from .capture import Capture, Layer
from .files import CaptureError, Identity, opened, plain, quoted
from .kinds.catalogue import contents
from .layers import LARGEST, StoredLayer, build_layer
from .layout import parse_axes
from .masks import Visibility, read_mask, visibility
from .metadata import SCHEMA, Metadata
from .naming import ACCEPTED, HEADS_FIRST, pairs, partner
from .stored import AnyArray, AtHand, Contents, Stored

__all__ = ["LARGEST", "CaptureError", "CaptureFile", "Head", "open_capture", "read_head", "sample_path"]


@dataclass(frozen=True)
class CaptureFile(Capture):
    """A capture and the location of its numbers in its files; `read_head` reads them."""

    stored: tuple[StoredLayer, ...]  # in the order of `layers`
    identities: tuple[tuple[Path, Identity], ...]  # of the files when they were opened
    at_hand: AtHand = field(default_factory=AtHand, compare=False, repr=False)  # decompressed with the last heads

    def described(self) -> Capture:
        """Return the contents without locations, which can be sent to a process without NumPy."""
        return Capture(**{each.name: getattr(self, each.name) for each in fields(Capture)})


@dataclass(frozen=True, eq=False)
class Head:
    """One query head and the key head it uses."""

    q: FloatArray  # [batch, queries, d_k], float64 if the file holds float64, else float32
    k: FloatArray  # [batch, keys, d_k]
    visibility: Visibility | None  # None: every query may attend to every key


def sample_path() -> Path:
    """Return the path of the real capture shipped with the program."""
    return Path(str(resources.files(__package__ or __name__) / "minilm-sample.safetensors"))


def open_capture(path: str | os.PathLike[str], axes: str | None = None) -> CaptureFile:
    """Return the contents of a file, from its headers; raise CaptureError, one line, if it cannot be read.

    `axes` names the axes of every tensor of queries and keys, for example "batch,token,head,d_k".
    """
    file = Path(path)
    found = contents(file)
    metadata = Metadata(file, found.metadata)
    given = None
    if axes is not None:
        given = parse_axes(axes, "axes")
    elif "axes" in found.metadata:
        given = parse_axes(found.metadata["axes"], f"{plain(file)}: metadata 'axes'")
    elif found.metadata.get("schema") == SCHEMA:
        given = HEADS_FIRST
    lengths = metadata.lengths()
    found_pairs, left_out = pairs(found.arrays)
    if not found_pairs:
        raise CaptureError(_no_pair(file, found))
    notes = [*found.notes, *left_out]
    stored: list[StoredLayer] = []
    for position, pair in enumerate(found_pairs):
        layer_metadata = metadata.layer(position, pair.index, len(found_pairs))
        layer, layer_notes = build_layer(position, pair, layer_metadata, found.arrays, given, lengths)
        stored.append(layer)
        notes += layer_notes
    layers = tuple(each.layer for each in stored)
    notes += _missing_scales(layers)
    batch, keys = layers[0].batch, layers[0].keys
    if lengths is not None and (len(lengths) != batch or max(lengths) > keys):
        lengths = None
        notes.append(f"the metadata's lengths are ignored: they do not match {batch} texts of {keys} tokens")
    tokens = metadata.tokens()
    if tokens is not None and [len(text) for text in tokens] != [keys] * batch:
        tokens = None
        notes.append(f"the metadata's tokens are ignored: they do not match {batch} texts of {keys} tokens")
    return CaptureFile(
        path=file,
        model=metadata.line("model"),
        source=metadata.line("model_source"),
        licence=metadata.line("model_licence"),
        text=metadata.texts(batch),
        text_licence=metadata.line("text_licence"),
        tokens=tokens,
        lengths=lengths,
        layers=layers,
        notes=tuple(dict.fromkeys(notes)),
        files=tuple(path for path, _ in found.files),
        stored=tuple(stored),
        identities=found.files,
    )


def read_head(capture: CaptureFile, layer: Layer, head: int) -> Head:
    """Return the numbers of one head; query head h uses key head h // (heads / kv_heads).

    Raise CaptureError if a number is not finite, or if the file has changed since it was opened.
    """
    if not 0 <= head < layer.heads:
        raise CaptureError(f"{plain(capture.path)}: layer {layer.index} has heads 0 to {layer.heads - 1}, not {head}")
    files, stored = dict(capture.identities), capture.stored[layer.position]
    with opened(stored.q.array.path, files[stored.q.array.path]) as (stream, _):
        q = stored.q.read_head(stream, head, capture.at_hand)
    with opened(stored.k.array.path, files[stored.k.array.path]) as (stream, _):
        k = stored.k.read_head(stream, head // (layer.heads // layer.kv_heads), capture.at_hand)
    wide = np.float64 if np.float64 in (q.dtype, k.dtype) else np.float32
    return Head(
        _finite(q, wide, stored.q.array, layer, head),
        _finite(k, wide, stored.k.array, layer, head),
        _visibility(capture, stored, head, files),
    )


def _finite(
    values: AnyArray, wide: type[np.float32] | type[np.float64], array: Stored, layer: Layer, head: int
) -> FloatArray:
    """Return the values as a contiguous array of a computable dtype; raise CaptureError if one is not finite."""
    with np.errstate(all="ignore"):  # a signalling NaN is reported below, once
        numbers = np.ascontiguousarray(values, dtype=wide)
    finite = np.isfinite(numbers)
    if not finite.all():
        bad = int(numbers.size - np.count_nonzero(finite))
        raise CaptureError(
            f"{array.where}: layer {layer.index}, head {head} has {bad} of {numbers.size} values that are NaN or "
            "infinite; all must be finite"
        )
    return numbers


def _visibility(
    capture: CaptureFile, stored: StoredLayer, head: int, files: dict[Path, Identity]
) -> Visibility | None:
    """Combine mask, lengths and causal mask; None if they hide nothing."""
    layer, mask = stored.layer, None
    if stored.mask is not None:
        with opened(stored.mask.path, files[stored.mask.path]) as (stream, _):
            mask = read_mask(stream, stored.mask, head, layer.sizes, capture.at_hand)
    elif stored.lengths is not None:
        mask = np.arange(layer.keys) < np.array(stored.lengths)[:, np.newaxis, np.newaxis]
    return visibility(layer.queries, layer.keys, mask, layer.causal)


def _missing_scales(layers: Sequence[Layer]) -> list[str]:
    missing = [layer for layer in layers if layer.scale is None]
    if not missing:
        return []
    which = "" if len(missing) == len(layers) else " of layer " + ", ".join(str(layer.index) for layer in missing)
    return [f"the file does not specify the scale{which}; assuming 1/√d_k if one is needed"]


def _no_pair(path: Path, found: Contents) -> str:
    """Explain in one line why the file has no queries and keys."""
    names: Sequence[str] = sorted(found.arrays)
    listed = ", ".join(quoted(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    if len(names) == 1 and (other := partner(names[0])):
        return f"{plain(path)}: has {listed} but not {quoted(other)}; both are needed"
    if any(name.endswith((".weight", ".bias")) for name in names):
        return (
            f"{plain(path)}: has a model's weights ({listed}), not the queries and keys computed from a text; "
            f"tensors must be named {ACCEPTED}"
        )
    return f"{plain(path)}: no queries and keys in {listed or 'an empty file'}; tensors must be named {ACCEPTED}"
