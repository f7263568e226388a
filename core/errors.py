"""Errors in what the user provides."""

from __future__ import annotations


class InputError(ValueError):
    """An input cannot be used; the message is one line: what is wrong, where, and what is accepted."""

    pointer = ""  # two lines that show where in a text: the text, and a caret under the character


class ParameterError(InputError):
    """A parameter's value is not accepted."""


# The message when a MemoryError ends a computation.
NO_MEMORY = "not enough memory; try fewer keys or queries"
