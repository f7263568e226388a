"""Opening files safely: only regular files are opened, and they are read in blocks, never memory-mapped.

If a mapped file is truncated while it is read, SIGBUS kills the process and leaves the terminal in raw mode; a short
read is an ordinary error. Every read checks that the file has not changed since it was first opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...errors import InputError
from ...files import FileError, open_file
from ...message import message, plain

if TYPE_CHECKING:
    from .stored import FileContents

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


class ValuesNotFiniteError(NotFiniteError):
    """A head has values that are NaN or infinite; its queries and keys may be finite."""


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
        with open_file(path) as stream:
            identity = _identity(os.fstat(stream.fileno()))
            _require_unchanged(path, identity, expected)
            try:
                yield stream, identity
            except CaptureError:
                _require_unchanged(path, _identity_of(path), expected)
                raise
            _require_unchanged(path, _identity_of(path), expected)
    except FileNotFoundError as error:
        _require_unchanged(path, None, expected)
        raise CaptureError("{path}: no such file", path=plain(path)) from error
    except FileError as error:
        raise CaptureError(str(error)) from error


def require_unchanged(path: Path, expected: Identity | None) -> None:
    """Raise CaptureError if a file is not the `expected` one any more."""
    if expected is not None:
        _require_unchanged(path, _identity_of(path), expected)


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


@dataclass(frozen=True)
class Kind:
    """One file format: its ending, a test of the first bytes, and the function that reads it, in a module here."""

    ending: str
    begins: Callable[[bytes], bool]
    module: str
    function: str

    def contents(self, stream: BinaryIO, path: Path, identity: Identity) -> FileContents:
        """Return what the open file declares, reading headers and metadata only."""
        declared: FileContents = getattr(import_module(f".{self.module}", __name__), self.function)(
            stream, path, identity
        )
        return declared


KINDS: tuple[Kind, ...] = (
    Kind(".safetensors", lambda start: start[8:9] == b"{", "safetensors", "contents"),
    Kind(".npz", lambda start: start.startswith((b"PK\x03\x04", b"PK\x05\x06")), "numpy_files", "npz_contents"),
    Kind(".npy", lambda start: start.startswith(b"\x93NUMPY"), "numpy_files", "npy_contents"),
    Kind(".safetensors.index.json", lambda start: start.lstrip().startswith(b"{"), "safetensors", "index_contents"),
)
ENDINGS = message("{endings} or {last}", endings=", ".join(kind.ending for kind in KINDS[:-1]), last=KINDS[-1].ending)
_START = 16  # bytes that identify a format


def contents(path: Path) -> FileContents:
    """Return what a file declares; its format is recognised by its first bytes, else by its ending."""
    with opened(path) as (stream, identity):
        start = stream.read(_START)
        by_ending = [kind for kind in KINDS if start and path.suffix.lower() == kind.ending]
        for kind in [*(kind for kind in KINDS if kind.begins(start)), *by_ending]:
            return kind.contents(stream, path, identity)
    if start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):  # as torch.save wrote once
        raise CaptureError("{path}: {fault}", path=plain(path), fault=PICKLED)
    fault = "not a file of tensors" if start else "the file is empty"
    raise CaptureError("{path}: {fault}; must be a {endings} file", path=plain(path), fault=fault, endings=ENDINGS)
