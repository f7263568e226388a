"""The program of a map: one statistic over d_k and numbers of keys, a line for each number of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....statistics.catalogue import STATISTIC
from ..parts.setting import parts, remarks
from ..program import Dialect, NoCodeError, Piece, assembled, expected, shown
from ..report import printed_names
from .loops import Loop, values_code
from .sweep import loops_of

if TYPE_CHECKING:
    from ....tables.lab import SweepResult

_MEASURED = "{draws} draws of {rows} queries. Where a cell's exact value is known, the map shows that."


def map_code(sweep: SweepResult, dialect: Dialect) -> str:
    """Return the program that prints the one statistic of a map; raise NoCodeError if there is none."""
    loops = [*loops_of(sweep)]
    groups = [(loop.sides, [column for columns in loop.columns.values() for column in columns]) for loop in loops]
    names = printed_names(groups, sweep.statistics, dialect)
    if not names:
        raise NoCodeError("No code: no short program prints {names}.", names=", ".join(sweep.shown))
    blocks: list[list[Piece]] = []
    rows: dict[str, list[str]] = {}
    for loop, (sides, columns) in zip(loops, groups, strict=True):
        found = parts(sides, columns, names, dialect, ("d_k", "n"))
        keys = sorted({n for _, n in loop.columns})
        ends = ["A", "B"] if len(sides) > 1 else [loop.prefix.removesuffix(", ") or "A and B"]
        wide = max(len(end) for end in ends) + len(f", n {keys[-1]}") + 2
        for n in keys:
            for number, end in enumerate(ends):
                cells = [own[number].measured[names[0]].value for place, own in loop.columns.items() if place[1] == n]
                rows[f"{end}, n {n}"] = [shown(cell) for cell in cells]
        text = _text(loop, found.drawn, found.calls, ends, wide)
        blocks.append([found.values, *found.functions, found.measure, Piece(text)])
    p = loops[0].sides[0]
    said = [f"{STATISTIC[names[0]].label} over d_k.", _MEASURED.format(draws=p.batch, rows=p.n_queries)]
    d_ks = list(dict.fromkeys(d_k for d_k, _ in loops[0].columns))
    titles = [f"d_k {d_k}" if not at else str(d_k) for at, d_k in enumerate(d_ks)]
    largest = remarks([side for loop in loops for side in loop.sides])
    return assembled([sweep.command, *said, *largest], blocks, expected(titles, rows), dialect)


def _text(loop: Loop, drawn: str, calls: Sequence[str], ends: Sequence[str], wide: int) -> str:
    """Return the loops over numbers of keys and d_k, which print a line for each setting."""
    d_ks, keys = (list(dict.fromkeys(place[axis] for place in loop.columns)) for axis in (0, 1))
    names = ", ".join(f'"{end}"' for end in ends) + ("," if len(ends) == 1 else "")
    lines = drawn.split("\n")
    of_n, of_d_k = ["found = []"], lines
    if loop.sides[0].mechanism in ("dot_product", "cosine"):  # narrower vectors are a part of the widest
        of_n = [f"found, d_k = [], {max(d_ks)}", *lines, "every_q, every_k = q, k"]
        of_d_k = ["q, k = every_q[..., :d_k], every_k[..., :d_k]"]
    return "\n".join(
        [
            f"for n in {values_code(sorted(keys))}:",
            *(f"    {line}" for line in of_n),
            f"    for d_k in {values_code(sorted(d_ks))}:",
            *(f"        {line}" for line in of_d_k),
            f"        found.append({' + '.join(calls)})",
            f"    for name, row in zip(({names}), zip(*found)):",
            f'        print(f"{{name}}, n {{n}}".ljust({wide}), *(f"{{value:10.4g}}" for value in row))',
        ]
    )
