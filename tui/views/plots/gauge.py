"""The saturation gauge: how far each column's logits spread, over the spread at which softmax saturates."""

from __future__ import annotations

import math
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

from ....core.message import joined
from ....core.statistics.status import SATURATED, SATURATING
from ....core.theory.prediction import Saturation, ratio_given, status_given
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted
from ..numbers import short
from ..results.advice import ratio_text
from ..results.table import COLUMN_ROLES, TableContents, column_title

TITLE = "does softmax saturate?"
END = 50.0  # the ratio at the right end of the logarithmic axis, and one over that at the left: 1 is in the middle
UNIFORM_BELOW = 0.14  # H = ln n − σ²/2 to first order, so below √0.02 more than 98 % of the entropy is left
_ZONES = ((1 / END, UNIFORM_BELOW, "uniform"), (UNIFORM_BELOW, SATURATING, "healthy"), (SATURATED, END, "saturated"))
_LETTERS = ("A", "B")
_RATIO = 8  # cells
_WORDS = (32, 11)  # cells of the status and of where softmax saturates, the most first
_NAMES = (23, 15, 11, 4)  # cells of a name with its letter, the longest first
_BAR = 24  # the shortest bar beside a name that is not only a letter


def gauge_lines(contents: TableContents, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return a bar for each column with its ratio and status; then, if there is a line left, the zones."""
    columns = contents.columns
    sizes = ((name, words) for words in _WORDS for name in _NAMES if width - name - _RATIO - words >= _BAR)
    room, words = next(sizes, (_NAMES[-1], _WORDS[-1]))
    names: list[str] = []
    for letter, column in zip(_LETTERS, columns, strict=False):
        names.append(f" {letter} {column_title(column, glyphs, max(room - 5, 0))}")
    cells = max(width - room - _RATIO - words, 0)
    lines: list[Line] = []
    for index, column in enumerate(columns):
        saturation = contents.theory[index].saturation if contents.theory else None
        role, ratio = COLUMN_ROLES[index], ratio_given(saturation, column.measured)
        word = status_given(saturation, column.measured) or "—"
        lines.append(
            fitted(
                (
                    (to_left(set_cell_size(names[index], room - 1), room), role),
                    *bar(ratio, cells, role, glyphs),
                    (to_right(ratio_text(ratio, glyphs), _RATIO - 1) + " ", role),
                    (
                        to_left(f" {_said(word, saturation, words - 2, glyphs)}", words),
                        "alert" if word in ("saturated", "NaN", "one-hot") else "text",
                    ),
                ),
                width,
            )
        )
    if height > len(columns):
        lines.append(fitted(((" " * room, "text"), (zone_line(cells, glyphs), "dim")), width))
    return lines[:height]


def _said(word: str, saturation: Saturation | None, room: int, glyphs: Glyphs) -> str:
    """Return the status and where softmax saturates, as far as they fit: `saturated from d_k 10 up`."""
    places = saturation.words()[: 2 if saturation.saturated_at else 3] if saturation else ()
    if word == "saturated" and saturation and saturation.saturated_at:
        return glyphs.fitting([*places, word], room)
    return glyphs.fitting([*(joined([word, where], "; ") for where in places), word], room)


def bar(ratio: float | None, cells: int, role: Role, glyphs: Glyphs) -> list[Span]:
    """Return a line up to a point at the ratio, on the logarithmic axis, with a mark at 1."""
    if cells < 2:
        return [(" " * cells, "text")]
    mark: Span = (glyphs.uprights[1], "dim")
    middle = cell_of(SATURATED, cells)
    if not ratio:
        return [(" " * middle, "text"), mark, (" " * (cells - middle - 1), "text")]
    at = cell_of(ratio, cells)
    point: Span = (glyphs.marks[0] if 1 / END <= ratio <= END else glyphs.right if ratio > 1 else glyphs.left, role)
    if at <= middle:
        after: list[Span] = [(" " * (middle - at - 1), "text"), mark] if at < middle else []
        return [(glyphs.rule * at, role), point, *after, (" " * (cells - max(at, middle) - 1), "text")]
    line = glyphs.rule * (at - middle - 1)
    return [(glyphs.rule * middle, role), mark, (line, role), point, (" " * (cells - at - 1), "text")]


def cell_of(ratio: float, cells: int) -> int:
    """Return the cell of a ratio on the logarithmic axis, the first or the last if it is beyond the ends."""
    return min(max(int(cells * (math.log(ratio) / math.log(END) + 1) / 2), 0), cells - 1)


@lru_cache(maxsize=4)
def zone_line(cells: int, glyphs: Glyphs) -> str:
    """Return the names of the zones under a bar, and its numbers as far as they fit: `0 uniform · healthy … 1 …`."""
    line = [" "] * cells

    def write(text: str, *places: int) -> None:
        """Write a text at the first of these places at which it touches no other one."""
        width = cell_len(text)
        for at in places:
            around = line[max(at - 1, 0) : at + width + 1]
            if 0 <= at <= cells - width and {*around} <= {" "}:
                line[at : at + width] = [text, *[""] * (width - 1)]
                return

    write("1", cell_of(SATURATED, cells))
    for low, high, word in _ZONES[1:]:
        text = glyphs.say(word)
        middle = (cell_of(low, cells) + cell_of(high, cells) - cell_len(text)) // 2
        write(text, *(middle + shift for shift in (0, -1, 1, -2, 2, -3)))
    write(glyphs.say("uniform"), 1)
    write(f"{END:g}", cells - len(f"{END:g}"))
    return "".join(line)


def threshold_note(threshold: float | None, glyphs: Glyphs) -> str:
    """Return what a ratio of 1 is, with the number if it is known."""
    known = "" if threshold is None else f" = {short(threshold, glyphs)}"
    return glyphs.say("σ of logits in a row over √(2 ln n){known}", known=known)
