"""What a .safetensors, .npz or .npy file holds, from its headers alone.

Headers of NumPy files are read here rather than by NumPy, which evaluates them as Python and warns about some;
nothing of this module can unpickle anything.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from .files import (
    ARCHIVE_ERRORS,
    FLOATS,
    AnyArray,
    CaptureError,
    Identity,
    Stored,
    opened,
    plain,
    quoted,
    read_index,
    short,
)
from .naming import masks_beside, partner

ACCEPTED = "a .safetensors, .npz or .npy file is accepted"
# The metadata that is read; a .npz file may hold it as arrays of text or as single numbers under these names.
METADATA = (
    "schema", "model", "model_source", "model_licence", "text", "text_licence", "tokens", "lengths",
    "heads", "kv_heads", "d_k", "axes", "scale", "causal", "softcap", "layers",
)  # fmt: skip

_NPY_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_LONGEST_HEADER = 1 << 16  # bytes, of a .npy header: far more than any that is not a structured type's
_LONGEST_TEXT = 1 << 24  # bytes, of a metadata array
_SAFETENSORS_TYPES = {
    "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
}  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """The arrays and the metadata that a file declares, and the files that were looked into."""

    arrays: Mapping[str, Stored]
    metadata: Mapping[str, str]
    files: tuple[tuple[Path, Identity], ...]
    notes: tuple[str, ...] = ()


def contents(path: Path) -> Contents:
    """What the file holds, whatever it is called; the kind is told by its first bytes."""
    with opened(path) as (stream, identity):
        files = ((path, identity),)
        start = stream.read(9)
        if not start:
            raise CaptureError(f"{plain(path)}: the file is empty; {ACCEPTED}")
        if start.startswith(_NPY_MAGIC):
            return _npy_contents(_npy(stream, path, identity), identity)
        if start.startswith(_ZIP_MAGIC):
            arrays, metadata = _npz(stream, path, identity)
            return Contents(arrays, metadata, files)
        if path.suffix.lower() == ".safetensors" or start[8:] == b"{":
            arrays, metadata = _safetensors(stream, path)
            return Contents(arrays, metadata, files)
    raise CaptureError(f"{plain(path)}: not a file of tensors; {ACCEPTED}")


def _safetensors(stream: BinaryIO, path: Path) -> tuple[dict[str, Stored], dict[str, str]]:
    """The library checks the header; only then is it taken at its word.

    The bytes are not read through the library: its NumPy slices know no float8.
    """
    try:
        with safe_open(str(path), framework="numpy"):
            pass
    except SafetensorError as error:
        reason = short(error).removeprefix("Error while deserializing header: ")
        raise CaptureError(f"{plain(path)}: not a readable .safetensors file: {reason}") from error
    try:
        stream.seek(0)
        (length,) = struct.unpack("<Q", stream.read(8))
        header = cast(dict[str, dict[str, Any]], json.loads(stream.read(length)))
        metadata = cast(dict[str, str], header.pop("__metadata__", None) or {})
        arrays = {
            name: _safetensors_array(
                path, name, entry["dtype"], entry["shape"], 8 + length + entry["data_offsets"][0]
            )
            for name, entry in header.items()
        }
    except (struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CaptureError(f"{plain(path)}: changed on disk while it was opened; open it again") from error
    return arrays, metadata


def _safetensors_array(path: Path, name: str, code: str, shape: list[int], offset: int) -> Stored:
    dtype = _SAFETENSORS_TYPES.get(code, code.lower())
    if dtype in FLOATS:
        stored = FLOATS[dtype].newbyteorder("<") if FLOATS[dtype].kind == "f" else FLOATS[dtype]
    else:
        stored = np.dtype(dtype).newbyteorder("<") if code in _SAFETENSORS_TYPES else None
    return Stored(path, name, dtype, stored, tuple(shape), offset)


def _npy(stream: BinaryIO, path: Path, identity: Identity) -> Stored:
    stream.seek(0)
    array = _npy_header(stream, path, path.name.removesuffix(".npy"))
    if array.offset + array.nbytes > identity.size:
        raise CaptureError(f"{plain(path)}: ends before its last element: the file is truncated")
    return array


def _npy_contents(array: Stored, identity: Identity) -> Contents:
    """One array of q and k stacked, or one of the two with the other, and a mask if there is one, beside it."""
    path = array.path
    ending = path.name.removeprefix(array.name)
    arrays = {array.name: array}
    files = [(path, identity)]
    notes: list[str] = []
    other = partner(array.name)
    if other is not None:
        for name in (other, *masks_beside(array.name)):
            beside = path.with_name(name + ending)
            if os.path.lexists(beside):
                with opened(beside) as (stream, found):
                    arrays[name] = _npy(stream, beside, found)
                    files.append((beside, found))
                notes.append(f"{quoted(beside.name)} is read too")
        return Contents(arrays, {}, tuple(files), tuple(notes))
    if len(array.shape) not in (3, 4, 5) or array.shape[0] != 2 or array.fortran:
        raise CaptureError(
            f"{array.where} of shape {array.shown} cannot hold both q and k: an array in C order of shape "
            "[2, …] (q, then k), or a pair of files such as q.npy and k.npy, is accepted"
        )
    q = replace(array, name="q", shape=array.shape[1:])
    return Contents({"q": q, "k": replace(q, name="k", offset=q.offset + q.nbytes)}, {}, tuple(files))


def _npz(stream: BinaryIO, path: Path, identity: Identity) -> tuple[dict[str, Stored], dict[str, str]]:
    arrays: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    array = _npz_array(archive, member, stream, path, identity)
                    if array.name in METADATA:
                        metadata[array.name] = _text(stream, array)
                    else:
                        arrays[array.name] = array
    except CaptureError:
        raise
    except ARCHIVE_ERRORS as error:
        raise CaptureError(f"{plain(path)}: not a readable .npz file: {short(error)}") from error
    if not arrays:
        raise CaptureError(
            f"{plain(path)}: a zip archive without .npy arrays (pickled tensors are refused); {ACCEPTED}"
        )
    return arrays, metadata


def _npz_array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, stream: BinaryIO, path: Path, identity: Identity
) -> Stored:
    """One member: addressed in the file itself if it is stored there as it is, else within the member."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as data:
        array = _npy_header(cast(BinaryIO, data), path, name)
    if array.offset + array.nbytes > member.file_size:
        raise CaptureError(f"{array.where} ends before its last element: the file is truncated")
    if member.compress_type != zipfile.ZIP_STORED:
        return replace(array, member=member.filename)
    stream.seek(member.header_offset)
    local = struct.unpack("<26x2H", stream.read(30))
    array = replace(array, offset=member.header_offset + 30 + sum(local) + array.offset)
    if array.offset + array.nbytes > identity.size:
        raise CaptureError(f"{array.where} ends before its last element: the file is truncated")
    return array


def _npy_header(stream: BinaryIO, path: Path, name: str) -> Stored:
    """The array that a .npy header declares, with the offset of its data from where the header starts."""
    where = f"{plain(path)}: array {quoted(name)}"
    start = stream.read(8)
    width, pattern = (2, "<H") if start[6:7] == b"\x01" else (4, "<I")
    length = stream.read(width)
    if not start.startswith(_NPY_MAGIC) or len(length) < width:
        raise CaptureError(f"{where} has no .npy header: the file is damaged or truncated")
    size = int(struct.unpack(pattern, length)[0])
    header = stream.read(min(size, _LONGEST_HEADER))
    descr = re.search(rb"""['"]descr['"]\s*:\s*(?:['"]([^'"]{1,32})['"]|[\[(])""", header)
    order = re.search(rb"""['"]fortran_order['"]\s*:\s*(True|False)""", header)
    shape = re.search(rb"""['"]shape['"]\s*:\s*\(([\d,\sL]*)\)""", header)
    lengths = [] if shape is None else re.findall(rb"\d+", shape[1])
    if len(header) < size or not (descr and order and shape) or any(len(n) > 18 for n in lengths):
        raise CaptureError(f"{where} has a damaged .npy header")
    dtype, stored = _npy_type((descr[1] or b"structured").decode("latin-1"))
    offset = len(start) + width + size
    return Stored(path, name, dtype, stored, tuple(map(int, lengths)), offset, order[1] == b"True")


def _npy_type(descr: str) -> tuple[str, np.dtype[Any] | None]:
    """The name and the NumPy type of a header's description; no type where it is refused."""
    if re.fullmatch(r"[<>|=]?O\d*", descr):
        return "object", None
    if re.fullmatch(r"[<>|=]?V\d+", descr):
        return "void", None  # how NumPy writes bfloat16 and float8
    if re.fullmatch(r"[<>|=]?[?biufcSU]\d{0,8}", descr):
        try:
            stored = np.dtype(descr)
        except (TypeError, ValueError):
            return descr, None
        return stored.name, stored
    return descr, None


def _text(stream: BinaryIO, array: Stored) -> str:
    """Metadata of a .npz file as the string that a .safetensors file would hold."""
    if array.format is None or array.fortran or array.format.kind not in "?biufSU" or array.nbytes > _LONGEST_TEXT:
        raise CaptureError(f"{array.where} holds {array.dtype}; text or a single number is accepted")
    values = read_index(stream, array, array.shape) if array.nbytes else np.zeros(array.shape, array.format)
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        if values.dtype.kind == "U":
            _require_characters(values)
        value = cast(object, values.tolist())
    except ValueError as error:  # bytes or code points that are no text
        raise CaptureError(f"{array.where} is not readable text") from error
    return value if isinstance(value, str) else json.dumps(value)


def _require_characters(text: AnyArray) -> None:
    """Raise ValueError for code points that no character has: NumPy would hand them on to Python, which breaks."""
    codes = np.frombuffer(text.tobytes(), np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))
    if bool(np.any(codes > sys.maxunicode)):
        raise ValueError("not a character")
