"""Where .safetensors files go: one or a folder of steps, of one process or several ranks, and which are removed."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path

import torch

from ..options import Options, is_of_run
from .whole import may_replace, whole_file

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


_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


def rank_and_size() -> tuple[int, int]:
    """Return this process's rank and the number of processes in a distributed run; (0, 1) outside one."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return _variable(_RANK_VARIABLES, 0), _variable(_SIZE_VARIABLES, 1)


def _variable(names: tuple[str, ...], default: int) -> int:
    texts = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isdigit()), default)


class Folder:
    """Writes the files of one process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.written: list[Path] = []
        self._only: Path | None = None  # the one file, once its name is settled

    def write(self, step: int | None, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> Path:
        """Write the file of a step; return its path."""
        path = self._place(step)
        if not may_replace(path, self.options.overwrite):  # the program has put a file there meanwhile
            path = self._beside(path)
        if not self.options.one_file:
            path.parent.mkdir(parents=True, exist_ok=True)
        write(path, tensors, metadata)
        if path not in self.written:
            self.written.append(path)
        self._rotate()
        return path

    def replaces_earlier(self, step: int) -> bool:
        """Return whether the file of a step will take the place of one that an earlier run has left."""
        path = self._place(step)
        return path.exists() and not is_of_run(path, self.options)

    def _place(self, step: int | None) -> Path:
        return self._one_file() if self.options.one_file or step is None else self._step_file(step)

    def _one_file(self) -> Path:
        """Return the path of the one file: beside that of another process of this run, if there is one."""
        if self._only is None:
            path = Path(self.options.path)
            rank, size = rank_and_size()
            if self.options.ranks == "all" and size > 1:
                path = path.with_name(f"{path.stem}.rank{rank}{path.suffix}")
            self._only = self._beside(path) if self.options.process and is_of_run(path, self.options) else path
        return self._only

    def _beside(self, path: Path) -> Path:
        """Return a path with the number of this process that is free, or that this process has written."""
        ends = chain([""], (f"-{number}" for number in count(2)))
        paths = (path.with_name(f"{path.stem}.process{os.getpid()}{end}{path.suffix}") for end in ends)
        return next(path for path in paths if path in self.written or not os.path.lexists(path))

    def _step_file(self, step: int) -> Path:
        folder = Path(self.options.path)
        rank, size = rank_and_size()
        if self.options.ranks == "all" and size > 1:
            folder = folder / f"rank{rank}"
        return folder / f"step-{step:06d}.safetensors"

    def _rotate(self) -> None:
        """Remove the oldest files of this run beyond those to keep."""
        while self.options.keep is not None and len(self.written) > self.options.keep:
            with contextlib.suppress(OSError):
                if may_replace(self.written[0]):
                    self.written[0].unlink()
            del self.written[0]
