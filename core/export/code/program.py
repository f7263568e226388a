"""What all programs share: the two dialects, and a table of the expected values at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ...errors import InputError
from ...statistics.measurement import Estimate

Dialect: TypeAlias = Literal["python", "torch"]  # as in --format: NumPy or PyTorch
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
LIBRARY: dict[Dialect, str] = {"python": "NumPy", "torch": "PyTorch"}
WIDEST = 100  # characters of a line of code; comments wrap at it


class NoCodeError(InputError):
    """No short program reproduces these numbers; the message says why."""


@dataclass(frozen=True)
class Piece:
    """A part of a program. A definition has an effect only when called; other pieces compute something."""

    text: str
    defines: bool = False


def assembled(
    head: Sequence[str], blocks: Sequence[Sequence[Piece]], end: Sequence[str], dialect: Dialect | None = None
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
                parts.append(piece.text)
            before[place] = piece.text
    body = _spaced(parts) + "\n" * bool(end) + "".join(f"{line}\n" for line in end)
    comments = "".join(f"# {line}\n" for line in head)
    return comments + "".join(f"{group}\n\n" for group in _imports(body, dialect)) + body


def _imports(body: str, dialect: Dialect | None) -> list[str]:
    """Return the groups of imports that a program needs; without a dialect, it needs no library."""
    functions = [name for name in ("log", "log2", "sqrt") if re.search(rf"(?<![\w.]){name}\(", body)]
    groups = [f"from math import {', '.join(functions)}"] if functions else []
    imports = [f"import {word}" for word in ("ml_dtypes", "numpy as np", "torch") if f"{word.split()[-1]}." in body]
    if "load_file(" in body:
        imports.append(f"from safetensors.{'torch' if dialect == 'torch' else 'numpy'} import load_file")
    if dialect is not None and imports:
        groups.append("\n".join(imports))
    return groups


def _spaced(parts: Iterable[str]) -> str:
    """Join parts with blank lines between them, two around definitions."""
    text = before = ""
    for part in filter(None, parts):
        defines = "def " in (part[:4], before[:4])
        text += ("" if not before else "\n" if before.startswith("# ") else "\n\n\n" if defines else "\n\n") + part
        before = part
    return text + "\n"


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
    """Return comments with a line for each name: its values under the titles."""
    wide = max(map(len, rows)) + 2
    cells = [max(len(title), *(len(row[at]) for row in rows.values())) + 3 for at, title in enumerate(titles)]

    def line(name: str, row: Sequence[str]) -> str:
        return f"# {name:{wide}}{''.join(cell.rjust(width) for cell, width in zip(row, cells, strict=True))}".rstrip()

    return [line("expected", titles), *(line(name, row) for name, row in rows.items())]
