"""A file that other people write: opened only if it is a regular file, read in blocks, never mapped.

A mapped file that is cut short while it is read kills the process with SIGBUS and leaves the terminal raw;
a read that comes back short is an ordinary error. What is read is compared with what was opened first.
"""

from __future__ import annotations

import io
import lzma
import math
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..errors import InputError

AnyArray: TypeAlias = npt.NDArray[Any]

# What zipfile and its decompressors raise for a damaged, encrypted or unknown archive.
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


class CaptureError(InputError):
    """A file that cannot be read; the message is one line: what, where, what is accepted."""


@dataclass(frozen=True)
class Identity:
    """What tells that a file on disk is still the one that was opened."""

    size: int
    modified: int  # nanoseconds
    device: int
    inode: int


@dataclass(frozen=True)
class Stored:
    """One array in a file: what it is and where its bytes lie. Nothing of it has been read."""

    path: Path
    name: str
    dtype: str
    format: np.dtype[Any] | None  # None where NumPy has no such type, or it is refused
    shape: tuple[int, ...]
    offset: int  # of its first byte, in the file or, where there is one, in the decompressed member
    fortran: bool = False  # the first axis varies fastest
    member: str | None = None  # of a compressed archive

    @property
    def where(self) -> str:
        """The place, as messages name it."""
        return f"{plain(self.path)}: tensor {quoted(self.name)}"

    @property
    def shown(self) -> str:
        """The shape, as messages show it."""
        return str(list(self.shape)) if len(self.shape) <= 8 else f"of {len(self.shape)} axes"

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; 0 where the type is not known."""
        return 0 if self.format is None else self.format.itemsize * math.prod(self.shape)


def plain(text: object) -> str:
    """The text on one line, with whatever a terminal would obey (escapes, newlines) spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def short(text: object, most: int = 120) -> str:
    """The text on one line, cut to so many characters."""
    line = plain(text)
    return line if len(line) <= most else line[: most - 1] + "…"


def quoted(text: object) -> str:
    """A name out of a file, short enough for a message."""
    return f"'{short(text, 80)}'"


@contextmanager
def opened(path: Path, expected: Identity | None = None) -> Generator[tuple[BinaryIO, Identity], None, None]:
    """The file, open for reading, and its identity; raises CaptureError for anything but a regular file.

    With `expected`, the file must be that one before and after the reading.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        _require_unchanged(path, None, expected)
        raise CaptureError(f"{plain(path)}: no such file") from error
    except (OSError, ValueError) as error:
        raise CaptureError(_unreadable(path, error)) from error
    _require_regular(path, status.st_mode)
    try:
        with open(path, "rb", opener=_open_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            _require_regular(path, status.st_mode)
            identity = _identity(status)
            _require_unchanged(path, identity, expected)
            try:
                yield stream, identity
            except CaptureError:
                _require_unchanged(path, _identity_of(path), expected)
                raise
            _require_unchanged(path, _identity_of(path), expected)
    except OSError as error:
        raise CaptureError(_unreadable(path, error)) from error


def read_index(
    stream: BinaryIO, array: Stored, shape: tuple[int, ...], axis: int | None = None, index: int = 0
) -> AnyArray:
    """`array[..., index, ...]` along one axis of the shape its elements have in memory; the whole with no axis.

    Returns that shape without the axis. `stream` is the open file; only the blocks that hold the index are read.
    """
    assert array.format is not None
    outer, width, inner = 1, 1, math.prod(shape)
    if axis is not None:
        outer, width, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    size = array.format.itemsize
    rows = max(1, _BLOCK // (width * inner * size))
    result = np.empty((outer, inner), array.format)
    try:
        with _bytes_of(stream, array) as source:
            for first in range(0, outer, rows):
                count = min(rows, outer - first)
                # From the first wanted element of these rows to the last: with one row, just that.
                block = np.empty((count, width, inner) if count > 1 else (1, 1, inner), array.format)
                wanted = ((count - 1) * width + 1) * inner * size
                source.seek(array.offset + (first * width + index) * inner * size)
                view = block.reshape(-1).view(np.uint8).data[:wanted]
                if cast(io.BufferedIOBase, source).readinto(view) != wanted:
                    raise CaptureError(f"{array.where} ends before its last element: the file is truncated")
                result[first : first + count] = block[:, 0]
    except CaptureError:
        raise
    except ARCHIVE_ERRORS as error:
        raise CaptureError(f"{array.where} cannot be read: {short(error)}") from error
    return result.reshape(shape if axis is None else shape[:axis] + shape[axis + 1 :])


@contextmanager
def _bytes_of(stream: BinaryIO, array: Stored) -> Generator[BinaryIO, None, None]:
    """The bytes that the array's offset counts in: the file's, or a compressed member's."""
    if array.member is None:
        yield stream
        return
    with zipfile.ZipFile(stream) as archive, archive.open(array.member) as member:
        yield cast(BinaryIO, member)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open so that a fifo put in the file's place cannot block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise CaptureError(f"{plain(path)}: is a directory; a .safetensors, .npz or .npy file is accepted")
    if not stat.S_ISREG(mode):
        raise CaptureError(f"{plain(path)}: is not a regular file; a .safetensors, .npz or .npy file is accepted")


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return f"{plain(path)}: cannot be read: {short(reason)}"


def _identity_of(path: Path) -> Identity | None:
    try:
        return _identity(os.stat(path))
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)


def _require_unchanged(path: Path, now: Identity | None, expected: Identity | None) -> None:
    if expected is not None and now != expected:
        raise CaptureError(f"{plain(path)}: changed on disk since it was opened; open it again")
