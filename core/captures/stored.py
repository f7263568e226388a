"""The arrays, not yet read, and the metadata that a file declares."""

from __future__ import annotations

import io
import lzma
import math
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .files import CaptureError, Identity, plain, quoted, short

AnyArray: TypeAlias = npt.NDArray[Any]

# Raised by zipfile and its decompressors for a damaged, encrypted or unknown archive.
ARCHIVE_ERRORS = (
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
FLOATS: dict[str, np.dtype[Any]] = {
    name: np.dtype(cast(Any, getattr(ml_dtypes, name, name)))
    for name in (
        "float16", "float32", "float64", "bfloat16",
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    )
}  # fmt: skip
_BLOCK = 1 << 22  # bytes; reads of a strided head are gathered into blocks of this size


@dataclass(frozen=True)
class Stored(ABC):
    """One array of a file: its name, type and shape, and a method that reads a part of it."""

    path: Path
    name: str
    dtype: str
    format: np.dtype[Any] | None  # None if NumPy has no such type, or it is not supported
    shape: tuple[int, ...]
    fortran: bool = False  # whether its elements are in Fortran order

    @property
    def where(self) -> str:
        """The array's file and name, for messages."""
        return f"{plain(self.path)}: tensor {quoted(self.name)}"

    @property
    def shown(self) -> str:
        """The shape, for messages."""
        return str(list(self.shape)) if len(self.shape) <= 8 else f"of {len(self.shape)} axes"

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; 0 if the type is not known."""
        return 0 if self.format is None else self.format.itemsize * math.prod(self.shape)

    @abstractmethod
    def read(self, stream: BinaryIO, shape: tuple[int, ...], axis: int | None = None, index: int = 0) -> AnyArray:
        """Return `array[..., index, ...]` along one axis of its elements in order, reshaped to `shape`.

        Returns `shape` without the axis, or all of it if there is no axis. `stream` is the open file.
        """


@dataclass(frozen=True)
class Contiguous(Stored):
    """An array whose elements lie one after another: in the file, or in a compressed member of an archive."""

    offset: int = field(kw_only=True)  # of the first byte, in the file or in the decompressed member
    member: str | None = field(default=None, kw_only=True)

    def read(self, stream: BinaryIO, shape: tuple[int, ...], axis: int | None = None, index: int = 0) -> AnyArray:
        """Read only the blocks that hold the index; see Stored.read."""
        assert self.format is not None
        outer, width, inner = 1, 1, math.prod(shape)
        if axis is not None:
            outer, width, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        size = self.format.itemsize
        rows = max(1, _BLOCK // (width * inner * size))
        result = np.empty((outer, inner), self.format)
        try:
            with self._bytes(stream) as source:
                for first in range(0, outer, rows):
                    count = min(rows, outer - first)
                    # From the first wanted element of these rows to the last.
                    block = np.empty((count, width, inner) if count > 1 else (1, 1, inner), self.format)
                    wanted = ((count - 1) * width + 1) * inner * size
                    source.seek(self.offset + (first * width + index) * inner * size)
                    view = block.reshape(-1).view(np.uint8).data[:wanted]
                    if cast(io.BufferedIOBase, source).readinto(view) != wanted:
                        raise CaptureError(f"{self.where} ends before its last element: the file is truncated")
                    result[first : first + count] = block[:, 0]
        except CaptureError:
            raise
        except ARCHIVE_ERRORS as error:
            raise CaptureError(f"{self.where} cannot be read: {short(error)}") from error
        return result.reshape(shape if axis is None else shape[:axis] + shape[axis + 1 :])

    @contextmanager
    def _bytes(self, stream: BinaryIO) -> Generator[BinaryIO, None, None]:
        """Open the bytes that the offset counts in: the file's, or the compressed member's."""
        if self.member is None:
            yield stream
            return
        with zipfile.ZipFile(stream) as archive, archive.open(self.member) as member:
            yield cast(BinaryIO, member)


@dataclass(frozen=True)
class Contents:
    """The arrays and the metadata that a file declares, and the files that were read."""

    arrays: Mapping[str, Stored]
    metadata: Mapping[str, str]
    files: tuple[tuple[Path, Identity], ...]
    notes: tuple[str, ...] = ()
