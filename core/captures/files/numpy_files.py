"""Read what .npz archives and .npy files declare in their headers.

Headers are parsed here, because NumPy evaluates them as Python; nothing here can unpickle anything.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ...message import message, plain, quoted, short
from ..features import ALIASES, ARRAYS, KEYS, SHARED, TENSORS
from ..naming import companions, partner
from ..unknown import tensor_changes_attention
from . import LARGEST_HEADER, PICKLED, CaptureError, Identity, opened
from .stored import MOST_AXES, AnyArray, Contiguous, FileContents, PackedArray, Stored

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16  # bytes; only headers of structured types are longer
LARGEST_TEXT = 1 << 24  # bytes of a metadata array
MOST_TEXTS = 1 << 20  # its elements, each of which becomes a Python object

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


def npz_contents(stream: BinaryIO, path: Path, identity: Identity) -> FileContents:
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
                        raise array.error("{where} is there twice")
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
    return FileContents(arrays, metadata, ((path, identity),))


def _is_tensor(array: Stored) -> bool:
    """Return whether an array is a tensor rather than metadata, which is named like a key, a text, or one number."""
    if array.name in (*KEYS, *ALIASES):
        return array.name in ARRAYS or (array.name == "scale" and len(array.shape) > 1)
    alone = array.shape == () and "." not in array.name and partner(array.name) is None
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
        array = replace(array, packed=PackedArray(start, member.compress_size))
        complete = array.offset + array.nbytes <= member.file_size and start + member.compress_size <= identity.size
    if not complete:
        raise array.error("{where} ends before its last element: the file is truncated")
    return array


def _text(stream: BinaryIO, array: Contiguous) -> str:
    """Return a metadata array as the string that a .safetensors file would contain."""
    if array.format is None or array.fortran or array.format.kind not in "?biufSU":
        raise array.error("{where} holds {dtype}; must be text or a single number", dtype=array.dtype)
    if array.nbytes > LARGEST_TEXT or math.prod(array.shape) > MOST_TEXTS:
        raise array.error(
            "{where} of shape {shown} has {nbytes} bytes; must be at most {largest_text} in {most_texts} elements",
            nbytes=array.nbytes,
            largest_text=LARGEST_TEXT,
            most_texts=MOST_TEXTS,
        )
    opener = partial(nullcontext, stream)
    values = array.read(opener, array.shape) if array.nbytes else np.zeros(array.shape, array.format)
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        if values.dtype.kind == "U":
            _require_characters(values)
        value = cast(object, values.tolist())
    except ValueError as error:  # invalid bytes or code points
        raise array.error("{where} is not readable text") from error
    return value if isinstance(value, str) else json.dumps(value)


def _require_characters(text: AnyArray) -> None:
    """Raise ValueError for invalid code points: NumPy passes them on to Python, which crashes."""
    codes = np.frombuffer(text.tobytes(), np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))
    if bool(np.any(codes > sys.maxunicode)):
        raise ValueError("not a character")


def _npy_array(stream: BinaryIO, path: Path, identity: Identity) -> Contiguous:
    stream.seek(0)
    array = npy_header(stream, path, path.name.removesuffix(".npy"))
    if array.offset + array.nbytes > identity.size:
        raise CaptureError("{path}: ends before its last element: the file is truncated", path=plain(path))
    return array


def npy_contents(stream: BinaryIO, path: Path, identity: Identity) -> FileContents:
    """Return q and k: stacked in one array, or one of them and, from adjacent files, the other, masks and biases."""
    array = _npy_array(stream, path, identity)
    ending = path.name.removeprefix(array.name)
    arrays: dict[str, Stored] = {array.name: array}
    files = [(path, identity)]
    notes: list[str] = []
    other = partner(array.name)
    if other is not None:
        words = [word for feature in SHARED for word in TENSORS[feature]]
        names = [other, *companions(array.name, words)]
        names += [name for name in _changing(path.parent, array.name, ending) if name not in names]
        for name in names:
            file = path.with_name(name + ending)
            if os.path.lexists(file):
                with opened(file) as (other_stream, found):
                    arrays[name] = _npy_array(other_stream, file, found)
                    files.append((file, found))
                notes.append(message("{name} is read as well", name=quoted(file.name)))
        return FileContents(arrays, {}, tuple(files), tuple(notes))
    if len(array.shape) not in (3, 4, 5) or array.shape[0] != 2 or array.fortran:
        raise array.error(
            "{where} of shape {shown} cannot hold both q and k; must be an array of shape [2, …] in C "
            "order (q, then k), or a pair of files such as q.npy and k.npy"
        )
    q = replace(array, name="q", shape=array.shape[1:])
    return FileContents({"q": q, "k": replace(q, name="k", offset=q.offset + q.nbytes)}, {}, tuple(files))


def _changing(folder: Path, name: str, ending: str) -> list[str]:
    """Return the names of files beside this tensor's, without their ending, that may change its attention.

    Those that are not understood are read too, so that the layer is refused and not measured without them.
    """
    before, after = companions(name, ("*",))[0].split("*")
    found: list[str] = []
    for file in sorted(os.listdir(folder)):
        other = file.removesuffix(ending)
        word = other.removeprefix(before).removesuffix(after)
        if file == other + ending and other == before + word + after and tensor_changes_attention(word):
            found += [] if "." in word else [other]
    return found


def npy_header(stream: BinaryIO, path: Path, name: str) -> Contiguous:
    """Return the array that a .npy header declares; its offset counts from the start of the header."""
    where = message("{path}: array {name}", path=plain(path), name=quoted(name))
    start = stream.read(8)
    width, pattern = (2, "<H") if start[6:7] == b"\x01" else (4, "<I")
    length = stream.read(width)
    if not start.startswith(_MAGIC) or len(length) < width:
        raise CaptureError("{where} has no .npy header: the file is damaged or truncated", where=where)
    size = int(struct.unpack(pattern, length)[0])
    header = stream.read(min(size, _LONGEST_HEADER))
    descr = re.search(rb"""['"]descr['"]\s*:\s*(?:['"]([^'"]{1,32})['"]|[\[(])""", header)
    order = re.search(rb"""['"]fortran_order['"]\s*:\s*(True|False)""", header)
    shape = re.search(rb"""['"]shape['"]\s*:\s*\(([\d,\sL]*)\)""", header)
    lengths = [] if shape is None else re.findall(rb"\d+", shape[1])
    too_long = len(lengths) > MOST_AXES or any(len(n) > 18 for n in lengths)
    if len(header) < size or not (descr and order and shape) or too_long:
        raise CaptureError("{where} has a damaged .npy header", where=where)
    dtype, stored = _type((descr[1] or b"structured").decode("latin-1"))
    offset = len(start) + width + size
    return Contiguous(path, name, dtype, stored, tuple(map(int, lengths)), order[1] == b"True", offset=offset)


def _type(descr: str) -> tuple[str, np.dtype[Any] | None]:
    """Return the name and the NumPy type of a header's dtype description; None for an unsupported type."""
    if re.fullmatch(r"[<>|=]?O\d*", descr):
        return "object", None
    if re.fullmatch(r"[<>|=]?V\d+", descr):
        return "void", None  # NumPy saves bfloat16 and float8 like this
    if re.fullmatch(r"[<>|=]?[?biufcSU]\d{0,8}", descr):
        try:
            stored = np.dtype(descr)
        except (TypeError, ValueError):
            return descr, None
        return stored.name, stored
    return descr, None
