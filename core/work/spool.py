"""Finished parts in a file, so that work that was cut off goes on where it ended."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import time
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError
from ..message import Message, message
from .engine_names import LostEngineError
from .part import Part
from .stored import NotStoredError, results_in, text_of
from .worker import other_versions, traits

_SCHEMA = "attn-tui/parts-2"
_RECORD = struct.Struct("<32sQI")  # the key of a part, the length of its results and their checksum
_PAUSE = 1.0  # seconds between flushes to the disk


class SpoolError(InputError):
    """A file of finished parts that cannot be used; the message is one line."""


class SpoolFullError(LostEngineError):
    """A file of finished parts that takes no more, as on a full disk; the message is one line.

    What is finished is kept, as if the workers were gone.
    """


class Spool:
    """The finished parts in a file: `get` reads results, `add` appends them."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._places: dict[bytes, tuple[int, int]] = {}  # offset and length of the results, by key
        self._flushed = time.monotonic()

    def count(self, parts: Iterable[Part[Any]]) -> int:
        """Return how many of these parts are finished."""
        return sum(_key(part) in self._places for part in parts) if self._places else 0

    def read(self) -> None:
        """Find the parts in the file, from where it stands; a part that was not written in full is cut off."""
        end, size = self._file.tell(), os.fstat(self._file.fileno()).st_size
        while len(head := self._file.read(_RECORD.size)) == _RECORD.size:
            key, length, checksum = _RECORD.unpack(head)
            if length > size - end - _RECORD.size or zlib.crc32(self._file.read(length)) != checksum:
                break
            self._places[key] = end + _RECORD.size, length
            end += _RECORD.size + length
        self._file.truncate(end)

    def get(self, part: Part[Any]) -> tuple[Any, ...] | None:
        """Return the results of a part, or None if it is not finished; raise SpoolError if they are none."""
        place = self._places.get(_key(part))
        if place is None:
            return None
        self._file.seek(place[0])
        try:
            return results_in(self._file.read(place[1]))
        except NotStoredError as error:
            raise SpoolError(
                "{path}: has a part that attn-tui did not write ({error}); remove the file",
                path=self._path,
                error=error,
            ) from None

    def add(self, part: Part[Any], results: tuple[Any, ...]) -> None:
        """Append the results of a part; raise SpoolFullError if they cannot be written in full."""
        data, key = text_of(results).encode(), _key(part)
        start = self._file.seek(0, os.SEEK_END)
        with _written(self._path):
            _write(self._file, _RECORD.pack(key, len(data), zlib.crc32(data)) + data)
            self._places[key] = start + _RECORD.size, len(data)
            if time.monotonic() - self._flushed > _PAUSE:
                os.fsync(self._file.fileno())
                self._flushed = time.monotonic()


@contextmanager
def open_spool(path: Path) -> Generator[Spool, None, None]:
    """Open a file of finished parts, or begin one; raise SpoolError if it is another file, or of other versions."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        raise SpoolError("{path}: {reason}", path=path, reason=error.strerror) from None
    with open(descriptor, "r+b", buffering=0) as file:  # what is added is in the file at once
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SpoolError("{path}: is not a regular file", path=path)
        _lock(file, path)
        own = traits()
        if line := file.readline(1 << 16):
            _check(line, path)
        else:
            with _written(path):
                _write(file, json.dumps({"schema": _SCHEMA, "traits": own}).encode() + b"\n")
        spool = Spool(file, path)
        spool.read()
        yield spool
        with _written(path):
            os.fsync(file.fileno())


def _write(file: BinaryIO, data: bytes) -> None:
    """Write all of some data to a file without a buffer; raise OSError if there is no room for it."""
    while data:
        data = data[file.write(data) :]


@contextmanager
def _written(path: Path) -> Generator[None, None, None]:
    """Raise SpoolFullError for an OSError."""
    try:
        yield
    except OSError as error:
        raise SpoolFullError("{path}: cannot be written: {reason}", path=path, reason=error.strerror) from None


def _check(line: bytes, path: Path) -> None:
    try:
        head = json.loads(line)
        known = head["schema"] == _SCHEMA
        refused = other_versions(traits(), [head["traits"]])
    except (ValueError, KeyError, TypeError):
        known, refused = False, ""
    if not known:
        raise SpoolError(
            "{path}: is not a file of finished parts; --resume takes a new name or such a file", path=path
        )
    if isinstance(refused, Message):
        refused = message("it has {name} {other}, and this machine {own}; they must be the same", **refused.values)
    if refused:
        raise SpoolError(
            "{path}: was begun with other versions: {refused}",
            path=path,
            refused=refused,
        )


def _lock(file: BinaryIO, path: Path) -> None:
    """Raise SpoolError if another process writes to the file; where files cannot be locked, do nothing."""
    with suppress(ImportError):
        fcntl: Any = import_module("fcntl")
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpoolError("{path}: another attn-tui writes to it", path=path) from None
        except OSError:  # a file system without locks
            return


def _key(part: Part[Any]) -> bytes:
    """Return a digest of what a part does."""
    return hashlib.sha256(f"{_text(part.work)} {_text(part.arguments)}".encode()).digest()


def _text(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"
