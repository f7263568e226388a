"""What every part of the command line needs to know, without the parser and its help, which take long to load."""

from __future__ import annotations

from ..core.errors import InputError

COMMANDS = ("report", "inspect", "claims", "cost")
FORMATS = ("table", "json", "csv", "markdown")


class UsageError(InputError):
    """A command line that is not understood; one line that says what is, or where that is written."""


def is_number(text: str) -> bool:
    """Whether a person would call it a number; it need not be an accepted one."""
    try:
        float(text)
    except ValueError:
        return False
    return True
