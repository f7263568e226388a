"""The saturation gauge: how far each column's logits spread, over the spread at which softmax saturates."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from ....core.statistics.status import SATURATED, SATURATING
from ....core.theory.prediction import ratio_given, status_given
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted
from ..numbers import short
from ..results.advice import ratio_text
from ..results.table import COLUMN_ROLES, Contents, column_title

TITLE = "does softmax saturate?"
END = 1.5  # the ratio at the right end
UNIFORM_BELOW = 0.14  # H = ln n − σ²/2 to first order, so below √0.02 more than 98 % of the entropy is left
_ZONES = ((0.0, UNIFORM_BELOW, "uniform"), (UNIFORM_BELOW, SATURATING, "healthy"),
          (SATURATING, SATURATED, "saturating"), (SATURATED, END, "saturated"))  # fmt: skip
_LETTERS = ("A", "B")
_RATIO, _WORD = 8, 11  # cells
_NAMES = (23, 15, 11, 4)  # cells of a name with its letter, the longest first
_BAR = 20  # the shortest bar beside a name that is not only a letter


def gauge_lines(contents: Contents, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return a bar for each column with its ratio and status; then, if there is a line left, the zones."""
    columns = contents.columns
    room = next((cells for cells in _NAMES if width - cells - _RATIO - _WORD >= _BAR), _NAMES[-1])
    names: list[str] = []
    for letter, column in zip(_LETTERS, columns, strict=False):
        names.append(f" {letter} {column_title(column, glyphs, max(room - 5, 0))}")
    cells = max(width - room - _RATIO - _WORD, 0)
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
                        to_left(f" {glyphs.say(word)}", _WORD),
                        "alert" if word in ("saturated", "NaN", "one-hot") else "text",
                    ),
                ),
                width,
            )
        )
    if height > len(columns):
        lines.append(fitted(((" " * room, "text"), (zone_line(cells, glyphs), "dim")), width))
    return lines[:height]


def bar(ratio: float | None, cells: int, role: Role, glyphs: Glyphs) -> list[Span]:
    """Return a bar from 0 to END with a mark at 1; what is beyond the end is cut and marked."""
    if cells < 2:
        return [(" " * cells, "text")]
    steps = len(glyphs.lengths) - 1
    level = 0 if ratio is None else round(min(ratio / END, 1) * cells * steps)
    level = max(level, 1) if ratio else level
    full, part = divmod(level, steps)
    text = glyphs.lengths[-1] * full + (glyphs.lengths[part] if part else "")
    text = set_cell_size(text, cells)
    if ratio is not None and ratio > END:
        text = text[:-1] + glyphs.right
    at, over = mark_cell(cells), full > mark_cell(cells)
    beyond: Role = "over_unscaled" if role == "unscaled" else "over_scaled"
    mark: Span = (glyphs.uprights[0], beyond if over else "dim")
    return [(text[:at], role), mark, (text[at + 1 :], role)]


def mark_cell(cells: int) -> int:
    """Return the cell of the ratio 1."""
    return min(int(cells * SATURATED / END), cells - 1)


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

    mark = mark_cell(cells)
    write("1", mark)
    write(f"{END:g}", cells - len(f"{END:g}"))
    for low, high, word in _ZONES[1:]:
        middle = round((low + high) / 2 / END * cells - cell_len(glyphs.say(word)) / 2)
        write(glyphs.say(word), *(middle + shift for shift in (0, -1, 1, -2, 2, -3)))
    write(glyphs.say("uniform"), 0)
    write("0", 0)
    return "".join(line)


def threshold_note(threshold: float | None, glyphs: Glyphs) -> str:
    """Return what a ratio of 1 is, with the number if it is known."""
    known = "" if threshold is None else f" = {short(threshold, glyphs)}"
    return glyphs.say("σ of logits in a row over √(2 ln n){known}", known=known)
