"""The exact entropy of a row over d_k under both settings, with a cursor at the d_k on screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ....core.message import message
from ....core.statistics.measurement import Column, column_names
from ..glyphs import Glyphs
from ..lines import Line, Role, fitted, merged, wrapped
from ..results.table import COLUMN_ROLES
from ..section import PictureColumns, picture_line
from .axes import Axis
from .plot import Cells, Drawing, Frame, Plot, Point, Series, cell_at, draw_curves, with_cursor

if TYPE_CHECKING:
    from ....core.parameters import Parameters
    from ....core.theory.prediction import PredictedColumn

TITLE = "entropy over d_k"
NOTE = message("exact, no sampling")
Curve: TypeAlias = tuple[tuple[float, float], ...]  # d_k, entropy in nats; empty if no exact value is known

WIDTHS = tuple(sorted({round(2 ** (half / 2)) for half in range(25)}))  # d_k from 1 to 4096
_UNKNOWN = message("No exact value is known for these scores; Scales has measured curves.")


def curves_of(cells: Mapping[tuple[int, int], Sequence[PredictedColumn]]) -> tuple[Curve, ...]:
    """Return the curve of each column through the exact values at some d_k and a number of keys."""
    known = [
        (d_k, [column.values["entropy"] for column in columns]) for (d_k, _), columns in cells.items() if columns
    ]
    columns = range(len(COLUMN_ROLES))
    return tuple(tuple((d_k, h) for d_k, values in known if (h := values[at]) is not None) for at in columns)


def entropy_lines(
    curves: tuple[Curve, ...],
    columns: Sequence[Column],
    p: Parameters,
    at: PictureColumns,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Return the curves from d_k 1 to 4096, from 0 to ln n, with the measured entropies at d_k and an axis below."""
    if not any(curves):
        return [fitted(((" ", "dim"), *line), sum(at)) for line in wrapped(glyphs.say(_UNKNOWN), sum(at) - 2, "dim")]
    drawing = _drawing(curves, p.n_keys, at, height - 1, glyphs)
    here: list[tuple[Series, Point]] = []
    for each, column in zip(drawing.at.plot.series, columns, strict=True):
        value = column.measured["entropy"].value if "entropy" in column.measured else None
        if value is not None:
            here.append((each, Point(p.d_k, value)))
    ends = dict[int, tuple[str, Role]]()
    for each, name in zip(drawing.at.plot.series, column_names(columns), strict=True):
        row = cell_at(drawing.at.down(each.exact[-1][1]), drawing.at.rows) if each.exact else None
        if row is not None:
            ends.setdefault(row, (name, each.role))
    lines: list[Line] = []
    for row, line in enumerate(with_cursor(drawing, p.d_k, here, glyphs)):
        name = _EVEN if row == 0 else _ONE_KEY if row == drawing.at.rows - 1 else ""
        words, role = ends.get(row, ("", "dim"))
        lines.append(picture_line(glyphs.say(name), "dim", line, glyphs.say(words), at, glyphs, role))
    return [*lines, fitted(((" " * at.name, "text"), (_axis(drawing.at, p.d_k, glyphs), "dim")), sum(at))]


_EVEN, _ONE_KEY = message("even"), message("one key")


@lru_cache(maxsize=4)
def _drawing(curves: tuple[Curve, ...], n_keys: int, at: PictureColumns, rows: int, glyphs: Glyphs) -> Drawing:
    """Return the curves without the cursor, which are the same at every d_k."""
    thin: tuple[Role, Role] = ("thin_unscaled", "thin_scaled")
    series = [Series(role, thin[n], glyphs.marks[n], exact=curves[n]) for n, role in enumerate(COLUMN_ROLES)]
    plot = Plot(Axis(WIDTHS[0], WIDTHS[-1], 2), Axis(0.0, max(math.log(n_keys), 1e-9)), series)
    frame = Frame(plot, 0, at.picture, rows)
    cells: Cells = [[(" ", "text")] * at.picture for _ in range(rows)]
    draw_curves(cells, frame, glyphs)
    return Drawing(frame, [merged(row) for row in cells])


def _axis(at: Frame, d_k: int, glyphs: Glyphs) -> str:
    """Return the axis of d_k with the value of the cursor and, where they do not touch it, those of its ticks."""
    line = [glyphs.rule] * at.columns
    taken: set[int] = set()
    for value in (d_k, *(4**power for power in range(7))):
        text, cell = f"{value}", cell_at(at.across(value), at.columns)
        if value == d_k:
            text = f" {text} "
        if cell is None:
            continue
        start = min(max(cell - (len(text) - 1) // 2, 0), at.columns - len(text))
        if taken.isdisjoint(range(start - 1, start + len(text) + 1)):
            line[start : start + len(text)] = text
            taken |= {*range(start, start + len(text))}
    return "".join(line)
