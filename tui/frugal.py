"""Sends a terminal only the cells that differ from what it already shows.

Textual repaints whole regions: a number that changes in one digit costs its line, with forty bytes of colour for
each piece of it. This module stands between the compositor and the terminal and compares cell by cell. It is the
one place that reaches into Textual's private parts; with a Textual it does not know it steps aside, and frames
are sent as Textual makes them.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from rich.cells import cell_len, split_graphemes
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual.app import App
from textual.geometry import Size
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.screen import Screen

Cell: TypeAlias = tuple[str, "Style | None"]  # a character; the second half of a wide one is empty
ReturnType = TypeVar("ReturnType")

# Cells that have not changed but cost less to send again than to jump over.
_BRIDGE = 4


def _supported() -> bool:
    """Whether this Textual has the parts that are used below; asking for its version alone takes ten milliseconds."""
    try:
        from textual import _compositor
    except ImportError:
        return False
    return (
        hasattr(App, "_display")
        and _takes(getattr(_compositor, "ChopsUpdate", None), "chop_ends")
        and _takes(getattr(_compositor, "LayoutUpdate", None), "strips")
    )


def _takes(kind: type | None, name: str) -> bool:
    """Whether there is such a class, and it is made from something of this name."""
    code = getattr(getattr(kind, "__init__", None), "__code__", None)
    return code is not None and name in code.co_varnames


SUPPORTED = _supported()


class FrugalApp(App[ReturnType], Generic[ReturnType]):
    """An app whose frames are compared with what the terminal shows."""

    _shown: dict[int, list[Cell | None]]
    _shown_size: Size | None = None
    _unseen = 0  # updates that were made but not sent
    fault: BaseException | None = None  # the unexpected error that ended the app

    def forget_screen(self) -> None:
        """The terminal no longer shows what was sent: send everything next time."""
        self._shown_size = None

    def all_seen(self) -> bool:
        """Whether all updates have been sent that were made since this was asked last."""
        unseen, self._unseen = self._unseen, 0
        return SUPPORTED and not unseen

    def after_frame(self, sent: str) -> str:
        """What is sent after the cells of a frame."""
        return ""

    def _fatal_error(self) -> None:
        """Keep the error and end; Textual's own account of it, with every variable of every frame, takes seconds."""
        self.fault = self.fault or sys.exc_info()[1]
        self.panic()

    if SUPPORTED:

        def _display(self, screen: Screen[Any], renderable: Any) -> None:
            from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate

            if isinstance(renderable, (ChopsUpdate, LayoutUpdate)):
                # An update is rendered only when it is really sent; only then does the terminal show it.
                whole, renderable = renderable, CompositorUpdate()
                self._unseen += 1

                def difference(console: Console) -> str:
                    self._unseen -= 1
                    sent = self._difference(_strips(whole), screen.size, console)
                    return sent and sent + self.after_frame(sent)

                renderable.render_segments = difference
            super()._display(screen, renderable)  # pyright: ignore[reportUnknownMemberType]

    def _difference(self, strips: Iterator[tuple[int, int, Strip]], size: Size, console: Console) -> str:
        """The escape sequences that bring the shown cells up to these strips."""
        if self._shown_size != size:
            self._shown, self._shown_size = {}, size
        system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        whole: list[str] = []  # rows that are sent in one go
        pieces: dict[Style | None, list[tuple[int, int, str]]] = {}
        for y, x, strip in strips:
            cells, composed = _cells(strip)
            room = max(size.width - x, 0)
            if len(cells) > room:
                halved = cells[room][0] == ""  # a wide character that has only one cell left is not sent at all
                cells = [*cells[: room - 1], (" ", cells[room][1])] if halved and room else cells[:room]
            row = self._shown.setdefault(y, [None] * size.width)
            before = row[x : x + len(cells)]
            if before == cells:
                continue
            row[x : x + len(cells)] = cells
            if composed:
                # Where a terminal draws each part of a composed character for itself, it writes over what follows.
                for cell in row[x + len(cells) :]:
                    if cell is None:
                        break
                    cells.append(cell)
                whole.append(_row(cells, y, x, system))
                continue
            for first, last in _runs(before, cells):
                text = "".join(character for character, _ in cells[first:last])
                pieces.setdefault(cells[first][1], []).append((y, x + first, text))
        return "".join([*whole, *_by_style(pieces, system)])


def _row(cells: list[Cell], y: int, x: int, system: ColorSystem) -> str:
    """Cells in a row of which some are of several parts; after those the cursor is put where it has to be."""
    out = [f"\x1b[{y + 1};{x + 1}H"]
    current: Style | None = None
    lost = False  # the terminal's cursor, for want of knowing how far a character took it
    for at, (character, style) in enumerate(cells, x):
        if style is not current and style != current:
            out.append(_switch(current, style, system))
            current = style
        if lost and character:
            out.append(f"\x1b[{y + 1};{at + 1}H")
        lost = len(character) > 1 or (lost and not character)
        out.append(_composed(character, y, at) if len(character) > 1 else character)
    out.append("\x1b[m")
    return "".join(out)


def _by_style(pieces: dict[Style | None, list[tuple[int, int, str]]], system: ColorSystem) -> Iterator[str]:
    """All pieces of one style, then those of the next: a jump costs less than half of what a change of style does."""
    current: Style | None = None
    for style, places in pieces.items():
        yield _switch(current, style, system)
        current = style
        line, column = -1, 0  # where the cursor is, if that is sure
        for y, x, text in places:
            yield f"\x1b[{x - column}C" if y == line and x > column else f"\x1b[{y + 1};{x + 1}H"
            yield text
            line, column = (y, x + len(text)) if text.isascii() else (-1, 0)
    if current is not None:
        yield "\x1b[m"


@lru_cache(maxsize=1024)
def _switch(old: Style | None, new: Style | None, system: ColorSystem) -> str:
    """The escape sequence from one style to another; where only the colour of the text differs, only that is sent."""
    if new is None:
        return "\x1b[m"
    same_ground = old is not None and old.bgcolor == new.bgcolor and old.without_color == new.without_color
    if same_ground and new.color is not None:
        return f"\x1b[{';'.join(new.color.downgrade(system).get_ansi_codes())}m"
    codes = Strip.render_ansi(new, system)
    return f"\x1b[0;{codes}m" if codes else "\x1b[m"


def _strips(update: Any) -> Iterator[tuple[int, int, Strip]]:
    """The strips of a compositor's update with the line and the column where they begin."""
    if hasattr(update, "strips"):  # a LayoutUpdate
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, strip
                x += strip.cell_length
        return
    sent: set[tuple[int, int]] = set()
    for y, left, right in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < right and end > left and (y, x) not in sent:
                sent.add((y, x))
                yield y, x, strip


def _cells(strip: Strip) -> tuple[list[Cell], bool]:
    """The characters of a strip, one entry for each cell of the terminal, and whether some are of several parts."""
    cells: list[Cell] = []
    composed = False
    for text, style, control in strip:
        if control:
            continue
        if text.isascii() or _one_cell_each(text):
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


def _composed(character: str, y: int, x: int) -> str:
    """A character of several code points on blank cells: a terminal may take it for fewer of them, or for more."""
    return f"{' ' * cell_len(character)}\x1b[{y + 1};{x + 1}H{character}"


def _one_cell_each(text: str) -> bool:
    return all(map(_one_cell, {*text}))


@lru_cache(maxsize=4096)
def _one_cell(character: str) -> bool:
    return cell_len(character) == 1


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
