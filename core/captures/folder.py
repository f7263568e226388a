"""Read a folder of captures: what its files declare, and several captures as one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..message import message
from ..plain import plain, quoted, short
from .files import CaptureError, Identity, opened
from .head import CaptureFile
from .kinds.catalogue import contents
from .kinds.sharded import MOST_FILES, joined
from .layers import StoredLayer
from .naming import partner
from .stored import Contents, Stored

T = TypeVar("T")

_INDEX = ".safetensors.index.json"
_PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
_SHARD = re.compile(r"(?P<stem>.*)-[0-9]+-of-[0-9]+\.safetensors")
_DEBUGGED = "data"  # the only tensor of a file that transformers' model debugger writes
_OUTPUTS = "_outputs.safetensors"
_LISTED = 5  # names in a note
_LONGEST = 1 << 20  # bytes of a config.json


@dataclass(frozen=True)
class Group:
    """Files of a folder that are one capture: what they declare, and the path that names them."""

    path: Path
    contents: Contents


def folder_groups(folder: Path) -> tuple[list[Group], list[str]]:
    """Return the captures of a folder by name, numbers in order, and notes on files that are not read.

    Files that belong together are one group: those of an index, numbered parts, and what transformers' model debugger
    writes. Raise CaptureError if a file cannot be read, or if there are none.
    """
    names, notes = _names_in(folder)
    groups: list[Group] = []
    read: set[Path] = set()
    parts: dict[str, list[Group]] = {}
    debugged: list[Group] = []
    # An index names others, and of .npy files those of queries or keys read the ones beside them.
    first = [name for name in names if name.endswith(_INDEX) or partner(name.removesuffix(".npy"))]
    for name in dict.fromkeys([*first, *names]):
        path = folder / name
        if path in read:
            continue
        try:
            group = Group(path, contents(path))
        except CaptureError as error:
            if not name.endswith(".npy"):
                raise
            notes.append(
                message("{name} is left out: {reason}", name=plain(name), reason=str(error).partition(": ")[2])
            )  # an array of something else
            continue
        read |= {file for file, _ in group.contents.files}
        if [*group.contents.arrays] == [_DEBUGGED]:
            debugged.append(group)
        elif shard := _SHARD.fullmatch(name):
            parts.setdefault(shard["stem"], []).append(group)
        else:
            groups.append(group)
    groups += [Group(folder / f"{stem}-*.safetensors", joined(_each(found))) for stem, found in parts.items()]
    groups.sort(key=lambda group: _in_order(group.path.name))
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
    notes: list[str] = [message("pickles are never opened: {pickled}", pickled=_few(pickled))] if pickled else []
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


def _each(groups: Iterable[Group]) -> list[tuple[Path, Contents]]:
    return [(group.path, group.contents) for group in groups]


def _in_order(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts names with numbers by number."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [
        (part.isascii() and part.isdigit(), int(part) if number % 2 else 0, part) for number, part in enumerate(parts)
    ]


def _few(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(map(quoted, names[:_LISTED])) + (message(" and {more} more", more=more) if more > 0 else "")


def _debugger_group(folder: Path, groups: Sequence[Group]) -> Group:
    """Return what transformers' model debugger writes as one capture, with the names of modules.

    Each file holds one tensor, `data`, and is named after its module: Model.layers.0.self_attn.q_proj_outputs.
    The model's config.json beside them tells the number of heads.
    """
    arrays: dict[str, Stored] = {}
    files: list[tuple[Path, Identity]] = []
    for group in groups:
        name = group.path.name
        if name.endswith(_OUTPUTS):
            named = replace(group.contents.arrays[_DEBUGGED], name=name.removesuffix(_OUTPUTS))
            arrays[named.name] = named
            files += group.contents.files
    kept = {name: array for name, array in arrays.items() if re.search(r"(?:q|k|v)_proj$|query$|key$|value$", name)}
    metadata: dict[str, str] = {}
    if (config := folder / "config.json").is_file():
        with opened(config) as (stream, identity):
            metadata["config"] = stream.read(_LONGEST).decode("utf-8", "replace")
        files.append((config, identity))
    note = message("{count} files of the model debugger are not used", count=len(groups) - len(kept))
    return Group(folder, Contents(kept, metadata, tuple(files), (note,) if len(kept) < len(groups) else ()))


def one_capture(folder: Path, captures: Sequence[CaptureFile], notes: Sequence[str]) -> CaptureFile:
    """Return several captures as one: layers in order, each named after its file.

    What differs between the files and belongs to all layers of one, such as tokens, is left out.
    """
    stored: list[StoredLayer] = []
    for capture in captures:
        file = plain(capture.path.name)
        for own in capture.stored:
            named = replace(own.layer, position=len(stored), name=f"{file}: {own.layer.name}", file=file)
            stored.append(replace(own, layer=named))
    configs = {json.dumps(capture.config, sort_keys=True) for capture in captures}
    told = [*notes]
    if len(configs) > 1:
        told.append("the files' configurations differ, so none is used; diagnose the files one by one to use them")
    return CaptureFile(
        path=folder,
        model=_common(capture.model for capture in captures),
        source=_common(capture.source for capture in captures),
        licence=_common(capture.licence for capture in captures),
        text=_common(capture.text for capture in captures),
        text_licence=_common(capture.text_licence for capture in captures),
        tokens=_common(capture.tokens for capture in captures),
        lengths=_common(capture.lengths for capture in captures),
        layers=tuple(each.layer for each in stored),
        notes=(*told, *_by_file([(capture.path.name, capture.notes) for capture in captures])),
        files=tuple(file for capture in captures for file in capture.files),
        stored=tuple(stored),
        identities=tuple(each for capture in captures for each in capture.identities),
        unused=tuple(_by_file([(capture.path.name, capture.unused) for capture in captures])),
        step=_common(capture.step for capture in captures),
        d_model=_common(capture.d_model for capture in captures),
        n_heads=_common(capture.n_heads for capture in captures),
        config=captures[0].config if len(configs) == 1 else None,
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
