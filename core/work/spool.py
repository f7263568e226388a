"""Finished parts in a file, as JSON, so that work that was cut off goes on where it ended.

A result is made of numbers, texts, tuples, arrays and the dataclasses, named tuples, messages and errors of `core`.
What is read becomes these and nothing else: no function is called but their constructors, and no text but a path is
read that a terminal would obey.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import struct
import time
import zlib
from array import array
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ..errors import InputError
from ..message import Message, Plain, message, plain
from ..texts import from_json
from .engine_names import LostExecutorError
from .part import Part
from .worker import other_versions, traits

_CORE = __name__.rpartition(".work.")[0]
_LONGEST = 1 << 28  # characters of the results of a part
_PLAIN = (type(None), bool, int, float, str)


class NotStoredError(ValueError):
    """A text that is not a stored result."""


def text_of(results: tuple[Any, ...]) -> str:
    """Return results as JSON; raise TypeError if there is a value that cannot be stored."""
    return json.dumps(_as_json(results), separators=(",", ":"))


def results_in(text: str | bytes) -> tuple[Any, ...]:
    """Return the results in a text that `text_of` made; raise NotStoredError if it is another text."""
    try:
        found = from_json(text, _LONGEST)
        if isinstance(found, list):
            return tuple(map(_from_json, cast("list[Any]", found)))
    except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError, ImportError) as error:
        raise NotStoredError(f"{type(error).__name__}: {error}") from error
    raise NotStoredError(type(found).__name__)


def _as_json(value: Any) -> Any:
    kind = cast("Any", type(value))
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [*map(_as_json, value)]
    if kind is np.ndarray:
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, [*value.shape], data]}
    if kind is array:
        return {"numbers": [value.typecode, value.tolist()]}
    if issubclass(kind, np.generic):
        return {"scalar": [value.dtype.str, value.item()]}
    if isinstance(value, Message):
        return {"message": [str.__str__(value), value.template, _as_json(value.values), _as_json(value.plural)]}
    if isinstance(value, Path | Plain):
        return {"path" if isinstance(value, Path) else "plain": str(value)}
    if kind is slice:
        return {"slice": [*map(_as_json, (value.start, value.stop, value.step))]}
    if kind in (list, set, frozenset):
        return {kind.__name__: [*map(_as_json, value)]}
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {"dict": [[_as_json(key), _as_json(value)] for key, value in items]}
    package, _, module = kind.__module__.partition(f"{_CORE}.")
    name = f"{module}:{kind.__qualname__}"
    if package or _class(name) is not kind:
        raise TypeError(kind)
    if isinstance(value, InputError):
        return {name: [_as_json(value.args), _as_json(vars(value))]}
    if is_dataclass(value):
        return {name: {field.name: _as_json(getattr(value, field.name)) for field in fields(value)}}
    return {name: [*map(_as_json, value)]}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_from_json, cast("list[Any]", value)))
    if isinstance(value, str) and value != plain(value):
        raise ValueError(plain(value))
    if not isinstance(value, dict):
        return value
    [(name, held)] = cast("dict[str, Any]", value).items()
    return _MADE[name](held) if name in _MADE else _object(_class(name), held)


def _class(name: str) -> Any:
    """Return a class of `core` by its module and name; raise ValueError if results have no such objects."""
    module, _, qualified = name.partition(":")
    if not all(map(str.isidentifier, [*module.split("."), qualified])) or module.startswith("recorder"):
        raise ValueError(name)
    found: Any = getattr(import_module(f"{_CORE}.{module}"), qualified)
    fields_of = ("__dataclass_fields__", "_fields")
    if isclass(found) and (issubclass(found, InputError) or any(hasattr(found, field) for field in fields_of)):
        return found
    raise ValueError(name)


def _object(kind: Any, held: Any) -> Any:
    if issubclass(kind, InputError):
        arguments, attributes = map(_from_json, held)
        error = kind.__new__(kind)
        error.args = arguments
        vars(error).update(attributes)
        return error
    if hasattr(kind, "__dataclass_fields__"):
        later = {field.name for field in fields(kind) if not field.init}
        made = kind(**{name: _from_json(value) for name, value in held.items() if name not in later})
        for name in later:
            object.__setattr__(made, name, _from_json(held[name]))
        return made
    return kind(*map(_from_json, held))


def _number_type(name: str) -> np.dtype[Any]:
    found = np.dtype(name)
    if found.kind not in "biufc":
        raise ValueError(name)
    return found


def _array(held: Any) -> Any:
    kind, shape, data = held
    return np.frombuffer(base64.b64decode(data, validate=True), _number_type(kind)).reshape(shape).copy()


def _message(held: Any) -> Message:
    text, template, values, plural = map(_from_json, held)
    made = Message(text)
    made.template, made.values, made.plural = template, values, plural
    return made


_MADE: dict[str, Callable[[Any], Any]] = {
    "array": _array,
    "numbers": lambda held: array("d" if held[0] == "d" else "q", held[1]),
    "scalar": lambda held: _number_type(held[0]).type(held[1]),
    "message": _message,
    "path": Path,
    "plain": plain,
    "slice": lambda held: slice(*map(_from_json, held)),
    "list": lambda held: [*map(_from_json, held)],
    "set": lambda held: {*map(_from_json, held)},
    "frozenset": lambda held: frozenset(map(_from_json, held)),
    "dict": lambda held: {_from_json(key): _from_json(value) for key, value in held},
}


_SCHEMA = "attn-tui/parts-2"
_RECORD = struct.Struct("<32sQI")  # the key of a part, the length of its results and their checksum
_PAUSE = 1.0  # seconds between flushes to the disk


class SpoolError(InputError):
    """A file of finished parts that cannot be used; the message is one line."""


class SpoolFullError(LostExecutorError):
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
            results = results_in(self._file.read(place[1]))
            if len(results) != part.count and not (results and isinstance(results[-1], InputError)):
                raise NotStoredError(f"{len(results)} of {part.count} results")
            return results
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
        here = traits()
        if line := file.readline(1 << 16):
            _check(line, path)
        else:
            with _written(path):
                _write(file, json.dumps({"schema": _SCHEMA, "traits": here}).encode() + b"\n")
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
        head: Any = from_json(line)
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
        raise SpoolError("{path}: was begun with other versions: {refused}", path=path, refused=refused)


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
