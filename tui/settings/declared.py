"""SETTINGS: the declaration of the app's permanent settings, apart from its parameters.

Each row is a key of the settings file, an environment variable, and a line of `--help`. Only the app has settings;
commands that print depend on their command line alone, so that a script prints the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import InputError
from ...core.field import Field, differing
from ...core.message import message, reason_of
from ...core.parameters import FIELDS, NO_MODEL, Parameters, Value, usual_of
from ...core.work.engine_names import DEFAULT_ENGINE, ExecutorError, engine_name
from ..language.chosen import AUTO, CHOICES

PREFIX = "ATTN_TUI_"  # of environment variables
KEYS_VARIABLE = PREFIX + "KEYS"
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class SettingError(InputError):
    """A setting with an invalid value."""


class Settings(NamedTuple):
    """The settings of one run of the app."""

    theme: str = AUTO
    ascii: bool = False
    lang: str = AUTO
    mouse: bool = True
    hint: bool = True
    all_parameters: bool = False
    all_statistics: bool = False
    executor: str = DEFAULT_ENGINE
    parameters: Mapping[str, Value] = {}  # by name; others have defaults
    learn: Mapping[str, Any] = {}  # the progress in the Learn pane
    keys: Mapping[str, str] = {}  # by the names of actions
    path: Path | None = None  # the file to save to; None to save nothing
    problems: tuple[str, ...] = ()  # a line for each ignored setting


class Setting(NamedTuple):
    """A setting: its key in the file, help and default."""

    name: str
    help: str
    default: str | bool
    choices: Callable[[], Collection[str]] = tuple
    refuse: Callable[[str], object] | None = None  # raises SettingError for a text, instead of choices

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return PREFIX + self.name.upper()

    @property
    def accepted(self) -> str:
        """The accepted values, in words."""
        if self.refuse is not None:
            return message("a text")
        if isinstance(self.default, bool):
            return message("true or false")
        return message("one of {choices}", choices=", ".join(self.choices()))

    def check(self, value: object) -> None:
        """Raise SettingError if a value is not accepted."""
        if self.refuse is not None and isinstance(value, str):
            self.refuse(value)
            return
        flag = isinstance(self.default, bool)
        if not (isinstance(value, bool) if flag else value in self.choices()):
            raise SettingError("must be {accepted}, not {value!r}", accepted=self.accepted, value=value)

    def parse(self, text: str) -> str | bool:
        """Return the value of a text; raises SettingError."""
        value = _FLAGS.get(text.lower(), text) if isinstance(self.default, bool) else text
        self.check(value)
        return value


_USUAL = Settings()


def _themes() -> Collection[str]:
    from ..terminal.themes import names  # loads Textual, as the app is about to

    return (AUTO, *names())


def _refuse_executor(text: str) -> None:
    """Raise SettingError if there is no executor of this name."""
    try:
        engine_name(text)
    except ExecutorError as error:
        raise SettingError("{reason}", reason=reason_of(str(error), "executor")) from None


SETTINGS = (
    Setting("theme", "colours: auto is the terminal's", _USUAL.theme, _themes),
    Setting("ascii", "plain ASCII instead of Unicode", _USUAL.ascii),
    Setting("lang", "language: auto is the locale's", _USUAL.lang, lambda: CHOICES),
    Setting("mouse", "use the mouse", _USUAL.mouse),
    Setting("hint", "show the hint for new users", _USUAL.hint),
    Setting("all_parameters", "show all parameters in the Lab", _USUAL.all_parameters),
    Setting("all_statistics", "show all statistics in the Lab", _USUAL.all_statistics),
    Setting("executor", "where long work is done, as --executor says", _USUAL.executor, refuse=_refuse_executor),
)


def variable_of(field: Field) -> str:
    """Return the name of a parameter's environment variable."""
    return PREFIX + field.name.upper()


def non_default(parameters: Parameters) -> dict[str, Value]:
    """Return the model, if there is one, and the parameters that differ from what it sets or from their defaults."""
    return differing(FIELDS, parameters, replace(usual_of(parameters), model=NO_MODEL))
