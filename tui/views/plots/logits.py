"""The logits of both columns as hills on one axis, which stays while d_k grows."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.message import joined, message
from ....core.statistics.measurement import NOTHING, Column, column_names
from ...language.cells import to_right
from ..glyphs import Glyphs
from ..lines import Line, Span, fitted
from ..numbers import percent, short
from ..results.table import COLUMN_ROLES
from ..section import PictureColumns, picture_line
from .histograms import axis_growth, axis_line, axis_span, bars

TITLE = "logits"
_SHOWN = 0.0005  # the least share beyond the axis that is said


def axis_note(reach: float | None) -> str:
    """Return what the axis is of, and whether it is longer than the first one."""
    growth = axis_growth(reach) if reach else 1.0
    what, how = message("what enters softmax"), message("one fixed axis")
    return joined([what, message("axis × {growth:g}", growth=growth) if growth != 1 else how], " · ")


def logit_lines(
    columns: Sequence[Column], at: PictureColumns, each: int, glyphs: Glyphs, reach: float | None, axis: bool = True
) -> list[Line]:
    """Return hills of `each` lines with the spread of logits beside them, and what is beyond; then their axis."""
    histograms = [column.histograms["logits"] for column in columns]
    span = axis_span(histograms, "logits", glyphs, reach)
    edges = [span.low + (span.high - span.low) * cell / at.picture for cell in range(at.picture + 1)]
    lines: list[Line] = []
    for column, histogram, name, role in zip(columns, histograms, column_names(columns), COLUMN_ROLES, strict=True):
        below = histogram.below([span.low, span.high])
        total = max(histogram.total, 1)
        sides = below[0] / total, (histogram.total - below[1]) / total
        beyond = "" if sum(sides) < _SHOWN else glyphs.say("{share} beyond", share=percent(sum(sides)))
        spread = _one_decimal(column.measured.get("logit_std", NOTHING).value, glyphs)
        words = [*[""] * (each - 2), *([beyond] if each > 1 else []), _spread(spread, at.words, glyphs)]
        for number, row in enumerate(bars(histogram.onto(edges), each, glyphs)):
            last = number == each - 1
            line = picture_line(
                glyphs.say(name) if last else "", role, ((row, role),), words[number], at, glyphs,
                role if last else "dim",
            )  # fmt: skip
            lines.append(_with_arrows(line, sides, at, glyphs) if last else line)
    if axis:
        rule = axis_line(span, at.picture, glyphs)
        lines.append(fitted(((" " * at.name, "text"), (rule, "dim")), sum(at)))
    return lines


def _one_decimal(value: float | None, glyphs: Glyphs) -> str:
    """Return a value with one decimal, so that it does not jitter; a very small or large one as `short` does."""
    return f"{value:.1f}" if value is not None and 0.95 <= value < 999.95 else short(value, glyphs)


def _spread(number: str, room: int, glyphs: Glyphs) -> str:
    """Return `spread  8.0`, with numbers at one place while they change."""
    return glyphs.say("spread {number}", number=to_right(number, 4)) if room > 12 else glyphs.say("σ {n}", n=number)


def _with_arrows(line: Line, sides: tuple[float, float], at: PictureColumns, glyphs: Glyphs) -> Line:
    """Return the line with arrows beside the picture, at the sides beyond which there are logits."""
    role = line[0][1]
    name: Span = (line[0][0][:-1] + (glyphs.left if sides[0] >= _SHOWN / 2 else " "), role)
    words = line[-1] if line[-1][0].strip() else line[-2]
    arrow = glyphs.right if sides[1] >= _SHOWN / 2 else " "
    found: list[Span] = [name, *line[1:]]
    found[found.index(words)] = (arrow + words[0][1:], words[1])
    return tuple(found)
