"""The names of keys."""

from attn_tui.tui.views.help import key_name, key_word, rekeyed
from cases import for_each


@for_each(
    ("name", "word"),
    [
        ("question_mark", "?"), ("pageup", "PgUp"), ("left", "←"), ("s", "s"), ("S", "S"), ("?", "?"), (",", ","),
        ("ctrl+p", "Ctrl+P"), ("shift+tab", "Shift+Tab"), ("f1", "F1"), ("right,l", "→ l"), ("+", "+"),
        ("ctrl+pageup", "Ctrl+PgUp"), ("enter", "Enter"), ("0-9", "0-9"),
    ],
)  # fmt: skip
def test_a_key_is_named(name: str, word: str) -> None:
    assert key_word(name) == word


@for_each("name", ["pageup", "ctrl+p", "f1", "enter", "shift+tab", "n", "N", "?", "escape", "+"])
def test_a_written_name_gives_its_key(name: str) -> None:
    assert key_name(key_word(name)) == name


def test_a_changed_key_is_shown() -> None:
    keys = [("←→", "d_k ±1"), ("[ ]", "keys"), ("PgUp PgDn", "width"), ("s", "scale"), ("S", "back")]
    instead = {"→": "d", "]": "F2", "PgDn": "x", "s": "n"}
    shown = [press for press, _ in rekeyed(keys, instead)]
    assert shown == ["←d", "[ F2", "PgUp x", "n", "S"]
