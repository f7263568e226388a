"""What all programs share: two dialects, pieces that are assembled, and a table of the expected values at the end.

Programs are written for NumPy, and become PyTorch's by substitution: PyTorch has NumPy's functions under NumPy's
names, but for those of a table. Random numbers are always NumPy's, so that both print the same. PyTorch's numbers are
float32 by default, so a text says float64 where that matters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import InputError
from ..statistics.measurement import Estimate

Dialect: TypeAlias = Literal["python", "torch"]  # as in --format: NumPy or PyTorch

WIDEST = 100  # characters of a line of code; comments wrap at it
_DTYPES = r"(float16|bfloat16|float8_\w+)"
_TABLE = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\.astype\(np\.float64\)", ".double()"),
        (r"\.astype\(np\.float32\)", ".float()"),
        (r"\.astype\(bool\)", ".bool()"),
        (r"\.astype\(int\)", ".long()"),
        (rf"\.astype\((?:np|ml_dtypes)\.{_DTYPES}\)", r".to(torch.\1)"),
        (r"\.(max|min)\((?=[-(\d])", r".a\1("),  # along an axis, PyTorch's max returns places too
        (r"\.(std|var)\(([^()]+)\)", r".\1(\2, correction=0)"),
        (r"\.(std|var)\(\)", r".\1(correction=0)"),
        (r"\bkeepdims=", "keepdim="),
        (r"\baxis=", "dim="),
        (r"\bnp\.array\(", "torch.tensor("),
        (r"\bnp\.concatenate\(", "torch.cat("),
        (r"\bnp\.take_along_axis\(", "torch.take_along_dim("),
        (r"\.transpose\(", ".permute("),
        (r"\bnp\.(?!random\b|load\b|lib\b)", "torch."),
    )
]
_NO_CODE = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)""")  # strings and comments


class NoCodeError(InputError):
    """No short program reproduces these numbers; the message says why."""


@dataclass(frozen=True)
class CodePiece:
    """A part of a program. A definition has an effect only when called; other pieces compute something."""

    text: str
    defines: bool = False
    drawn: bool = False  # a function that draws random numbers, with NumPy in both dialects

    def written(self, dialect: Dialect) -> str:
        """Return the text in a dialect."""
        return self.text if dialect == "python" else (returning_tensor if self.drawn else in_torch)(self.text)


def assembled(
    head: Sequence[str], blocks: Sequence[Sequence[CodePiece]], end: Sequence[str], dialect: Dialect = "python"
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


def in_torch(text: str) -> str:
    """Return the lines of a NumPy program as PyTorch's; strings, such as names of files, stay as they are."""
    parts = _NO_CODE.split(text)
    for pattern, replacement in _TABLE:
        parts[::2] = [pattern.sub(replacement, part) for part in parts[::2]]
    return "".join(parts)


def code_of(text: str) -> str:
    """Return a program without its strings and comments."""
    return "".join(_NO_CODE.split(text)[::2])


def returning_tensor(text: str) -> str:
    """Return a function of NumPy that draws random numbers, with its array returned as PyTorch's tensor."""
    return re.sub(r"(?m)^( +return) (.+)$", r"\1 torch.from_numpy(\2)", text)


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
    """Return the lines that return these values, as a list."""
    return ["return [", *(f"    {line}" for line in filled(expressions, WIDEST - 8)), "]"]


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
    form = f"{{:{max(map(len, rows)) + 2}}}" + "{:12.4g}" * len(calls)
    names = [f"    {line}" for line in filled([literal(name) for name in rows], WIDEST - 4)]
    loop = [f"for row in zip(names, {', '.join(calls)}):", f'    print("{form}".format(*row))']
    return ["names = [", *names, "]", *loop, *expected(titles, rows)]


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
