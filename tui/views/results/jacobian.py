"""The Jacobian of a few weights as a map: each entry has a sign and a shade, and its value if there is room.

The shades mean the same sizes everywhere, so that the map of a saturated softmax is empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted
from ..numbers import power_of_ten, signed

LEVELS = (0.001, 0.01, 0.05, 0.15)  # the least size of each shade; no entry is larger than 1/4
NEGLIGIBLE = 1e-6  # entries all smaller than this are not worth their digits
_NUMBER = 9  # cells of an entry with its value beside its shade
_TALL = 11  # cells of an entry with its value above its shade
_SHADES = 3  # cells of a shade, at most


def jacobian_lines(
    jacobian: Sequence[Sequence[float]], width: int, role: Role, glyphs: Glyphs, tall: bool = False
) -> list[Line]:
    """Return a line for each row, or two if `tall`; the diagonal, which alone is positive, is in `role`.

    If all entries are negligible, the lines are blank.
    """
    n = len(jacobian)
    if _is_negligible(jacobian):
        return [fitted((), width)] * (n * (1 + tall))
    wide = _cells_of_entry(n, width, tall)
    lines: list[Line] = []
    for row, entries in enumerate(jacobian):
        roles: list[Role] = [role if row == column else "text" for column in range(n)]
        cells = [_cell(value, wide, of, glyphs, tall) for value, of in zip(entries, roles, strict=True)]
        for part in zip(*cells, strict=True):
            lines.append(fitted(part, width))
    return lines


def heading_line(
    jacobian: Sequence[Sequence[float]], scores: Sequence[str], width: int, glyphs: Glyphs, tall: bool = False
) -> Line:
    """Return what stands over a Jacobian: the score of each column, or the legend if its entries are shades only.

    If all entries are negligible, that is said instead.
    """
    if _is_negligible(jacobian):
        limit = power_of_ten(NEGLIGIBLE, 0).replace("e-", "e−")
        return fitted(((glyphs.say(" all below {limit}", limit=limit), "text"),), width)
    wide = _cells_of_entry(len(jacobian), width, tall)
    if wide < _NUMBER and not tall:
        return _legend(width, glyphs)
    texts = (score.center(wide - 1).ljust(wide) if tall else f"  {score}".ljust(wide)[:wide] for score in scores)
    return fitted((("".join(texts), "dim"),), width)


def _is_negligible(jacobian: Sequence[Sequence[float]]) -> bool:
    return max(abs(value) for entries in jacobian for value in entries) < NEGLIGIBLE


def _cells_of_entry(n: int, width: int, tall: bool) -> int:
    return min(width // n, _TALL if tall else _NUMBER)


def _legend(width: int, glyphs: Glyphs) -> Line:
    spans: list[Span] = []
    for shade, least in zip(_shades(glyphs), LEVELS, strict=True):
        spans.append((shade, "text"))
        spans.append((f" {_share(least).rstrip('0')}  ", "dim"))
    return fitted(tuple(spans), width)


def _shades(glyphs: Glyphs) -> str:
    """Return four shades that are neither signs nor decimal points."""
    return ":=#@" if glyphs.ascii else glyphs.shades[1:]


def _cell(value: float, wide: int, role: Role, glyphs: Glyphs, tall: bool) -> list[Span]:
    """Return an entry, a span for each of its lines."""
    size = abs(value)
    level = sum(size >= least for least in LEVELS)
    shade = _shades(glyphs)[level - 1] if level else " "
    sign = "0" if not value else "+" if value > 0 else "-" if glyphs.ascii else "−"
    number = sign + signed(_share(size), glyphs)
    if tall:
        texts = [number.center(wide - 1), shade * (wide - 1)]
    elif wide < _NUMBER:
        texts = [sign + shade * min(wide - 2, _SHADES)]
    else:
        texts = [shade * 2 + number]
    spans: list[Span] = []
    for text in texts:
        spans.append((text.ljust(wide), role if level else "dim"))
    return spans


def _share(size: float) -> str:
    """Return a number below 1 in at most 5 cells: `.125`, `8e-7`."""
    if size == 0:
        return ""
    if size >= 0.000_5:
        return f"{size:.3f}"[1:]
    return power_of_ten(size, 0) if size >= 1e-99 else "tiny"
