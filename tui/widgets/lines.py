"""A widget that shows lines of roles and repaints only what changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from ..themes import look
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import Line, Role


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

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._size_of_lines != self.size:  # now, not when a message about it comes: that would be a frame later
            self._compose_for(self.size)
        if y >= len(self._lines):
            return Strip.blank(width, self._style("text"))
        segments = [Segment(text, self._style(role)) for text, role in self._lines[y]]
        return Strip(segments).adjust_cell_length(width, self._style("text"))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}

    def _style(self, role: Role) -> Style:
        """How a role looks in this theme; looked up once, because that walks all ancestors."""
        if self.dimmed:
            role = "dim"
        if role not in self._styles:
            variables = self.app.theme_variables  # pyright: ignore[reportUnknownMemberType]
            self._styles[role] = look(role, variables, self.background_colors[1])
        return self._styles[role]
