"""A row of the terminal: what it shows, and what must be sent to change it.

From one frame to the next, only the texts of segments are compared. If characters take more than one cell, the row is
compared cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

from rich.cells import cell_len, split_graphemes
from rich.style import Style
from textual.strip import Strip

Cell: TypeAlias = tuple[str, "Style | None"]  # a character; the second half of a wide one is empty
Piece: TypeAlias = tuple[int, str, "Style | None"]  # offset in a strip, text, style

_UNLIKE = "\0"  # for a cell that differs from any
_BRIDGED = 4  # unchanged cells, at most, that cost less to send again than to jump over


class ScreenRow:
    """A row of `width` cells, unknown at first."""

    def __init__(self, width: int) -> None:
        self._cells: list[Cell | None] = [None] * width
        self._strips: dict[int, Strip] = {}  # by column; they override `_cells`; one cell per character

    def show(self, x: int, strip: Strip) -> tuple[list[Piece], list[Cell]]:
        """Set the strip at column x; return what must be sent: pieces, or cells.

        If the strip contains characters of several code points, all known cells from x on are returned: a terminal
        that draws each code point separately overwrites what follows.
        """
        before = self._strips.get(x)
        if before is strip:
            return [], []
        if before is None:
            return self._compare(x, strip)
        pieces = _changed_texts(before, strip)
        if pieces is None:
            return self._compare(x, strip)
        self._strips[x] = strip
        return pieces, []

    def _compare(self, x: int, strip: Strip) -> tuple[list[Piece], list[Cell]]:
        cells, composed = cells_of(strip)
        room = max(len(self._cells) - x, 0)
        simple = not composed and len(cells) <= room and all(character for character, _ in cells)
        if len(cells) > room:
            halved = cells[room][0] == ""  # a space replaces a wide character with only one cell left
            cells = [*cells[: room - 1], (" ", cells[room][1])] if halved and room else cells[:room]
        end = x + len(cells)
        self._to_cells(x, len(self._cells) if composed else end)
        before = self._cells[x:end]
        self._cells[x:end] = cells
        if simple:
            self._strips[x] = strip
        if before == cells:
            return [], []
        if composed:
            known = takewhile(lambda cell: cell is not None, self._cells[x:])
            return [], [cell for cell in known if cell is not None]
        runs = [(first, cells[first:last]) for first, last in _runs(before, cells)]
        return [(at, "".join(character for character, _ in run), run[0][1]) for at, run in runs], []

    def _to_cells(self, first: int, end: int) -> None:
        """Replace strips that overlap these columns by their cells."""
        for x, strip in [*self._strips.items()]:
            if x < end and x + strip.cell_length > first:
                cells = cells_of(strip)[0]
                self._cells[x : x + len(cells)] = cells
                del self._strips[x]


def _changed_texts(before: Strip, after: Strip) -> list[Piece] | None:
    """Return the changed pieces of a strip, or None if they cannot be found by comparing texts."""
    if before.cell_length != after.cell_length:
        return None
    x, pieces = 0, list[Piece]()
    rest, segments, rest_style = "", iter(before), None
    for text, style, control in after:
        if control:
            return None
        old, missing = "", len(text)
        while missing:  # what stood there; a cell of another style is unlike any
            if not rest:
                segment = next(segments, None)
                if segment is None:
                    return None
                rest, rest_style, _ = segment
            part, rest = rest[:missing], rest[missing:]
            old += part if rest_style is style or rest_style == style else _UNLIKE * len(part)
            missing -= len(part)
        for first, last in _stretches(old, text) if old != text else ():
            if not _one_cell_each(text[first:last]):
                return None
            pieces.append((x + first, text[first:last], style))
        x += len(text)
    return pieces


def _stretches(old: str, new: str) -> Iterator[tuple[int, int]]:
    """Yield where two texts of equal length differ; close differences are joined."""
    differing = [at for at, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    first = last = differing[0]
    for at in differing:
        if at - last > _BRIDGED:
            yield first, last
            first = at
        last = at + 1
    yield first, last


def _runs(before: list[Cell | None], after: list[Cell]) -> Iterator[tuple[int, int]]:
    """Yield the runs of cells of one style that differ; close runs are joined, and wide characters are not split."""
    first = last = -1
    style: Style | None = None  # of the last differing cell
    for at in [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]:
        if at < last:
            continue
        if at == last and after[at][0] and after[at][1] is style:  # the usual case in a new row
            last += 1
            continue
        start, end, style = at, at + 1, after[at][1]
        while start and after[start][0] == "":
            start -= 1
        while end < len(after) and after[end][0] == "":
            end += 1
        if last >= 0 and start - last <= _BRIDGED and all(cell[1] == style for cell in after[last - 1 : start]):
            last = end
            continue
        if last >= 0:
            yield first, last
        first, last = start, end
    if last >= 0:
        yield first, last


def cells_of(strip: Strip) -> tuple[list[Cell], bool]:
    """Return a strip's characters by cell, and whether some of them have several code points."""
    cells: list[Cell] = []
    composed = False
    for text, style, control in strip:
        if control:
            continue
        if _one_cell_each(text):
            cells += [(character, style) for character in text]
            continue
        for character, width in _characters(text):
            composed |= len(character) > 1
            if width:
                cells.append((character, style))
                cells += [("", style)] * (width - 1)
            elif cells:  # a combining mark at the start of a segment belongs to the character before
                at = next((at for at in range(len(cells) - 1, 0, -1) if cells[at][0]), 0)
                cells[at] = (cells[at][0] + character, cells[at][1])
                composed = True
    return cells, composed


def _characters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the graphemes of a text, with their width in cells."""
    for start, end, width in split_graphemes(text)[0]:
        yield text[start:end], width


def _one_cell_each(text: str) -> bool:
    return text.isascii() or all(map(_one_cell, {*text}))


@lru_cache(maxsize=4096)
def _one_cell(character: str) -> bool:
    return cell_len(character) == 1
