"""The attention weights of one query as a divided bar: a piece for each key, the largest first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import set_cell_size

from ....core.message import counted, message
from ....core.statistics.measurement import Column, RowWeights
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted
from ..numbers import percent
from ..results.table import COLUMN_ROLES
from .histograms import NAME, short_names

TITLE = "the weights of one query, a piece for each key"
_WORDS = 15  # cells of the number of effective keys


def weight_lines(row: Sequence[RowWeights], columns: Sequence[Column], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a line for each column: its name, its divided bar, which is as wide for all, and how many keys count."""
    names = short_names(columns, NAME - 1, glyphs)
    room = max(width - NAME - _WORDS - 2, 0)
    lines: list[Line] = []
    for name, weights, role in zip(names, row, COLUMN_ROLES, strict=True):
        count = "" if weights.effective is None else _effective(weights.effective, glyphs)
        spans: list[Span] = [(" " + to_left(name, NAME), role), *pieces(weights, room, role, glyphs)]
        lines.append(
            fitted((*spans, (to_right(set_cell_size(count, min(cells(count), _WORDS)), _WORDS), "text")), width)
        )
    return lines


def pieces(row: RowWeights, room: int, role: Role, glyphs: Glyphs) -> list[Span]:
    """Return a bar of `room` cells divided among the keys in turns of two shades, the smallest ones together.

    A piece ends in the cell at which its share ends; pieces that share a cell are drawn as the rest is.
    """
    thin: Role = "thin_unscaled" if role == "unscaled" else "thin_scaled"
    spans: list[Span] = []
    start, total = 0, 0.0
    for number, weight in enumerate(row.largest):
        total += weight
        end = round(min(total, 1.0) * room)
        if end <= start:
            break
        share = percent(weight)
        if number == 0 and end - start >= len(share) + 5:
            solid = glyphs.shades[-1] * (end - start)
            spans.append((f"{solid[:1]} {share} {solid[len(share) + 3 :]}", role))
        elif number % 2:
            spans.append((glyphs.shades[2] * (end - start), thin))
        else:
            spans.append((glyphs.shades[-1] * (end - start), role))
        start = end
    return [*spans, (glyphs.shades[1] * (room - start), "dim")]


def _effective(keys: float, glyphs: Glyphs) -> str:
    """Return `2.3 keys count`, e to the entropy of the row."""
    if keys < 9.95:
        return glyphs.say(message("{keys:.1f} keys count", keys=keys))
    return glyphs.say(counted("{number} key counts", "{number} keys count", round(keys)))
