"""Errors in what the user provides."""

from __future__ import annotations

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


# The message when a MemoryError ends a computation.
NO_MEMORY = message("not enough memory; try fewer keys or queries")
