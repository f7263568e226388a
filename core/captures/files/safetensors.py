"""Read what a .safetensors file declares in its header: the header's length in 8 bytes, then JSON, then all tensors.

A .safetensors.index.json file says which of the .safetensors files beside it hold which tensors.

The safetensors library is not used: it maps the file, so a file that shrinks would kill the process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ...message import message, plain, quoted, short
from ...texts import TextError, from_json
from . import LARGEST_HEADER, CaptureError, Identity, opened
from .stored import FLOATS, MOST_AXES, Contiguous, FileContents, Stored

_TYPES = {
    "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
}  # fmt: skip
MOST_FILES = 1 << 10  # of an index


def contents(stream: BinaryIO, path: Path, identity: Identity) -> FileContents:
    """Return what the file declares."""
    try:
        header, start = _header(stream, identity)
        metadata = cast(Any, header.pop("__metadata__", {}))
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in cast(Any, metadata).values()):
            raise ValueError("its metadata are not strings")
        arrays = [_array(path, name, entry, start) for name, entry in header.items()]
        _require_gapless([(start, start), *(place for _, place in arrays), (identity.size, identity.size)])
    except ValueError as error:
        raise CaptureError(
            "{path}: not a readable .safetensors file: {error}", path=plain(path), error=short(error)
        ) from error
    return FileContents(
        {array.name: array for array, _ in arrays}, cast("dict[str, str]", metadata), ((path, identity),)
    )


def _header(stream: BinaryIO, identity: Identity) -> tuple[dict[str, object], int]:
    """Return the header, and the offset of the first tensor."""
    stream.seek(0)
    length = int.from_bytes(stream.read(8), "little")
    start = 8 + length
    if start > identity.size:
        raise ValueError("it ends before its header does")
    if length > LARGEST_HEADER:
        raise ValueError(
            message(
                "its header must have at most {largest_header} bytes, not {length}",
                largest_header=LARGEST_HEADER,
                length=length,
            )
        )
    try:
        header = from_json(stream.read(length))
    except TextError as error:
        raise ValueError(message("its header {fault}", fault=error)) from error
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    return cast("dict[str, object]", header), start


def _array(path: Path, name: str, entry: object, start: int) -> tuple[Contiguous, tuple[int, int]]:
    """Return one tensor and the offsets of its first byte and of the byte after its last."""
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    code, shape, offsets = fields.get("dtype"), _sizes(fields.get("shape")), _sizes(fields.get("data_offsets"))
    if not isinstance(code, str) or shape is None or offsets is None or len(offsets) != 2:
        raise ValueError(
            message("the entry of tensor {name} has no valid dtype, shape and data_offsets", name=quoted(name))
        )
    dtype = _TYPES.get(code, code.lower())
    if dtype in FLOATS:
        stored = FLOATS[dtype].newbyteorder("<") if FLOATS[dtype].kind == "f" else FLOATS[dtype]
    else:
        stored = np.dtype(dtype).newbyteorder("<") if code in _TYPES else None
    first, last = (start + offset for offset in offsets)
    array = Contiguous(path, name, dtype, stored, shape, offset=first)
    if stored is not None and array.nbytes != last - first:
        raise ValueError(
            message(
                "tensor {name} of shape {shown} has {last} bytes",
                name=quoted(name),
                shown=array.shown,
                last=last - first,
            )
        )
    return array, (first, last)


def _sizes(value: object) -> tuple[int, ...] | None:
    """Return a list of a few sizes; None for anything else."""
    numbers = cast("list[object]", value) if isinstance(value, list) else [None]
    sizes = tuple(n for n in numbers[:MOST_AXES] if type(n) is int and 0 <= n < 1 << 63)
    return sizes if len(sizes) == len(numbers) else None


def _require_gapless(places: list[tuple[int, int]]) -> None:
    """Raise ValueError unless the places, each a first byte and the one after the last, follow one another."""
    for (_, end), (first, _) in pairwise(sorted(places)):
        if first != end:
            raise ValueError(
                message("its tensors leave a gap or overlap at byte {end}: the file is damaged or truncated", end=end)
            )


def index_contents(stream: BinaryIO, path: Path, identity: Identity) -> FileContents:
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
    parts: list[tuple[Path, FileContents]] = []
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CaptureError(
                "{path}: names {name}; must be .safetensors files beside it", path=plain(path), name=quoted(name)
            )
        with opened(path.with_name(name)) as (shard, found):
            parts.append((path.with_name(name), contents(shard, path.with_name(name), found)))
    whole = joined(parts)
    for tensor, name in places.items():
        if tensor not in whole.arrays or whole.arrays[tensor].path.name != name:
            raise CaptureError(
                "{path}: tensor {tensor} is not in {name}", path=plain(path), tensor=quoted(tensor), name=quoted(name)
            )
    return replace(whole, files=((path, identity), *whole.files))


def joined(parts: Sequence[tuple[Path, FileContents]]) -> FileContents:
    """Return what several files declare together; raise CaptureError if they contradict each other."""
    arrays: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    for path, part in parts:
        for tensor, array in part.arrays.items():
            if tensor in arrays:
                raise array.error("{where} is in {name}, too", name=quoted(arrays[tensor].path.name))
            arrays[tensor] = array
        for key, value in part.metadata.items():
            if key == "layers" and (both := _layers_of_both(metadata.get(key, "[]"), value)):
                metadata[key] = both
            elif metadata.setdefault(key, value) != value:
                raise CaptureError(
                    "{path}: has other metadata {key} than the files it belongs to; must be the same",
                    path=plain(path),
                    key=quoted(key),
                )
    return FileContents(arrays, metadata, tuple(file for _, part in parts for file in part.files))


def _layers_of_both(first: str, second: str) -> str:
    """Return the entries of layers of two files in the order of their index; empty if they contradict each other."""
    layers: dict[int, object] = {}
    for text in (first, second):
        try:
            listed = from_json(text.encode())
        except TextError:
            return ""
        for entry in cast("list[object]", listed) if isinstance(listed, list) else [None]:
            members = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
            index = members.get("index")
            if type(index) is not int or layers.setdefault(index, members) != members:
                return ""
    return json.dumps([layers[index] for index in sorted(layers)])


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
        index = from_json(stream.read(LARGEST_HEADER))
    except TextError as error:
        raise CaptureError("{path}: {fault}", path=plain(path), fault=error) from error
    places = cast("dict[str, object]", index).get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(
        isinstance(name, str) for name in cast("dict[str, object]", places).values()
    ):
        raise CaptureError('{path}: not an index of .safetensors files, which has "weight_map"', path=plain(path))
    return cast("dict[str, str]", places)
