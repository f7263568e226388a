"""Loops of programs over d_k and numbers of keys."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....parameters import Parameters
from ....statistics.measurement import Column
from ..parts.setting import parts
from ..program import WIDEST, Dialect, Piece, printing, shown


@dataclass(frozen=True, eq=False)
class Loop:
    """Points that one loop runs over: they differ in d_k and the number of keys alone."""

    prefix: str  # the value of the second axis, and A or B if these have loops of their own
    sides: Sequence[Parameters]  # at the largest point
    columns: Mapping[tuple[int, int], Sequence[Column]]  # by d_k and number of keys


def looped(
    loops: Sequence[Loop], names: Sequence[str], dialect: Dialect, with_keys: bool = False
) -> tuple[list[list[Piece]], dict[str, list[str]]]:
    """Return the pieces of each loop, and the expected statistics of each of its points, by label."""
    swept = {"d_k", *(["n"] if with_keys else [])}
    blocks: list[list[Piece]] = []
    rows: dict[str, list[str]] = {}
    for loop in loops:
        columns = [column for columns in loop.columns.values() for column in columns]
        found = parts(loop.sides, columns, names, dialect, swept)
        ends = (", A", ", B") if len(loop.sides) > 1 else ("",)
        wide = 2
        for place, own in loop.columns.items():
            for end, column in zip(ends, own, strict=True):
                label = _label(loop.prefix, *place, with_keys) + end
                rows[label] = [shown(column.measured[name].value) for name in names]
                wide = max(wide, len(label) + 2)
        label = _label(loop.prefix, 0, 0, with_keys).replace("d_k 0", "d_k {d_k}").replace("n 0", "n {n}")
        prints = [printing(label + end, wide, each) for end, each in zip(ends, found.calls, strict=True)]
        text = _text(loop, [*found.drawn.split("\n"), *prints], with_keys)
        blocks.append([found.values, *found.functions, found.measure, Piece(text)])
    return blocks, rows


def _label(prefix: str, d_k: int, n: int, with_keys: bool) -> str:
    return f"{prefix}d_k {d_k}, n {n}" if with_keys else f"{prefix}d_k {d_k}"


def _text(loop: Loop, body: Sequence[str], with_keys: bool) -> str:
    """Return the loop over d_k and, if they are swept, the numbers of keys."""
    d_ks, keys = (list(dict.fromkeys(place[axis] for place in loop.columns)) for axis in (0, 1))
    heads = [f"for d_k in {values_code(d_ks)}:", *([f"for n in {values_code(keys)}:"] if with_keys else [])]
    texts = ["    " * depth + head for depth, head in enumerate(heads)]
    return "\n".join([*texts, *("    " * len(heads) + line for line in body)])


def values_code(values: Sequence[int]) -> str:
    """Return the values of an axis: a range if they are evenly spaced."""
    if len(values) > 2:
        step = values[1] - values[0]
        if all(later - value == step for value, later in pairwise(values)):
            return f"range({values[0]}, {values[-1] + 1}{f', {step}' if step > 1 else ''})"
    text = ", ".join(map(str, values)) + ("," if len(values) == 1 else "")
    return "(" + textwrap.fill(text, WIDEST - 16, subsequent_indent="    ") + ")"
