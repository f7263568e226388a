"""A widget that shows lines of roles and repaints only what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Self

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from ..themes import look
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import Line, Role
from .ground import filtered


class LinesWidget(Widget):
    """Shows what `compose_lines` returns for its size; `redraw` asks it again.

    Rendering goes line by line, without a Rich renderable in between: a key changes a few dozen short lines, and
    laying out and rendering a whole table for that takes ten times as long and five times the bytes.
    """

    glyphs: Glyphs = UNICODE
    dimmed: bool = False  # what is shown is not current: everything stands back

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        """The lines to show, each exactly `width` cells."""
        raise NotImplementedError

    def stand_back(self, back: bool) -> None:
        """Dim everything, or no longer."""
        if back != self.dimmed:
            self.dimmed = back
            self.refresh()

    def redraw(self) -> None:
        """Ask for the lines again and repaint those that changed."""
        if self._size_of_lines is None:
            return  # not painted yet
        before, width = self._lines, self.size.width
        self._compose_for(self.size)
        changed = [y for y, (old, new) in enumerate(zip_longest(before, self._lines)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    _lines: tuple[Line, ...] = ()
    _size_of_lines: Size | None = None
    _styles: dict[Role, Style] = {}  # noqa: RUF012
    _painted: dict[int, Strip] = {}  # noqa: RUF012
    _painted_size: Size | None = None

    def _compose_for(self, size: Size) -> None:
        self._lines = tuple(self.compose_lines(*size)[: size.height]) if size else ()
        self._size_of_lines = size

    def leave(self) -> None:
        """Give the focus back to the pane that this widget stands in."""
        self.screen.set_focus(next((w for w in self.ancestors if isinstance(w, Widget) and w.can_focus), None))

    def on_focus(self) -> None:
        self.call_next(self.focus_changed)  # by then `has_focus` is set

    def on_blur(self) -> None:
        self.call_next(self.focus_changed)

    def focus_changed(self) -> None:
        """The widget has got or lost the focus."""
        self.redraw()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines as they are painted, kept until they change.

        In place of what Textual does for every line of every frame: there are no borders here, and no tints.
        """
        outer = self.outer_size
        if self._painted_size != outer:
            self._painted, self._painted_size = {}, outer
        missing = [y for y in crop.line_range if y not in self._painted]
        if missing:
            self._painted |= zip(missing, self._paint(missing), strict=True)
        strips = [self._painted[y] for y in crop.line_range]
        return strips if crop.column_span == (0, outer.width) else [strip.crop(*crop.column_span) for strip in strips]

    def _paint(self, rows: Iterable[int]) -> Iterator[Strip]:
        """These lines of the widget, padding and all."""
        size, (top, right, _, left) = self.size, self.gutter
        if self._size_of_lines != size:  # now, not when a message about it comes: that would be a frame later
            self._compose_for(size)
        blank: Line = ((size.width * " ", "text"),)
        ground = self._style("text")
        before, after = ([Segment(cells * " ", ground)] if cells else [] for cells in (left, right))
        for y in rows:
            spans = self._lines[y - top] if 0 <= y - top < len(self._lines) else blank
            segments = [Segment(text, self._style(role)) for text, role in spans if text]
            yield Strip([*before, *segments, *after], left + size.width + right)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if not regions:
            self._painted = {}
        top = self.gutter.top
        for y in (y for region in regions for y in region.line_range):
            self._painted.pop(top + y, None)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles, self._painted = {}, {}

    def _style(self, role: Role) -> Style:
        """How a role looks in this theme; looked up once, because that walks all ancestors."""
        if self.dimmed:
            role = "dim"
        if role not in self._styles:
            variables = self.app.theme_variables  # pyright: ignore[reportUnknownMemberType]
            ground = self.background_colors[1]
            self._styles[role] = filtered(self, look(role, variables, ground), ground)
        return self._styles[role]
