"""Sends a terminal only the cells that differ from what it already shows.

Textual repaints whole regions: a number that changes in one digit costs its line, with forty bytes of colour for
each piece of it. This module stands between the compositor and the terminal, and sends what rows.py finds. What lies
behind a widget that changed is not even painted. This is the one place that reaches into Textual's private parts;
with a Textual it does not know it steps aside, and frames are made and sent as Textual does it.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual.app import App
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from .rows import Cell, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ReturnType = TypeVar("ReturnType")


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
        and _sets(Screen, "_compositor")
        and _sets(getattr(_compositor, "Compositor", None), "_dirty_regions")
        and {"visible_widgets", "render_partial_update"} <= {*vars(_compositor.Compositor)}
    )


def _takes(kind: type | None, name: str) -> bool:
    """Whether there is such a class, and it is made from something of this name."""
    return name in getattr(_making(kind), "co_varnames", ())


def _sets(kind: type | None, name: str) -> bool:
    """Whether there is such a class, and what is made of it has something of this name."""
    return name in getattr(_making(kind), "co_names", ())


def _making(kind: type | None) -> object:
    return getattr(getattr(kind, "__init__", None), "__code__", None)


SUPPORTED = _supported()


class FrugalApp(App[ReturnType], Generic[ReturnType]):
    """An app whose frames are compared with what the terminal shows."""

    _shown: dict[int, Row]
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

            if isinstance(renderable, (ChopsUpdate, LayoutUpdate, _Changed)):
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
        by_style: dict[Style | None, list[tuple[int, int, str]]] = {}
        for y, x, strip in strips:
            row = self._shown.get(y) or self._shown.setdefault(y, Row(size.width))
            pieces, cells = row.show(x, strip)
            if cells:
                whole.append(_whole(cells, y, x, system))
            for at, text, style in pieces:
                by_style.setdefault(style, []).append((y, x + at, text))
        return "".join([*whole, *_by_style(by_style, system)])


class FrugalScreen(Screen[ReturnType], Generic[ReturnType]):
    """A screen that asks only those widgets for their lines that have changed, where nothing lies in front of them.

    Textual asks everything that stands around a change, behind it too, and then cuts it along all edges.
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._seen_of: Mapping[Widget, tuple[Region, Region]] | None = None
        self._in_sight: list[tuple[Region, Widget]] = []
        if SUPPORTED:
            self._cut_out = self._compositor.render_partial_update
            vars(self._compositor)["render_partial_update"] = self._changed

    def _changed(self) -> object:
        """What takes the place of the compositor's own update."""
        dirty, visible = self._compositor._dirty_regions, self._compositor.visible_widgets  # pyright: ignore[reportPrivateUsage]
        if visible is not self._seen_of:
            self._seen_of, self._in_sight = visible, _in_plain_sight(visible)
        found: list[tuple[int, int, Strip]] = []
        for changed in dirty:
            for region, widget in self._in_sight:
                if region.contains_region(changed):
                    lines = widget.render_lines(Region(0, changed.y - region.y, region.width, changed.height))
                    found += [(y, region.x, line) for y, line in zip(changed.line_range, lines, strict=False)]
                    break
            else:
                return self._cut_out()
        dirty.clear()
        return _Changed(sorted(found, key=itemgetter(0, 1))) if found else None


class _Changed:
    """The lines of widgets that have changed, as `_strips` returns them."""

    def __init__(self, lines: list[tuple[int, int, Strip]]) -> None:
        self.lines = lines


def _in_plain_sight(visible: Mapping[Widget, tuple[Region, Region]]) -> list[tuple[Region, Widget]]:
    """The widgets of which every cell is on the screen, where they stand; the first of them are in front."""
    in_front: list[Region] = []
    found: list[tuple[Region, Widget]] = []
    for widget, (region, clip) in visible.items():
        seen = region.intersection(clip)
        if seen == region and not any(region.overlaps(other) for other in in_front):
            found.append((region, widget))
        in_front.append(seen)
    return found


def _whole(cells: list[Cell], y: int, x: int, system: ColorSystem) -> str:
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
    """The strips of an update with the line and the column where they begin."""
    if isinstance(update, _Changed):
        yield from update.lines
        return
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


def _composed(character: str, y: int, x: int) -> str:
    """A character of several code points on blank cells: a terminal may take it for fewer of them, or for more."""
    return f"{' ' * cell_len(character)}\x1b[{y + 1};{x + 1}H{character}"
