"""A measurement on screen: the table, a paragraph that sums it up, and the histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget

from ...core.statistics.catalogue import STATISTICS, Statistic
from ...core.statistics.measurement import Column
from ..views.glyphs import Glyphs
from ..views.lines import wrapped
from ..views.plots.histograms import LOWEST
from ..views.results.sentence import row_words, sentence
from ..views.results.table import ESSENTIAL, EXPORTED_ONLY, TableContents, layout
from .bars import Paragraph
from .lines import LinesWidget
from .pictures import Histograms
from .placed import Stack
from .statistics_table import StatisticsTable

if TYPE_CHECKING:
    from ...core.statistics.histogram import Histogram

View: TypeAlias = Literal["both", "table", "histograms"]

_SHORT = len(ESSENTIAL) + 3  # lines of the essential rows, the status, the saturation gauge and the head line
_WHOLE = len(STATISTICS) - len(EXPORTED_ONLY) + len({statistic.group for statistic in STATISTICS}) + 1
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
