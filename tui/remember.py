"""Where settings come from and go to: a file in the config directory, and the environment.

What is not understood is said, left out and kept: a file that holds anything of that kind is never written to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..core.errors import InputError
from ..core.parameters import FIELD, FIELDS, ParameterError, Value
from . import output
from .settings import KEYS_VARIABLE, PREFIX, SETTINGS, SettingError, Settings, variable_of
from .usage import parameter_values

_SETTING = {setting.name: setting for setting in SETTINGS}
_NAMES = [*_SETTING, *(f"parameters.{name}" for name in FIELD), "keys"]
_HEAD = """\
# The settings of attn-tui; attn-tui --help lists them. On leaving it puts its last parameters here, and whatever
# else was changed in it. Comments, and what you write under [keys], stay as they are.
"""


def config_file() -> Path:
    """Where settings are kept."""
    from platformdirs import user_config_path

    return user_config_path("attn-tui", appauthor=False) / "config.toml"


def load(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """The settings in this file, if there is one, and over them those of the environment.

    A variable that is not accepted raises InputError. What the file says is a problem of the result at the worst.
    """
    settings = _with_environment(Settings() if path is None else _from_file(path), environment)
    return _with_checked_keys(settings, path, environment) if settings.keys else settings


def leave(settings: Settings, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Save what has become of these settings, where they are to be saved; all that went wrong, a line each."""
    try:
        if settings.path is not None:
            save(settings.path, changes)
    except SettingError as error:
        return (*settings.problems, str(error))
    return settings.problems


def save(path: Path, changes: Mapping[str, Any]) -> None:
    """Put these settings into the file, a table in place of what it held; everything else in it stays as it is.

    Raises InputError if the file cannot be written, or has become something that is not understood.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        before = path.read_bytes().decode() if path.exists() else ""
        document = tomlkit.parse(before or _HEAD)
        for name, value in changes.items():
            if isinstance(value, Mapping):
                table = document.setdefault(name, tomlkit.table())
                for key in [key for key in table if key not in value]:
                    del table[key]
                table.update(value)
            else:
                document[name] = value
        after = tomlkit.dumps(document)
        if after != before:
            path.parent.mkdir(parents=True, exist_ok=True)
            output.write_file(after.encode(), path)
    except OSError as error:
        raise SettingError(f"{path}: settings are not saved: {error.strerror}") from error
    except (TOMLKitError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise SettingError(f"{path}: settings are not saved: the file has become something else: {error}") from error


def _from_file(path: Path) -> Settings:
    try:
        found = _read(path)
    except FileNotFoundError:
        return Settings(path=path)
    except InputError as error:
        return Settings(problems=(f"{path}: {error}; nothing of it is used, and settings are not saved",))
    values: dict[str, Any] = {}
    parameters: dict[str, Value] = {}
    keys: dict[str, str] = {}
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
            else:
                raise SettingError(f"there is no such setting{_near(name, _NAMES)}")
        except InputError as error:
            problems.append(f"{path}: {name}: {error}; this is left out, and settings are not saved")
    kept = None if problems else path
    return Settings(**values, parameters=parameters, keys=keys, path=kept, problems=tuple(problems))


def _read(path: Path) -> dict[str, Any]:
    """The file's own structure; raises FileNotFoundError, or SettingError for what is not TOML."""
    try:
        text = path.read_bytes().decode() if path.is_file() or not path.exists() else None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingError(f"{error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError("is not UTF-8") from error
    if text is None:
        raise SettingError("is not a file")
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingError(f"is not TOML: {error}") from error


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """What stands in a table and in the tables in it, by dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(cast(dict[str, Any], value), f"{above}{name}.")
        else:
            yield above + name, value


def _parameter(name: str, value: Any) -> Value:
    """A parameter as the file gives it."""
    field = FIELD[name]
    if field.kind == "real" and type(value) is int:
        value = float(value)
    try:
        field.check(value)
    except ParameterError as error:
        raise SettingError(str(error).removeprefix(f"{field.label}: ")) from None
    return value


def _with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text}
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        if setting.variable in given:
            try:
                values[setting.name] = setting.parse(given.pop(setting.variable))
            except SettingError as error:
                raise SettingError(f"{setting.variable}: {error}") from None
    texts = {field.name: given.pop(variable_of(field)) for field in FIELDS if variable_of(field) in given}
    parameters = parameter_values(texts, variable_of)
    keys = dict(_key(word) for word in given.pop(KEYS_VARIABLE, "").split())
    known = [*(setting.variable for setting in SETTINGS), *map(variable_of, FIELDS), KEYS_VARIABLE]
    unknown = [f"{name}: there is no such setting{_near(name, known)}" for name in sorted(given)]
    return replace(
        settings,
        **values,
        parameters={**settings.parameters, **parameters},
        keys={**settings.keys, **keys},
        problems=(*settings.problems, *unknown),
    )


def _with_checked_keys(settings: Settings, path: Path | None, environment: Mapping[str, str]) -> Settings:
    """Without the keys that cannot be; only now all panes are loaded, for what they can do."""
    from .app import AttnApp
    from .commands import accepted_keys, all_commands

    keymap, objections = accepted_keys(all_commands(AttnApp.BINDINGS), settings.keys)
    of_environment = dict(_key(word) for word in environment.get(KEYS_VARIABLE, "").split())
    problems = list(settings.problems)
    for name, objection in objections.items():
        if name in of_environment:
            problems.append(f"{KEYS_VARIABLE}: {name}: {objection}; this is left out")
        else:
            problems.append(f"{path}: keys.{name}: {objection}; this is left out, and settings are not saved")
    from_file = any(name not in of_environment for name in objections)
    return replace(settings, keys=keymap, path=None if from_file else settings.path, problems=tuple(problems))


def _key(word: str) -> tuple[str, str]:
    action, equals, key = word.partition("=")
    if not (action and equals and key):
        raise SettingError(f"{KEYS_VARIABLE}: {word!r} is not accepted; it takes words like lab.redraw=n")
    return action, key


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""
