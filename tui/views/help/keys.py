"""The names of keys: Textual's, and those that people use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..bars import PIECE, Key

_WORDS = {
    "question_mark": "?", "greater_than_sign": ">", "less_than_sign": "<", "left_square_bracket": "[",
    "right_square_bracket": "]", "left_parenthesis": "(", "right_parenthesis": ")",
    "left_curly_bracket": "{", "right_curly_bracket": "}",
    "full_stop": ".", "comma": ",", "slash": "/", "plus": "+", "minus": "-", "equals_sign": "=",
    "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "escape": "Esc", "space": "Space", "home": "Home",
    "end": "End", "left": "←", "right": "→", "up": "↑", "down": "↓", "tab": "Tab", "backspace": "Backspace",
    "delete": "Del", "insert": "Ins",
}  # fmt: skip
# Alt+1 to Alt+9, then Alt+0, of terminals that send Alt as an Esc before the key, which Textual reads as on the
# keyboard of a Mac.
ALT = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 0),
        (
            "inverted_exclamation_mark", "trade_mark_sign", "pound_sign", "cent_sign", "infinity", "section_sign",
            "pilcrow_sign", "bullet", "ª", "º",
        ),
        strict=True,
    )
)  # fmt: skip
_NAMES = {word.lower(): name for name, word in _WORDS.items()}


def key_word(key: str) -> str:
    """Return `ctrl+p` as Ctrl+P and `question_mark` as ?; several keys, separated by commas, as several words."""
    if len(key) == 1:
        return key
    if "," in key:
        return " ".join(key_word(each) for each in key.split(",") if each not in ALT.values())
    *modifiers, name = key.split("+")
    return "+".join([*map(str.capitalize, modifiers), _WORDS.get(name) or name.capitalize()])


def key_name(word: str) -> str:
    """Return Textual's name of a key that a user wrote: Ctrl+P is ctrl+p, PgUp is pageup."""
    if len(word) == 1 and word not in "←→↑↓":
        return word
    *modifiers, name = word.lower().split("+")
    return "+".join([*modifiers, _NAMES.get(name, name)])


def pressed_name(word: str) -> str:
    """Return Textual's name of the key that `key_word` writes so: ? is question_mark."""
    return _NAMES.get(word) or key_name(word)


def rekeyed(keys: Sequence[Key], replacements: Mapping[str, str]) -> list[Key]:
    """Return keys with their words replaced as `replacements` maps them."""
    return [(PIECE.sub(lambda word: replacements.get(word[0], word[0]), press), effect) for press, effect in keys]
