"""A measurement on screen: the table with a cursor, a paragraph that sums it up, and the histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.widget import Widget

from ...core.message import message
from ...core.statistics.catalogue import STATISTICS, Statistic
from ...core.statistics.measurement import Column
from ..views.glyphs import Glyphs
from ..views.lines import Line, Span, fitted, wrapped
from ..views.plots.histograms import LOWEST
from ..views.results.sentence import row_words, sentence
from ..views.results.table import (
    ESSENTIAL,
    FIRST_GROUP,
    TableContents,
    TableRow,
    layout,
    rows_for,
    table_lines,
    table_rows,
)
from .bars import Paragraph
from .lines import Content, LinesWidget
from .pictures import Histograms
from .placed import Stack

if TYPE_CHECKING:
    from ...core.statistics.histogram import Histogram


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


View: TypeAlias = Literal["both", "table", "histograms"]

_SHORT = len(ESSENTIAL) + 3  # lines of the essential rows, the status, the saturation gauge and the head line
_SHOWN = [statistic.group for statistic in STATISTICS if not statistic.exported_only]
_WHOLE = len(_SHOWN) + len({*_SHOWN}) + 1
_LOW = 16  # lines below which the paragraph has two lines
_NARROW = 86  # cells below which the paragraph has three lines or more
_COMFORTABLE = 12  # lines of two rows of histograms with bars two lines high


class Results(Stack):
    """Shows the columns of a measurement; part of the Lab and of the Capture pane."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.table = StatisticsTable(self._say)
        self.words = Paragraph()
        self.histograms = Histograms()
        self.view: View = "both"
        self._contents = TableContents(())
        self._remark = ""
        self._sentence = ""  # the last one shown
        self._stale = False
        self._arranged: object = None  # what the heights of the parts depend on, when they were last set

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.words
        yield self.histograms

    @property
    def why_stale(self) -> str:
        """Why the numbers on screen are not current; empty if they are."""
        return self._remark if self._stale else ""

    def show(
        self,
        contents: TableContents,
        remark: str = "",
        curves: Sequence[Histogram | None] = (),
        earlier: Sequence[Column] = (),
    ) -> None:
        """Show a current measurement; the remark goes before the sentence that sums it up.

        Dots over the histogram of logits show those of `earlier` columns.
        """
        self._contents, self._remark = contents, remark
        self._mark(stale=False)
        self.table.contents, self.histograms.columns = contents, contents.columns
        self.histograms.curves, self.histograms.earlier = curves, earlier
        self._say()

    def show_stale(self, reason: str) -> None:
        """Dim the numbers on screen, because they are not current, and show the reason."""
        self._remark = reason
        self._mark(stale=True)
        self.rearrange()
        self._say()

    def next_view(self) -> bool:
        """Turn to the next of both, table and histograms; return True after the last one."""
        if self.shown == "histograms" and self.histograms.next_page():
            return False
        views = self.views(self.size)
        at = (views.index(self.shown) + 1) % len(views)
        self.turn(views[at] if at else "both")
        return at == 0

    def first_view(self) -> None:
        """Turn to the first view."""
        self.turn("both")

    def explain(self, statistic: Statistic) -> bool:
        """Put the cursor of the table on a statistic; return whether it has a row."""
        if self.shown == "histograms":
            self.turn("table")
        return self.table.select(statistic)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self.shown == "histograms":  # the focused table must be visible
            self.turn("table")

    def turn(self, view: View) -> None:
        """Turn to a view."""
        self.view = view
        self.histograms.first = 0
        if view == "histograms" and self.table.has_focus:
            self.table.action_leave()
        self.rearrange()
        self._say()

    @property
    def shown(self) -> View:
        """The view on screen."""
        return self.shown_in(self.size)

    @property
    def _least_table(self) -> int:
        return _SHORT + self.table.gutter.height

    def shown_in(self, size: Size) -> View:
        """Return the chosen view if it fits, otherwise the table."""
        return self.view if self.view in self.views(size) else "table"

    def views(self, size: Size) -> Sequence[View]:
        """Return the views that fit in this size."""
        width, height = size
        if height >= self._least_table + self.lines_of_words(width) + LOWEST + self.histograms.gutter.height:
            return "both", "table", "histograms"
        return "table", "histograms"

    def on_resize(self) -> None:
        self.rearrange()
        self._say()  # the explanation of a row depends on the width

    def _mark(self, stale: bool) -> None:
        if stale == self._stale:
            return
        self._stale = stale
        self.rearrange()
        for widget in self.children:
            if isinstance(widget, LinesWidget) and widget is not self.words:
                widget.dim(stale)

    def _say(self) -> None:
        """Update the paragraph: an error message, the explanation of a row, or the summary."""
        statistic = self.table.statistic
        if self._stale:
            self.words.show(self.glyphs.say(self._remark), "alert")
        elif statistic is not None:
            narrow = bool(layout(self._contents, self.size.width).alone)
            self.words.show(row_words(statistic, self._contents, self.glyphs, narrow))
        elif self._contents.columns:
            self._sentence = self.glyphs.say(self._remark) + sentence(self._contents, self.glyphs)
            self.words.show(self._sentence)
            self.rearrange()  # a longer sentence needs a line more

    def rearrange(self) -> None:
        """Lay the parts out again if their heights change."""
        size, stale = self.size, self._remark if self._stale else None
        state = size, self.view, self.lines_of_words(size.width), stale
        if state == self._arranged:
            return
        self._arranged = state
        if any(part.outer_size.height != lines for part, lines in self.heights(self.size)):
            self.words.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        """Return each part with its height: the table leaves room for histograms, but keeps its essential rows."""
        width, height = size
        words, shown = self.lines_of_words(width), self.shown_in(size)
        if height < _LOW:
            words = min(words, 2)
        if self._stale:  # the whole reason is shown, at the cost of the histograms
            words = max(words, len(wrapped(self.glyphs.say(self._remark), width - 1)))
        elif shown == "histograms" and height < words + 2 * LOWEST + 1:
            words = 0
        if shown == "both":
            comfortable = _COMFORTABLE + self.histograms.gutter.height
            table = min(max(height - words - comfortable, self._least_table), _WHOLE + self.table.gutter.height)
        else:
            table = height - words if shown == "table" else 0
        table = max(min(table, height), 0)
        histograms = max(height - table - words, 0)
        return (self.table, table), (self.words, words), (self.histograms, histograms)

    def lines_of_words(self, width: int) -> int:
        """Return the lines reserved for the paragraph: those of most sentences, or a third for a longer one."""
        if width < _NARROW:
            return 4 if width < 48 else 3
        return min(max(len(wrapped(self._sentence, width - 1)), 2), 3)
