"""Errors in what the user provides."""

from __future__ import annotations

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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean …?)` for the known word that begins with `word`, else the closest one; or nothing."""
    words = list(known)
    longer = [each for each in words if len(word) >= _BEGINNING and each.startswith(word)]
    near = longer or get_close_matches(word, words, 1, cutoff=0.7)
    return message(" (did you mean {near}?)", near=near[0]) if near else ""


_BEGINNING = 3  # letters that tell a word by its beginning

# The message when a MemoryError ends a computation.
NO_MEMORY = message("not enough memory; try fewer keys or queries")
