"""Opening files safely: only regular files are opened, and they are read in blocks, never memory-mapped.

If a mapped file is truncated while it is read, SIGBUS kills the process and leaves the terminal in raw mode; a short
read is an ordinary error. Every read checks that the file has not changed since it was first opened.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from ...errors import InputError
from ...message import message, plain, quoted, short

if TYPE_CHECKING:
    from .stored import Contents

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


@dataclass(frozen=True)
class Kind:
    """One file format: its ending, a test of the first bytes, and the function that reads it, in a module here."""

    ending: str
    begins: Callable[[bytes], bool]
    module: str
    function: str

    def contents(self, stream: BinaryIO, path: Path, identity: Identity) -> Contents:
        """Return what the open file declares, reading headers and metadata only."""
        declared: Contents = getattr(import_module(f".{self.module}", __name__), self.function)(
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


def contents(path: Path) -> Contents:
    """Return what a file declares; its format is recognised by its first bytes, else by its ending."""
    with opened(path) as (stream, identity):
        start = stream.read(_START)
        by_ending = [kind for kind in KINDS if start and path.suffix.lower() == kind.ending]
        for kind in [*(kind for kind in KINDS if kind.begins(start)), *by_ending]:
            return kind.contents(stream, path, identity)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):  # as torch.save wrote once
        raise CaptureError("{path}: {fault}", path=plain(path), fault=PICKLED)
    fault = "not a file of tensors" if start else "the file is empty"
    raise CaptureError("{path}: {fault}; must be a {endings} file", path=plain(path), fault=fault, endings=ENDINGS)


def from_json(text: str) -> object:
    """Return the value of a JSON text; raise ValueError if it is invalid, nested too deeply or has a key twice."""
    try:
        return cast(object, json.loads(text, object_pairs_hook=_without_twins))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; raise ValueError if a key is there twice: readers differ in which one they take."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in value if names.count(name) > 1)
        raise ValueError(message("{twice} is there twice", twice=quoted(twice)))
    return value
