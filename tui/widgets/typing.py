"""Bindings for characters that are typed.

Bindings, unlike `on_key`, keep their order with other keys, which bubble up to the app.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.binding import Binding, BindingType

from ..views.help.keys import ALT

_NAMES = {
    ".": "full_stop", "-": "minus", "+": "plus", "_": "underscore", "/": "slash", "(": "left_parenthesis",
    ")": "right_parenthesis", "*": "asterisk", "^": "circumflex_accent", " ": "space", ",": "comma",
    "=": "equals_sign", "%": "percent_sign", "~": "tilde",
}  # fmt: skip


def typing(characters: Iterable[str], words: str = "type") -> list[BindingType]:
    """Return bindings of the action `type` for these characters."""
    return [Binding(_NAMES.get(c, c), f"type({c!r})", words) for c in characters]


def pasted_line(event: events.Paste) -> str:
    """Return the printable characters of the first line that is not blank."""
    return "".join(filter(str.isprintable, event.text.strip().partition("\n")[0]))


def typed_beyond_ascii(event: events.Key) -> str:
    """Return a typed character that no binding is for, such as √ or 零; empty if the key is not one.

    What many terminals send for Alt and a digit is not, though Textual reads it as such.
    """
    character = event.character or ""
    beyond = character.isprintable() and not character.isascii() and event.key not in ALT.values()
    return character if beyond else ""
