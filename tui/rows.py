"""A row of a terminal: what it shows, and what has to be sent for it to show something else.

From one frame to the next the pieces of a row mostly stay where they are and say something new: then their texts are
compared. Where pieces have moved, or characters take more cells than one, rows are compared cell by cell.
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
Piece: TypeAlias = tuple[int, str, "Style | None"]  # where in a strip it begins, what it says, and how that looks

# Cells that have not changed but cost less to send again than to jump over.
_BRIDGE = 4


class LineStrip(Strip):
    """A strip that may have been compared, before it is shown, with the one that it is likely to replace."""

    _foreseen: tuple[Strip, list[Piece] | None] | None = None

    def foresee(self, before: Strip) -> None:
        """Compare them now."""
        self._foreseen = before, _said_anew(before, self)

    def after(self, before: Strip) -> list[Piece] | None:
        """What differs between strips of the same pieces; None if the pieces are others, or take other cells."""
        foreseen, self._foreseen = self._foreseen, None
        return foreseen[1] if foreseen and foreseen[0] is before else _said_anew(before, self)


class Row:
    """So many cells, of which nothing is known at first."""

    def __init__(self, width: int) -> None:
        self._cells: list[Cell | None] = [None] * width
        self._strips: dict[int, Strip] = {}  # what stands there now in place of cells, one for each character

    def show(self, x: int, strip: Strip) -> tuple[list[Piece], list[Cell]]:
        """What has to be sent for this strip to stand at x: pieces.

        Or, if there are characters of several parts in it, all cells from x on as far as they are known: where a
        terminal draws each part for itself, it writes over what follows.
        """
        before = self._strips.get(x)
        if before is strip:
            return [], []
        if before is None:
            return self._compare(x, strip)
        pieces = strip.after(before) if isinstance(strip, LineStrip) else _said_anew(before, strip)
        if pieces is None:
            return self._compare(x, strip)
        self._strips[x] = strip
        return pieces, []

    def _compare(self, x: int, strip: Strip) -> tuple[list[Piece], list[Cell]]:
        cells, composed = cells_of(strip)
        room = max(len(self._cells) - x, 0)
        plain = not composed and len(cells) <= room and all(character for character, _ in cells)
        if len(cells) > room:
            halved = cells[room][0] == ""  # a wide character that has only one cell left is not sent at all
            cells = [*cells[: room - 1], (" ", cells[room][1])] if halved and room else cells[:room]
        end = x + len(cells)
        self._settle(x, len(self._cells) if composed else end)
        before = self._cells[x:end]
        self._cells[x:end] = cells
        if plain:
            self._strips[x] = strip
        if before == cells:
            return [], []
        if composed:
            known = takewhile(lambda cell: cell is not None, self._cells[x:])
            return [], [cell for cell in known if cell is not None]
        runs = [(first, cells[first:last]) for first, last in _runs(before, cells)]
        return [(at, "".join(character for character, _ in run), run[0][1]) for at, run in runs], []

    def _settle(self, first: int, end: int) -> None:
        """Take what stands somewhere between these as cells."""
        for x, strip in [*self._strips.items()]:
            if x < end and x + strip.cell_length > first:
                cells = cells_of(strip)[0]
                self._cells[x : x + len(cells)] = cells
                del self._strips[x]


def _said_anew(before: Strip, after: Strip) -> list[Piece] | None:
    if len(before) != len(after):
        return None
    x, pieces = 0, list[Piece]()
    for (old, old_style, old_control), (new, style, control) in zip(before, after, strict=True):
        same_place = len(old) == len(new) and (style is old_style or style == old_style)
        if not same_place or old_control or control:
            return None
        if old != new:
            if not _one_cell_each(new):
                return None
            for first, last in _stretches(old, new):
                pieces.append((x + first, new[first:last], style))
        x += len(new)
    return pieces


def _stretches(old: str, new: str) -> Iterator[tuple[int, int]]:
    """Where two texts of one length differ; what lies closely together is one."""
    differing = [at for at, (was, is_) in enumerate(zip(old, new, strict=True)) if was != is_]
    first = last = differing[0]
    for at in differing:
        if at - last > _BRIDGE:
            yield first, last
            first = at
        last = at + 1
    yield first, last


def _runs(before: list[Cell | None], after: list[Cell]) -> Iterator[tuple[int, int]]:
    """Stretches of cells of one style to send: what differs, and what lies between closely; wide characters whole."""
    first = last = -1
    style: Style | None = None  # of the last cell that was looked at
    for at in [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]:
        if at < last:
            continue
        if at == last and after[at][0] and after[at][1] is style:  # as most cells do in a row that is all new
            last += 1
            continue
        start, end, style = at, at + 1, after[at][1]
        while start and after[start][0] == "":
            start -= 1
        while end < len(after) and after[end][0] == "":
            end += 1
        if last >= 0 and start - last <= _BRIDGE and all(cell[1] == style for cell in after[last - 1 : start]):
            last = end
            continue
        if last >= 0:
            yield first, last
        first, last = start, end
    if last >= 0:
        yield first, last


def cells_of(strip: Strip) -> tuple[list[Cell], bool]:
    """The characters of a strip, one entry for each cell of the terminal, and whether some are of several parts."""
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
            elif cells:  # a mark that begins a segment belongs to what stands before
                at = next((at for at in range(len(cells) - 1, 0, -1) if cells[at][0]), 0)
                cells[at] = (cells[at][0] + character, cells[at][1])
                composed = True
    return cells, composed


def _characters(text: str) -> Iterator[tuple[str, int]]:
    """What is seen as one character each, with the cells that the layout gives it."""
    for start, end, width in split_graphemes(text)[0]:
        yield text[start:end], width


def _one_cell_each(text: str) -> bool:
    return text.isascii() or all(map(_one_cell, {*text}))


@lru_cache(maxsize=4096)
def _one_cell(character: str) -> bool:
    return cell_len(character) == 1
