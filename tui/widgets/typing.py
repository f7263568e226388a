"""What keys and pastes type."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.binding import Binding, BindingType
from textual.keys import key_to_character

from ..views.help import ALT

_NAMES = {".": "full_stop", "-": "minus", "+": "plus"}


def typing(characters: Iterable[str], words: str) -> list[BindingType]:
    """Return bindings of the action `type` for these characters."""
    return [Binding(_NAMES.get(c, c), f"type({c!r})", words) for c in characters]


def pasted_line(event: events.Paste) -> str:
    """Return the printable characters of the first line that is not blank."""
    return "".join(filter(str.isprintable, event.text.strip().partition("\n")[0]))


def typed_character(event: events.Key, ascii: str) -> str:
    """Return the character that a key types into words: one of `ascii`, or one beyond, such as √ or 零; otherwise "".

    What many terminals send for Alt and a digit is none, though Textual reads it as such.
    """
    character = event.character or key_to_character(event.key) or ""
    if character.isascii():
        return character if character in ascii else ""
    return character if character.isprintable() and event.key not in ALT.values() else ""
