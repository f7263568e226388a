"""Read what a .npy file declares in its header.

The header is parsed here, because NumPy evaluates it as Python; nothing here can unpickle anything.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...message import message
from ...plain import plain, quoted
from ..beside.roles import ROLES, SHARED
from ..beside.unknown import tensor_changes_attention
from ..files import CaptureError, Identity, opened
from ..naming import beside, partner
from ..stored import MOST_AXES, Contents, Contiguous, Stored

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16  # bytes; only headers of structured types are longer


def _array(stream: BinaryIO, path: Path, identity: Identity) -> Contiguous:
    stream.seek(0)
    array = npy_header(stream, path, path.name.removesuffix(".npy"))
    if array.offset + array.nbytes > identity.size:
        raise CaptureError("{path}: ends before its last element: the file is truncated", path=plain(path))
    return array


def contents(stream: BinaryIO, path: Path, identity: Identity) -> Contents:
    """Return q and k: stacked in one array, or one of them and, from adjacent files, the other, masks and biases."""
    array = _array(stream, path, identity)
    ending = path.name.removeprefix(array.name)
    arrays: dict[str, Stored] = {array.name: array}
    files = [(path, identity)]
    notes: list[str] = []
    other = partner(array.name)
    if other is not None:
        words = [word for role in SHARED for word in ROLES[role]]
        names = [other, *beside(array.name, words)]
        names += [name for name in _changing(path.parent, array.name, ending) if name not in names]
        for name in names:
            file = path.with_name(name + ending)
            if os.path.lexists(file):
                with opened(file) as (other_stream, found):
                    arrays[name] = _array(other_stream, file, found)
                    files.append((file, found))
                notes.append(message("{name} is read as well", name=quoted(file.name)))
        return Contents(arrays, {}, tuple(files), tuple(notes))
    if len(array.shape) not in (3, 4, 5) or array.shape[0] != 2 or array.fortran:
        raise CaptureError(
            "{where} of shape {shown} cannot hold both q and k; must be an array of shape [2, …] in C "
            "order (q, then k), or a pair of files such as q.npy and k.npy",
            where=array.where,
            shown=array.shown,
        )
    q = replace(array, name="q", shape=array.shape[1:])
    return Contents({"q": q, "k": replace(q, name="k", offset=q.offset + q.nbytes)}, {}, tuple(files))


def _changing(folder: Path, name: str, ending: str) -> list[str]:
    """Return the names of files beside this tensor's, without their ending, that may change its attention.

    Those that are not understood are read too, so that the layer is refused and not measured without them.
    """
    before, after = beside(name, ("*",))[0].split("*")
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
