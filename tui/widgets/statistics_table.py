"""The live table of statistics, with a cursor; the row with the cursor is explained below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType

from ...core.message import message
from ...core.statistics.catalogue import Statistic
from ..views.lines import Line, Span, fitted
from ..views.results.table import (
    FIRST_GROUP,
    TableContents,
    TableRow,
    layout,
    rows_for,
    table_lines,
    table_rows,
)
from .lines import Content, LinesWidget


class StatisticsTable(LinesWidget, can_focus=True):
    """Shows the columns of a measurement; the cursor scrolls, and the last line counts the rows left.

    A click gives it the focus when it ends: with the focus other rows are shown, which would move under a drag.
    """

    FOCUS_ON_CLICK = False

    TITLE = "a row of attention"
    DEFAULT_CLASSES = "region"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "row up"),
        Binding("down,j", "move(1)", "row down"),
        Binding("pageup", "move(-8)", "page up"),
        Binding("pagedown", "move(8)", "page down"),
        Binding("escape", "leave", "back"),
    ]

    def __init__(self, described: Callable[[], object]) -> None:
        """Call `described` when the cursor is on another statistic, or the focus has changed."""
        super().__init__()
        self._described = described

    contents: Content[TableContents] = Content(TableContents(()))
    turn: Content[int] = Content(0)  # selects among values, ± and exact values if not all fit
    _cursor: Content[int] = Content(0)  # index among the rows that are statistics
    _top = 0
    _shown: Sequence[TableRow] = ()
    _left = 0  # rows that are not shown, without those that scrolling shows

    @property
    def statistic(self) -> Statistic | None:
        """The statistic with the cursor; None without focus."""
        chosen = [row for row in self._rows() if row.statistic] if self.has_focus else []
        return chosen[min(self._cursor, len(chosen) - 1)].statistic if chosen else None

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if not self.contents.columns:
            return ()
        rows, room = self._rows(), height - 1
        marked = self.statistic
        at = next((y for y, row in enumerate(rows) if row.statistic is marked), 0) if marked else 0
        last_top = max(len(rows) - room, 0)
        self._top = min(max(self._top, at - room + 2, 0), last_top)
        self._top = min(self._top, max(at - 1, 0)) if marked else self._top
        shown = self._shown = rows[self._top : self._top + room]
        self._left = len(self._left_out(rows))
        shape = layout(self.contents, width, self.turn)
        cut = self._top + len(shown) < len(rows)
        first = ("", "text") if cut else self._first(rows)
        lines = table_lines(shown, self.contents, shape, self.glyphs, first, marked)
        if cut and lines:
            last = rows[self._top + len(shown) - 1 :] if self.has_focus else self._left_out(shown[:-1])
            more = (
                message(" {count} more rows (down)", count=len(last))
                if self.has_focus
                else message(" {count} more rows (Tab, then down)", count=len(last))
            )
            lines[-1] = fitted(((self.glyphs.say(more), "dim"),), width)
        return lines

    def _first(self, rows: Sequence[TableRow]) -> Span:
        """Return the text over the labels: the first group's heading, or the number of hidden rows."""
        if any(row.is_heading and row.label for row in rows):
            return FIRST_GROUP
        left = 0 if self.gutter.top else self._left
        return (self.glyphs.say(" {left} hidden (Tab)", left=left), "dim") if left else ("", "text")

    def note(self) -> Line:
        left = self._left if self.contents.columns else 0
        return ((self.glyphs.say("{left} more rows: {key}", left=left, key="Tab"), "dim"),) if left else ()

    def _left_out(self, rows: Sequence[TableRow]) -> Sequence[object]:
        shown = {row.label for row in rows}
        return [row for row in table_rows(self.contents) if not row.is_heading and row.label not in shown]

    def action_move(self, step: Literal[-8, -1, 1, 8]) -> None:
        count = sum(row.statistic is not None for row in self._rows())
        self._cursor = min(max(self._cursor + step, 0), count - 1)
        self._described()

    def on_click(self, event: events.Click) -> None:
        """Select the row."""
        at = self.place_of(event).y - 1
        clicked = self._shown[at].statistic if 0 <= at < len(self._shown) else None
        self.focus()
        if clicked is not None:
            chosen = [row.statistic for row in self._rows(focused=True) if row.statistic]
            self._cursor = chosen.index(clicked)
            self._described()

    def select(self, statistic: Statistic) -> bool:
        """Put the cursor on a statistic, with the focus; return whether it has a row."""
        chosen = [row.statistic for row in self._rows(focused=True) if row.statistic]
        if statistic not in chosen:
            return False
        self._cursor = chosen.index(statistic)
        self.focus()
        self._described()
        return True

    def focus_changed(self) -> None:
        super().focus_changed()
        self._described()

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self._top = max(self._top + 3 * direction, 0)
        self.redraw()

    def _rows(self, focused: bool | None = None) -> list[TableRow]:
        """Return the rows that fit under the head line; with focus, all of them, which then scroll."""
        rows = rows_for(self.contents, self.size.height - 1)
        if (self.has_focus if focused is None else focused) and not any(row.label and row.is_heading for row in rows):
            return [row for row in table_rows(self.contents) if not row.is_heading]
        return rows
