"""The Jacobian of a few weights as a small map: a sign and a shade for each entry, and its value where there is room.

The shades stand for the same sizes everywhere: that a frozen softmax leaves its map empty is the message.
"""

from __future__ import annotations

from collections.abc import Sequence

from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted
from .numbers import power_of_ten

STEPS = (0.001, 0.01, 0.05, 0.15)  # where each shade begins; no entry is larger than 1/4
_NUMBER = 9  # cells of an entry that has its value beside its shade
_SHADES = 3  # cells of a shade at most


def jacobian_lines(jacobian: Sequence[Sequence[float]], width: int, role: Role, glyphs: Glyphs) -> list[Line]:
    """A line for each row; the diagonal, which alone is positive, is in the role of its side."""
    each = min(width // len(jacobian), _NUMBER)
    lines: list[Line] = []
    for row, entries in enumerate(jacobian):
        cells: list[Span] = []
        for column, value in enumerate(entries):
            cells.append(_cell(value, each, role if row == column else "text", glyphs))
        lines.append(fitted(tuple(cells), width))
    return lines


def legend_line(width: int, glyphs: Glyphs) -> Line:
    """What the shades stand for."""
    spans: list[Span] = []
    for shade, least in zip(_shades(glyphs), STEPS, strict=True):
        spans.append((shade, "text"))
        spans.append((f" {_share(least).rstrip('0')}  ", "dim"))
    return fitted(tuple(spans), width)


def _shades(glyphs: Glyphs) -> str:
    """Four shades, none of which is a sign or a decimal point."""
    return ":=#@" if glyphs.ascii else glyphs.shades[1:]


def _cell(value: float, each: int, role: Role, glyphs: Glyphs) -> Span:
    size = abs(value)
    step = sum(size >= least for least in STEPS)
    shade = _shades(glyphs)[step - 1] if step else " "
    minus = "-" if glyphs.ascii else "−"
    sign = "0" if not value else "+" if value > 0 else minus
    if each < _NUMBER:
        text = sign + shade * min(each - 2, _SHADES)
    else:
        text = f"{shade * 2}{sign}{_share(size) if size else ''}".replace("-", minus)
    return (text.ljust(each), role) if step else (text.ljust(each), "dim")


def _share(size: float) -> str:
    """A number below 1 in at most 5 cells: `.125`, `8e-7`."""
    if size >= 0.000_5:
        return f"{size:.3f}"[1:]
    return power_of_ten(size, 0) if size >= 1e-99 else "tiny"
