"""The Jacobian of a few weights as a small map: a sign and a shade for each entry, and its value where there is
room.

The shades stand for the same sizes everywhere: that a frozen softmax leaves its map empty is the message.
"""

from __future__ import annotations

from collections.abc import Sequence

from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted
from .numbers import power_of_ten, signed

STEPS = (0.001, 0.01, 0.05, 0.15)  # where each shade begins; no entry is larger than 1/4
_NUMBER = 9  # cells of an entry that has its value beside its shade
_TALL = 11  # cells of an entry whose value stands over its shade
_SHADES = 3  # cells of a shade at most


def jacobian_lines(
    jacobian: Sequence[Sequence[float]], width: int, role: Role, glyphs: Glyphs, tall: bool = False
) -> list[Line]:
    """A line for each row, or, tall, two; the diagonal, which alone is positive, is in the role of its side."""
    n = len(jacobian)
    each = min(width // n, _TALL if tall else _NUMBER)
    lines: list[Line] = []
    for row, entries in enumerate(jacobian):
        roles: list[Role] = [role if row == column else "text" for column in range(n)]
        cells = [_cell(value, each, of, glyphs, tall) for value, of in zip(entries, roles, strict=True)]
        for part in zip(*cells, strict=True):
            lines.append(fitted(part, width))
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


def _cell(value: float, each: int, role: Role, glyphs: Glyphs, tall: bool) -> list[Span]:
    """One entry, a span for each of its lines."""
    size = abs(value)
    step = sum(size >= least for least in STEPS)
    shade = _shades(glyphs)[step - 1] if step else " "
    sign = "0" if not value else "+" if value > 0 else "-" if glyphs.ascii else "−"
    number = sign + signed(_share(size), glyphs)
    if tall:
        texts = [number.center(each - 1), shade * (each - 1)]
    elif each < _NUMBER:
        texts = [sign + shade * min(each - 2, _SHADES)]
    else:
        texts = [shade * 2 + number]
    spans: list[Span] = []
    for text in texts:
        spans.append((text.ljust(each), role if step else "dim"))
    return spans


def _share(size: float) -> str:
    """A number below 1 in at most 5 cells: `.125`, `8e-7`."""
    if size == 0:
        return ""
    if size >= 0.000_5:
        return f"{size:.3f}"[1:]
    return power_of_ten(size, 0) if size >= 1e-99 else "tiny"
