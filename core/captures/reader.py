"""Open files of captured queries and keys."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..message import message
from ..plain import Plain, plain, quoted
from .beside.roles import OF_POSITIONS
from .beside.unknown import Unknown
from .capture import Layer, Meaning
from .files import CaptureError, NoQueriesError
from .folder import folder_groups, one_capture
from .head import CaptureFile
from .kinds.catalogue import contents
from .layers import Given, StoredLayer, build_layer
from .metadata.file import Metadata, unpacked
from .metadata.keys import SCHEMAS
from .metadata.model import context_factor, heads_of, only_in_config
from .naming import ACCEPTED, HEADS_FIRST, Axes, Pair, pairs, partner
from .stored import Contents
from .vectors.layout import parse_axes

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


def open_captures(
    paths: Sequence[Path], axes: str | None = None, mask_true: Meaning | None = None
) -> list[CaptureFile]:
    """Return the contents of files or folders in order; if there are several, layers are named after their file.

    Raise CaptureError, one line, if one cannot be read or is given twice.
    """
    captures: list[CaptureFile] = []
    for number, path in enumerate(paths):
        captures.append(open_capture(path, axes, mask_true))
        if any(os.path.samefile(path, other) for other in paths[:number]):
            raise CaptureError("{path}: is given twice", path=plain(path))
    if len(captures) == 1:
        return captures
    names = [path.name for path in paths]
    labels = names if len({*names}) == len(names) else [*map(str, paths)]
    return [_named(capture, plain(label)) for capture, label in zip(captures, labels, strict=True)]


def _capture(file: Path, found: Contents, axes: str | None, mask_true: Meaning | None) -> CaptureFile:
    """Return what the files of one capture contain; `file` is the one that names it."""
    found = replace(found, metadata=unpacked(file, found.metadata))
    metadata = Metadata(file, found.metadata)
    given = Given(_axes(file, found, axes), metadata.lengths(), mask_true)
    found_pairs, left_out = pairs(found.arrays)
    if not found_pairs:
        raise NoQueriesError(_no_pair(file, found, left_out))
    stored, notes, unused = _layers(file, found, metadata, found_pairs, given)
    layers = tuple(each.layer for each in stored)
    notes += _missing_scales(layers)
    notes += only_in_config(metadata.config or {}, layers)
    unused += metadata.unused
    if unused:
        notes.append(_unused(unused))
    notes += [
        message("layer {index} is not measured: {refusal}", index=layer.index, refusal=layer.refusal)
        for layer in layers
        if layer.refusal
    ]
    notes += left_out
    lengths, tokens, ignored = _texts(metadata, layers[0])
    notes += ignored
    return CaptureFile(
        path=file,
        model=metadata.line("model"),
        source=metadata.line("model_source"),
        licence=metadata.line("model_licence"),
        text=metadata.texts(layers[0].batch),
        text_licence=metadata.line("text_licence"),
        tokens=tokens,
        lengths=lengths,
        layers=layers,
        notes=_few([*dict.fromkeys(notes)]),
        files=tuple(path for path, _ in found.files),
        stored=stored,
        identities=found.files,
        unused=tuple(map(plain, unused)),
        step=metadata.number("step"),
        d_model=metadata.number("d_model"),
        n_heads=metadata.number("n_heads"),
        config=metadata.config,
    )


def _axes(file: Path, found: Contents, axes: str | None) -> Axes | None:
    """Return the axes that the user, the file or its schema names; None if none of them does."""
    if axes is not None:
        return parse_axes(axes, "axes")
    if "axes" in found.metadata:
        return parse_axes(found.metadata["axes"], message("{file}: metadata 'axes'", file=plain(file)))
    return HEADS_FIRST if found.metadata.get("schema") in SCHEMAS else None


def _layers(
    file: Path, found: Contents, metadata: Metadata, layer_pairs: Sequence[Pair], given: Given
) -> tuple[tuple[StoredLayer, ...], list[str], list[str]]:
    """Return the layers, notes on what was assumed, and the names of the tensors that no layer uses."""
    notes = [*found.notes]
    stored: list[StoredLayer] = []
    used: set[str] = set()
    for position, pair in enumerate(layer_pairs):
        own = metadata.layer(position, pair.index, len(layer_pairs), pair.numbered)
        if pair.words.projection and pair.inside and own.heads is None:
            own = replace(own, **heads_of(metadata.config or {}, found.arrays[pair.q].shape))
        layer, layer_notes, names = build_layer(position, pair, own, found.arrays, given)
        stored.append(layer)
        notes += layer_notes
        used |= names
    unused = sorted(name for name in found.arrays if name not in used)
    unknown, factor = Unknown(unused), context_factor(metadata.config or {})
    for place, (each, pair) in enumerate(zip(stored, layer_pairs, strict=True)):
        refusal = each.layer.refusal or unknown.refusal(pair, found.arrays, each.layer.sizes)
        layer = replace(each.layer, refusal=refusal, context_factor=factor, path=str(file))
        stored[place] = replace(each, layer=layer)
    return tuple(_without_positions(stored, layer_pairs)), notes, unused


def _texts(
    metadata: Metadata, layer: Layer
) -> tuple[tuple[int, ...] | None, tuple[tuple[Plain, ...], ...] | None, list[str]]:
    """Return the lengths and the tokens of the texts, and a note for what is ignored because it does not fit."""
    lengths, tokens, batch, keys = metadata.lengths(), metadata.tokens(), layer.batch, layer.keys
    notes: list[str] = []
    if lengths is not None and (len(lengths) != batch or max(lengths) > keys):
        lengths = None
        notes.append(
            message(
                "the metadata's lengths are ignored: they do not match {batch} texts of {keys} tokens",
                batch=batch,
                keys=keys,
            )
        )
    if tokens is not None and [len(text) for text in tokens] != [keys] * batch:
        tokens = None
        notes.append(
            message(
                "the metadata's tokens are ignored: they do not match {batch} texts of {keys} tokens",
                batch=batch,
                keys=keys,
            )
        )
    return lengths, tokens, notes


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


def _no_pair(path: Path, found: Contents, left_out: Sequence[str]) -> str:
    """Explain in one line why the file has no queries and keys; `left_out` says what lacks its partner."""
    names: Sequence[str] = sorted(found.arrays)
    listed = ", ".join(quoted(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    if len(names) == 1 and (other := partner(names[0])):
        return message(
            "{path}: has {listed} but not {other}; both are needed",
            path=plain(path),
            listed=listed,
            other=quoted(other),
        )
    if left_out:
        return message("{path}: no queries and keys: {reason}", path=plain(path), reason=left_out[-1])
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


def _named(capture: CaptureFile, label: str) -> CaptureFile:
    """Return the capture with layers that say which file they are of, inside a folder too."""

    def named(layer: Layer) -> Layer:
        return replace(layer, file=f"{label}/{layer.file}" if layer.file else label)

    stored = tuple(replace(each, layer=named(each.layer)) for each in capture.stored)
    return replace(capture, layers=tuple(each.layer for each in stored), stored=stored)
