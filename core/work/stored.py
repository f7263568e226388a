"""Results as JSON: what a file of finished parts holds of them.

A result is made of numbers, texts, tuples, arrays and the dataclasses, named tuples, messages and errors of `core`.
What is read becomes these and nothing else: no function is called but their constructors, and no text but a path is
read that a terminal would obey.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import InputError
from ..message import Message
from ..plain import plain

_CORE = __name__.rpartition(".work.")[0]
_PLAIN = (type(None), bool, int, float, str)


class NotStoredError(ValueError):
    """A text that is not a stored result."""


def text_of(results: tuple[Any, ...]) -> str:
    """Return results as JSON; raise TypeError if there is a value that cannot be stored."""
    return json.dumps(_as_json(results), separators=(",", ":"))


def results_in(text: str | bytes) -> tuple[Any, ...]:
    """Return the results in a text that `text_of` made; raise NotStoredError if it is another text."""
    try:
        found = json.loads(text)
        if isinstance(found, list):
            return tuple(map(_from_json, cast("list[Any]", found)))
    except (ValueError, TypeError, LookupError, AttributeError, ImportError, RecursionError) as error:
        raise NotStoredError(f"{type(error).__name__}: {error}") from error
    raise NotStoredError(type(found).__name__)


def _as_json(value: Any) -> Any:
    kind = cast("Any", type(value))
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [*map(_as_json, value)]
    if kind is np.ndarray:
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, [*value.shape], data]}
    if issubclass(kind, np.generic):
        return {"scalar": [value.dtype.str, value.item()]}
    if isinstance(value, Message):
        return {"message": [str.__str__(value), value.template, _as_json(value.values), _as_json(value.plural)]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if kind is slice:
        return {"slice": [*map(_as_json, (value.start, value.stop, value.step))]}
    if kind in (list, set, frozenset):
        return {kind.__name__: [*map(_as_json, value)]}
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {"dict": [[_as_json(key), _as_json(each)] for key, each in items]}
    package, _, module = kind.__module__.partition(f"{_CORE}.")
    name = f"{module}:{kind.__qualname__}"
    if package or _class(name) is not kind:
        raise TypeError(kind)
    if isinstance(value, InputError):
        return {name: [_as_json(value.args), _as_json(vars(value))]}
    if is_dataclass(value):
        return {name: {each.name: _as_json(getattr(value, each.name)) for each in fields(value)}}
    return {name: [*map(_as_json, value)]}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_from_json, cast("list[Any]", value)))
    if isinstance(value, str) and value != plain(value):
        raise ValueError(plain(value))
    if not isinstance(value, dict):
        return value
    [(name, held)] = cast("dict[str, Any]", value).items()
    return _MADE[name](held) if name in _MADE else _object(_class(name), held)


def _class(name: str) -> Any:
    """Return a class of `core` by its module and name; raise ValueError if results have no such objects."""
    module, _, qualified = name.partition(":")
    if not all(map(str.isidentifier, [*module.split("."), qualified])) or module.startswith("recorder"):
        raise ValueError(name)
    found: Any = getattr(import_module(f"{_CORE}.{module}"), qualified)
    fields_of = ("__dataclass_fields__", "_fields")
    if isclass(found) and (issubclass(found, InputError) or any(hasattr(found, each) for each in fields_of)):
        return found
    raise ValueError(name)


def _object(kind: Any, held: Any) -> Any:
    if issubclass(kind, InputError):
        arguments, attributes = map(_from_json, held)
        error = kind.__new__(kind)
        error.args = arguments
        vars(error).update(attributes)
        return error
    if hasattr(kind, "__dataclass_fields__"):
        later = {each.name for each in fields(kind) if not each.init}
        made = kind(**{name: _from_json(each) for name, each in held.items() if name not in later})
        for name in later:
            object.__setattr__(made, name, _from_json(held[name]))
        return made
    return kind(*map(_from_json, held))


def _number_type(name: str) -> np.dtype[Any]:
    found = np.dtype(name)
    if found.kind not in "biufc":
        raise ValueError(name)
    return found


def _array(held: Any) -> Any:
    kind, shape, data = held
    return np.frombuffer(base64.b64decode(data, validate=True), _number_type(kind)).reshape(shape).copy()


def _message(held: Any) -> Message:
    text, template, values, plural = map(_from_json, held)
    made = Message(text)
    made.template, made.values, made.plural = template, values, plural
    return made


_MADE: dict[str, Callable[[Any], Any]] = {
    "array": _array,
    "scalar": lambda held: _number_type(held[0]).type(held[1]),
    "message": _message,
    "path": Path,
    "slice": lambda held: slice(*map(_from_json, held)),
    "list": lambda held: [*map(_from_json, held)],
    "set": lambda held: {*map(_from_json, held)},
    "frozenset": lambda held: frozenset(map(_from_json, held)),
    "dict": lambda held: {_from_json(key): _from_json(each) for key, each in held},
}
