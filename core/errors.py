"""What goes wrong through no fault of the program."""

from __future__ import annotations


class InputError(ValueError):
    """What was asked for or handed in cannot be used; the message is one line: what, where, what is accepted."""


# What is said where a MemoryError ends a computation.
NO_MEMORY = "there is not enough memory for this; smaller numbers of keys and queries need less"
