"""The live table of statistics, with a cursor that asks what a row means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from ...core.statistics.catalogue import Statistic
from ...core.statistics.measurement import Column
from ..views.lines import Line, fitted
from ..views.table import ESSENTIAL, Row, head_line, row_line, table_rows
from .lines import LinesWidget


class StatisticsTable(LinesWidget, can_focus=True):
    """Shows the columns of a measurement; what does not fit is reached with the cursor, and the last line says so."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "row up", show=False),
        Binding("down,j", "move(1)", "row down", show=False),
        Binding("pageup", "move(-8)", "page up", show=False),
        Binding("pagedown", "move(8)", "page down", show=False),
        Binding("escape", "leave", "back", show=False),
    ]

    class Described(Message):
        """The cursor stands on this row; None when the table has lost the focus."""

        def __init__(self, statistic: Statistic | None) -> None:
            super().__init__()
            self.statistic = statistic

    columns: Sequence[Column] = ()
    _cursor = 0  # among the rows that are statistics
    _top = 0

    def show(self, columns: Sequence[Column]) -> None:
        """Show these columns."""
        self.columns = columns
        self.redraw()

    @property
    def statistic(self) -> Statistic | None:
        """The statistic that the cursor stands on, while the table has the focus."""
        chosen = [row for row in self._rows() if row.statistic]
        return chosen[min(self._cursor, len(chosen) - 1)].statistic if chosen and self.has_focus else None

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if not self.columns:
            return ()
        rows, room = self._rows(), height - 1
        marked = self.statistic
        at = next((y for y, row in enumerate(rows) if row.statistic is marked), 0) if marked else 0
        last_top = max(len(rows) - room, 0)
        self._top = min(max(self._top, at - room + 2, 0), last_top)
        self._top = min(self._top, max(at - 1, 0)) if marked else self._top
        shown = rows[self._top : self._top + room]
        lines = [head_line(self.columns, width, self.glyphs)]
        lines += [row_line(row, width, self.glyphs, row.statistic is marked and marked is not None) for row in shown]
        hidden = len(rows) - self._top - len(shown)
        if hidden > 0 and lines:
            more = f" {hidden + 1} more rows: Tab, then down; or v"
            lines[-1] = fitted(((self.glyphs.say(more), "dim"),), width)
        return lines

    def action_move(self, step: Literal[-8, -1, 1, 8]) -> None:
        count = sum(row.statistic is not None for row in self._rows())
        self._cursor = min(max(self._cursor + step, 0), count - 1)
        self.redraw()
        self.post_message(self.Described(self.statistic))

    def action_leave(self) -> None:
        self.leave()

    def on_focus(self) -> None:
        super().on_focus()
        self.post_message(self.Described(self.statistic))

    def on_blur(self) -> None:
        super().on_blur()
        self.post_message(self.Described(None))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(-3)

    def _scroll(self, rows: int) -> None:
        self._top = max(self._top + rows, 0)
        self.redraw()

    def _rows(self) -> list[Row]:
        """Every row under its heading, or, where those have no room, the telling ones."""
        everything = table_rows(self.columns)
        if self.size.height >= len(everything) + 1:
            return everything
        if self.size.height >= sum(row.statistic is not None for row in everything) + 1:
            return [row for row in everything if row.statistic]
        return table_rows(self.columns, ESSENTIAL) if not self.has_focus else [r for r in everything if r.statistic]
