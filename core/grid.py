"""Grids as typed: `16,64,256`, `1:512`, `1:512:8`, `1:4096:log24`, or several of these joined by commas."""

from __future__ import annotations

import re
import reprlib

from .errors import InputError
from .field import Field, format_bound, whole_number
from .formula import split_outside_parentheses
from .message import message
from .parameters import FIELD, Value

MOST = 16_384  # values in one grid
_PART = re.compile(r"\s*(\d{1,10}[kM]?)\s*(?::\s*(\d{1,10}[kM]?)\s*(?::\s*(log)?\s*(\d{1,10})\s*)?)?", re.ASCII)


def parse_grid(text: str, field: Field = FIELD["d_k"]) -> tuple[int, ...]:
    """Return the whole numbers of a grid, sorted and unique; raise InputError, one line, if it is invalid.

    `field` says which numbers are accepted, by default those of d_k. `a:b` includes both ends, `a:b:step` is every
    step-th number from a on, and `a:b:logN` is N numbers from a to b, spaced by equal factors and rounded to whole
    numbers; the first few may coincide, leaving fewer than N.
    """
    values: set[int] = set()
    for part in text.split(","):
        values.update(_part(part, field))
        if len(values) > MOST:
            raise _invalid(text, message("must have at most {most} values", most=MOST), field)
    return tuple(sorted(values))


def is_grid(text: str) -> bool:
    """Return whether a text is a grid and not a single number, valid or not."""
    return ":" in text or "," in text


def parse_values(text: str, field: Field) -> tuple[Value, ...]:
    """Return the values of a second axis: a grid of whole numbers, or a list of numbers or choices in given order."""
    if field.kind == "integer":
        return parse_grid(text, field)
    return tuple(dict.fromkeys(field.parse(part) for part in split_outside_parentheses(text)))


def _part(text: str, field: Field) -> range | list[int]:
    match = _PART.fullmatch(text)
    if match is None:
        raise _invalid(text, "", field)
    first, last, log, third = match.group(1), match.group(2) or match.group(1), match.group(3), match.group(4)
    low, high = whole_number(first), whole_number(last)
    if low < field.low or high > field.high:
        raise _invalid(
            text, message("must be from {low:.0f} to {high}", low=field.low, high=format_bound(field.high)), field
        )
    if high < low:
        raise _invalid(text, message("must not end below its start"), field)
    count = int(third or 1)
    if log:
        if low < 1 or not 2 <= count <= MOST:
            raise _invalid(text, message("must start at 1 or more and have log2 to log{most}", most=MOST), field)
        return [round(low * (high / low) ** (at / (count - 1))) for at in range(count)]
    if count < 1:
        raise _invalid(text, message("must have a step of 1 or more"), field)
    if (high - low) // count >= MOST:
        raise _invalid(text, message("must have at most {most} values", most=MOST), field)
    return range(low, high + 1, count)


def _invalid(text: str, reason: str, field: Field) -> InputError:
    if reason:
        return InputError("{label}: {text} {reason}", label=field.label, text=reprlib.repr(text), reason=reason)
    return InputError(
        "{label}: must be whole numbers from {low:.0f} to {high}, such as 16,64,256, 1:512, "
        "1:512:8 or 1:4096:log24, not {text}",
        label=field.label,
        low=field.low,
        high=format_bound(field.high),
        text=reprlib.repr(text),
    )
