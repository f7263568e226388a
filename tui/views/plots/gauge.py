"""The saturation gauge: dots on a logarithmic axis, with lines up to them and a limit across it."""

from __future__ import annotations

import math
from functools import lru_cache

from rich.cells import cell_len

from ....core.statistics.status import SATURATED
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, merged

END = 20.0  # the ratio at the right end of the axis, and one over that at the left: the limit, 1, is in the middle


def gauge_line(ratio: float | None, cells: int, role: Role, glyphs: Glyphs) -> Line:
    """Return an axis of `cells` with a line up to a dot at the ratio, and the limit across it at 1."""
    if cells < 2:
        return ((" " * cells, "text"),)
    limit = cell_of(SATURATED, cells)
    at = cell_of(ratio, cells) if ratio else -1
    at_end = glyphs.right if ratio is not None and ratio > 1 else glyphs.left
    point = glyphs.marks[0] if ratio is None or 1 / END <= ratio <= END else at_end
    line: list[Span] = [(glyphs.axis[0], role) if cell < at else (glyphs.rule, "frame") for cell in range(cells)]
    line[limit] = (glyphs.axis[1], role) if at > limit else (glyphs.uprights[1], "dim")
    if at >= 0:
        line[at] = (point, role)
    return merged(line)


def cell_of(ratio: float, cells: int) -> int:
    """Return the cell of a ratio on the logarithmic axis, the first or the last if it is beyond the ends."""
    return min(max(int(cells * (math.log(ratio) / math.log(END) + 1) / 2), 0), cells - 1)


@lru_cache(maxsize=4)
def zone_line(cells: int, glyphs: Glyphs) -> str:
    """Return the names of the zones under an axis, those that fit: `uniform    healthy │ saturated    one-hot`."""
    line = [" "] * cells
    limit = cell_of(SATURATED, cells)
    line[limit] = glyphs.uprights[1]
    said = {word: glyphs.say(word) for word in ("healthy", "saturated", "uniform", "one-hot")}
    starts = {
        "healthy": limit - 1 - cell_len(said["healthy"]), "saturated": limit + 2, "uniform": 0,
        "one-hot": cells - cell_len(said["one-hot"]),
    }  # fmt: skip
    for word, start in starts.items():
        width = cell_len(said[word])
        around = line[max(start - 1, 0) : start + width + 1]
        if 0 <= start <= cells - width and {*around} <= {" "}:
            line[start : start + width] = [said[word], *[""] * (width - 1)]
    return "".join(line)
