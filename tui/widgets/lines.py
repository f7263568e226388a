"""A widget that shows lines of roles and repaints only what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from ..rows import LineStrip
from ..themes import look
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import Line, Role
from .ground import filtered

_KEPT = 512  # painted lines of a widget


class _Rehearsal(NamedTuple):
    """Lines that were composed before they are wanted, and what they are for."""

    state: Mapping[str, object]
    size: Size
    lines: tuple[Line, ...]


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
            self.dimmed, self._strips = back, {}
            self.refresh()

    def redraw(self) -> None:
        """Ask for the lines again and repaint those that changed."""
        if self._size_of_lines is None:
            return  # not painted yet
        before, width = self._lines, self.size.width
        self._compose_for(self.size)
        changed: list[Region] = []
        for y, (old, new) in enumerate(zip_longest(before, self._lines)):
            if old == new:
                continue
            above = changed.pop() if changed and changed[-1].bottom == y else Region(0, y, width, 0)
            changed.append(above.grow((0, 0, 1, 0)))
        if changed:
            self.refresh(*changed)

    def rehearse(self, **state: object) -> None:
        """Compose and paint what these attributes would lead to: `redraw` need not do it if it comes to that."""
        rehearsed = self._rehearsal
        if self._size_of_lines is None or (rehearsed and (rehearsed.state, rehearsed.size) == (state, self.size)):
            return
        current = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        try:
            lines = self._composed(self.size)
        finally:
            vars(self).update(current)
        self._rehearsal = _Rehearsal(state, self.size, lines)
        for now, then in zip(self._lines, lines, strict=False):
            if now != then:
                self._strip(then).foresee(self._strip(now))

    _lines: tuple[Line, ...] = ()
    _size_of_lines: Size | None = None
    _rehearsal: _Rehearsal | None = None
    _styles: dict[Role, Style] = {}  # noqa: RUF012
    _strips: dict[Line, LineStrip] = {}  # noqa: RUF012
    _outer: Size | None = None  # with which they were painted
    _across = 0, 0, 0  # cells of padding, of a line, and of padding

    def _compose_for(self, size: Size) -> None:
        rehearsal, self._rehearsal = self._rehearsal, None
        fits = rehearsal is not None and rehearsal.size == size
        if rehearsal and fits and all(getattr(self, name) == value for name, value in rehearsal.state.items()):
            self._lines = rehearsal.lines
        else:
            self._lines = self._composed(size)
        self._size_of_lines = size

    def _composed(self, size: Size) -> tuple[Line, ...]:
        return tuple(self.compose_lines(*size)[: size.height]) if size else ()

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
        """The lines as they are painted.

        In place of what Textual does for every line of every frame: there are no borders here, and no tints.
        """
        size, outer = self.size, self.outer_size
        if self._size_of_lines != size:  # now, not when a message about it comes: that would be a frame later
            self._compose_for(size)
        if self._outer != outer:
            gutter = self.gutter
            self._strips, self._outer, self._across = {}, outer, (gutter.left, size.width, gutter.right)
        lines, top = self._lines, self.gutter.top
        shown = (lines[y - top] if 0 <= y - top < len(lines) else () for y in crop.line_range)
        strips: list[Strip] = [self._strip(line) for line in shown]
        return strips if crop.column_span == (0, outer.width) else [strip.crop(*crop.column_span) for strip in strips]

    def _strip(self, line: Line) -> LineStrip:
        """A line of the widget, padding and all; it is kept, for there is much that comes again."""
        strip = self._strips.get(line)
        if strip is None:
            if len(self._strips) >= _KEPT:
                del self._strips[next(iter(self._strips))]
            left, width, right = self._across
            spans: Line = ((left * " ", "text"), *(line or ((width * " ", "text"),)), (right * " ", "text"))
            segments = [Segment(text, self._style(role)) for text, role in spans if text]
            strip = self._strips[line] = LineStrip(segments, left + width + right)
        return strip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles, self._strips, self._outer = {}, {}, None

    def _style(self, role: Role) -> Style:
        """How a role looks in this theme; looked up once, because that walks all ancestors."""
        if self.dimmed:
            role = "dim"
        if role not in self._styles:
            variables = self.app.theme_variables  # pyright: ignore[reportUnknownMemberType]
            ground = self.background_colors[1]
            self._styles[role] = filtered(self, look(role, variables, ground), ground)
        return self._styles[role]
