"""How numbers are written, and text that may come from outside, in JSON, CSV, Markdown and XML."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from ..message import plain, without_commands
from ..statistics.measurement import Estimate

Say: TypeAlias = Callable[[str], str]  # applied to all text, for example to write it in ASCII

NONE = "—"

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # the starts of formulas in spreadsheets
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def data(value: Any) -> Any:
    """Return a value as JSON has it: an estimate is an object, and a number that is not finite None."""
    if isinstance(value, Estimate):
        number, stderr = pair(value)
        numbers = {"value": number, "stderr": stderr}
        return numbers | {"stderr_at_least": existing(value.stderr)} if value.is_rough else numbers
    if isinstance(value, Mapping):
        return {name: data(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [*map(data, cast("Sequence[Any]", value))]
    return existing(value) if isinstance(value, float) else value


def json_text(result: Mapping[str, Any]) -> str:
    """Return an indented JSON object."""
    return json.dumps(data(result), indent=2, allow_nan=False) + "\n"


def json_line(result: Mapping[str, Any]) -> str:
    """Return a JSON object on one line."""
    return json.dumps(data(result), allow_nan=False) + "\n"


def csv_text(lines: Iterable[Sequence[Any]]) -> str:
    """Return lines of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_as_text(cell) for cell in line] for line in lines)
    return text.getvalue()


def _as_text(cell: object) -> object:
    """Return a cell with an apostrophe before text that a spreadsheet would take for a formula; numbers stay.

    Booleans are written as in JSON, and text on one line, with escapes for control characters and for what the runner
    of a build would obey.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    mark = "'" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else ""
    return mark + without_commands(plain(cell))


def escaped(text: str, say: Say) -> str:
    """Return text as one line of Markdown, with special and control characters escaped."""
    return "".join("\\" + c if c in "\\|*`<[" else c for c in plain(say(text)))


def existing(number: float | None) -> float | None:
    """Return the number, or None if it is not finite, since JSON and CSV cannot express that."""
    return float(number) if number is not None and math.isfinite(number) else None


def pair(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return a value and its standard error, None where they do not exist or only a bound is known."""
    return existing(estimate.value), None if estimate.is_rough else existing(estimate.stderr)


def digits(number: float | None) -> str:
    """Return a number with four significant digits, or a dash if it does not exist."""
    return NONE if existing(number) is None else f"{number:.4g}"


def metric(number: float) -> str:
    """Return a large count with four digits: `2.684 G`, `21.99 T`, or fewer if they are all: `4.5 k`."""
    return _prefixed(number, 1000, ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q"))


def binary(count: float) -> str:
    """Return a number of bytes with four digits, in powers of 1024: `128 KiB`."""
    return _prefixed(count, 1024, ("bytes", *(f"{prefix}iB" for prefix in "KMGTPEZYRQ")))


def _prefixed(number: float, base: int, units: Sequence[str]) -> str:
    size, at = float(number), 0
    while float(f"{size:.4g}") >= base and at < len(units) - 1:
        size, at = size / base, at + 1
    short = f"{size:.4g}"
    digits = short if float(short) == size else f"{size:#.4g}".removesuffix(".")
    return f"{digits} {units[at]}".rstrip()
