"""Read what a .safetensors file declares in its header."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from ..files import CaptureError, Identity, plain, short
from ..stored import FLOATS, Contents, Contiguous

_TYPES = {
    "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
}  # fmt: skip


def contents(stream: BinaryIO, path: Path, identity: Identity) -> Contents:
    """Return what the file declares, after the library has checked the header.

    The numbers are not read through the library: its NumPy slices do not support float8.
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
            name: _array(path, name, entry["dtype"], entry["shape"], 8 + length + entry["data_offsets"][0])
            for name, entry in header.items()
        }
    except (struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CaptureError(f"{plain(path)}: changed on disk while it was opened; open it again") from error
    return Contents(arrays, metadata, ((path, identity),))


def _array(path: Path, name: str, code: str, shape: list[int], offset: int) -> Contiguous:
    dtype = _TYPES.get(code, code.lower())
    if dtype in FLOATS:
        stored = FLOATS[dtype].newbyteorder("<") if FLOATS[dtype].kind == "f" else FLOATS[dtype]
    else:
        stored = np.dtype(dtype).newbyteorder("<") if code in _TYPES else None
    return Contiguous(path, name, dtype, stored, tuple(shape), offset=offset)
