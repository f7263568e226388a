"""Texts from outside: JSON, a line of JSON Lines, or TOML becomes plain values here, and nowhere else.

Parsers raise what they like: a RecursionError, or a bare ValueError for a number of 5,000 digits. And what a parser
accepts may fail where it is used: an integer that no float can hold, or lists too deep for a recursive function. Here
all of these are one TextError, so that the reader of a text has one line to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from .errors import InputError
from .message import quoted, short

T = TypeVar("T")
LARGEST = 1 << 23  # characters of a text; parsed, they take up to thirty times the memory
_DEEPEST = 100  # lists and tables inside each other
_DIGITS = 308  # of a whole number: a float holds all that have no more
_MARK = "\ufeff"  # the byte order mark that some editors write at the start of a file


class TextError(InputError):
    """A text that cannot be read; the message is a predicate such as `is not UTF-8`: the reader names its subject."""


def decoded(data: bytes) -> str:
    """Return a text in UTF-8 without its byte order mark; raise TextError if it is something else."""
    try:
        return data.decode().removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise TextError("is not UTF-8") from error


def from_json(text: str | bytes, largest: int = LARGEST) -> object:
    """Return the value of a JSON text; raise TextError if it is none, has a key twice, or is beyond the bounds."""
    return _parsed(_json, text, largest)


def from_toml(text: str | bytes) -> dict[str, Any]:
    """Return the table of a TOML text; raise TextError if it is none, or is beyond the bounds."""
    return _parsed(_toml, text, LARGEST)


def edited_toml(text: bytes, changes: Mapping[str, Any]) -> bytes:
    """Return a TOML text with other values of some keys, replacing whole tables; all else stays as it is.

    Comments and a byte order mark stay; where all lines end in CRLF, new ones do. Raise TextError if the text is not
    TOML, or if a value would be lost.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    before = from_toml(text)
    wanted = {**before, **changes}
    if wanted == before:
        return text
    whole = text.decode()
    plain = whole.removeprefix(_MARK)
    try:
        document = tomlkit.parse(plain if plain.endswith("\n") else plain + "\n")
        for name, value in changes.items():
            if isinstance(value, Mapping):
                table: Any = document.setdefault(name, tomlkit.table())
                for key in [key for key in table if key not in value]:
                    del table[key]
                table.update(value)
            else:
                document[name] = value
        after = tomlkit.dumps(document)
        if "\r\n" in plain and "\n" not in plain.replace("\r\n", ""):
            after = after.replace("\r\n", "\n").replace("\n", "\r\n")
        found = from_toml(after)
        lossless = all(found.get(name, {}) == wanted.get(name, {}) for name in {*found, *wanted})
    # tomlkit raises any of these for dotted keys and for tables in several pieces, or else loses some of them.
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, TOMLKitError):
        after, lossless = "", False
    if not lossless:
        raise TextError("cannot be changed without loss; write each table in one piece, such as [parameters]")
    return (whole[: len(whole) - len(plain)] + after).encode()


def _parsed(parse: Callable[[str], T], text: str | bytes, largest: int) -> T:
    """Return what a parser makes of a text within the bounds; raise TextError for whatever it raises."""
    text = decoded(text) if isinstance(text, bytes) else text.removeprefix(_MARK)
    if len(text) > largest:
        raise TextError("must have at most {largest} characters, not {size}", largest=largest, size=len(text))
    try:
        value = parse(text)
    except TextError:
        raise
    except RecursionError as error:
        raise _too_deep() from error
    except (ValueError, OverflowError) as error:  # of int()
        raise _too_long() from error
    _require_bounds(value)
    return value


def _json(text: str) -> object:
    try:
        return cast(object, json.loads(text, object_pairs_hook=_without_twins))
    except json.JSONDecodeError as error:
        fault = {"fault": error.msg, "line": error.lineno, "column": error.colno}
        if error.lineno == 1:  # in JSON Lines, the line has another number
            raise TextError("is not JSON: {fault} at character {column}", **fault) from error
        raise TextError("is not JSON: {fault} at line {line}, column {column}", **fault) from error


def _toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TextError("is not TOML: {fault}", fault=short(error)) from error


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; raise TextError if a key is there twice: readers differ in which one they take."""
    value = dict(pairs)
    if len(value) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise TextError("has {twice} twice", twice=quoted(twice))
    return value


def _require_bounds(value: object) -> None:
    """Raise TextError if a value is too deep for recursive functions, or has a whole number that no float holds."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner: list[object] = []
        for line in level:
            kind = type(line)
            if kind is dict:
                inner += cast("dict[str, object]", line).values()
            elif kind is list:
                inner += cast("list[object]", line)
            elif kind is int and abs(cast(int, line)) >= _BEYOND:
                raise _too_long()
        if not inner:
            return
        level = inner
    raise _too_deep()


_BEYOND = 10**_DIGITS


def _too_deep() -> TextError:
    return TextError("is nested deeper than {deepest} levels", deepest=_DEEPEST)


def _too_long() -> TextError:
    return TextError("has a whole number of more than {digits} digits", digits=_DIGITS)
