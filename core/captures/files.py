"""Reading files safely: only regular files are opened, and they are read in blocks, never memory-mapped.

If a mapped file is truncated while it is read, SIGBUS kills the process and leaves the terminal in raw mode; a short
read is an ordinary error. Every read checks that the file has not changed since it was first opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError
from ..message import message
from ..plain import plain, short

# Bytes of a header, of an archive's directory, and of all metadata: parsed, they take up to thirty times the memory.
LARGEST_HEADER = 1 << 23


# The faults of files that would have to be unpickled.
PICKLED = message(
    "is a pickle, which may run code and is never opened; save its tensors with safetensors.torch.save_file, as "
    "docs/capture-format.md shows"
)


class CaptureError(InputError):
    """A capture cannot be read; the message is one line: what is wrong, where, and what is accepted."""


class NotFiniteError(CaptureError):
    """A head has numbers that are NaN or infinite."""


class NoQueriesError(CaptureError):
    """A file has no queries and keys."""


@dataclass(frozen=True)
class Identity:
    """What identifies the version of a file that was opened."""

    size: int
    modified: int  # nanoseconds
    device: int
    inode: int


@contextmanager
def opened(path: Path, expected: Identity | None = None) -> Generator[tuple[BinaryIO, Identity], None, None]:
    """Open a file for reading and yield it with its identity; raise CaptureError unless it is a regular file.

    With `expected`, raise CaptureError if its identity is different before or after reading.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        _require_unchanged(path, None, expected)
        raise CaptureError("{path}: no such file", path=plain(path)) from error
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


def _open_without_waiting(path: str, flags: int) -> int:
    """Open without blocking, in case a FIFO has replaced the file."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise CaptureError("{path}: is a directory, not a file", path=plain(path))
    if not stat.S_ISREG(mode):
        raise CaptureError("{path}: is not a regular file", path=plain(path))


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return message("{path}: cannot be read: {reason}", path=plain(path), reason=short(reason))


def _identity_of(path: Path) -> Identity | None:
    try:
        return _identity(os.stat(path))
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)


def _require_unchanged(path: Path, now: Identity | None, expected: Identity | None) -> None:
    if expected is not None and now != expected:
        raise CaptureError("{path}: changed on disk since it was opened; open it again", path=plain(path))
