"""Open captures: a file, or a folder of files as one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ..message import message, plain, quoted, short
from ..texts import LARGEST, TextError, decoded
from .axes import parse_axes
from .capture import NO_HINTS, Hints, Layer, Meaning, Texts
from .features import SCHEMAS
from .files import CaptureError, Identity, NoQueriesError, contents, opened
from .files.safetensors import MOST_FILES, joined
from .files.stored import FileContents, Stored
from .head import CaptureFile, shows_no_later_key
from .layers import OF_POSITIONS, FileFacts, StoredLayer, build_layer
from .metadata import Metadata, config_heads, context_factor, heads_of, only_in_config, unpacked
from .naming import ACCEPTED, HEADS_FIRST, Axes, NamePair, chosen_pairs, pairs, partner
from .unknown import Unknown

T = TypeVar("T")

_LISTED = 8  # names in the note on what is not used
_MOST_NOTES = 40
_PACKED = re.compile(r"(?i)(?:^|[._/])(?:w?(qkv?|kv)|c_attn|in_proj|query_key_value)(?![a-z])(?!.*(?:weight|bias)$)")
_OF_WEIGHTS = re.compile(r"(?:^|[._/])(?:att(?:entio)?ns?|weights|patterns?|probs)(?:[._/-]?\d+)?$", re.IGNORECASE)
_INDEX = ".safetensors.index.json"
_PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
_SHARD = re.compile(r"(?P<stem>.*)-[0-9]+-of-[0-9]+\.safetensors")
_DEBUGGED = "data"  # the only tensor of a file that transformers' model debugger writes
_OUTPUTS = "_outputs.safetensors"
_FILES_LISTED = 5  # names in a note
# What a folder says if all of its files say the same.
_OF_TEXTS = (
    *("model", "source", "licence", "text", "text_licence", "tokens", "query_tokens", "lengths"),
    *("step", "d_model", "n_heads"),
)


def open_capture(
    path: str | os.PathLike[str], axes: str | None = None, mask_true: Meaning | None = None, tensor: str | None = None
) -> CaptureFile:
    """Return the contents of a file or folder, from headers; raise CaptureError, one line, if it cannot be read.

    Of a layer of which nothing says whether it is causal, the weights of one head are read, if it has them.

    `axes` names the axes of every tensor of queries and keys, for example "batch,token,head,d_k", and `mask_true` is
    what True means in its masks. `tensor` names the tensors themselves, such as "q=h.*.foo,k=h.*.bar".
    """
    place, hints = Path(path), Hints(axes, mask_true, tensor)
    if not os.path.isdir(place):
        return capture_of(place, contents(place), hints)
    groups, notes = _folder_groups(place)
    captures: list[CaptureFile] = []
    refusal: NoQueriesError | None = None
    for file, inside in groups:
        try:
            captures.append(capture_of(file, inside, hints))
        except NoQueriesError as error:
            refusal = refusal or error
            notes.append(message("{name} is left out: it has no queries and keys", name=plain(file.name)))
    if refusal is not None and not captures:
        raise refusal
    if len(captures) == 1:
        return replace(captures[0], notes=_few([*notes, *captures[0].notes]))
    whole = _one_capture(place, captures, notes)
    return replace(whole, notes=_few(whole.notes))


def open_captures(paths: Sequence[Path], hints: Hints = NO_HINTS) -> list[CaptureFile]:
    """Return the contents of files or folders in order; if there are several, layers are named after their file.

    Raise CaptureError, one line, if one cannot be read or is given twice.
    """
    captures: list[CaptureFile] = []
    for number, path in enumerate(paths):
        captures.append(open_capture(path, *hints))
        if any(os.path.samefile(path, other) for other in paths[:number]):
            raise CaptureError("{path}: is given twice", path=plain(path))
    if len(captures) == 1:
        return captures
    names = [path.name for path in paths]
    labels = names if len({*names}) == len(names) else [*map(str, paths)]
    return [_named(capture, plain(label)) for capture, label in zip(captures, labels, strict=True)]


def capture_of(file: Path, contents: FileContents, hints: Hints = NO_HINTS) -> CaptureFile:
    """Return what the files of one capture contain; `file` is the one that names it."""
    contents = replace(contents, metadata=unpacked(file, contents.metadata))
    metadata = Metadata(file, contents.metadata)
    given = FileFacts(
        _axes(file, contents, hints.axes),
        metadata.lengths(),
        hints.mask_true,
        contents.metadata.get("schema") in SCHEMAS,
    )
    found_pairs, left_out = (
        pairs(contents.arrays) if hints.tensor is None else (chosen_pairs(contents.arrays, hints.tensor), [])
    )
    if not found_pairs:
        raise NoQueriesError(_no_pair(file, contents, left_out))
    stored, notes, unused = _layers(file, contents, metadata, found_pairs, given)
    layers = tuple(entry.layer for entry in stored)
    metadata.check_entries(layers, [pair.label for pair in found_pairs])
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
    lengths, tokens, query_tokens, ignored = _texts(metadata, layers)
    notes += ignored
    values = metadata.values
    return CaptureFile(
        path=file,
        model=values.text("model"),
        source=values.text("model_source"),
        licence=values.text("model_licence"),
        text=metadata.texts(layers[0].batch),
        text_licence=values.text("text_licence"),
        tokens=tokens,
        lengths=lengths,
        layers=layers,
        notes=_few([*dict.fromkeys(notes)]),
        files=tuple(path for path, _ in contents.files),
        stored=stored,
        identities=contents.files,
        unused=tuple(map(plain, unused)),
        step=values.count("step", least=0),
        d_model=values.count("d_model", least=0),
        n_heads=values.count("n_heads", least=0),
        config=metadata.config,
        expect=values.text("expect"),
        query_tokens=query_tokens,
    )


def _axes(file: Path, contents: FileContents, axes: str | None) -> Axes | None:
    """Return the axes that the user, the file or its schema names; None if none of them does."""
    if axes is not None:
        return parse_axes(axes, "axes")
    if "axes" in contents.metadata:
        return parse_axes(contents.metadata["axes"], message("{file}: metadata 'axes'", file=plain(file)))
    return HEADS_FIRST if contents.metadata.get("schema") in SCHEMAS else None


def _layers(
    file: Path, contents: FileContents, metadata: Metadata, layer_pairs: Sequence[NamePair], given: FileFacts
) -> tuple[tuple[StoredLayer, ...], list[str], list[str]]:
    """Return the layers, notes on what was assumed, and the names of the tensors that no layer uses."""
    notes = [*contents.notes]
    stored: list[StoredLayer] = []
    used: set[str] = set()
    for position, pair in enumerate(layer_pairs):
        stated = metadata.layer(position, pair.index, len(layer_pairs), pair.numbered)
        if stated.heads is None and given.axes is None:
            by_width = not (pair.words.projection and pair.inside)
            stated = replace(stated, **heads_of(metadata.config or {}, contents.arrays[pair.q].shape, by_width))
        layer, layer_notes, names = build_layer(position, pair, stated, contents.arrays, given)
        if stated.causal is None and shows_no_later_key(layer):
            stated = replace(stated, causal="bottom_right")
            layer, layer_notes, names = build_layer(position, pair, stated, contents.arrays, given)
            notes.append(
                "weights on later keys are exactly 0: attention is taken as causal unless metadata 'causal' denies it"
            )
        stored.append(layer)
        notes += layer_notes
        used |= names
    unused = sorted(name for name in contents.arrays if name not in used)
    unknown, factor = Unknown(unused), context_factor(metadata.config or {})
    for place, (each, pair) in enumerate(zip(stored, layer_pairs, strict=True)):
        refusal = each.layer.refusal or unknown.refusal(pair, contents.arrays, each.layer.sizes)
        refusal = refusal or _swapped(each.layer, metadata)
        layer = replace(each.layer, refusal=refusal, context_factor=factor, path=file)
        stored[place] = replace(each, layer=layer)
    return tuple(_without_positions(stored, layer_pairs)), notes, unused


def _swapped(layer: Layer, metadata: Metadata) -> str:
    """Return why a layer is refused whose tokens are as many as the model's heads, and its heads are not."""
    heads, stated = config_heads(metadata.config or {}), metadata.values.count("n_heads", least=0)
    if heads in (None, 1, layer.heads) or heads != layer.queries or stated is not None:
        return ""
    if heads != layer.keys or layer.heads < heads:
        return ""
    return message(
        "the model's configuration has {heads} heads, this layer {own} heads of {heads} tokens: the axes of heads "
        "and tokens are probably exchanged; correct the metadata 'axes' and 'heads', or give --axes",
        heads=heads,
        own=layer.heads,
    )


def _texts(
    metadata: Metadata, layers: Sequence[Layer]
) -> tuple[tuple[int, ...] | None, Texts | None, Texts | None, list[str]]:
    """Return the lengths of texts, tokens of keys and of other queries; and a note for what is ignored, as unfit."""
    lengths, batch, keys = metadata.lengths(), layers[0].batch, layers[0].keys
    tokens, query_tokens = metadata.tokens(), metadata.tokens("query_tokens")
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
    if tokens is not None and not any([*map(len, tokens)] == [layer.keys] * batch for layer in layers):
        tokens = None
        notes.append(
            message(
                "the metadata's tokens are ignored: they do not match {batch} texts of {keys} tokens",
                batch=batch,
                keys=keys,
            )
        )
    return lengths, tokens, query_tokens, notes


def _without_positions(stored: Sequence[StoredLayer], layer_pairs: Sequence[NamePair]) -> list[StoredLayer]:
    """Return the layers; those without a bias of positions that another layer of their stack has are refused.

    T5 computes its bias in the first layer and adds it in all.
    """
    stacks = [re.sub(r"\d+", "#", pair.before + pair.after) for pair in layer_pairs]
    having: dict[str, str] = {}
    for each, pair, stack in zip(stored, layer_pairs, stacks, strict=True):
        for array in (each.added[role] for role in ("bias", "slopes") if role in each.added):
            word = pair.word(array.name)
            if word in OF_POSITIONS and array.name == pair.named(word) != word:
                having.setdefault(stack, array.name)
    completed: list[StoredLayer] = []
    for each, stack in zip(stored, stacks, strict=True):
        lacks = stack in having and not each.layer.cross and not {"bias", "slopes"} & {*each.added}
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
        return [message("the scale is not given; assuming 1/√d_k if one is needed")]
    which = ", ".join(str(layer.index) for layer in missing)
    return [message("the scale of layer {which} is not given; assuming 1/√d_k if one is needed", which=which)]


def _no_pair(path: Path, contents: FileContents, left_out: Sequence[str]) -> str:
    """Explain in one line why the file has no queries and keys; `left_out` says what lacks its partner."""
    names: Sequence[str] = sorted(contents.arrays)
    listed = ", ".join(quoted(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    if len(names) == 1 and (other := partner(names[0])):
        return message(
            "{path}: has {listed} but not {other}; both are needed",
            path=plain(path),
            listed=listed,
            other=quoted(other),
        )
    packed = ((match, contents.arrays[name]) for name in names if (match := _PACKED.search(name)))
    for match, array in packed:
        parts = (match[1] or "qkv").lower()
        places = [axis for axis, length in enumerate(array.shape) if length == len(parts)]
        if len(places) == 1:
            before = ":, " * places[0]
            halves = [f"{part} = {quoted(array.name)}[{before}{at}]" for at, part in enumerate(parts) if part != "v"]
            return message(
                "{path}: {name} of shape {shown} holds {parts} in one axis; save {halves}",
                path=plain(path),
                name=quoted(array.name),
                shown=array.shown,
                parts=", ".join(parts),
                halves=", ".join(halves),
            )
        if len(array.shape) > 1:
            return message(
                "{path}: {name} of shape {shown} holds {parts} side by side; split its last axis, and save [batch, "
                "token, head, d_k] as 'q' and 'k' with metadata axes batch,token,head,d_k",
                path=plain(path),
                name=quoted(array.name),
                shown=array.shown,
                parts=", ".join(parts),
            )
    if left_out:
        return message(
            "{path}: no queries and keys: {reason}; tensors must be named {accepted}",
            path=plain(path),
            reason=left_out[-1],
            accepted=ACCEPTED,
        )
    if names and all(_OF_WEIGHTS.search(name) and len(contents.arrays[name].shape) > 2 for name in names):
        return message(
            "{path}: has attention weights ({listed}) without the queries and keys that they were computed from, and "
            "weights alone do not tell a scale; save q and k too, as attn-tui record -o FILE -- COMMAND does",
            path=plain(path),
            listed=listed,
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


def _named(capture: CaptureFile, label: str) -> CaptureFile:
    """Return the capture with layers that say which file they are of, inside a folder too."""

    def named(layer: Layer) -> Layer:
        return replace(layer, file=f"{label}/{layer.file}" if layer.file else label)

    stored = tuple(replace(entry, layer=named(entry.layer)) for entry in capture.stored)
    return replace(capture, layers=tuple(entry.layer for entry in stored), stored=stored)


# Files of a folder that are one capture: the path that names them, and what they declare.
_Group: TypeAlias = tuple[Path, FileContents]


def _folder_groups(folder: Path) -> tuple[list[_Group], list[str]]:
    """Return the captures of a folder by name, numbers in order, and notes on files that are not read.

    Files that belong together are one group: those of an index, numbered parts, and what transformers' model debugger
    writes. Raise CaptureError if a file cannot be read, or if there are none.
    """
    names, notes = _names_in(folder)
    groups: list[_Group] = []
    read: set[Path] = set()
    parts: dict[str, list[_Group]] = {}
    debugged: list[_Group] = []
    # An index names others, and of .npy files those of queries or keys read the ones beside them.
    first = [name for name in names if name.endswith(_INDEX) or partner(name.removesuffix(".npy"))]
    for name in dict.fromkeys([*first, *names]):
        path = folder / name
        if path in read:
            continue
        try:
            group = path, contents(path)
        except CaptureError as error:
            if not name.endswith(".npy"):
                raise
            notes.append(
                message("{name} is left out: {reason}", name=plain(name), reason=str(error).partition(": ")[2])
            )  # an array of something else
            continue
        read |= {file for file, _ in group[1].files}
        if [*group[1].arrays] == [_DEBUGGED]:
            debugged.append(group)
        elif shard := _SHARD.fullmatch(name):
            parts.setdefault(shard["stem"], []).append(group)
        else:
            groups.append(group)
    groups += [(folder / f"{stem}-*.safetensors", joined(found)) for stem, found in parts.items()]
    groups.sort(key=lambda group: _in_order(group[0].name))
    if debugged:
        groups.append(_debugger_group(folder, debugged))
    return groups, notes


def _names_in(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the files that may be captures, numbers in order, and a note on those never opened."""
    try:
        names = sorted((entry.name for entry in os.scandir(folder) if entry.is_file()), key=_in_order)
    except OSError as error:
        raise CaptureError(
            "{folder}: cannot be read: {reason}", folder=plain(folder), reason=short(error.strerror or error)
        ) from error
    pickled = [name for name in names if name.lower().endswith(_PICKLED)]
    notes: list[str] = [message("pickles are never opened: {pickled}", pickled=_listed(pickled))] if pickled else []
    names = [name for name in names if name.endswith((".safetensors", ".npz", ".npy", _INDEX))]
    if len(names) > MOST_FILES:
        raise CaptureError(
            "{folder}: must have at most {most_files} captures, not {count}",
            folder=plain(folder),
            most_files=MOST_FILES,
            count=len(names),
        )
    if not names:
        why = f"; {notes[0]}" if notes else ""
        raise CaptureError(
            "{folder}: no .safetensors, .npz or .npy files in this folder{why}", folder=plain(folder), why=why
        )
    return names, notes


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers by number."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part) if number % 2 else 0, part) for number, part in enumerate(parts)]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _FILES_LISTED
    return ", ".join(map(quoted, names[:_FILES_LISTED])) + (
        message(" and {more} more", more=more) if more > 0 else ""
    )


def _debugger_group(folder: Path, groups: Sequence[_Group]) -> _Group:
    """Return what transformers' model debugger writes as one capture, with the names of modules.

    Each file holds one tensor, `data`, and is named after its module: Model.layers.0.self_attn.q_proj_outputs.
    The model's config.json beside them tells the number of heads.
    """
    arrays: dict[str, Stored] = {}
    files: list[tuple[Path, Identity]] = []
    for path, inside in groups:
        if path.name.endswith(_OUTPUTS):
            named = replace(inside.arrays[_DEBUGGED], name=path.name.removesuffix(_OUTPUTS))
            arrays[named.name] = named
            files += inside.files
    kept = {name: array for name, array in arrays.items() if re.search(r"(?:q|k|v)_proj$|query$|key$|value$", name)}
    metadata: dict[str, str] = {}
    if (config := folder / "config.json").is_file():
        with opened(config) as (stream, identity):
            try:
                metadata["config"] = decoded(stream.read(LARGEST + 1))
            except TextError as error:
                raise CaptureError("{path}: {reason}", path=plain(config), reason=error) from error
        files.append((config, identity))
    note = message("{count} files of the model debugger are not used", count=len(groups) - len(kept))
    return folder, FileContents(kept, metadata, tuple(files), (note,) if len(kept) < len(groups) else ())


def _one_capture(folder: Path, captures: Sequence[CaptureFile], notes: Sequence[str]) -> CaptureFile:
    """Return several captures as one: layers in order, each named after its file.

    What differs between the files and belongs to all layers of one, such as tokens, is left out.
    """
    stored: list[StoredLayer] = []
    for capture in captures:
        file = plain(capture.path.name)
        for source in capture.stored:
            named = replace(source.layer, position=len(stored), name=f"{file}: {source.layer.name}", file=file)
            stored.append(replace(source, layer=named))
    common: dict[str, Any] = {name: _common(getattr(capture, name) for capture in captures) for name in _OF_TEXTS}
    configs = {json.dumps(capture.config, sort_keys=True) for capture in captures}
    remarks = [*notes]
    if len(configs) > 1:
        remarks.append("the files' configurations differ, so none is used; diagnose the files one by one to use them")
    return CaptureFile(
        path=folder,
        **common,
        layers=tuple(entry.layer for entry in stored),
        notes=(*remarks, *_by_file([(capture.path.name, capture.notes) for capture in captures])),
        files=tuple(file for capture in captures for file in capture.files),
        stored=tuple(stored),
        identities=tuple(identity for capture in captures for identity in capture.identities),
        unused=tuple(_by_file([(capture.path.name, capture.unused) for capture in captures])),
        config=captures[0].config if len(configs) == 1 else None,
        expect=_common(capture.expect for capture in captures),
    )


def _common(values: Iterable[T | None]) -> T | None:
    """Return the value that all have, else None."""
    first, *others = values
    return first if all(other == first for other in others) else None


def _by_file(said: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return lines that all files share once, and the others with the name of their file."""
    shared: Mapping[str, None] = dict.fromkeys(said[0][1])
    common = [line for line in shared if all(line in lines for _, lines in said)]
    return [*common, *(f"{plain(name)}: {line}" for name, lines in said for line in lines if line not in common)]
