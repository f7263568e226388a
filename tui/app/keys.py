"""All commands that have keys, from the bindings of the app and its panes, and the user's own keys for them.

The name of a command is the id of its binding; the [keys] table of the settings file uses these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys, key_to_character

from ...core.errors import did_you_mean
from ...core.message import message
from ..panes.catalogue import PANES, TABS
from ..settings.declared import KEYS_VARIABLE, Settings
from ..settings.store import config_file, key_setting
from ..views.bars import Key
from ..views.help import ALT, key_name, key_word, rekeyed

if TYPE_CHECKING:
    from ..views.help import KeyHelp

EVERYWHERE = "everywhere"  # the place of commands that work in every pane

NEXT_PANE: Key = (">", "next tab")  # in every key bar, followed by OUTPUT_KEYS where letters do not type
QUIT: Key = ("q", "quit")
OUTPUT_KEYS: tuple[Key, ...] = (("e", "export"), ("y", "copy command"), ("Y", "code"), ("u", "undo"))

APP_BINDINGS: tuple[Binding, ...] = (
    Binding("q", "quit", "quit", id="quit"),
    Binding("question_mark,f1", "help", "help", id="help"),
    Binding("K", "all_keys", "all keys", id="all_keys"),
    Binding("ctrl+p", "command_palette", "command palette", priority=True, id="palette"),
    Binding("e", "export", "export the picture or the numbers to a file", id="export"),
    Binding("y", "copy", "copy the command that prints these numbers", id="copy"),
    Binding("Y", "copy('code')", "show and copy the NumPy or PyTorch code of these numbers", id="code"),
    Binding("greater_than_sign", "turn(1)", "next tab", id="next_pane"),
    Binding("less_than_sign", "turn(-1)", "previous tab", id="previous_pane"),
    Binding("V", "next_view", "next view of the tab", id="next_view"),
    Binding("ctrl+z", "suspend_process", "suspend; fg in the shell continues", id="suspend"),
    Binding("u", "undo", "undo", id="undo"),
    Binding("ctrl+r", "redo", "redo", id="redo"),
    *(
        Binding(f"alt+{key},{ALT[key]}", f"tab('{title}')", title, id=f"{title.lower()}_pane")
        for key, title in zip((1, 2, 3, 4, 5, 6), TABS, strict=True)
    ),
)

# The tabs that have taken the place of panes, by the names that the [keys] table of earlier versions used.
_EARLIER = {f"{title.lower()}_pane": f"{row.tab.lower()}_pane" for title, row in PANES.items()} | {
    "claims_pane": "learn_pane"
}
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_KEYS = {key.value for key in Keys}


class Command(NamedTuple):
    """A command, its keys, and where they work."""

    name: str  # such as lab.redraw; empty if its keys cannot be changed
    place: str  # the name of a pane, or EVERYWHERE
    words: str
    keys: str  # separated by commas
    action: str  # for the pane, or the app, to run


def commands(bindings: Mapping[str, Iterable[BindingType]]) -> list[Command]:
    """Return the commands of bindings, which are given by place, with their default keys."""
    return [
        Command(binding.id or "", place, binding.description, binding.key, binding.action)
        for place, found in bindings.items()
        for binding in found
        if isinstance(binding, Binding)
    ]


def all_commands() -> list[Command]:
    """Return the app's commands, which work in every pane, then each pane's."""
    return commands({EVERYWHERE: APP_BINDINGS} | {title: row.load().BINDINGS for title, row in PANES.items()})


def with_keys(commands: Iterable[Command], keymap: Mapping[str, str]) -> list[Command]:
    """Return the commands with the keys of a keymap."""
    return [command._replace(keys=keymap.get(command.name, command.keys)) for command in commands]


def help_keys(commands: Iterable[Command], keymap: Mapping[str, str]) -> dict[str, list[KeyHelp]]:
    """Return the entries of the help for these commands, by place."""
    groups: dict[str, list[KeyHelp]] = {}
    for command in with_keys(commands, keymap):
        if command.words:
            groups.setdefault(command.place, []).append((command.keys, command.words, command.name))
    return groups


def replaced_keys(commands: Iterable[Command], keymap: Mapping[str, str]) -> dict[str, str]:
    """Return the new key for each default key that a keymap replaces, both as `key_word` writes them."""
    return {
        key_word(key): key_word(keymap[command.name].split(",")[0])
        for command in commands
        if command.name in keymap
        for key in command.keys.split(",")
    }


def bar_keys(
    shown: Sequence[Key], bindings: Mapping[str, Iterable[BindingType]], keymap: Mapping[str, str]
) -> Sequence[Key]:
    """Return the keys that a pane's key bar shows, with OUTPUT_KEYS after NEXT_PANE, as a keymap replaces them.

    Without QUIT, letters type into a field, and OUTPUT_KEYS are left out.
    """
    at = list(shown).index(NEXT_PANE) + 1 if NEXT_PANE in shown else len(shown)
    keys = (*shown[:at], *OUTPUT_KEYS, *shown[at:]) if QUIT in shown else shown
    return rekeyed(keys, replaced_keys(commands(bindings), keymap)) if keymap else keys


def accepted_keys(commands: Sequence[Command], wanted: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the keymap of the accepted keys, and error messages for the others, both by name."""
    names = [command.name for command in commands if command.name]
    keymap: dict[str, str] = {}
    problems: dict[str, str] = {}
    for given, text in wanted.items():
        name = _EARLIER.get(given, given)
        keys = [key_name(word.strip()) for word in text.split(",")]
        unknown = next((key for key in keys if not _is_key(key)), None)
        if name not in names:
            problems[given] = message(
                "unknown action{did_you_mean}; K lists all actions", did_you_mean=did_you_mean(name, names)
            )
        elif unknown is not None:
            problems[given] = message("unknown key {unknown!r}; examples: n, ?, f2, pageup, ctrl+x", unknown=unknown)
        else:
            keymap[name] = ",".join(keys)
    while clash := next(_clashes(with_keys(commands, keymap), keymap), None):
        name, key, other = clash
        problems[name] = message("{key} is already the key of {words!r}", key=key_word(key), words=other.words)
        del keymap[name]
    return keymap, problems


def with_accepted_keys(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Return the settings without invalid keys, which become problems; loads all panes for their actions."""
    keymap, objections = accepted_keys(all_commands(), settings.keys)
    from_environment = dict(key_setting(word) for word in environment.get(KEYS_VARIABLE, "").split())
    problems = list(settings.problems)
    for name, objection in objections.items():
        if name in from_environment:
            problems.append(
                message(
                    "{keys_variable}: {name}: {objection}; ignored",
                    keys_variable=KEYS_VARIABLE,
                    name=name,
                    objection=objection,
                )
            )
        else:
            problems.append(
                message(
                    "{config_file}: keys.{name}: {objection}; ignored, and settings not saved",
                    config_file=config_file(),
                    name=name,
                    objection=objection,
                )
            )
    from_file = any(name not in from_environment for name in objections)
    return settings._replace(keys=keymap, path=None if from_file else settings.path, problems=tuple(problems))


def _clashes(commands: Sequence[Command], keymap: Mapping[str, str]) -> Iterator[tuple[str, str, Command]]:
    """Yield the keys of a keymap that another command has in the same place: name, key, other command."""
    for command in commands:
        for other in commands:
            together = command.place == other.place or EVERYWHERE in (command.place, other.place)
            if command.name in keymap and other is not command and together:
                taken = {_canonical(key) for key in other.keys.split(",")}
                yield from ((command.name, key, other) for key in command.keys.split(",") if _canonical(key) in taken)


def _is_key(key: str) -> bool:
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    known = len(base) == 1 or base in _KEYS or key_to_character(base) is not None
    return known and all(modifier in _MODIFIERS for modifier in modifiers)


def _canonical(key: str) -> str:
    """Return one name for keys that have several: question_mark is ?"""
    return key_to_character(key) or key
