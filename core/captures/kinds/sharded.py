"""Read what a .safetensors.index.json file declares: which of the .safetensors files beside it hold which tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from ...plain import plain, quoted, short
from ..files import LARGEST_HEADER, CaptureError, Identity, opened
from ..metadata.values import from_json
from ..stored import Contents, Stored
from . import safetensors

MOST_FILES = 1 << 10


def contents(stream: BinaryIO, path: Path, identity: Identity) -> Contents:
    """Return the tensors and the metadata of all files that the index names, which are beside it."""
    stream.seek(0)
    places = _weight_map(stream, path, identity)
    names = sorted({*places.values()})
    if len(names) > MOST_FILES:
        raise CaptureError(
            "{path}: must name at most {most_files} files, not {count}",
            path=plain(path),
            most_files=MOST_FILES,
            count=len(names),
        )
    parts: list[tuple[Path, Contents]] = []
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CaptureError(
                "{path}: names {name}; must be .safetensors files beside it", path=plain(path), name=quoted(name)
            )
        with opened(path.with_name(name)) as (shard, found):
            parts.append((path.with_name(name), safetensors.contents(shard, path.with_name(name), found)))
    whole = joined(parts)
    for tensor, name in places.items():
        if tensor not in whole.arrays or whole.arrays[tensor].path.name != name:
            raise CaptureError(
                "{path}: tensor {tensor} is not in {name}", path=plain(path), tensor=quoted(tensor), name=quoted(name)
            )
    return replace(whole, files=((path, identity), *whole.files))


def joined(parts: Sequence[tuple[Path, Contents]]) -> Contents:
    """Return what several files declare together; raise CaptureError if they contradict each other."""
    arrays: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    for path, part in parts:
        for tensor, array in part.arrays.items():
            if tensor in arrays:
                raise CaptureError(
                    "{where} is in {name}, too", where=array.where, name=quoted(arrays[tensor].path.name)
                )
            arrays[tensor] = array
        for key, value in part.metadata.items():
            if metadata.setdefault(key, value) != value:
                raise CaptureError(
                    "{path}: has other metadata {key} than the files it belongs to; must be the same",
                    path=plain(path),
                    key=quoted(key),
                )
    return Contents(arrays, metadata, tuple(file for _, part in parts for file in part.files))


def _weight_map(stream: BinaryIO, path: Path, identity: Identity) -> dict[str, str]:
    """Return the name of each tensor's file."""
    if identity.size > LARGEST_HEADER:
        raise CaptureError(
            "{path}: must have at most {largest_header} bytes, not {size}",
            path=plain(path),
            largest_header=LARGEST_HEADER,
            size=identity.size,
        )
    try:
        index = from_json(stream.read(LARGEST_HEADER).decode("utf-8"))
    except ValueError as error:
        raise CaptureError(
            "{path}: not a readable index of .safetensors files: {error}", path=plain(path), error=short(error)
        ) from error
    places = cast("dict[str, object]", index).get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(
        isinstance(name, str) for name in cast("dict[str, object]", places).values()
    ):
        raise CaptureError('{path}: not an index of .safetensors files, which has "weight_map"', path=plain(path))
    return cast("dict[str, str]", places)
