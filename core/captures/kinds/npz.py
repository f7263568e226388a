"""Read what a .npz archive declares, from the headers of its members."""

from __future__ import annotations

import json
import lzma
import math
import struct
import sys
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from ...plain import plain, quoted, short
from ..files import LARGEST_HEADER, PICKLED, CaptureError, Identity
from ..metadata.keys import ALIASES, KEYS
from ..naming import partner
from ..stored import AnyArray, Contents, Contiguous, Packed, Stored
from .npy import npy_header

LARGEST_TEXT = 1 << 24  # bytes of a metadata array
MOST_TEXTS = 1 << 20  # its elements, each of which becomes a Python object

_TENSORS = ("sinks", "alibi_slopes", "rows")  # of all layers, with the names of keys

# Raised by zipfile and its decompressors for a damaged, encrypted or unknown archive.
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
    OverflowError,
    IndexError,
    struct.error,
)


def contents(stream: BinaryIO, path: Path, identity: Identity) -> Contents:
    """Return the archive's arrays; those named like metadata (text or single numbers) are read as metadata."""
    arrays: dict[str, Stored] = {}
    metadata: dict[str, str] = {}
    try:
        with zipfile.ZipFile(cast(BinaryIO, _Bounded(stream, path))) as archive:
            members = archive.infolist()
            if sum(member.compress_size for member in members) > identity.size:
                raise zipfile.BadZipFile("its members overlap, or it is truncated")
            for member in members:
                if member.filename.endswith(".npy"):
                    array = _array(archive, member, stream, path, identity)
                    if array.name in arrays or array.name in metadata:
                        raise CaptureError("{where} is there twice", where=array.where)
                    if not _is_tensor(array):
                        metadata[array.name] = _text(stream, array)
                    else:
                        arrays[array.name] = array
    except CaptureError:
        raise
    except _ARCHIVE_ERRORS as error:
        raise CaptureError(
            "{path}: not a readable .npz file: {error}", path=plain(path), error=short(error)
        ) from error
    if not arrays:
        pickled = any(member.filename.endswith(".pkl") for member in members)  # as torch.save writes
        fault = PICKLED if pickled else "a zip archive without .npy arrays"
        raise CaptureError("{path}: {fault}", path=plain(path), fault=fault)
    return Contents(arrays, metadata, ((path, identity),))


def _is_tensor(array: Stored) -> bool:
    """Return whether an array is a tensor rather than metadata, which is named like a key, a text, or one number."""
    if array.name in (*KEYS, *ALIASES):
        return array.name in _TENSORS or (array.name == "scale" and len(array.shape) > 1)
    alone = array.shape == () and "." not in array.name and array.name != "mask" and partner(array.name) is None
    return not alone or array.format is None or array.format.kind not in "?biufSU"


class _Bounded:
    """A stream for zipfile, which reads a directory at once, whatever size the archive declares."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        """Read some bytes; raise CaptureError if they are more than a directory may have."""
        if size > LARGEST_HEADER:
            raise CaptureError(
                "{path}: the archive's directory must have at most {largest_header} bytes, not {size}",
                path=plain(self._path),
                largest_header=LARGEST_HEADER,
                size=size,
            )
        return self._stream.read(size)


def _array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, stream: BinaryIO, path: Path, identity: Identity
) -> Contiguous:
    """Return one member: at its offset in the file if it is not compressed, otherwise within the member."""
    name = member.filename.removesuffix(".npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise CaptureError(
            "{path}: tensor {name} must be deflated or not compressed, not compressed by method {compress_type}",
            path=plain(path),
            name=quoted(name),
            compress_type=member.compress_type,
        )
    with archive.open(member) as data:
        array = npy_header(cast(BinaryIO, data), path, name)
    stream.seek(member.header_offset)
    start = member.header_offset + 30 + sum(struct.unpack("<26x2H", stream.read(30)))
    if member.compress_type == zipfile.ZIP_STORED:
        array = replace(array, offset=start + array.offset)
        complete = array.offset + array.nbytes <= start + member.compress_size <= identity.size
    else:
        array = replace(array, packed=Packed(start, member.compress_size))
        complete = array.offset + array.nbytes <= member.file_size and start + member.compress_size <= identity.size
    if not complete:
        raise CaptureError("{where} ends before its last element: the file is truncated", where=array.where)
    return array


def _text(stream: BinaryIO, array: Contiguous) -> str:
    """Return a metadata array as the string that a .safetensors file would contain."""
    if array.format is None or array.fortran or array.format.kind not in "?biufSU":
        raise CaptureError(
            "{where} holds {dtype}; must be text or a single number", where=array.where, dtype=array.dtype
        )
    if array.nbytes > LARGEST_TEXT or math.prod(array.shape) > MOST_TEXTS:
        raise CaptureError(
            "{where} of shape {shown} has {nbytes} bytes; must be at most {largest_text} in {most_texts} elements",
            where=array.where,
            shown=array.shown,
            nbytes=array.nbytes,
            largest_text=LARGEST_TEXT,
            most_texts=MOST_TEXTS,
        )
    values = array.read(stream, array.shape) if array.nbytes else np.zeros(array.shape, array.format)
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        if values.dtype.kind == "U":
            _require_characters(values)
        value = cast(object, values.tolist())
    except ValueError as error:  # invalid bytes or code points
        raise CaptureError("{where} is not readable text", where=array.where) from error
    return value if isinstance(value, str) else json.dumps(value)


def _require_characters(text: AnyArray) -> None:
    """Raise ValueError for invalid code points: NumPy passes them on to Python, which crashes."""
    codes = np.frombuffer(text.tobytes(), np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))
    if bool(np.any(codes > sys.maxunicode)):
        raise ValueError("not a character")
