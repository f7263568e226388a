"""Dots on a logarithmic axis: how near softmax is to saturation, or what q·k was multiplied by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...language.cells import cells as cells_of
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, merged

ENDS = (0.01, 20.0)  # the ratios at the ends of the axis of saturation: those of 1/d_k at 128, and of 1 at 4096
_ROOM = 0.15  # of the axis of multipliers, at each end, beyond the numbers on it


class LogAxis(NamedTuple):
    """A logarithmic axis."""

    low: float  # natural logarithms of the ends
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """Return the cell of a value, the first or the last if it is beyond the ends."""
        share = (math.log(value) - self.low) / (self.high - self.low)
        return min(max(int(self.cells * share), 0), self.cells - 1)


def saturation_axis(cells: int) -> LogAxis:
    """Return the axis of the ratio of saturation; at 1, softmax saturates."""
    return LogAxis(math.log(ENDS[0]), math.log(ENDS[1]), cells)


def multiplier_axis(multipliers: Iterable[float], cells: int) -> LogAxis:
    """Return an axis for these multipliers that ends at powers of ten beyond them."""
    known = [multiplier for multiplier in multipliers if multiplier > 0] or [1.0]
    low, high = math.log10(min(known)), math.log10(max(known))
    low, high = math.floor(low - _ROOM), math.ceil(high + _ROOM)
    return LogAxis(low * math.log(10), high * math.log(10), cells)


def dot_line(
    axis: LogAxis,
    dot: float | None,
    mark: float | None,
    role: Role,
    glyphs: Glyphs,
    line: tuple[float, float] | None = None,
    arrow: bool = False,
    rest: Span | None = None,
    upright: Span | None = None,
) -> Line:
    """Return a dot on an axis, an upright at `mark`, and a `line` from one value to another, perhaps an `arrow`.

    `rest` is the sign and the role of other cells, `upright` those of the mark. A dot beyond an end points there.
    """
    if axis.cells < 2:
        return ((" " * max(axis.cells, 0), "text"),)
    shown: list[Span] = [rest or (glyphs.say("·"), "dim")] * axis.cells
    at = axis.cell(dot) if dot else None
    if mark:
        shown[axis.cell(mark)] = upright or (glyphs.uprights[1], "dim")
    if line is not None and min(line) > 0:
        start, end = map(axis.cell, line)
        for cell in range(min(start, end), max(start, end) + 1):
            crossed = mark is not None and cell == axis.cell(mark)
            if not (crossed and cell in (start, end)):
                shown[cell] = (glyphs.axis[1] if crossed else glyphs.axis[0], role)
        if arrow and start != end and end != at:
            shown[end] = (glyphs.right if end > start else glyphs.left, role)
    if dot and at is not None:
        inside = axis.low - 1e-9 <= math.log(dot) <= axis.high + 1e-9
        shown[at] = (glyphs.marks[0] if inside else glyphs.right if at else glyphs.left, role)
    return merged(shown)


def dots_line(axis: LogAxis, dots: Iterable[float], mark: float, role: Role, glyphs: Glyphs) -> Line:
    """Return several dots on an axis, and an upright at `mark`."""
    shown: list[Span] = [(glyphs.say("·"), "dim")] * axis.cells
    if axis.cells:
        shown[axis.cell(mark)] = (glyphs.uprights[1], "dim")
        for dot in dots:
            shown[axis.cell(dot) if dot > 0 else 0] = (glyphs.marks[0], role)
    return merged(shown)


@lru_cache(maxsize=4)
def zone_line(cells: int, glyphs: Glyphs) -> str:
    """Return the names of the zones of the axis of saturation: `uniform    healthy │ saturated    one-hot`."""
    limit = saturation_axis(cells).cell(1.0)
    words = {word: glyphs.say(word) for word in ("healthy", "saturated", "uniform", "one-hot")}
    return _placed(
        cells,
        [
            (glyphs.uprights[1], limit),
            (words["healthy"], limit - 1 - cells_of(words["healthy"])),
            (words["saturated"], limit + 2),
            (words["uniform"], 0),
            (words["one-hot"], cells - cells_of(words["one-hot"])),
        ],
        apart=1,
    )


def axis_labels(expected: float | None, formula: str, axis: LogAxis, glyphs: Glyphs) -> str:
    """Return the numbers below an axis: its ends, 1, and the expected multiplier's formula."""
    ends = [(f"{math.exp(axis.low):g}", 0), (f"{math.exp(axis.high):g}", axis.cells)]
    places = [(glyphs.say(formula), axis.cell(expected) + 1)] if expected and formula else []
    labels = [*places, *ends, ("1", axis.cell(1.0) + 1)]
    starts = [(text, at - (cells_of(text) + 1) // 2) for text, at in labels]
    return _placed(axis.cells, [(text, min(max(at, 0), axis.cells - cells_of(text))) for text, at in starts], apart=1)


def _placed(width: int, texts: Sequence[tuple[str, int]], apart: int) -> str:
    """Return texts at their cells, of those that would come nearer than `apart` to another one the first."""
    line = [" "] * width
    for text, start in texts:
        cells = cells_of(text)
        if 0 <= start <= width - cells and {*line[max(start - apart, 0) : start + cells + apart]} <= {" "}:
            line[start : start + cells] = [text, *[""] * (cells - 1)]
    return "".join(line)
