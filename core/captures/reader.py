"""A file of captured queries and keys: what it holds, and one head of it at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from ..arrays import BoolArray, FloatArray
from .files import AnyArray, CaptureError, Identity, Stored, opened, plain, quoted
from .formats import Contents, contents
from .layers import LARGEST, Layer, build_layer
from .layout import parse_axes
from .masks import causal_mask, read_mask
from .metadata import SCHEMA, Metadata
from .naming import ACCEPTED, HEADS_FIRST, pairs, partner

__all__ = ["LARGEST", "Capture", "CaptureError", "Head", "Layer", "open_capture", "read_head", "sample_path"]


@dataclass(frozen=True)
class Capture:
    """What a file holds, from its headers alone; `read_head` reads the numbers."""

    path: Path
    model: str | None
    source: str | None
    licence: str | None
    text: tuple[str, ...] | None  # of each batch element, or one for all
    text_licence: str | None
    tokens: tuple[tuple[str, ...], ...] | None  # of each batch element: a name for every key
    lengths: tuple[int, ...] | None  # of each batch element: tokens that are not padding
    layers: tuple[Layer, ...]  # in order of index
    notes: tuple[str, ...]  # everything that had to be assumed
    files: tuple[tuple[Path, Identity], ...]  # what they were when they were opened


@dataclass(frozen=True, eq=False)
class Head:
    """One query head with the key head it reads."""

    q: FloatArray  # [batch, queries, d_k], float64 if the file holds float64, else float32
    k: FloatArray  # [batch, keys, d_k]
    visible: BoolArray | None  # [batch or 1, queries, keys], read-only; True = may be attended to; None = all


def sample_path() -> Path:
    """The real capture that is shipped with the program."""
    return Path(str(resources.files(__package__ or __name__) / "minilm-sample.safetensors"))


def open_capture(path: str | os.PathLike[str], axes: str | None = None) -> Capture:
    """What the file holds, from its headers; raises CaptureError with one line that says what is wrong.

    `axes` names the axes of every tensor of queries and keys, as in "batch,token,head,d_k".
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
    layers: list[Layer] = []
    for position, pair in enumerate(found_pairs):
        said = metadata.layer(position, pair.index, len(found_pairs))
        layer, layer_notes = build_layer(pair, said, found.arrays, given, lengths)
        layers.append(layer)
        notes += layer_notes
    notes += _unsaid_scales(layers)
    batch, keys = layers[0].batch, layers[0].keys
    if lengths is not None and (len(lengths) != batch or max(lengths) > keys):
        lengths = None
        notes.append(f"the metadata's lengths are left out: they are not those of {batch} texts of {keys} tokens")
    tokens = metadata.tokens()
    if tokens is not None and [len(text) for text in tokens] != [keys] * batch:
        tokens = None
        notes.append(f"the metadata's tokens are left out: they are not those of {batch} texts of {keys} tokens")
    return Capture(
        path=file,
        model=metadata.line("model"),
        source=metadata.line("model_source"),
        licence=metadata.line("model_licence"),
        text=metadata.texts(batch),
        text_licence=metadata.line("text_licence"),
        tokens=tokens,
        lengths=lengths,
        layers=tuple(layers),
        notes=tuple(dict.fromkeys(notes)),
        files=found.files,
    )


def read_head(capture: Capture, layer: Layer, head: int) -> Head:
    """The numbers of one head: query head h reads key head h // (heads / kv_heads).

    Raises CaptureError for numbers that are not finite and for a file that changed since it was opened.
    """
    if not 0 <= head < layer.heads:
        raise CaptureError(f"{plain(capture.path)}: layer {layer.index} has heads 0 to {layer.heads - 1}, no {head}")
    files = dict(capture.files)
    stored_q, stored_k = layer.stored_q, layer.stored_k
    with opened(stored_q.array.path, files[stored_q.array.path]) as (stream, _):
        q = stored_q.read_head(stream, head)
    with opened(stored_k.array.path, files[stored_k.array.path]) as (stream, _):
        k = stored_k.read_head(stream, head // (layer.heads // layer.kv_heads))
    wide = np.float64 if np.float64 in (q.dtype, k.dtype) else np.float32
    return Head(
        _finite(q, wide, stored_q.array, layer, head),
        _finite(k, wide, stored_k.array, layer, head),
        _visible(layer, head, files),
    )


def _finite(
    values: AnyArray, wide: type[np.float32] | type[np.float64], array: Stored, layer: Layer, head: int
) -> FloatArray:
    """The values as contiguous numbers that can be computed with."""
    with np.errstate(all="ignore"):  # a signalling NaN is reported below, once
        numbers = np.ascontiguousarray(values, dtype=wide)
    finite = np.isfinite(numbers)
    if not finite.all():
        bad = int(numbers.size - np.count_nonzero(finite))
        raise CaptureError(
            f"{array.where}: layer {layer.index}, head {head} holds {bad} of {numbers.size} values that are NaN or "
            "infinite; finite numbers are accepted"
        )
    return numbers


def _visible(layer: Layer, head: int, files: dict[Path, Identity]) -> BoolArray | None:
    """Everything that hides a key, together; None where nothing does."""
    visible: BoolArray | None = None
    if layer.stored_mask is not None:
        with opened(layer.stored_mask.path, files[layer.stored_mask.path]) as (stream, _):
            visible = read_mask(stream, layer.stored_mask, head, layer.sizes)
    elif layer.lengths is not None:
        visible = np.arange(layer.keys) < np.array(layer.lengths)[:, np.newaxis, np.newaxis]
    if layer.causal is not None:
        causal = causal_mask(layer.queries, layer.keys, layer.causal)[np.newaxis]
        visible = causal if visible is None else visible & causal
    if visible is None or bool(visible.all()):
        return None
    return np.broadcast_to(visible, (visible.shape[0], layer.queries, layer.keys))


def _unsaid_scales(layers: Sequence[Layer]) -> list[str]:
    silent = [layer for layer in layers if layer.scale is None]
    if not silent:
        return []
    which = "" if len(silent) == len(layers) else " of layer " + ", ".join(str(layer.index) for layer in silent)
    return [f"the file does not say the scale{which}; 1/√d_k is assumed where one is needed"]


def _no_pair(path: Path, found: Contents) -> str:
    """Why there are no queries and keys, as one line."""
    names: Sequence[str] = sorted(found.arrays)
    listed = ", ".join(quoted(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    if len(names) == 1 and (other := partner(names[0])):
        return f"{plain(path)}: holds {listed} without its {quoted(other)}; both are needed"
    if any(name.endswith((".weight", ".bias")) for name in names):
        return (
            f"{plain(path)}: holds a model's weights ({listed}), not the queries and keys it computed from a text; "
            f"tensors named {ACCEPTED} are accepted"
        )
    return f"{plain(path)}: no queries and keys among {listed or 'no tensors'}; tensors named {ACCEPTED} are accepted"
