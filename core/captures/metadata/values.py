"""Check the values of metadata: strings and JSON in, typed values or one clear error out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...message import message
from ...plain import Plain, plain, quoted, short
from ..files import CaptureError


class Values:
    """The values of one layer, or of a file: its own ones first. Every method raises CaptureError, naming the key."""

    def __init__(self, where: str, own: Mapping[str, object], shared: Mapping[str, str]) -> None:
        self.where, self.own, self.shared = where, own, shared

    def get(self, key: str) -> object:
        """Return the value of a key, None if there is none."""
        return self.own.get(key, self.shared.get(key))

    def positive(self, key: str, zero_is_none: bool = False) -> float | None:
        """Return a positive number; with `zero_is_none`, 0 and "none" mean None."""
        value = self.get(key)
        if value is None:
            return None
        try:
            found = float(cast(str, value)) if isinstance(value, (str, int, float)) else math.nan
        except (ValueError, OverflowError):
            found = math.nan
        if zero_is_none and (found == 0 or value in ("none", "null")):
            return None
        if isinstance(value, bool) or not 0 < found < math.inf:
            raise self.error(key, value, "a positive number")
        return found

    def count(self, key: str, least: int = 1, none: bool = False) -> int | None:
        """Return a whole number; with `none`, 0 and "none" mean None."""
        value = self.get(key)
        if value is None:
            return None
        text = str(value).strip()
        if none and text.lower() in ("0", "none", "null"):
            return None
        if isinstance(value, bool) or not (
            text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least
        ):
            raise self.error(key, value, "a positive whole number" if least else "a whole number from 0 up")
        return int(text)

    def numbers(self, key: str, least: float | None = None) -> tuple[float, ...] | None:
        """Return a list of finite numbers from `least` up, by default of positive ones."""
        value = self.get(key)
        if value is None:
            return None
        listed = sequence(self.json(key, value) if isinstance(value, str) else value)
        floats = [number(each) for each in listed]
        if not floats or not all(
            math.isfinite(each) and (each > 0 if least is None else each >= least) for each in floats
        ):
            kind = "positive numbers" if least is None else "numbers from 0 up" if least == 0 else "numbers"
            raise self.error(key, value, message("a JSON list of {kind}", kind=kind))
        return tuple(floats)

    def word(self, key: str, accepted: Mapping[str, Any]) -> Any:
        """Return what is meant by one of the accepted words."""
        value = self.get(key)
        if value is None:
            return None
        word = str(value).strip().lower()
        if word not in accepted:
            raise self.error(key, value, " or ".join(accepted))
        return accepted[word]

    def json(self, key: str, value: str) -> object:
        """Return the value of a key that is a JSON text."""
        try:
            return from_json(value)
        except ValueError as error:
            raise CaptureError(
                "{where} {key!r} is not JSON: {error}", where=self.where, key=key, error=short(error)
            ) from error

    def error(self, key: str, value: object, accepted: str) -> CaptureError:
        """Return the error for a value that is not accepted."""
        return CaptureError(
            "{where} {key!r} must be {accepted}, not {value}",
            where=self.where,
            key=key,
            accepted=accepted,
            value=quoted(value),
        )


def from_json(text: str) -> object:
    """Return the value of a JSON text; raise ValueError if it is invalid, nested too deeply or has a key twice."""
    try:
        return cast(object, json.loads(text, object_pairs_hook=_without_twins))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; raise ValueError if a key is there twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(message("{twice} is there twice", twice=quoted(twice)))
    return found


def sequence(value: object) -> Sequence[object]:
    """Return a list; an empty sequence for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def number(value: object) -> float:
    """Return a number of JSON; NaN if it is none, or too large."""
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def strings(value: object) -> tuple[Plain, ...] | None:
    """Return a list of strings, each safe to show; None for anything else."""
    listed = sequence(value)
    if not listed or not all(isinstance(text, str) for text in listed):
        return None
    return tuple(plain(text) for text in listed)
