"""Measured points with error bars over exact curves, on a pair of axes, drawn in characters.

A curve is a line of braille dots, eight to a cell; a point is a mark in its cell, an error bar the cells above and
below it. In one cell, points cover error bars, error bars cover curves, and curves cover the cursor. Everything that
does not change while the cursor moves is drawn once, as a Drawing.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ...language.cells import cells as cells_of
from ...language.cells import to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, merged
from .axes import Axis, tick_labels

_UNDER = 2  # lines under the plot: the x axis and its labels
_BLANK, _BRAILLE = 0x2800, ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the bit of each dot of a cell
_DASHES = " '-:.::|"  # up to three dots in ASCII: 1 for the upper, 2 for the middle, 4 for the lower one

Cells: TypeAlias = list[list[Span]]  # one character each; the top line first


class Point(NamedTuple):
    """A measured value; `far` marks one too far from the exact value."""

    x: float
    y: float
    stderr: float | None = None
    far: bool = False


class Series(NamedTuple):
    """The measured points of a quantity and its exact curve, over the same x."""

    role: Role
    thin: Role  # of the exact curve
    mark: str  # one character
    points: Sequence[Point] = ()
    exact: Sequence[tuple[float, float]] = ()  # sorted by x


class Mark(NamedTuple):
    """A vertical line with a label."""

    x: float
    words: str
    role: Role


class Plot(NamedTuple):
    """The axes and everything drawn on them."""

    x: Axis
    y: Axis
    series: Sequence[Series] = ()
    unit: str = ""  # after the labels of the y axis
    marks: Sequence[Mark] = ()


class Frame(NamedTuple):
    """The place of the axes in a view: a margin with the labels of y, then `columns` × `rows` cells."""

    plot: Plot
    margin: int
    columns: int
    rows: int

    def across(self, x: float) -> float | None:
        """Return an x in cells from the left; both ends of the axis are in the middle of a cell."""
        place = self.plot.x.place(x)
        return None if place is None else place * (self.columns - 1) + 0.5

    def down(self, y: float) -> float | None:
        """Return a y in cells from the top."""
        place = self.plot.y.place(y)
        return None if place is None else (1 - place) * (self.rows - 1) + 0.5

    def x_of(self, column: int) -> float:
        """Return the x at a column of the view; beside the plot, that of the nearest end."""
        cell = min(max(column - self.margin, 0), self.columns - 1)
        return self.plot.x.value(cell / max(self.columns - 1, 1))


class Drawing(NamedTuple):
    """A plot without its cursor, as lines: the margin, then one character per column of the frame."""

    at: Frame
    lines: Sequence[Line]


def draw(plot: Plot, width: int, height: int, glyphs: Glyphs) -> Drawing:
    """Draw the plot with its axes, as exactly `height` lines of `width`."""
    rows = max(height - _UNDER, 1)
    labels = _labels(plot, rows, glyphs)
    margin = max(map(len, labels.values()), default=0) + 2
    at = Frame(plot, margin, max(width - margin - 1, 1), rows)
    cells: Cells = [[(" ", "text")] * at.columns for _ in range(rows)]
    _draw_marks(cells, at, glyphs)
    draw_curves(cells, at, glyphs)
    for series in plot.series:
        for point in series.points:
            for row, column, sign in _error_bar(point, series.role, at, glyphs):
                cells[row][column] = sign
    _draw_points(cells, at, glyphs)
    _write_words(cells, at, glyphs)
    lines: list[Line] = []
    for row, content in enumerate(cells):
        side = to_right(labels.get(row, ""), margin - 1) + glyphs.frame[row in labels]
        lines.append(((side, "dim"), *merged(content)))
    lines += _axis_lines(at, glyphs)
    return Drawing(at, [fitted(line, width) for line in lines[:height]])


def with_cursor(drawing: Drawing, x: float, here: Sequence[tuple[Series, Point]], glyphs: Glyphs) -> list[Line]:
    """Return the lines with a cursor at x, and with the points `here`, which are not among those of their series."""
    at, lines = drawing.at, list(drawing.lines)
    right = at.across(x)
    if right is None:
        return lines
    column = min(max(math.floor(right), 0), at.columns - 1)
    inside = 0 <= right < at.columns
    over: dict[int, Span] = {}
    for series, point in here if inside else ():
        over |= {row: sign for row, _, sign in _error_bar(point, series.role, at, glyphs)}
    for series, point in here if inside else ():
        row = cell_at(at.down(point.y), at.rows)
        if row is not None:
            shared = over.get(row, (" ", "text"))[0] in glyphs.marks[:-1]
            sign: Span = (glyphs.marks[-1], "heading") if shared else (series.mark, series.role)
            over[row] = ("!", "alert") if point.far else sign
    upright: Span = (glyphs.uprights[1], "accent")
    for row in range(min(at.rows, len(lines)) if inside else 0):
        lines[row] = _with_cell(lines[row], at.margin + column, over.get(row, upright), row not in over, glyphs)
    foot = glyphs.foot if inside else glyphs.left if right < 0 else glyphs.right
    if at.rows < len(lines):
        lines[at.rows] = _with_cell(lines[at.rows], at.margin + column, (foot, "accent"), False, glyphs)
    return lines


def _with_cell(line: Line, at: int, sign: Span, behind: bool, glyphs: Glyphs) -> Line:
    """Return the line with one cell replaced; with `behind`, only if it is blank or has a vertical line."""
    start = 0
    for number, (text, role) in enumerate(line):
        signs = _signs(text)
        if at < start + len(signs):
            here = at - start
            if behind and role != "text" and (not signs[here] or signs[here] not in glyphs.uprights):
                return line
            before, after = signs[:here], signs[here + 1 :]
            if not signs[here]:  # the second cell of a wide character
                before[-1] = " "
            if after and not after[0]:
                after[0] = " "
            parts: tuple[Span, ...] = (("".join(before), role), sign, ("".join(after), role))
            return (*line[:number], *(part for part in parts if part[0]), *line[number + 1 :])
        start += len(signs)
    return line


def _signs(text: str) -> list[str]:
    """Return the characters of a text by cell; a wide one is followed by an empty text."""
    if cells_of(text) == len(text):
        return [*text]
    return [sign for each in text for sign in (each, *[""] * (cells_of(each) - 1))]


def _draw_marks(cells: Cells, at: Frame, glyphs: Glyphs) -> None:
    """Draw the vertical lines of the marks."""
    for mark in at.plot.marks:
        column = cell_at(at.across(mark.x), at.columns)
        if column is not None:
            for row in cells:
                row[column] = (glyphs.uprights[0], mark.role)


def draw_curves(cells: Cells, at: Frame, glyphs: Glyphs) -> None:
    """Draw every curve as dots, connected from column to column; curves in one cell share its dots."""
    across, down = (1, 3) if glyphs.ascii else (2, 4)
    drawn: dict[tuple[int, int], int] = {}
    for series in at.plot.series:
        before: int | None = None
        for column, level in _levels(series.exact, at, across):
            dot = math.floor(level * down)
            start = dot if before is None else before + (dot > before) - (dot < before)
            before = dot
            for each in range(max(min(start, dot), 0), min(max(start, dot) + 1, at.rows * down)):
                row, bit = divmod(each, down)
                cell = row, column // across
                drawn[cell] = drawn.get(cell, 0) | (1 << bit if glyphs.ascii else _BRAILLE[bit][column % 2])
                sign = _DASHES[drawn[cell]] if glyphs.ascii else chr(_BLANK + drawn[cell])
                cells[row][column // across] = (sign, series.thin)


def _levels(exact: Sequence[tuple[float, float]], at: Frame, across: int) -> Iterator[tuple[int, float]]:
    """Yield each column of dots that the curve reaches, and its distance from the top in cells."""
    places = [(at.across(x), at.down(y)) for x, y in exact]
    known = [(right, below) for right, below in places if right is not None and below is not None]
    rights, half = [right for right, _ in known], 0.5 / across
    for column in range(at.columns * across if len(known) > 1 else 0):
        right = column / across + half
        if rights[0] - 1.001 * half <= right <= rights[-1] + 1.001 * half:  # include the columns of both ends
            right = min(max(right, rights[0]), rights[-1])
            after = max(bisect.bisect_left(rights, right), 1)
            (x0, y0), (x1, y1) = known[after - 1], known[after]
            yield column, y0 + (y1 - y0) * (right - x0) / (x1 - x0 or 1)


def _error_bar(point: Point, role: Role, at: Frame, glyphs: Glyphs) -> Iterator[tuple[int, int, Span]]:
    """Yield the row, column and sign of each cell within one standard error of the point, to half a cell."""
    column, top = cell_at(at.across(point.x), at.columns), at.down(point.y + (point.stderr or 0))
    if column is None or top is None or not point.stderr:
        return
    lower = at.down(point.y - point.stderr)
    bottom = at.rows if lower is None else lower  # None: not positive, on a logarithmic axis
    first, last = math.floor(2 * max(top, 0)), math.floor(2 * min(bottom, at.rows))
    for row in range(first // 2, min(last // 2 + 1, at.rows)):
        halves = first <= 2 * row, last > 2 * row
        yield row, column, (glyphs.error[0 if all(halves) else 1 if halves[0] else 2], role)


def _draw_points(cells: Cells, at: Frame, glyphs: Glyphs) -> None:
    """Draw the points; those of several series in one cell have a separate sign."""
    seen: dict[tuple[int, int], str] = {}
    for series in at.plot.series:
        for point in series.points:
            column, row = cell_at(at.across(point.x), at.columns), cell_at(at.down(point.y), at.rows)
            if column is None or row is None:
                continue
            shared = seen.setdefault((row, column), series.mark) != series.mark
            sign: Span = (glyphs.marks[-1], "heading") if shared else (series.mark, series.role)
            cells[row][column] = ("!", "alert") if point.far else sign


def _write_words(cells: Cells, at: Frame, glyphs: Glyphs) -> None:
    """Write the words of each mark on the first line where they cover, and touch, only blanks and vertical lines."""
    for mark in at.plot.marks:
        column, words = cell_at(at.across(mark.x), at.columns), glyphs.say(mark.words)
        if column is None:
            continue
        signs = _signs(words)
        start = column + 2 if column + 2 + len(signs) <= at.columns else column - 1 - len(signs)
        for row in cells if start >= 0 else ():
            around = row[max(start - 2, 0) : start + len(signs) + 2]
            if all(sign == " " or (sign and sign in glyphs.uprights) for sign, _ in around):
                row[start : start + len(signs)] = [(sign, mark.role) for sign in signs]
                break


def _axis_lines(at: Frame, glyphs: Glyphs) -> list[Line]:
    """Return the x axis with its ticks, and the line of its labels."""
    rule, labels = [glyphs.rule] * at.columns, [" "] * (at.columns + 1)
    widest = len(f"{at.plot.x.high:.0f}") + 2
    ticks = at.plot.x.ticks(at.columns // widest)
    for value in (tick for tick in ticks if abs(tick - round(tick)) < 1e-6):  # d_k, keys and steps are whole
        column, text = cell_at(at.across(value), at.columns), f"{value:.0f}"
        if column is not None:
            rule[column] = glyphs.tick
            start = max(min(column - (len(text) - 1) // 2, len(labels) - len(text)), 0)
            labels[start : start + len(text)] = text
    side = " " * (at.margin - 1) + glyphs.frame[2]
    return [((side + "".join(rule), "dim"),), ((" " * at.margin + "".join(labels), "dim"),)]


def _labels(plot: Plot, rows: int, glyphs: Glyphs) -> dict[int, str]:
    """Return the labels of the y axis by row; they are at least two lines apart."""
    at = Frame(plot, 0, 1, rows)
    ticks = plot.y.ticks(max(2 * rows // 5, 2 if rows > 1 else 1))
    labels: dict[int, str] = {}
    for value, text in zip(ticks, tick_labels(ticks, plot.y, glyphs), strict=True):
        row = cell_at(at.down(value), rows)
        if row is not None:
            labels[row] = text + plot.unit
    return labels


def cell_at(position: float | None, count: int) -> int | None:
    """Return the cell that contains a position; None outside the plot."""
    at = -1 if position is None or not math.isfinite(position) else math.floor(position)
    return at if 0 <= at < count else None
