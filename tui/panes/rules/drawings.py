"""What the table of scale rules draws in a line: a meter of saturation, and entropy over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from ...views.glyphs import Glyphs

if TYPE_CHECKING:
    from ....core.theory.prediction import Saturation

METER_CELLS = 11
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of a braille cell's columns, from below


def meter(ratio: float | None, glyphs: Glyphs) -> str:
    """Return a bar from 0 to 2 with a mark at 1, where softmax saturates, and an arrow if the value is larger."""
    cells, steps = METER_CELLS - 1, len(glyphs.lengths) - 1
    full, part = divmod(round(min(ratio or 0.0, 2.0) / 2 * cells * steps), steps)
    bar = (glyphs.lengths[-1] * full + (glyphs.lengths[part] if part else "")).ljust(cells)
    at = cells // 2
    marked = bar if bar[at] != " " else f"{bar[:at]}{glyphs.uprights[0]}{bar[at + 1 :]}"
    return (marked + (glyphs.right if ratio is not None and ratio > 2 else "")).ljust(METER_CELLS)


def braille_line(values: Sequence[float | None], cells: int) -> str:
    """Return a line through values from 0 to 1, four dots high; cells without a value are blank."""
    levels: list[int | None] = []
    for column in range(2 * cells):
        at = column * (len(values) - 1) / max(2 * cells - 1, 1)
        low, high = values[int(at)], values[min(int(at) + 1, len(values) - 1)]
        levels.append(None if low is None or high is None else round(3 * (low + (high - low) * (at % 1))))
    text = ""
    for cell in range(cells):
        dots = 0x2800
        for half in (0, 1):
            level, before = levels[2 * cell + half], levels[max(2 * cell + half - 1, 0)]
            if level is not None:
                first = min(level, before + 1) if before is not None and before < level else level
                last = max(level, before - 1) if before is not None and before > level else level
                dots |= sum(_DOTS[half][dot] for dot in range(first, last + 1))
        text += chr(dots) if dots > 0x2800 else " "
    return text


def with_saturation(line: str, d_ks: Sequence[int], saturation: Saturation | None, glyphs: Glyphs) -> str:
    """Return the line with a mark at the first d_k at which softmax saturates, if after the first one shown."""
    first = saturation.saturated_at[0][0] if saturation and saturation.saturated_at else 0
    if not line or not d_ks[0] < first <= d_ks[-1]:
        return line
    at = min(int(len(line) * log(first / d_ks[0]) / log(d_ks[-1] / d_ks[0])), len(line) - 1)
    return f"{line[:at]}{glyphs.uprights[0]}{line[at + 1 :]}"
