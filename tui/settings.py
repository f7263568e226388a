"""SETTINGS: the one declaration of what the app can be told for good, beside its parameters.

A row is a key of the settings file, a variable of the environment, and a line of `--help`. Only the app knows
settings. Commands that print know nothing but their command line, so that a script says the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..core.errors import InputError
from ..core.parameters import FIELDS, Field, Parameters, Value

PREFIX = "ATTN_TUI_"  # of the variables
KEYS_VARIABLE = PREFIX + "KEYS"
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class SettingError(InputError):
    """A value of a setting that is not accepted."""


@dataclass(frozen=True)
class Settings:
    """What holds for one run of the app."""

    theme: str = "attn-dark"
    ascii: bool = False
    mouse: bool = True
    hint: bool = True
    parameters: Mapping[str, Value] = field(default_factory=dict[str, Value])  # by name; not all of them
    keys: Mapping[str, str] = field(default_factory=dict[str, str])  # by the names of actions
    path: Path | None = None  # the file that they are saved in; None where nothing is to be saved
    problems: tuple[str, ...] = ()  # what was not understood and is left out, a line each


class Setting(NamedTuple):
    """One setting: its key in the file, what it is, and what it is by default."""

    name: str
    help: str
    default: str | bool
    choices: Callable[[], Collection[str]] = tuple

    @property
    def variable(self) -> str:
        """The environment's name for it."""
        return PREFIX + self.name.upper()

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return "true or false" if isinstance(self.default, bool) else "one of " + ", ".join(self.choices())

    def check(self, value: object) -> None:
        """Raise SettingError unless this value is accepted."""
        flag = isinstance(self.default, bool)
        if not (isinstance(value, bool) if flag else value in self.choices()):
            raise SettingError(f"{value!r} is not accepted; it takes {self.accepted}")

    def parse(self, text: str) -> str | bool:
        """The value that a person typed; raises SettingError."""
        value = _FLAGS.get(text.lower(), text) if isinstance(self.default, bool) else text
        self.check(value)
        return value


def _themes() -> Collection[str]:
    from .themes import names  # loads Textual, as the app is about to

    return names()


SETTINGS = (
    Setting("theme", "the colours", Settings.theme, _themes),
    Setting("ascii", "plain ASCII instead of Unicode", Settings.ascii),
    Setting("mouse", "whether the app takes the mouse", Settings.mouse),
    Setting("hint", "whether newcomers are shown the hint", Settings.hint),
)


def variable_of(field: Field) -> str:
    """The environment's name for a parameter."""
    return PREFIX + field.name.upper()


def unusual(parameters: Parameters) -> dict[str, Value]:
    """The parameters that are not as they are by default."""
    values = {field.name: getattr(parameters, field.name) for field in FIELDS}
    return {name: value for name, value in values.items() if value != getattr(Parameters(), name)}
