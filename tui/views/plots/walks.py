"""Scores as random walks, product by product; once the answer is shown, with what theory says of their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ....core.learning.walks import ALIGNED, CORRELATIONS, D_K, WALKS, draw_walks
from ....core.message import message
from ..glyphs import Glyphs
from ..lines import Line, Role, fitted, merged
from ..numbers import signed
from ..page import PictureColumns, picture_line
from .axes import Axis
from .plot import Cells, Frame, Plot, Series, cell_at, draw_curves

TITLE = message("{count} scores, product by product", count=WALKS)
_WORDS = 16  # cells at the right, for the values at the ends


def walks_note(item: str, answered: bool) -> str:
    """Return what stands beside the title: a question, or what the curves are."""
    if not answered:
        return message("how wide do they end?")
    correlation = CORRELATIONS[item]
    if not correlation:
        return message("white: ± one standard deviation")
    if correlation == 1:
        return message("rising: keys equal to their query")
    return message("rising: correlation {rho} of q and k", rho=correlation)


@lru_cache(maxsize=8)
def walk_lines(item: str, answered: bool, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the walks of an item over the number of products, with an axis below.

    Until it is answered there is no scale, and neither theory nor the walks of aligned vectors.
    """
    correlation = CORRELATIONS[item] if answered else 0.0
    steps = range(D_K + 1)
    series = [_series("thin_unscaled", walk) for walk in draw_walks(WALKS)]
    ends: dict[float, str] = {}
    if answered:
        spread = math.sqrt(D_K)
        ends = {spread: f"+√d_k = +{spread:g}", -spread: f"−√d_k = −{spread:g}"}
        series += [_series("text", [sign * math.sqrt(step) for step in steps]) for sign in (1, -1)]
    if correlation:
        factor = "" if correlation == 1 else f"{correlation:g}·"
        ends[correlation * D_K] = f"{factor}d_k = {correlation * D_K:g}"
        series += [_series("third", walk) for walk in draw_walks(ALIGNED, correlation)]
        series.append(_series("text", [correlation * step for step in steps]))
    values = [value for curve in series for _, value in curve.exact]
    y = Axis(min(values), max(values))
    at = PictureColumns(2, max(width - _WORDS - 2, 4), _WORDS)
    frame = Frame(Plot(Axis(0, D_K), y, series), 0, at.picture, max(height - 1, 1))
    cells: Cells = [[(" ", "text")] * at.picture for _ in range(frame.rows)]
    draw_curves(cells, frame, glyphs)
    words = {cell_at(frame.down(value), frame.rows): signed(text, glyphs) for value, text in ends.items()}
    lines = [
        picture_line("", "text", merged(row), glyphs.say(words.get(number, "")), at, glyphs, "theory")
        for number, row in enumerate(cells)
    ]
    first, last = glyphs.say("q₁k₁"), glyphs.say("+ q₆₄k₆₄")
    rule = glyphs.rule * max(at.picture - len(first) - len(last) - 2, 0)
    return [*lines, fitted(((f"  {first} {rule} {last}", "dim"),), width)]


def _series(role: Role, curve: Sequence[float]) -> Series:
    """Return a curve over the number of products."""
    return Series(role, role, "", exact=[*enumerate(curve)])
