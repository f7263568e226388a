"""Write JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVarTuple

from ..plain import plain

Format: TypeAlias = Literal["json", "csv", "markdown"]
Say: TypeAlias = Callable[[str], str]  # applied to all text, for example to write it in ASCII

Found = TypeVarTuple("Found")

NONE = "—"

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # the starts of formulas in spreadsheets
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def version() -> str:
    """Return the program's version."""
    from importlib import metadata  # takes ten milliseconds, so only when needed

    return metadata.version("attn-tui")


def in_format(
    kind: Format,
    say: Say,
    as_json: Callable[[*Found], str],
    as_csv: Callable[[*Found], str],
    as_markdown: Callable[[*Found, Say], str],
    *found: *Found,
) -> str:
    """Return a result in a format, by the function for it; Markdown also takes `say`."""
    if kind == "markdown":
        return as_markdown(*found, say)
    return as_json(*found) if kind == "json" else as_csv(*found)


def json_text(result: Mapping[str, Any]) -> str:
    """Return an indented JSON object; raise ValueError for numbers that are not finite."""
    return json.dumps(result, indent=2, allow_nan=False) + "\n"


def csv_text(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Return a header and lines as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_as_text(cell) for cell in line] for line in (header, *lines))
    return text.getvalue()


def _as_text(cell: object) -> object:
    """Return a cell with an apostrophe before text that a spreadsheet would take for a formula; numbers stay.

    Booleans are written as in JSON, and text on one line, with control characters escaped.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    mark = "'" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else ""
    return mark + plain(cell)


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]], say: Say) -> str:
    """Return a Markdown table of plain text; all columns but the first are right-aligned."""
    first, *others = ([escaped(cell, say) for cell in line] for line in (header, *lines))
    return marked_table(first, others)


def marked_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return such a table of cells that already are Markdown."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def markdown_page(
    parameters: Sequence[str],
    header: Sequence[str],
    lines: Iterable[Sequence[str]],
    remarks: Sequence[str],
    command: str,
    say: Say,
) -> str:
    """Return parameters, a table, remarks about it, and the command that prints it."""
    parts = [
        f"Parameters: {escaped(', '.join(parameters), say)}\n",
        markdown_table(header, lines, say),
        *(f"{escaped(sentence, say)}\n" for sentence in remarks),
        f"`{command}`\n",
    ]
    return "\n".join(parts)


def escaped(text: str, say: Say) -> str:
    """Return text as one line of Markdown, with special and control characters escaped."""
    return "".join("\\" + c if c in "\\|*`<[" else c for c in plain(say(text)))


def existing(number: float | None) -> float | None:
    """Return the number, or None if it is not finite, since JSON and CSV cannot express that."""
    return float(number) if number is not None and math.isfinite(number) else None


def digits(number: float) -> str:
    """Return a number with four significant digits."""
    return f"{number:.4g}"
