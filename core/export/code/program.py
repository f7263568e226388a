"""What all programs share: the two dialects, and a table of the expected values at the end."""

from __future__ import annotations

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


def assembled(head: Sequence[str], imports: str, blocks: Sequence[Sequence[Piece]], end: Sequence[str]) -> str:
    """Return a program: comments, imports, the pieces of each block, and what prints the values.

    A piece that an earlier block has is left out, if it still has the same effect.
    """
    parts = ["\n".join(f"# {line}" for line in head), imports]
    before: dict[int, str] = {}
    for block in blocks:
        changed = False
        for place, piece in enumerate(block):
            same = before.get(place) == piece.text
            changed |= not same
            if piece.text and not (same and (piece.defines or not changed)):
                parts.append(piece.text)
            before[place] = piece.text
    return _spaced(parts) + "\n" + "\n".join(end) + "\n"


def _spaced(parts: Iterable[str]) -> str:
    """Join parts with blank lines between them, two around definitions."""
    text = before = ""
    for part in filter(None, parts):
        defines = "def " in (part[:4], before[:4])
        text += ("" if not before else "\n" if before.startswith("# ") else "\n\n\n" if defines else "\n\n") + part
        before = part
    return text + "\n"


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
