"""A widget that shows lines of roles, in a border with a title, and repaints only what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, overload

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.events import MouseEvent, MouseScrollDown, MouseScrollUp
from textual.geometry import Offset, Region, Size, Spacing
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ..terminal.themes import look
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import (
    BORDER_ROLES,
    EDGES,
    Line,
    Role,
    Thumb,
    bottom_line,
    displayable,
    ends,
    fitted,
    marked,
    side,
    top_line,
)

_NEVER_DIM: Collection[Role] = ("selected", *BORDER_ROLES)


T = TypeVar("T")


class Content(Generic[T]):
    """An attribute that the lines of a widget show: to set it composes them again with the next frame."""

    def __init__(self, usual: T) -> None:
        self._usual = usual

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, widget: None, owner: type) -> Content[T]: ...
    @overload
    def __get__(self, widget: LinesWidget, owner: type) -> T: ...
    def __get__(self, widget: LinesWidget | None, owner: type) -> Any:
        return self if widget is None else vars(widget).get(self._name, self._usual)

    def __set__(self, widget: LinesWidget, value: T) -> None:
        vars(widget)[self._name] = value
        widget.redraw()


class _Border(NamedTuple):
    top: Line
    foot: Line  # empty if only the upper side has a border
    thumb: range  # rows of the scroll bar
    role: Role  # of the sides


class _Frame(NamedTuple):
    """The sizes of a widget."""

    outer: Size
    size: Size  # of the content
    gutter: Spacing
    boxed: bool  # whether there is a border on all sides
    ruled: bool  # whether there is one at the right


class _Painted(Strip):
    """A painted line, usually shown whole; one of Textual's then refers to itself, and waits for the collector."""

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        ends = [*cuts]
        return [self] if ends == [self.cell_length] else super().divide(ends)


class LinesWidget(Widget):
    """Shows what `compose_lines` returns for its size; `redraw` calls it again.

    Rendering works line by line, without a Rich renderable: a key changes a few dozen short lines, and to lay out and
    render a whole table for that takes ten times as long and five times the bytes.

    CSS decides which sides have a border; this class paints it, with the heading in its upper side. A widget without
    an upper border has the heading in its first line, if `HEADED`.
    """

    HEADED: ClassVar[bool] = False  # whether the heading says more than a name
    TITLE: ClassVar[str] = ""
    LEADS: ClassVar[bool] = False  # whether the keys of a pane with the focus act on this widget

    glyphs: Glyphs = UNICODE
    dimmed: bool = False  # everything is dim, because it is not current
    undimmed: Collection[Role] = ()  # roles that are never dim, such as the text being typed

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines to show, each exactly `width` cells."""
        raise NotImplementedError

    def heading(self, width: int) -> Line:
        """Return the title, at most `width` cells, if it fits."""
        return ((self.glyphs.say(self.TITLE), "heading"),)

    def note(self) -> Line:
        """Return what stands at the right of the heading, if both fit."""
        return ()

    def foot(self) -> Line:
        """Return what stands in the lower border, if it fits."""
        return ()

    def thumb(self) -> Thumb | None:
        """Return which part of all lines is shown, for the scroll bar in a right border; None if all are."""
        return None

    @property
    def room(self) -> Size:
        """The size that `compose_lines` is called with."""
        width, height = self._frame.size
        return Size(width, max(height - self._heads, 0))

    @property
    def boxed(self) -> bool:
        """Whether there is a border on all sides."""
        return self._frame.boxed

    @property
    def _frame(self) -> _Frame:
        """The place of the content; cached, because Textual computes it from the styles each time.

        Textual's `size` is 0 while a widget is hidden, though `outer_size` stays what it will be when shown again.
        """
        outer, frame = self.outer_size, self._cached_frame
        if frame is None or frame.outer != outer:
            gutter = self.gutter
            boxed, ruled = gutter.left > 0 and gutter.bottom > 0, self.styles.border_right[0] != ""
            size = outer - (gutter.width, gutter.height)
            frame = self._cached_frame = _Frame(outer, size, gutter, boxed, ruled)
        return frame

    @property
    def _heads(self) -> int:
        """The lines of the heading within the content."""
        return int(self.HEADED and not self._frame.gutter.top)

    def place_of(self, event: MouseEvent) -> Offset:
        """Return the place of a mouse event among the lines that `compose_lines` returned."""
        return Offset(event.x - self.gutter.left, event.y - self.gutter.top - self._heads)

    def dim(self, dimmed: bool) -> None:
        """Set whether everything is dim."""
        if dimmed != self.dimmed:
            self.dimmed, self._styles = dimmed, {}
            self._repaint()

    def _repaint(self) -> None:
        """Paint all lines again with the next frame."""
        self._painted = {}
        self._repaint_regions.add(self.outer_size.region)
        self._await_frame()

    def _await_frame(self) -> None:
        """Have the screen paint a frame; `refresh` sends it two messages."""
        if self.display and self.is_attached:
            screen = self.screen
            screen._dirty_widgets.add(self)  # pyright: ignore[reportPrivateUsage]
            screen.check_idle()

    def redraw(self) -> None:
        """Compose the lines again with the next frame, which paints those that changed."""
        if self._size_of_lines is not None and not self._outdated:  # else they are not painted yet
            self._outdated = True
            self._await_frame()

    def _exchange_repaint_regions(self) -> Collection[Region]:
        """Return what the next frame paints again: however often the contents changed, they are composed once."""
        self._update()
        return super()._exchange_repaint_regions()

    def _update(self) -> None:
        """Compose the lines again if the contents have changed, and add those that changed."""
        if self._outdated:
            before, (_, size, gutter, _, _) = self._lines, self._frame
            self._compose_for(size)
            lines = enumerate(zip_longest(before, self._lines), start=gutter.top)
            rows = [*self._redraw_border(), *(row for row, (old, new) in lines if old != new)]
            for row in rows:
                self._painted.pop(row, None)
            if rows:
                self._repaint_regions.add(Region(0, min(rows), self.outer_size.width, max(rows) - min(rows) + 1))

    def _redraw_border(self) -> Sequence[int]:
        """Compose the border again, and return the lines that changed."""
        old, (outer, _, gutter, _, _) = self._border, self._frame
        if not gutter.top or old is None or self._outer != outer:
            return ()  # painted with the next frame, which has the new size
        new = self._border = self._compose_border()
        if old.role != new.role or old.thumb != new.thumb:
            return range(outer.height)
        sides = (0, old.top, new.top), (outer.height - 1, old.foot, new.foot)
        return [row for row, before, after in sides if before != after]

    _selected: Selection | None = None  # the part of the text that is selected with the mouse
    _lines: tuple[Line, ...] = ()
    _size_of_lines: Size | None = None
    _outdated: bool = False  # whether the contents have changed since
    _styles: dict[Role, Style] = {}  # noqa: RUF012
    _painted: dict[int, Strip] = {}  # noqa: RUF012  # lines as painted, counted with the border; without those that changed
    _outer: Size | None = None  # the outer size that they are for
    _border: _Border | None = None
    _cached_frame: _Frame | None = None

    def _compose_for(self, size: Size) -> None:
        self._outdated = False
        lines: tuple[Line, ...] = ()
        if size:
            head = (self._head(size.width),) if self._heads else ()
            lines = (*head, *self.compose_lines(*self.room))[: size.height]
        if size != self._size_of_lines:
            self._painted = {}
        self._lines, self._size_of_lines = lines, size

    def _head(self, width: int) -> Line:
        """Return the heading as the first line of the content, a blank from the left edge of the screen."""
        if self.gutter.left:
            return ends(self.heading(width), self.note(), width)
        return ends(((" ", "text"), *self.heading(width - 1)), self.note(), width)

    def _compose_border(self) -> _Border:
        (width, _), size, _, boxed, ruled = self._frame
        role: Role = "lit" if self._is_lit else "frame"
        top = top_line(self.heading(max(width - EDGES, 0)), self.note(), width, role, self.glyphs, boxed, ruled)
        thumb = self.thumb() if boxed or ruled else None
        foot = bottom_line(self.foot(), width, role, self.glyphs) if boxed else ()
        return _Border(top, foot, thumb.rows(size.height) if thumb else range(0), role)

    @property
    def _is_lit(self) -> bool:
        """Whether keys act on this widget."""
        if self.has_class("modal"):
            return True
        if self.has_focus or not self.LEADS:
            return self.has_focus
        return any(isinstance(ancestor, Widget) and ancestor.has_focus for ancestor in self.ancestors)

    def action_leave(self) -> None:
        """Return the focus to the pane that contains this widget."""
        self.screen.set_focus(next((w for w in self.ancestors if isinstance(w, Widget) and w.can_focus), None))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.wheel(event, 1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.wheel(event, -1)

    def wheel(self, event: MouseEvent, direction: int) -> None:
        """Handle a turn of the wheel, down (1) or up (-1)."""

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
        outer, size, gutter, _, _ = self._frame
        if self._size_of_lines != size:  # now: the Resize message would come a frame later
            self._compose_for(size)
        self._update()
        if self._outer != outer:
            self._outer, self._painted = outer, {}
            self._border = self._compose_border() if gutter.top else None
        for row in range(crop.y, crop.bottom):
            if row not in self._painted:
                self._painted[row] = self._paint(row)
        strips = [self._painted[row] for row in range(crop.y, crop.bottom)]
        return strips if crop.column_span == (0, outer.width) else [strip.crop(*crop.column_span) for strip in strips]

    def _paint(self, row: int) -> Strip:
        """Return a line of the content with its sides, or that of the border above or below it."""
        outer, size, gutter, _, ruled = self._frame
        border, y = self._border, row - gutter.top
        if border is not None and not 0 <= y < size.height:
            line = border.top if y < 0 else border.foot
        else:
            line = self._lines[y] if 0 <= y < len(self._lines) else ()
            if self._selected is not None:
                line = self._with_selection(line, y)
            left: Line = ((" " * gutter.left, "text"),)
            right: Line = ((" " * gutter.right, "text"),)
            if border is not None and border.foot:
                left = side(gutter.left, border.role, self.glyphs, False, at_left=True)
            if border is not None and (border.foot or ruled):
                right = side(gutter.right, border.role, self.glyphs, y in border.thumb)
            line = (*left, *(line or ((" " * size.width, "text"),)), *right)
        spans, styles = displayable(line) or ((" " * outer.width, "text"),), self._styles
        segments = [
            Segment(text, styles[role] if role in styles else self._style(role)) for text, role in spans if text
        ]
        return _Painted(segments, outer.width)

    # Selecting text with the mouse

    def selection_updated(self, selection: Selection | None) -> None:
        if selection != self._selected:
            self._selected = selection
            self._repaint()

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, without the blanks that fill its lines, and what separates it from the next."""
        texts: list[str] = []
        for y, line in enumerate(self._lines):
            span = selection.get_span(y)
            if span is not None:
                start, end = span
                text = "".join(text for text, _ in displayable(line))
                texts.append(text[start : None if end < 0 else end].rstrip())
        return "\n".join(texts), "\n"

    def render_line(self, y: int) -> Strip:
        """Return a line with the offsets of its characters; Textual asks for it where text is selected."""
        line = fitted(displayable(self._lines[y]) if 0 <= y < len(self._lines) else (), self.size.width)
        return Strip([Segment(text) for text, _ in line]).apply_offsets(0, y)

    def _with_selection(self, line: Line, y: int) -> Line:
        selected = self._selected.get_span(y) if self._selected is not None else None
        return line if selected is None else marked(line, *selected)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles, self._outer, self._cached_frame = {}, None, None

    def _style(self, role: Role) -> Style:
        """Return the style of a role in this theme; cached, because looking it up walks all ancestors."""
        if self.dimmed and role not in ("dim", *self.undimmed, *_NEVER_DIM):
            style = self._style("dim")
        else:
            variables = self.app.theme_variables  # pyright: ignore[reportUnknownMemberType]
            background = self.background_colors[1]
            style = _filtered(self, look(role, variables, background), background)
        self._styles[role] = style
        return style


def _filtered(widget: Widget, style: Style, background: Color) -> Style:
    """Return the style after the widget's line filters, such as the one for NO_COLOR."""
    segments = [Segment(" ", style)]
    for line_filter in widget.get_line_filters():
        segments = line_filter.apply(segments, background)
    return segments[0].style or style


class ChoosingLines(LinesWidget):
    """Shows lines of which a click chooses something: `choose` is called with it."""

    def __init__(self, choose: Callable[..., object]) -> None:
        super().__init__()
        self._choose = choose


class ScrolledLines(LinesWidget):
    """Shows the lines that `write` returns; if they do not fit, they scroll, and the last line says so."""

    INDENT: ClassVar[str] = ""  # before the line that counts those below

    top = 0
    _total = 0  # lines of the whole text

    def write(self, width: int, height: int) -> Sequence[Line]:
        """Return the whole text for a widget of this size."""
        raise NotImplementedError

    def scroll_by(self, lines: int) -> None:
        """Scroll down by `lines`; up if negative."""
        self.top = max(self.top + lines, 0)
        self.redraw()

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.scroll_by(3 * direction)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = self.write(width, height)
        self._total = len(lines)
        last_line = int(not self.boxed)  # counts the lines below; a border has room for that
        self.top = min(self.top, max(len(lines) - height + last_line, 0)) if len(lines) > height else 0
        shown = list(lines[self.top : self.top + height])
        if shown and last_line and self.top + height < len(lines):
            below = self.glyphs.say("{count} more lines (PgDn)", count=len(lines) - self.top - height + 1)
            shown[-1] = ((self.INDENT + below, "dim"),)
        return [fitted(line, width) for line in shown]

    def thumb(self) -> Thumb | None:
        return Thumb(self.top, self.room.height, self._total)

    @property
    def below(self) -> int:
        """The lines below those shown."""
        return max(self._total - self.top - self.room.height, 0)

    def foot(self) -> Line:
        below = self.below
        return ((self.glyphs.say("{below} more lines (PgDn)", below=below), "dim"),) if below else ()
