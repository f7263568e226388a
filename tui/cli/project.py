"""The settings of a project: [tool.attn-tui.check] of the pyproject.toml in the current folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ...core.diagnosis.limits import LIMITS, limit
from ...core.errors import did_you_mean, not_one_of
from ...core.files import read_file
from ...core.message import message, short
from ...core.questions.parse import UsageError
from ...core.texts import TextError, from_toml

_FILE = Path("pyproject.toml")
_TOOL = "tool.attn-tui"
_TABLE = f"{_TOOL}.check"
_KEYS = (*(name.replace("_", "-") for name in LIMITS), "allow", "expect", "strict")


def project_place(key: str) -> str:
    """Return where the project sets a key."""
    return f"{_FILE}: {_TABLE}.{key}"


def project_settings() -> dict[str, Any]:
    """Return the settings by the names of the options of `check`; raise InputError, which says where one is wrong.

    An unknown key under tool.attn-tui is wrong: a setting that is not read is a check that is not made.
    """
    tools = _table(_project(), "tool", "tool")
    for key in tools:
        if f"tool.{key}".casefold().replace("_", "-") == _TOOL != f"tool.{key}":
            raise _wrong(f"tool.{key}", message("must be {place}", place=_TOOL))
    own = _table(tools, "attn-tui", _TOOL)
    for key in own:
        if key.replace("_", "-") in _KEYS:
            raise _wrong(f"{_TOOL}.{key}", message("must be in the table [{table}]", table=_TABLE))
        if key != "check":
            near = did_you_mean(key, ["check", *_KEYS])
            unknown = message("unknown; settings are in the table [{table}]{near}", table=_TABLE, near=near)
            raise _wrong(f"{_TOOL}.{key}", unknown)
    found: dict[str, Any] = {}
    for key, value in _table(own, "check", _TABLE).items():
        if key.replace("_", "-") not in _KEYS:
            raise _wrong(f"{_TABLE}.{key}", not_one_of(key, _KEYS))
        name = key.replace("-", "_")
        if name in found:
            raise _wrong(f"{_TABLE}.{key}", message("is there twice, with - and with _; keep one of them"))
        found[name] = _value(name, value, project_place(key))
    return found


def _value(name: str, value: object, where: str) -> object:
    """Return the value of a setting; raise InputError if it is not accepted."""
    if name in LIMITS:
        return limit(value, where)
    if name == "strict":
        if not isinstance(value, bool):
            raise _not(message("true or false"), value, where)
        return value
    if name == "expect":
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _not(message("a formula"), value, where)
        return str(value)
    patterns = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise _not(message("a list of patterns"), patterns, where)
    return patterns


def _project() -> Mapping[str, object]:
    """Return what the file says; nothing if there is none, or a directory of this name."""
    try:
        return {} if _FILE.is_dir() else from_toml(read_file(_FILE))
    except FileNotFoundError:
        return {}
    except TextError as error:
        raise UsageError("{path}: {reason}", path=_FILE, reason=error) from error


def _table(above: Mapping[str, object], key: str, place: str) -> Mapping[str, object]:
    """Return a table in another one, empty if it is not there; raise UsageError if it is something else."""
    found = above.get(key, {})
    if not isinstance(found, dict):
        raise _not(message("a table"), found, f"{_FILE}: {place}")
    return cast("dict[str, object]", found)


def _wrong(place: str, reason: str) -> UsageError:
    return UsageError("{path}: {place}: {reason}", path=_FILE, place=place, reason=reason)


def _not(accepted: str, value: object, where: str) -> UsageError:
    shown = short(repr(value))
    return UsageError("{where}: must be {accepted}, not {value}", where=where, accepted=accepted, value=shown)
