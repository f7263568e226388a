"""The exact entropy of a row over d_k under both settings, with a cursor at the d_k on screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ....core.message import message
from ....core.statistics.measurement import Column
from ..glyphs import Glyphs
from ..lines import Line, Role, fitted, wrapped
from ..results.table import COLUMN_ROLES
from .axes import Axis
from .plot import Drawing, Plot, Point, Series, draw, with_cursor

if TYPE_CHECKING:
    from ....core.parameters import Parameters
    from ....core.theory.prediction import PredictedColumn

TITLE = "exact entropy over d_k"
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
    curves: tuple[Curve, ...], columns: Sequence[Column], p: Parameters, width: int, height: int, glyphs: Glyphs
) -> Sequence[Line]:
    """Return the curves from d_k 1 to 4096 with the measured entropies at d_k, up to ln n."""
    if not any(curves):
        return [fitted(((" ", "dim"), *line), width) for line in wrapped(glyphs.say(_UNKNOWN), width - 2, "dim")]
    drawing = _drawing(curves, p.n_keys, width, height, glyphs)
    here: list[tuple[Series, Point]] = []
    for each, column in zip(drawing.at.plot.series, columns, strict=True):
        value = column.measured["entropy"].value if "entropy" in column.measured else None
        if value is not None:
            here.append((each, Point(p.d_k, value)))
    return with_cursor(drawing, p.d_k, here, glyphs)


@lru_cache(maxsize=4)
def _drawing(curves: tuple[Curve, ...], n_keys: int, width: int, height: int, glyphs: Glyphs) -> Drawing:
    """Return the curves without the cursor, which are the same at every d_k."""
    thin: tuple[Role, Role] = ("thin_unscaled", "thin_scaled")
    series = [Series(role, thin[at], glyphs.marks[at], exact=curves[at]) for at, role in enumerate(COLUMN_ROLES)]
    plot = Plot(Axis(WIDTHS[0], WIDTHS[-1], 2), Axis(0.0, max(math.log(n_keys), 1e-9)), series)
    return draw(plot, width, height, glyphs)
