"""How anything is spelled in JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["json", "csv", "markdown"]
Say: TypeAlias = Callable[[str], str]  # how text is spelled, as in ASCII

NONE = "—"


def version() -> str:
    """The version of the program that makes the results."""
    from importlib import metadata  # ten milliseconds that only a result or --version has to spend

    return metadata.version("attn-tui")


def json_text(result: Mapping[str, Any]) -> str:
    """One object, indented."""
    return json.dumps(result, indent=2, allow_nan=False) + "\n"


def csv_text(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A header and its lines."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]], say: Say) -> str:
    """A table whose first column is words and whose others are numbers."""
    first, *others = ([escaped(cell, say) for cell in line] for line in (header, *lines))
    return marked_table(first, others)


def marked_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """The same of cells that are Markdown already."""
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
    """What a table's lines have in common, the table, sentences about it, and the command that prints it."""
    parts = [
        f"Parameters: {escaped(', '.join(parameters), say)}\n",
        markdown_table(header, lines, say),
        *(f"{escaped(sentence, say)}\n" for sentence in remarks),
        f"`{command}`\n",
    ]
    return "\n".join(parts)


def escaped(text: str, say: Say) -> str:
    """Text on one line that Markdown takes for nothing but text."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in say(text))
    return "".join("\\" + c if c in "\\|*`<[" else c for c in line)


def existing(number: float | None) -> float | None:
    """No format has a word for a number that is none."""
    return float(number) if number is not None and math.isfinite(number) else None


def digits(number: float) -> str:
    """Four significant ones."""
    return f"{number:.4g}"
