"""What all programs share: pieces that are assembled, and a table of the expected values at the end."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import InputError
from ..statistics.measurement import Estimate
from .dialects import Dialect, code_of, in_torch, returning_tensor

WIDEST = 100  # characters of a line of code; comments wrap at it


class NoCodeError(InputError):
    """No short program reproduces these numbers; the message says why."""


@dataclass(frozen=True)
class Piece:
    """A part of a program. A definition has an effect only when called; other pieces compute something."""

    text: str
    defines: bool = False
    drawn: bool = False  # a function that draws random numbers, with NumPy in both dialects

    def written(self, dialect: Dialect) -> str:
        """Return the text in a dialect."""
        return self.text if dialect == "python" else (returning_tensor if self.drawn else in_torch)(self.text)


def assembled(
    head: Sequence[str], blocks: Sequence[Sequence[Piece]], end: Sequence[str], dialect: Dialect = "python"
) -> str:
    """Return a program: comments, imports, the pieces of each block, and what prints the values.

    A piece that an earlier block has is left out, if it still has the same effect.
    """
    parts: list[str] = []
    before: dict[int, str] = {}
    for block in blocks:
        changed = False
        for place, piece in enumerate(block):
            same = before.get(place) == piece.text
            changed |= not same
            if piece.text and not (same and (piece.defines or not changed)):
                parts.append(piece.written(dialect))
            before[place] = piece.text
    gap = "" if not end else "\n\n" if parts[-1].startswith("def ") else "\n"
    last = "".join(f"{line}\n" for line in end)
    body = _spaced(parts) + gap + (last if dialect == "python" else in_torch(last))
    body = "\n" * body.startswith("def ") + body
    return comments(head) + "".join(f"{group}\n\n" for group in _imports(code_of(body), dialect)) + body


def comments(lines: Iterable[str]) -> str:
    """Return lines as comments; raise ValueError for one that is not printable, whose rest might be code."""
    found = [*lines]
    for line in found:
        if not line.isprintable():
            raise ValueError(f"a comment must be one line of printable characters, not {line!r}")
    return "".join(f"# {line}\n" for line in found)


def literal(text: str) -> str:
    """Return a text as Python reads it, in double quotes."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _imports(body: str, dialect: Dialect) -> list[str]:
    """Return the groups of imports that a program needs, without its strings and comments."""
    functions = [name for name in ("exp", "log", "log2", "sqrt") if re.search(rf"(?<![\w.]){name}\(", body)]
    groups = [f"from math import {', '.join(functions)}"] if functions else []
    imports = [f"import {word}" for word in ("ml_dtypes", "numpy as np", "torch") if f"{word.split()[-1]}." in body]
    if "SFC64(" in body:
        imports.append("from numpy.random import SFC64, Generator, SeedSequence")
    if "load_file(" in body:
        kind = "torch" if dialect == "torch" else "numpy"
        imports.append(f"from safetensors.{kind} import load_file  # pip install safetensors")
    return [*groups, *(["\n".join(imports)] if imports else [])]


def _spaced(parts: Iterable[str]) -> str:
    """Join parts with blank lines between them, two around definitions."""
    text = before = ""
    for part in filter(None, parts):
        defines = "def " in (part[:4], before[:4])
        text += ("" if not before else "\n" if before.startswith("# ") else "\n\n\n" if defines else "\n\n") + part
        before = part
    return text + "\n"


def returned(expressions: Sequence[str]) -> list[str]:
    """Return the lines that return these values, as a tuple."""
    whole = f"return {', '.join(expressions)}" if len(expressions) > 1 else f"return ({expressions[0]},)"
    if len(whole) <= WIDEST or len(expressions) == 1:
        return [whole]
    lines = filled(expressions, WIDEST - len("return ("))
    lines = [lines[0], *(f"{' ' * len('return (')}{line}" for line in lines[1:])]
    return [f"return ({lines[0]}", *lines[1:-1], f"{lines[-1].removesuffix(',')})"]


def filled(items: Sequence[str], width: int) -> list[str]:
    """Return items, each with a comma behind it, in lines of at most this width where they fit."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= width:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{item},")
    return lines


def printing(label: str, wide: int, call: str) -> str:
    """Return the line that prints a label, this wide, and the values that a call returns."""
    name = label[1:-1] if label == "{name}" else f'f"{label}"' if "{" in label else f'"{label}"'
    return f'print({name}.ljust({wide}), *(f"{{value:10.4g}}" for value in {call}))'


def side_by_side(rows: Mapping[str, Sequence[str]], calls: Sequence[str], titles: Sequence[str]) -> list[str]:
    """Return what prints a line for each row: its name, and its value of each call; and the expected values."""
    return [*printing_rows([*rows], calls), *expected(titles, rows)]


def printing_rows(names: Sequence[str], calls: Sequence[str]) -> list[str]:
    """Return what prints a line for each name, with its value of each call."""
    lines = textwrap.wrap(", ".join(names), WIDEST - 12, break_long_words=False, break_on_hyphens=False)
    listed = [f'names = "{lines[0]}".split(", ")']
    if len(lines) > 1:
        inside = [f'"{line} "' for line in lines[:-1]] + [f'"{lines[-1]}").split(", ")']
        listed = [f"names = ({inside[0]}", *(" " * len("names = (") + line for line in inside[1:])]
    form = f"{{:{max(map(len, names)) + 2}}}" + "{:12.4g}" * len(calls)
    zipped = ", ".join(["names", *calls])
    return [*listed, f"for row in zip({zipped}):", f'    print("{form}".format(*row))']


def number(value: float) -> str:
    """Return a number as Python reads it back unchanged, as short as possible."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def shown(value: float | None) -> str:
    """Return a number as the programs print it."""
    return "nan" if value is None else f"{value:.4g}"


def estimated(estimate: Estimate) -> str:
    """Return a measured value with its standard error."""
    if estimate.value is None:
        return "undefined"
    if estimate.stderr is None:
        return shown(estimate.value)
    return f"{shown(estimate.value)} ± {estimate.stderr:.1g}"


def expected(titles: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    """Return comments with a line for each name: its values under the titles, whose words may stand in two lines."""
    wide = max(map(len, rows)) + 2
    halves = [_halves(title, max(len(row[at]) for row in rows.values())) for at, title in enumerate(titles)]
    cells = [max(*map(len, half), *(len(row[at]) for row in rows.values())) + 3 for at, half in enumerate(halves)]

    def line(name: str, row: Iterable[str]) -> str:
        values = "".join(cell.rjust(width) for cell, width in zip(row, cells, strict=True))
        return comments([f"{name:{wide}}{values}".rstrip()]).rstrip()

    above = [line("", (first for first, _ in halves))] if any(first for first, _ in halves) else []
    return [*above, line("expected", (last for _, last in halves)), *(line(name, row) for name, row in rows.items())]


def _halves(title: str, room: int) -> tuple[str, str]:
    """Return a title in two lines, the first empty if the whole one fits in this room."""
    words = title.split(" ")
    if len(title) <= room or len(words) == 1:
        return "", title
    cuts = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    return min(cuts, key=lambda cut: max(map(len, cut)))
