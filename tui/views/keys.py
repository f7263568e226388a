"""Keys by the names that people know them by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .bars import Key

_WORDS = {
    "question_mark": "?", "greater_than_sign": ">", "less_than_sign": "<", "left_square_bracket": "[",
    "right_square_bracket": "]", "left_curly_bracket": "{", "right_curly_bracket": "}",
    "full_stop": ".", "comma": ",", "slash": "/", "plus": "+", "minus": "-",
    "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "escape": "Esc", "space": "Space", "home": "Home",
    "end": "End", "left": "←", "right": "→", "up": "↑", "down": "↓", "tab": "Tab", "backspace": "Backspace",
    "delete": "Del",
}  # fmt: skip
_NAMES = {word.lower(): name for name, word in _WORDS.items() if len(word) > 1}
_PIECE = re.compile(r"[←→↑↓]|[^ ←→↑↓]+")


def key_word(key: str) -> str:
    """`ctrl+p` as Ctrl+P, `question_mark` as ?; several keys, set off by commas, as several words."""
    if len(key) == 1:
        return key
    if "," in key:
        return " ".join(map(key_word, key.split(",")))
    *modifiers, name = key.split("+")
    return "+".join([*map(str.capitalize, modifiers), _WORDS.get(name) or name.capitalize()])


def key_name(word: str) -> str:
    """The name of a key that somebody wrote, perhaps as `key_word` has it: Ctrl+P is ctrl+p, and PgUp is pageup."""
    if len(word) == 1:
        return word
    *modifiers, name = word.lower().split("+")
    return "+".join([*modifiers, _NAMES.get(name, name)])


def rekeyed(keys: Sequence[Key], instead: Mapping[str, str]) -> list[Key]:
    """Keys with some replaced by others; `instead` gives words for words."""
    return [(_PIECE.sub(lambda piece: instead.get(piece[0], piece[0]), press), does) for press, does in keys]
