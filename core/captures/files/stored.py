"""The arrays, not yet read, and the metadata that a file declares."""

from __future__ import annotations

import io
import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...message import message, plain, quoted, short
from . import CaptureError, Identity, opened

AnyArray: TypeAlias = npt.NDArray[Any]
Opener: TypeAlias = "Callable[[], AbstractContextManager[BinaryIO]]"  # opens the file of an array
# Parts of arrays that were read: the first index along the axis of heads, and the values [outer, indices, inner].
AtHand: TypeAlias = dict["Stored", tuple[int, AnyArray]]

FLOATS: dict[str, np.dtype[Any]] = {
    name: np.dtype(cast(Any, getattr(ml_dtypes, name, name)))
    for name in (
        "float16", "float32", "float64", "bfloat16",
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    )
}  # fmt: skip
MOST_AXES = 64  # as in NumPy
# Bytes that a compressed array may have in any case, and how many times its compressed bytes it may have beyond.
# Padding and masks compress a hundredfold; what compresses better and is large was made to fill the memory.
_ALWAYS, _RATIO = 1 << 26, 100
_AT_HAND = 1 << 27  # bytes of a compressed array that are kept: neighbouring heads, which are read next
_MOST_AT_HAND = 3  # such arrays: a layer's queries, keys and mask
# The same of an array that is not compressed: opening its file takes as long as reading so little.
_SMALL, _MOST_SMALL = 1 << 20, 8
_BLOCK = 1 << 22  # bytes; reads of a strided head are gathered into blocks of this size
_CHUNK = 1 << 16  # bytes that are decompressed at once


@dataclass(frozen=True)
class PackedArray:
    """The place of a compressed array in the file."""

    offset: int
    size: int


@dataclass(frozen=True)
class Stored(ABC):
    """One array of a file: its name, type and shape, and a method that reads a part of it."""

    path: Path
    name: str
    dtype: str
    format: np.dtype[Any] | None  # None if NumPy has no such type, or it is not supported
    shape: tuple[int, ...]
    fortran: bool = False  # whether its elements are in Fortran order
    packed: PackedArray | None = field(default=None, kw_only=True)  # if it is compressed

    @property
    def what(self) -> str:
        """The array's kind and name, for messages."""
        return message("tensor {name}", name=quoted(self.name))

    @property
    def where(self) -> str:
        """The array's file, kind and name, for messages."""
        return message("{path}: {what}", path=plain(self.path), what=self.what)

    @property
    def shown(self) -> str:
        """The shape, for messages."""
        return str(list(self.shape)) if len(self.shape) <= 8 else message("of {count} axes", count=len(self.shape))

    def error(self, template: str, **values: object) -> CaptureError:
        """Return the error of this template, which may name `where` the array is and its shape as it is `shown`."""
        return CaptureError(template, where=self.where, shown=self.shown, **values)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; 0 if the type is not known."""
        return 0 if self.format is None else self.format.itemsize * math.prod(self.shape)

    def require_modest(self) -> None:
        """Raise CaptureError for a compressed array that is far larger than its file."""
        if self.packed is None:
            return
        most = max(_ALWAYS, _RATIO * self.packed.size)
        if self.nbytes > most:
            raise self.error(
                "{where} has {nbytes} bytes, compressed to {size}; must be at most {most}, or not "
                "compressed (numpy.savez)",
                nbytes=self.nbytes,
                size=self.packed.size,
                most=most,
            )

    @abstractmethod
    def read(
        self,
        opener: Opener,
        shape: tuple[int, ...],
        axis: int | None = None,
        index: int = 0,
        at_hand: AtHand | None = None,
    ) -> AnyArray:
        """Return `array[..., index, ...]` along one axis of its elements in order, reshaped to `shape`.

        Returns `shape` without the axis, or all of it if there is no axis. `opener` opens the file, if need be. The
        result may be a part of `at_hand`, and must not be changed.
        """


@dataclass(frozen=True)
class Contiguous(Stored):
    """An array whose elements lie one after another: in the file, or in a compressed member of an archive."""

    offset: int = field(kw_only=True)  # of the first byte, in the file or in the decompressed member

    def read(
        self,
        opener: Opener,
        shape: tuple[int, ...],
        axis: int | None = None,
        index: int = 0,
        at_hand: AtHand | None = None,
    ) -> AnyArray:
        """Read only the blocks that hold the index, or its neighbours, if few or compressed, too; see Stored.read."""
        assert self.format is not None
        split = (1, 1, math.prod(shape))
        if axis is not None:
            split = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        outer, width, inner = split
        most, arrays = (_SMALL, _MOST_SMALL) if self.packed is None else (_AT_HAND, _MOST_AT_HAND)
        together = min(width, most // (outer * inner * self.format.itemsize))
        if at_hand is None or together < (min(width, 2) if self.packed is None else 1):
            found = self._read(opener, split, index, 1)
        else:
            first = index - index % together
            kept = at_hand.get(self)
            if kept is None or kept[0] != first:
                kept = None
                at_hand.pop(self, None)
                while len(at_hand) >= arrays:
                    del at_hand[next(iter(at_hand))]
                kept = at_hand[self] = first, self._read(opener, split, first, min(together, width - first))
            found = kept[1][:, index - first]
        return found.reshape(shape if axis is None else shape[:axis] + shape[axis + 1 :])

    def _read(self, opener: Opener, split: tuple[int, int, int], index: int, count: int) -> AnyArray:
        """Return [:, index : index + count] of the array, split into three axes."""
        assert self.format is not None
        outer, width, inner = split
        size = self.format.itemsize
        rows = max(1, _BLOCK // (width * inner * size))
        result = np.empty((outer, count, inner), self.format)
        with opener() as stream:
            try:
                source = stream if self.packed is None else _Unpacked(stream, self.packed)
                for first in range(0, outer, rows):
                    several = min(rows, outer - first)
                    # From the first wanted element of these rows to the last.
                    block = np.empty((several, width if several > 1 else count, inner), self.format)
                    wanted = ((several - 1) * width + count) * inner * size
                    source.seek(self.offset + (first * width + index) * inner * size)
                    view = block.reshape(-1).view(np.uint8).data[:wanted]
                    if cast(io.BufferedIOBase, source).readinto(view) != wanted:
                        raise self.error("{where} ends before its last element: the file is truncated")
                    result[first : first + several] = block[:, :count]
            except zlib.error as error:
                raise self.error("{where} cannot be read: {error}", error=short(error)) from error
        return result


@dataclass(frozen=True)
class Numbers(Stored):
    """An array of one axis whose numbers are in the metadata."""

    values: tuple[float, ...] = field(kw_only=True)

    @property
    def what(self) -> str:
        return message("metadata {name}", name=quoted(self.name))

    def read(
        self,
        opener: Opener,
        shape: tuple[int, ...],
        axis: int | None = None,
        index: int = 0,
        at_hand: AtHand | None = None,
    ) -> AnyArray:
        """Return the numbers; see Stored.read."""
        values = np.array(self.values, self.format).reshape(shape)
        return values if axis is None else values.take(index, axis)


@dataclass(frozen=True)
class MemoryArray(Stored):
    """An array of the program that asks, by the name of its argument; `path` stands for all of its arrays."""

    values: AnyArray = field(kw_only=True, repr=False, compare=False)

    def read(
        self,
        opener: Opener,
        shape: tuple[int, ...],
        axis: int | None = None,
        index: int = 0,
        at_hand: AtHand | None = None,
    ) -> AnyArray:
        """Return a view of the elements; see Stored.read."""
        values = self.values.reshape(shape)
        return values if axis is None else values[(slice(None),) * axis + (index,)]


def memory_array(path: Path, name: str, values: AnyArray) -> MemoryArray:
    """Return an array of the program as if it were stored."""
    return MemoryArray(path, name, values.dtype.name, values.dtype, values.shape, values=values)


@contextmanager
def stream_of(array: Stored, expected: Identity | None = None) -> Generator[BinaryIO, None, None]:
    """Open the file of an array; raise CaptureError if that is not the `expected` one."""
    with opened(array.path, expected) as (stream, _):
        yield stream


def numbers(path: Path, name: str, values: Sequence[float]) -> Numbers:
    """Return numbers of the metadata as an array: int64 if all are whole numbers of Python, else float64."""
    dtype = "int64" if all(isinstance(value, int) for value in values) else "float64"
    return Numbers(path, name, dtype, np.dtype(dtype), (len(values),), values=tuple(values))


class _Unpacked:
    """The decompressed bytes of a member of an archive, read from front to back."""

    def __init__(self, stream: BinaryIO, packed: PackedArray) -> None:
        stream.seek(packed.offset)
        self._stream, self._left, self._position = stream, packed.size, 0
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)

    def seek(self, position: int) -> None:
        """Skip to a later position."""
        while self._position < position and self._next(min(_CHUNK, position - self._position)):
            pass

    def readinto(self, view: memoryview) -> int:
        """Fill the view; return the number of bytes, fewer only at the end."""
        filled = 0
        while filled < len(view):
            piece = self._next(min(_CHUNK, len(view) - filled))
            if not piece:
                break
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def _next(self, most: int) -> bytes:
        """Return at most this many bytes; none at the end."""
        while not self._inflate.eof:
            source = self._inflate.unconsumed_tail
            if not source:
                source = self._stream.read(min(_CHUNK, self._left))
                self._left -= len(source)
            piece = self._inflate.decompress(source, most)
            self._position += len(piece)
            if piece or not source:
                return piece
        return b""


@dataclass(frozen=True)
class FileContents:
    """The arrays and the metadata that a file declares, and the files that were read."""

    arrays: Mapping[str, Stored]
    metadata: Mapping[str, str]
    files: tuple[tuple[Path, Identity], ...]
    notes: tuple[str, ...] = ()
