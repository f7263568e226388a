"""Send the terminal only the cells that differ from what it already shows.

Textual repaints whole regions: one changed digit costs its line, with forty bytes of colour for each segment. This
module intercepts the frames between Textual's compositor and the terminal, and sends the differences that `cell_diff`
finds. It uses private parts of Textual; with a version that lacks them, Textual sends its own frames.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, RenderableType
from rich.segment import Segments
from rich.style import Style
from textual.app import App
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip

from .cell_diff import Cell, ScreenRow

if TYPE_CHECKING:
    from collections.abc import Iterator

ReturnType = TypeVar("ReturnType")

REPORT_WIDTH = 100  # cells of Textual's messages in a crash report


def _supported() -> bool:
    """Return whether this version of Textual has the private parts used below."""
    try:
        from textual import _compositor
    except ImportError:
        return False
    return (
        hasattr(App, "_display")
        and _has_argument(getattr(_compositor, "ChopsUpdate", None), "chop_ends")
        and _has_argument(getattr(_compositor, "LayoutUpdate", None), "strips")
    )


def _has_argument(kind: type | None, name: str) -> bool:
    """Return whether a class exists and its constructor has an argument of this name."""
    code = getattr(getattr(kind, "__init__", None), "__code__", None)
    return name in getattr(code, "co_varnames", ())


SUPPORTED = _supported()


class DiffApp(App[ReturnType], Generic[ReturnType]):
    """An app that sends only the differences between frames."""

    _shown: dict[int, ScreenRow]
    _shown_size: Size | None = None
    _unsent = 0  # updates created but not yet sent
    fault: BaseException | None = None  # the unexpected error that ended the app

    def forget_screen(self) -> None:
        """Send everything next time, because the terminal no longer shows what was sent."""
        self._shown_size = None

    def all_sent(self) -> bool:
        """Return whether all updates created since the last call have been sent."""
        unsent, self._unsent = self._unsent, 0
        return SUPPORTED and not unsent

    def after_frame(self, sent: str) -> str:
        """Return what to send after a frame."""
        return ""

    def panic(self, *renderables: RenderableType) -> None:
        """End the app with messages for the crash report, whatever the width of the terminal."""
        wide = self.console.options.update(width=REPORT_WIDTH)
        super().panic(*(Segments([*self.console.render(renderable, wide)]) for renderable in renderables))

    def _fatal_error(self) -> None:
        """Store the error and end the app; Textual's own report, with all local variables, takes seconds."""
        self.fault = self.fault or sys.exc_info()[1]
        self.panic()

    if SUPPORTED:

        def _display(self, screen: Screen[Any], renderable: Any) -> None:
            from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate

            if isinstance(renderable, (ChopsUpdate, LayoutUpdate)):
                # Rendered only when it is really sent, and only then compared: Textual drops some updates.
                update, renderable = renderable, CompositorUpdate()
                self._unsent += 1

                def difference(console: Console) -> str:
                    self._unsent -= 1
                    sent = self.difference(strips_of(update), screen.size, console)
                    return sent and sent + self.after_frame(sent)

                renderable.render_segments = difference
            super()._display(screen, renderable)  # pyright: ignore[reportUnknownMemberType]

    def difference(self, strips: Iterator[tuple[int, int, Strip]], size: Size, console: Console) -> str:
        """Return the escape sequences that make the terminal show these strips (line, column, strip)."""
        if self._shown_size != size:
            self._shown, self._shown_size = {}, size
        system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        rows: list[str] = []  # sent as whole rows
        by_style: dict[Style | None, list[tuple[int, int, str]]] = {}
        for y, x, strip in strips:
            row = self._shown.get(y) or self._shown.setdefault(y, ScreenRow(size.width))
            pieces, cells = row.show(x, strip)
            if cells:
                rows.append(_whole_row(cells, y, x, system))
            for at, text, style in pieces:
                by_style.setdefault(style, []).append((y, x + at, text))
        return "".join([*rows, *_by_style(by_style, system)])


def _whole_row(cells: list[Cell], y: int, x: int, system: ColorSystem) -> str:
    """Return what sends cells of which some have several code points, and repositions the cursor after these."""
    out = [f"\x1b[{y + 1};{x + 1}H"]
    current: Style | None = None
    lost = False  # whether the cursor's position is unknown, after a character of several code points
    for at, (character, style) in enumerate(cells, x):
        if style != current:
            out.append(_switch(current, style, system))
            current = style
        if lost and character:
            out.append(f"\x1b[{y + 1};{at + 1}H")
        lost = len(character) > 1 or (lost and not character)
        out.append(_composed(character, y, at) if len(character) > 1 else character)
    out.append("\x1b[m")
    return "".join(out)


def _by_style(pieces: dict[Style | None, list[tuple[int, int, str]]], system: ColorSystem) -> Iterator[str]:
    """Yield the pieces by style: a jump costs less than half as much as a change of style."""
    current: Style | None = None
    for style, places in pieces.items():
        yield _switch(current, style, system)
        current = style
        line, end = -1, -1  # where the cursor is
        for y, x, text in places:
            if y != line:
                yield f"\x1b[{y + 1};{x + 1}H"
            elif x != end:
                yield f"\x1b[{x + 1}G"
            yield text
            line, end = y, x + cell_len(text)
    if current is not None:
        yield "\x1b[m"


@lru_cache(maxsize=1024)
def _switch(old: Style | None, new: Style | None, system: ColorSystem) -> str:
    """Return the escape sequence from one style to another; if only the text colour differs, it changes only that."""
    if new is None:
        return "\x1b[m"
    same_background = old is not None and old.bgcolor == new.bgcolor and old.without_color == new.without_color
    if same_background and new.color is not None:
        return f"\x1b[{';'.join(new.color.downgrade(system).get_ansi_codes())}m"
    codes = Strip.render_ansi(new, system)
    return f"\x1b[0;{codes}m" if codes else "\x1b[m"


def strips_of(update: Any) -> Iterator[tuple[int, int, Strip]]:
    """Yield the strips of an update, each with its line and column."""
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
    """Return a character of several code points after blanks: its width differs between terminals."""
    return f"{' ' * cell_len(character)}\x1b[{y + 1};{x + 1}H{character}"
