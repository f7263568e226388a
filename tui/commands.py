"""Everything that a key does, from the bindings of the app and of its panes; and other keys for it.

A command's name is the id of its binding: the [keys] table of the settings file speaks of commands by their names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from textual.binding import Binding, BindingType
from textual.keys import Keys, key_to_character

from .panes.catalogue import PANES
from .views.help import KeyHelp
from .views.keys import key_name, key_word

EVERYWHERE = "everywhere"  # the place of commands that every pane has

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_KEYS = {key.value for key in Keys}


@dataclass(frozen=True)
class Command:
    """What a key does, and where."""

    name: str  # as in lab.redraw; empty for what always has its own key
    place: str  # the name of a pane, or EVERYWHERE
    words: str
    keys: str  # set off by commas
    action: str  # as the pane, or the app, runs it


def commands(bindings: Mapping[str, Iterable[BindingType]]) -> list[Command]:
    """What these bindings do, by the places that they belong to, with the keys that they have by default."""
    return [
        Command(binding.id or "", place, binding.description, binding.key, binding.action)
        for place, found in bindings.items()
        for binding in found
        if isinstance(binding, Binding)
    ]


def all_commands(everywhere: Iterable[BindingType]) -> list[Command]:
    """Those of the app, which every pane has, and then each pane's."""
    return commands({EVERYWHERE: everywhere} | {name: pane().BINDINGS for name, pane in PANES.items()})


def with_keys(found: Iterable[Command], keymap: Mapping[str, str]) -> list[Command]:
    """These commands with the keys that a keymap gives them."""
    return [replace(command, keys=keymap.get(command.name, command.keys)) for command in found]


def help_keys(found: Iterable[Command], keymap: Mapping[str, str]) -> dict[str, list[KeyHelp]]:
    """What the help says of these commands, by their places."""
    groups: dict[str, list[KeyHelp]] = {}
    for command in with_keys(found, keymap):
        if command.words:
            groups.setdefault(command.place, []).append((command.keys, command.words, command.name))
    return groups


def other_words(found: Iterable[Command], keymap: Mapping[str, str]) -> dict[str, str]:
    """What the keys of these commands have become, in the words of `key_word`."""
    return {
        key_word(key): key_word(keymap[command.name].split(",")[0])
        for command in found
        if command.name in keymap
        for key in command.keys.split(",")
    }


def accepted_keys(found: Sequence[Command], wanted: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The keymap that these wishes make, by name; and what is wrong with those that are left out of it."""
    names = [command.name for command in found if command.name]
    keymap: dict[str, str] = {}
    problems: dict[str, str] = {}
    for name, text in wanted.items():
        keys = [key_name(word.strip()) for word in text.split(",")]
        unknown = next((key for key in keys if not _is_key(key)), None)
        if name not in names:
            near = difflib.get_close_matches(name, names, 1, cutoff=0.7)
            meant = f" (did you mean {near[0]}?)" if near else ""
            problems[name] = f"there is no such action{meant}; K shows all of them"
        elif unknown is not None:
            problems[name] = f"{unknown!r} is no key; n, ?, f2, pageup and ctrl+x are some"
        else:
            keymap[name] = ",".join(keys)
    while clash := next(_clashes(with_keys(found, keymap), keymap), None):
        name, key, other = clash
        problems[name] = f"{key_word(key)} is taken already, for {other.words!r}"
        del keymap[name]
    return keymap, problems


def _clashes(found: Sequence[Command], keymap: Mapping[str, str]) -> Iterator[tuple[str, str, Command]]:
    """Wishes for keys that do something else in the same place: their names, the key, and what it does."""
    for command in found:
        for other in found:
            together = command.place == other.place or EVERYWHERE in (command.place, other.place)
            if command.name in keymap and other is not command and together:
                taken = {_sign(key) for key in other.keys.split(",")}
                yield from ((command.name, key, other) for key in command.keys.split(",") if _sign(key) in taken)


def _is_key(key: str) -> bool:
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    known = len(base) == 1 or base in _KEYS or key_to_character(base) is not None
    return known and all(modifier in _MODIFIERS for modifier in modifiers)


def _sign(key: str) -> str:
    """One name for what has several: question_mark is ?"""
    return key_to_character(key) or key
