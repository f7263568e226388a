"""Reading settings from a file in the config directory and from the environment, and saving them.

Invalid settings are reported and ignored. A file that contains any is never written to, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ...core.errors import InputError, ParameterError, did_you_mean
from ...core.files import FileError, read_file, write_file
from ...core.message import message, plain, reason_of
from ...core.models import SET_BY_MODEL
from ...core.parameters import FIELD, FIELDS, Value
from ...core.questions.parse import parameter_values
from ...core.texts import edited_toml, from_toml
from .declared import KEYS_VARIABLE, PREFIX, SETTINGS, SettingError, Settings, variable_of

_SETTING = {setting.name: setting for setting in SETTINGS}
_LEARN = {"learn.at": str, "learn.done": list}  # the progress in the Learn pane: an item, and those answered
_NAMES = [*_SETTING, *_LEARN, *(f"parameters.{name}" for name in FIELD), "keys"]
_HEAD = """\
# Settings of attn-tui; attn-tui help settings lists them. On exit, the app saves parameters and settings here.
# Comments and the [keys] table stay as you wrote them.
"""


def config_file() -> Path:
    """Return the path of the settings file."""
    from platformdirs import user_config_path

    return user_config_path("attn-tui", appauthor=False) / "config.toml"


def load(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a file, if it exists, overridden by those of the environment.

    An invalid variable raises InputError; invalid settings in the file become problems of the result.
    """
    return _with_environment(Settings() if path is None else _from_file(path), environment)


def save_on_exit(settings: Settings, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Save the changes if the settings have a path; return all problems, a line each."""
    try:
        if settings.path is not None:
            save(settings.path, changes)
    except SettingError as error:
        return (*settings.problems, str(error))
    return settings.problems


def save(path: Path, changes: Mapping[str, Any]) -> None:
    """Write the changes to the settings file, replacing whole tables; everything else in it stays as it is.

    Raises SettingError if the file cannot be read or written, or is no longer valid TOML.
    """
    try:
        before = _bytes(path)
        after = edited_toml(before or _HEAD.encode(), changes)
        if after != before:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(after, path)
    except OSError as error:
        raise SettingError("{path}: settings not saved: {reason}", path=path, reason=error.strerror) from error
    except InputError as error:
        raise SettingError("{path}: settings not saved: {reason}", path=path, reason=error) from error


def _from_file(path: Path) -> Settings:
    try:
        found = from_toml(_bytes(path) or b"")
    except InputError as error:
        return Settings(
            problems=(
                message("{path}: {reason}; the file is ignored, and settings not saved", path=path, reason=error),
            )
        )
    values: dict[str, Any] = {}
    parameters: dict[str, Value] = {}
    keys: dict[str, str] = {}
    learn: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in _leaves(found):
        table, _, key = name.partition(".")
        try:
            if name in _SETTING:
                _SETTING[name].check(value)
                values[name] = value
            elif table == "parameters" and key in FIELD:
                parameters[key] = _parameter(key, value)
            elif table == "keys" and key and isinstance(value, str):
                keys[key] = value
            elif name in _LEARN:
                if not isinstance(value, _LEARN[name]):
                    accepted = message("a text") if _LEARN[name] is str else message("a list")
                    raise SettingError("must be {accepted}, not {value!r}", accepted=accepted, value=value)
                learn[key] = value
            else:
                raise SettingError("unknown setting{hint}", hint=did_you_mean(name, _NAMES))
        except InputError as error:
            problems.append(
                message(
                    "{path}: {name}: {reason}; ignored, and settings not saved", path=path, name=name, reason=error
                )
            )
    save_to = None if problems else path
    return Settings(**values, parameters=parameters, learn=learn, keys=keys, path=save_to, problems=tuple(problems))


def _bytes(path: Path) -> bytes | None:
    """Return the bytes of the file, None if there is none; raises SettingError if it cannot be read."""
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except FileError as error:
        raise SettingError("{reason}", reason=reason_of(str(error), plain(path))) from error


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in a table and its nested tables, with dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(cast(dict[str, Any], value), f"{above}{name}.")
        else:
            yield above + name, value


def _parameter(name: str, value: Any) -> Value:
    """Return a parameter of the file, checked; raises SettingError."""
    field = FIELD[name]
    if field.kind == "real" and type(value) is int:
        value = float(value)
    try:
        field.check(value)
    except ParameterError as error:
        raise SettingError("{reason}", reason=reason_of(str(error), field.label)) from None
    return value


def _with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text}
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        if setting.variable in given:
            try:
                values[setting.name] = setting.parse(given.pop(setting.variable))
            except SettingError as error:
                raise SettingError("{name}: {reason}", name=setting.variable, reason=error) from None
    texts = {field.name: given.pop(variable_of(field)) for field in FIELDS if variable_of(field) in given}
    parameters = parameter_values(texts, variable_of)
    overridden = SET_BY_MODEL if "model" in parameters else ()
    kept = {name: value for name, value in settings.parameters.items() if name not in overridden}
    keys = dict(key_setting(word) for word in given.pop(KEYS_VARIABLE, "").split())
    known = [*(setting.variable for setting in SETTINGS), *map(variable_of, FIELDS), KEYS_VARIABLE]
    unknown = [
        message("{name}: unknown setting{hint}", name=name, hint=did_you_mean(name, known)) for name in sorted(given)
    ]
    return settings._replace(
        **values,
        parameters={**kept, **parameters},
        keys={**settings.keys, **keys},
        problems=(*settings.problems, *unknown),
    )


def key_setting(word: str) -> tuple[str, str]:
    """Split `lab.redraw=n` into an action and its key; raises SettingError."""
    action, equals, key = word.partition("=")
    if not (action and equals and key):
        raise SettingError("{name}: must be words like lab.redraw=n, not {word!r}", name=KEYS_VARIABLE, word=word)
    return action, key
