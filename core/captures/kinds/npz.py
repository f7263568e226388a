"""Read what a .npz archive declares, from the headers of its members."""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from ..files import CaptureError, Identity, plain, short
from ..metadata import KEYS
from ..stored import ARCHIVE_ERRORS, AnyArray, Contents, Contiguous, Stored
from .npy import npy_header

_LONGEST_TEXT = 1 << 24  # bytes of a metadata array


def contents(stream: BinaryIO, path: Path, identity: Identity) -> Contents:
    """Return the archive's arrays; those named like metadata (text or single numbers) are read as metadata."""
    arrays: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    array = _array(archive, member, stream, path, identity)
                    if array.name in KEYS:
                        metadata[array.name] = _text(stream, array)
                    else:
                        arrays[array.name] = array
    except CaptureError:
        raise
    except ARCHIVE_ERRORS as error:
        raise CaptureError(f"{plain(path)}: not a readable .npz file: {short(error)}") from error
    if not arrays:
        raise CaptureError(f"{plain(path)}: a zip archive without .npy arrays (pickled tensors are refused)")
    return Contents(arrays, metadata, ((path, identity),))


def _array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, stream: BinaryIO, path: Path, identity: Identity
) -> Contiguous:
    """Return one member: at its offset in the file if it is stored uncompressed, otherwise within the member."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as data:
        array = npy_header(cast(BinaryIO, data), path, name)
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


def _text(stream: BinaryIO, array: Contiguous) -> str:
    """Return a metadata array as the string that a .safetensors file would contain."""
    if array.format is None or array.fortran or array.format.kind not in "?biufSU" or array.nbytes > _LONGEST_TEXT:
        raise CaptureError(f"{array.where} holds {array.dtype}; must be text or a single number")
    values = array.read(stream, array.shape) if array.nbytes else np.zeros(array.shape, array.format)
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        if values.dtype.kind == "U":
            _require_characters(values)
        value = cast(object, values.tolist())
    except ValueError as error:  # invalid bytes or code points
        raise CaptureError(f"{array.where} is not readable text") from error
    return value if isinstance(value, str) else json.dumps(value)


def _require_characters(text: AnyArray) -> None:
    """Raise ValueError for invalid code points: NumPy passes them on to Python, which crashes."""
    codes = np.frombuffer(text.tobytes(), np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))
    if bool(np.any(codes > sys.maxunicode)):
        raise ValueError("not a character")
