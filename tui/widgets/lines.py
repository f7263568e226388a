"""A widget that shows lines of roles and repaints only what changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ..terminal.themes import look
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import Line, Role, fitted, marked

_CACHED = 512  # painted lines of a widget


class LinesWidget(Widget):
    """Shows what `compose_lines` returns for its size; `redraw` calls it again.

    Rendering works line by line, without a Rich renderable: a key changes a few dozen short lines, and to lay out and
    render a whole table for that takes ten times as long and five times the bytes.
    """

    glyphs: Glyphs = UNICODE
    dimmed: bool = False  # everything is dim, because it is not current
    undimmed: Collection[Role] = ()  # roles that are never dim, such as the text being typed

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines to show, each exactly `width` cells."""
        raise NotImplementedError

    def dim(self, dimmed: bool) -> None:
        """Set whether everything is dim."""
        if dimmed != self.dimmed:
            self.dimmed, self._strips = dimmed, {}
            self.refresh()

    def redraw(self) -> None:
        """Compose the lines again and repaint those that changed."""
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

    _selected: Selection | None = None  # the part of the text that is selected with the mouse
    _lines: tuple[Line, ...] = ()
    _size_of_lines: Size | None = None
    _styles: dict[Role, Style] = {}  # noqa: RUF012
    _strips: dict[Line, Strip] = {}  # noqa: RUF012
    _outer: Size | None = None  # the outer size that `_strips` are for
    _across = 0, 0, 0  # cells of the left padding, the line, and the right padding

    def _compose_for(self, size: Size) -> None:
        self._lines = tuple(self.compose_lines(*size)[: size.height]) if size else ()
        self._size_of_lines = size

    def leave(self) -> None:
        """Return the focus to the pane that contains this widget."""
        self.screen.set_focus(next((w for w in self.ancestors if isinstance(w, Widget) and w.can_focus), None))

    def on_focus(self) -> None:
        self.call_next(self.focus_changed)  # by then `has_focus` is set

    def on_blur(self) -> None:
        self.call_next(self.focus_changed)

    def focus_changed(self) -> None:
        """Handle that the widget got or lost the focus."""
        self.redraw()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the painted lines.

        This replaces Textual's work for every line of every frame, as there are no borders or tints.
        """
        size, outer = self.size, self.outer_size
        if self._size_of_lines != size:  # now: the Resize message would come a frame later
            self._compose_for(size)
        if self._outer != outer:
            gutter = self.gutter
            self._strips, self._outer, self._across = {}, outer, (gutter.left, size.width, gutter.right)
        lines, top = self._lines, self.gutter.top
        shown = (lines[y - top] if 0 <= y - top < len(lines) else () for y in crop.line_range)
        if self._selected is not None:
            shown = map(self._with_selection, shown, (y - top for y in crop.line_range))
        strips: list[Strip] = [self._strip(line) for line in shown]
        return strips if crop.column_span == (0, outer.width) else [strip.crop(*crop.column_span) for strip in strips]

    # Selecting text with the mouse

    def selection_updated(self, selection: Selection | None) -> None:
        if selection != self._selected:
            self._selected = selection
            self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, without the blanks that fill its lines, and what separates it from the next."""
        texts: list[str] = []
        for y, line in enumerate(self._lines):
            span = selection.get_span(y)
            if span is not None:
                start, end = span
                texts.append("".join(text for text, _ in line)[start : None if end < 0 else end].rstrip())
        return "\n".join(texts), "\n"

    def render_line(self, y: int) -> Strip:
        """Return a line with the offsets of its characters; Textual asks for it where text is selected."""
        line = fitted(self._lines[y] if 0 <= y < len(self._lines) else (), self.size.width)
        return Strip([Segment(text) for text, _ in line]).apply_offsets(0, y)

    def _with_selection(self, line: Line, y: int) -> Line:
        selected = self._selected.get_span(y) if self._selected is not None else None
        return line if selected is None else marked(line, *selected)

    def _strip(self, line: Line) -> Strip:
        """Return a painted line with its padding; cached, because many lines come again."""
        strip = self._strips.get(line)
        if strip is None:
            if len(self._strips) >= _CACHED:
                del self._strips[next(iter(self._strips))]
            left, width, right = self._across
            spans: Line = ((left * " ", "text"), *(line or ((width * " ", "text"),)), (right * " ", "text"))
            segments = [Segment(text, self._style(role)) for text, role in spans if text]
            strip = self._strips[line] = Strip(segments, left + width + right)
        return strip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles, self._strips, self._outer = {}, {}, None

    def _style(self, role: Role) -> Style:
        """Return the style of a role in this theme; cached, because looking it up walks all ancestors."""
        if self.dimmed and role not in self.undimmed and role != "selected":
            role = "dim"
        if role not in self._styles:
            variables = self.app.theme_variables  # pyright: ignore[reportUnknownMemberType]
            background = self.background_colors[1]
            self._styles[role] = _filtered(self, look(role, variables, background), background)
        return self._styles[role]


def _filtered(widget: Widget, style: Style, background: Color) -> Style:
    """Return the style after the widget's line filters, such as the one for NO_COLOR."""
    segments = [Segment(" ", style)]
    for each in widget.get_line_filters():
        segments = each.apply(segments, background)
    return segments[0].style or style
