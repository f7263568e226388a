"""Write .safetensors files with nothing but the standard library: a header in JSON, then the bytes of all tensors."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path

import torch

from .whole import whole_file

_TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip
for _name, _code in (("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2")):
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = _code


def write(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors in main memory to a file, aside first, so that the file is complete whenever it exists."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as stream:
        stream.write(len(text).to_bytes(8, "little"))
        stream.write(text)
        for tensor in tensors.values():
            stored = tensor.contiguous()  # alive while its memory is read
            if stored.numel():
                stream.write(_bytes(stored))


def _bytes(tensor: torch.Tensor) -> memoryview:
    """Return the memory of a contiguous tensor, valid while the tensor lives, without a copy and without NumPy."""
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")
