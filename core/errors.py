"""What goes wrong through no fault of the program."""

from __future__ import annotations


class InputError(ValueError):
    """What was asked for or handed in cannot be used; the message is one line: what, where, what is accepted."""
