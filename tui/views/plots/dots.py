"""What q·k was multiplied by, as dots on one logarithmic axis: where it is, and where it should be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ...language.cells import cells
from ..glyphs import Glyphs
from ..lines import Line, Role

_ROOM = 0.15  # of the axis, at each end, beyond the numbers on it


class MultiplierAxis(NamedTuple):
    """A logarithmic axis."""

    low: float  # natural logarithms of the ends
    high: float
    cells: int

    def cell(self, multiplier: float) -> int:
        """Return the cell of a multiplier, the first or the last if it is beyond the ends."""
        share = (math.log(multiplier) - self.low) / (self.high - self.low)
        return min(max(round(share * (self.cells - 1)), 0), self.cells - 1)


def axis_of(multipliers: Iterable[float], cells: int) -> MultiplierAxis:
    """Return an axis for these multipliers that ends at powers of ten beyond them."""
    known = [each for each in multipliers if each > 0] or [1.0]
    low, high = math.log10(min(known)), math.log10(max(known))
    low, high = math.floor(low - _ROOM), math.ceil(high + _ROOM)
    return MultiplierAxis(low * math.log(10), high * math.log(10), cells)


def dot_line(used: float | None, expected: float | None, axis: MultiplierAxis, glyphs: Glyphs, role: Role) -> Line:
    """Return a dot where it is, and a line from there to a mark where it should be."""
    line: list[tuple[str, Role]] = [("·", "dim")] * axis.cells
    at = axis.cell(used) if used is not None and used > 0 else None
    to = axis.cell(expected) if expected is not None and expected > 0 else None
    if at is not None and to is not None:
        for cell in range(min(at, to), max(at, to)):
            line[cell] = (glyphs.rule, role)
    if to is not None:
        line[to] = (glyphs.uprights[0], "text")
    if at is not None:
        line[at] = (glyphs.marks[0], role)
    return tuple(line)


def axis_labels(expected: float | None, formula: str, axis: MultiplierAxis, glyphs: Glyphs) -> str:
    """Return the numbers below an axis: its ends, 1, and the expected multiplier's formula."""
    line = [" "] * axis.cells
    ends = [(f"{math.exp(axis.low):g}", 0), (f"{math.exp(axis.high):g}", axis.cells)]
    places = [(glyphs.say(formula), axis.cell(expected) + 1)] if expected and formula else []
    for text, at in [*places, *ends, ("1", axis.cell(1.0) + 1)]:
        start = min(max(at - (cells(text) + 1) // 2, 0), axis.cells - cells(text))
        around = line[max(start - 1, 0) : start + cells(text) + 1]
        if start >= 0 and {*around} <= {" "}:
            line[start : start + cells(text)] = text
    return "".join(line)
