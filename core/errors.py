"""Errors in what the user provides."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches

from .message import message


class InputError(ValueError):
    """An input cannot be used; the message is one line: what is wrong, where, and what is accepted.

    Values replace the placeholders of its template: `InputError("{path}: no such file", path=path)`.
    """

    pointer = ""  # two lines that show where in a text: the text, and a caret under the character

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(message(template, **values) if values else template)


class ParameterError(InputError):
    """A parameter's value is not accepted."""


def needed(module: str, says: str) -> None:
    """Import a library that attn-tui does not depend on; raise ModuleNotFoundError that says so if it is missing."""
    from importlib import import_module

    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ModuleNotFoundError(says, name=module) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean …?)` for the known word that is `nearest`; or nothing."""
    near = nearest(word, known)
    return message(" (did you mean {near}?)", near=near) if near else ""


def not_one_of(text: str, known: Iterable[str]) -> str:
    """Return that a text must be one of these words, and the `nearest` of them."""
    words = list(known)
    near = did_you_mean(text, words)
    return message("must be one of {words}, not {text!r}{near}", words=", ".join(words), text=text, near=near)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the first known word that begins with `word`, else the closest one; empty if none is close.

    Words may be written without what separates their parts, or with other separators: `gpt_oss` begins gpt-oss-20b.
    """
    words = list(known)
    bare, bares = _bare(word), {_bare(known): known for known in reversed(words)}
    longer = [known for known in words if len(word) >= _BEGINNING and known.startswith(word)]
    longer += [each for each in words if len(bare) >= _BEGINNING and _bare(each).startswith(bare)]
    near = longer or get_close_matches(word, words, 1, cutoff=_CLOSE)
    return near[0] if near else next((bares[match] for match in get_close_matches(bare, bares, 1, cutoff=_CLOSE)), "")


def _bare(word: str) -> str:
    return _SEPARATORS.sub("", word.casefold())


_BEGINNING = 3  # letters that tell a word by its beginning
_CLOSE = 0.7  # similarity of words from which one may stand for the other
_SEPARATORS = re.compile(r"[\s_.\-−‐–]+")

# The message when a MemoryError ends a computation.
NO_MEMORY = message("not enough memory; try fewer keys or queries")

# What to say if a resource of the system is exhausted, by Python's words, which errors of the engine contain, too.
EXHAUSTED = {
    os.strerror(errno.ENFILE): message("too many open files in the system"),
    os.strerror(errno.EMFILE): message("too many open files in one process; ulimit -n shows the limit"),
    "can't start new thread": message("too many processes or threads; ulimit -u shows the limit"),
    os.strerror(errno.ENOMEM): message("not enough memory"),
}
