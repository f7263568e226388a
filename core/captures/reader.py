"""Open a file of captured queries and keys."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..message import message
from .beside.roles import OF_POSITIONS
from .beside.unknown import Unknown
from .capture import Layer, Meaning, sample_path
from .files import CaptureError, NoQueriesError, plain, quoted
from .folder import folder_groups, one_capture
from .head import CaptureFile, Head, read_head
from .kinds.catalogue import contents
from .layers import LARGEST, StoredLayer, build_layer
from .layout import parse_axes
from .metadata.file import Metadata
from .metadata.keys import SCHEMAS
from .naming import ACCEPTED, HEADS_FIRST, Pair, pairs, partner
from .stored import Contents, Stored

__all__ = ["LARGEST", "CaptureError", "CaptureFile", "Head", "open_capture", "read_head", "sample_path"]

_LISTED = 8  # names in the note on what is not used
_MOST_NOTES = 40


def open_capture(
    path: str | os.PathLike[str], axes: str | None = None, mask_true: Meaning | None = None
) -> CaptureFile:
    """Return the contents of a file or folder, from headers; raise CaptureError, one line, if it cannot be read.

    `axes` names the axes of every tensor of queries and keys, for example "batch,token,head,d_k", and `mask_true` is
    what True means in its masks.
    """
    place = Path(path)
    if not os.path.isdir(place):
        return _capture(place, contents(place), axes, mask_true)
    groups, notes = folder_groups(place)
    captures: list[CaptureFile] = []
    refusal: NoQueriesError | None = None
    for group in groups:
        try:
            captures.append(_capture(group.path, group.contents, axes, mask_true))
        except NoQueriesError as error:
            refusal = refusal or error
            notes.append(message("{name} is left out: it has no queries and keys", name=plain(group.path.name)))
    if refusal is not None and not captures:
        raise refusal
    if len(captures) == 1:
        return replace(captures[0], notes=_few([*notes, *captures[0].notes]))
    whole = one_capture(place, captures, notes)
    return replace(whole, notes=_few(whole.notes))


def _capture(file: Path, found: Contents, axes: str | None, mask_true: Meaning | None) -> CaptureFile:
    """Return what the files of one capture contain; `file` is the one that names it."""
    metadata = Metadata(file, found.metadata)
    given = None
    if axes is not None:
        given = parse_axes(axes, "axes")
    elif "axes" in found.metadata:
        given = parse_axes(found.metadata["axes"], message("{file}: metadata 'axes'", file=plain(file)))
    elif found.metadata.get("schema") in SCHEMAS:
        given = HEADS_FIRST
    lengths = metadata.lengths()
    found_pairs, left_out = pairs(found.arrays)
    if not found_pairs:
        raise NoQueriesError(_no_pair(file, found))
    notes = [*found.notes]
    stored: list[StoredLayer] = []
    used: set[str] = set()
    for position, pair in enumerate(found_pairs):
        layer_metadata = metadata.layer(position, pair.index, len(found_pairs), pair.numbered)
        if pair.words.projection and pair.inside and layer_metadata.heads is None:
            layer_metadata = replace(layer_metadata, **_heads_of(metadata.config or {}, found.arrays[pair.q].shape))
        layer, layer_notes, names = build_layer(
            position, pair, layer_metadata, found.arrays, given, lengths, mask_true
        )
        stored.append(layer)
        notes += layer_notes
        used |= names
    unused = sorted(name for name in found.arrays if name not in used)
    factor = _context_factor(metadata)
    unknown = Unknown(unused)
    stored = [
        _completed(each, pair, unknown, found.arrays, factor) for each, pair in zip(stored, found_pairs, strict=True)
    ]
    stored = [replace(each, layer=replace(each.layer, path=str(file))) for each in stored]
    stored = _without_positions(stored, found_pairs)
    layers = tuple(each.layer for each in stored)
    notes += _missing_scales(layers)
    notes += _only_in_config(metadata.config or {}, layers)
    unused += metadata.unused
    if unused:
        notes.append(_unused(unused))
    notes += [
        message("layer {index} is not measured: {refusal}", index=layer.index, refusal=layer.refusal)
        for layer in layers
        if layer.refusal
    ]
    notes += left_out
    batch, keys = layers[0].batch, layers[0].keys
    if lengths is not None and (len(lengths) != batch or max(lengths) > keys):
        lengths = None
        notes.append(
            message(
                "the metadata's lengths are ignored: they do not match {batch} texts of {keys} tokens",
                batch=batch,
                keys=keys,
            )
        )
    tokens = metadata.tokens()
    if tokens is not None and [len(text) for text in tokens] != [keys] * batch:
        tokens = None
        notes.append(
            message(
                "the metadata's tokens are ignored: they do not match {batch} texts of {keys} tokens",
                batch=batch,
                keys=keys,
            )
        )
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
        notes=_few([*dict.fromkeys(notes)]),
        files=tuple(path for path, _ in found.files),
        stored=tuple(stored),
        identities=found.files,
        unused=tuple(map(plain, unused)),
        step=metadata.number("step"),
        d_model=metadata.number("d_model"),
        n_heads=metadata.number("n_heads"),
        config=metadata.config,
    )


def _heads_of(config: Mapping[str, object], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the heads that a model's configuration gives to queries with heads side by side, and their width."""
    for inner in (config, config.get("text_config")):
        if not isinstance(inner, Mapping):
            continue
        known = cast("Mapping[str, object]", inner)
        for key in ("num_attention_heads", "n_head", "n_heads", "num_heads"):
            heads = known.get(key)
            if type(heads) is int and heads > 0 and 1 < len(shape) < 4 and shape[-1] % heads == 0:
                return {"heads": heads, "d_k": shape[-1] // heads}
    return {}


def _completed(
    stored: StoredLayer, pair: Pair, unknown: Unknown, arrays: Mapping[str, Stored], factor: float | None
) -> StoredLayer:
    """Return the layer with what only the whole file tells."""
    refusal = stored.layer.refusal or unknown.refusal(pair, arrays, stored.layer.sizes)
    return replace(stored, layer=replace(stored.layer, refusal=refusal, context_factor=factor))


def _without_positions(stored: Sequence[StoredLayer], layer_pairs: Sequence[Pair]) -> list[StoredLayer]:
    """Return the layers; those without a bias of positions that another layer of their stack has are refused.

    T5 computes its bias in the first layer and adds it in all.
    """
    stacks = [re.sub(r"\d+", "#", pair.before + pair.after) for pair in layer_pairs]
    having: dict[str, str] = {}
    for each, pair, stack in zip(stored, layer_pairs, stacks, strict=True):
        for array in (each.roles[role] for role in ("bias", "slopes") if role in each.roles):
            word = pair.word(array.name)
            if word in OF_POSITIONS and array.name == pair.named(word) != word:
                having.setdefault(stack, array.name)
    completed: list[StoredLayer] = []
    for each, stack in zip(stored, stacks, strict=True):
        lacks = stack in having and not each.layer.cross and not {"bias", "slopes"} & {*each.roles}
        if lacks and not each.layer.refusal:
            refusal = message(
                "tensor {name} may belong to this layer too; save it in each layer, or once without a layer",
                name=quoted(having[stack]),
            )
            each = replace(each, layer=replace(each.layer, refusal=refusal))
        completed.append(each)
    return completed


def _context_factor(metadata: Metadata) -> float | None:
    """Return how many times longer the model's configuration makes its context; None if it does not say."""
    config = metadata.config or {}
    for key in ("rope_scaling", "rope_parameters"):
        scaling = config.get(key)
        if isinstance(scaling, dict):
            factor = cast("dict[str, object]", scaling).get("factor")
            if isinstance(factor, (int, float)) and not isinstance(factor, bool) and factor >= 1:
                return float(factor)
    return None


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes, of which a file may cause one for every tensor, up to a number that can be read."""
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], message("and {more} more notes", more=more)) if more > 1 else tuple(notes)


def _unused(names: Sequence[str]) -> str:
    """Return the note that names what is not used."""
    shown = ", ".join(map(quoted, names[:_LISTED]))
    more = len(names) - _LISTED
    if more > 0:
        return message("not used: {shown} and {more} more (all are in the JSON output)", shown=shown, more=more)
    return message("not used: {shown}", shown=shown)


def _missing_scales(layers: Sequence[Layer]) -> list[str]:
    missing = [layer for layer in layers if layer.scale is None and not (layer.head_scales or layer.scales)]
    if not missing:
        return []
    if len(missing) == len(layers):
        return [message("the file does not specify the scale; assuming 1/√d_k if one is needed")]
    which = ", ".join(str(layer.index) for layer in missing)
    return [
        message("the file does not specify the scale of layer {which}; assuming 1/√d_k if one is needed", which=which)
    ]


def _only_in_config(config: Mapping[str, object], layers: Sequence[Layer]) -> list[str]:
    """Return a note for each thing that changes attention in the model's configuration, but not in the capture."""
    inner = config.get("text_config")
    known = {**cast("Mapping[str, object]", inner), **config} if isinstance(inner, Mapping) else config
    without = {
        "attn_logit_softcapping": [layer for layer in layers if layer.softcap is None],
        "sliding_window": [layer for layer in layers if not (layer.window or layer.mask or layer.bias)],
        "attention_chunk_size": [layer for layer in layers if not (layer.chunk or layer.mask or layer.bias)],
    }
    if known.get("use_sliding_window") is False:
        del without["sliding_window"]
    notes: list[str] = []
    for key, lacking in without.items():
        value = known.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            continue
        if key != "attn_logit_softcapping":
            types = known.get("layer_types")
            listed = cast("list[object]", types) if isinstance(types, list) else []
            word = "chunk" if "chunk" in key else "slid"
            lacking = [layer for layer in lacking if layer.keys > value and _has_type(listed, layer.index, word)]
        if lacking:
            which = ", ".join(str(layer.index) for layer in lacking[:_LISTED])
            more = ", …" if len(lacking) > _LISTED else ""
            said = message(
                "the model's configuration has {key} {value:g}, but the capture does not", key=key, value=value
            )
            notes.append(message("{said}: not applied in layer {which}{more}", said=said, which=which, more=more))
    return notes


def _has_type(types: Sequence[object], index: int, word: str) -> bool:
    """Return whether a layer has this word in its type, or no type is known."""
    return index >= len(types) or word in str(types[index])


def _no_pair(path: Path, found: Contents) -> str:
    """Explain in one line why the file has no queries and keys."""
    names: Sequence[str] = sorted(found.arrays)
    listed = ", ".join(quoted(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    if len(names) == 1 and (other := partner(names[0])):
        return message(
            "{path}: has {listed} but not {other}; both are needed",
            path=plain(path),
            listed=listed,
            other=quoted(other),
        )
    if any(name.endswith((".weight", ".bias")) for name in names):
        return message(
            "{path}: has a model's weights ({listed}), not the queries and keys computed from a text; "
            "tensors must be named {accepted}",
            path=plain(path),
            listed=listed,
            accepted=ACCEPTED,
        )
    return message(
        "{path}: no queries and keys in {listed}; tensors must be named {accepted}",
        path=plain(path),
        listed=listed or "an empty file",
        accepted=ACCEPTED,
    )
