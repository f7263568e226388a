"""A measurement on screen: the table, a paragraph that sums it up, and the histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget

from ...core.statistics.catalogue import STATISTICS, Statistic
from ...core.statistics.measurement import Column, RowWeights
from ..views.glyphs import Glyphs
from ..views.lines import wrapped
from ..views.plots.histograms import LOWEST
from ..views.results.sentence import row_words, sentence
from ..views.results.table import ESSENTIAL, EXPORTED_ONLY, SPACED, TableContents, layout
from .bars import Paragraph
from .pictures import EntropyCurve, Histograms, QueryWeights, SaturationGauge
from .placed import Stack
from .statistics_table import StatisticsTable

if TYPE_CHECKING:
    from ...core.statistics.histogram import Histogram

View: TypeAlias = Literal["both", "table", "histograms"]

_SHORT = len(ESSENTIAL) + 3  # lines of the essential rows, the status, the saturation gauge and the head line
_WHOLE = len(STATISTICS) - len(EXPORTED_ONLY) + len({statistic.group for statistic in STATISTICS}) + 1
_LEAST_LEADING = 3 + 1  # lines of the fewest leading rows below the pictures, and the head line
_USUAL_LEADING = 6 + 1
_SPACED = SPACED + 1  # lines of all leading rows with blank ones between groups, and the head line
_SPACIOUS = 54  # lines from which all leading rows are shown
_PAIRS = 86  # cells from which the histogram of weights stands beside that of logits
_CURVED = 118  # cells from which entropy over d_k stands beside the weights and the gauge
_CURVE = 0.36  # its share of them
_TALL = 8  # lines of a pair of histograms: bars of three lines for each column
_AXIS = 26  # lines below which the gauge has no axis
_LOW = 16  # lines below which there is no advice
_NARROW = 86  # cells below which the paragraph has three lines or more
_ADVICE = 84  # cells from which advice fits in a line
_COMFORTABLE = 12  # lines of two rows of histograms with bars two lines high


class Results(Stack):
    """Shows the columns of a measurement; part of the Lab and of the Capture pane."""

    def __init__(self, glyphs: Glyphs, leading: bool = False) -> None:
        """Show a measurement; with `leading`, pictures come first, and the table has the leading rows only."""
        super().__init__()
        self.glyphs = glyphs
        self.leading = leading
        self.gauge = SaturationGauge()
        self.weights = QueryWeights()
        self.entropy = EntropyCurve()
        self.table = StatisticsTable(self._say)
        self.words = Paragraph()
        self.advice = Paragraph()
        self.histograms = Histograms()
        self.view: View = "both"
        self.table.leading = leading
        # Columns that the table leaves free at its left, and lines for what stands there.
        self.beside: tuple[int, int] = (0, 0)
        self._contents = TableContents(())
        self._remark = ""
        self._sentence = ""  # the last one shown
        self._stale = False
        # Whether more than the leading rows and the first histograms is on screen, since `Turned` was posted last.
        self.shows_all = False
        self._arranged: object = None  # what the heights of the parts depend on, when they were last set

    def compose(self) -> ComposeResult:
        if self.leading:
            yield self.weights
            yield self.gauge
            yield self.entropy
        yield self.table
        yield self.words
        if self.leading:
            yield self.advice
        yield self.histograms

    class Turned(Message):
        """The view shows everything now, or no longer."""

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        right = round(_CURVE * size.width) if self.shows_entropy(size) else 0
        for part, region in super().regions(size):
            left = self.beside[0] if part is self.table else 0
            narrower = right if part is self.weights or part is self.gauge else 0
            if part is self.weights and right:
                height = region.height + self._gauge(size.height)
                yield self.entropy, Region(size.width - right, region.y, right, height)
            yield part, Region(left, region.y, region.width - left - narrower, region.height)

    def shows_entropy(self, size: Size) -> bool:
        """Whether entropy over d_k has room in this size, beside the weights."""
        return size.width >= _CURVED and size.height >= _AXIS and self._weights > 0 and self._shown(size) == "both"

    @property
    def why_stale(self) -> str:
        """Why the numbers on screen are not current; empty if they are."""
        return self._remark if self._stale else ""

    def show(
        self,
        contents: TableContents,
        remark: str = "",
        curves: Sequence[Histogram | None] = (),
        advice: str = "",
        row: Sequence[RowWeights] = (),
        earlier: Sequence[Column] = (),
    ) -> None:
        """Show a current measurement; the remark goes before the sentence that sums it up, the advice after it.

        Dots over the histogram of logits show those of `earlier` columns.
        """
        self._contents, self._remark = contents, remark
        self._mark(stale=False)
        self.gauge.show(contents)
        self.weights.show(contents.columns, row)
        self.table.show(contents)
        self.advice.show(advice, "accent")
        known = [column.saturation.reach for column in contents.theory if column.saturation]
        reach = max(known) if self.leading and len(known) == len(contents.columns) else None
        self.histograms.show(contents.columns, curves, reach, earlier)
        self._say()

    def show_stale(self, reason: str) -> None:
        """Dim the numbers on screen, because they are not current, and show the reason."""
        self._remark = reason
        self._mark(stale=True)
        self._arrange()
        self._say()

    def next_view(self) -> bool:
        """Turn to the next of both, table and histograms; return True after the last one."""
        if self.shown == "histograms" and self.histograms.next_page():
            return False
        views = self._views(self.size)
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
        self._arrange()  # which is larger with the focus

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        self._arrange()

    def turn(self, view: View) -> None:
        """Turn to a view."""
        self.view = view
        self.histograms.first_page()
        if view == "histograms" and self.table.has_focus:
            self.table.action_leave()
        self._arrange()
        self._say()

    @property
    def shown(self) -> View:
        """The view on screen."""
        return self._shown(self.size)

    @property
    def _least_table(self) -> int:
        return (_LEAST_LEADING if self.leading else _SHORT) + self.table.gutter.height

    def _shown(self, size: Size) -> View:
        """Return the chosen view if it fits, otherwise the table."""
        return self.view if self.view in self._views(size) else "table"

    def _views(self, size: Size) -> Sequence[View]:
        """Return the views that fit in this size."""
        width, height = size
        above = self._gauge(height) + self._weights + self._advice(size)
        if height >= above + self._least_table + self._words(width) + LOWEST + self.histograms.gutter.height:
            return "both", "table", "histograms"
        return "table", "histograms"

    def on_resize(self) -> None:
        self._lead()
        self._say()  # the explanation of a row depends on the width

    def _mark(self, stale: bool) -> None:
        if stale == self._stale:
            return
        self._stale = stale
        self._arrange()
        for widget in (self.weights, self.gauge, self.entropy, self.table, self.advice, self.histograms):
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
            self._arrange()  # a longer sentence needs a line more

    def _arrange(self) -> None:
        """Lay the parts out again if their heights change."""
        size, stale = self.size, self._remark if self._stale else None
        state = size, self.view, self._words(size.width), self._weights, stale, self.table.has_focus
        if state == self._arranged:
            return
        self._arranged = state
        self._lead()
        if any(part.outer_size.height != lines for part, lines in self.heights(self.size)):
            self.words.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again
            if self.leading:
                self.refresh(layout=True)  # what stands beside the table moves with it

    def _lead(self) -> None:
        """Show the leading rows, and fewer but larger histograms, if both are on screen."""
        leading = self.leading and self.shown == "both"
        shows_all = bool(self.size) and not (leading and not self.table.has_focus)
        if shows_all != self.shows_all:
            self.shows_all = shows_all
            self.post_message(self.Turned())
        if leading != self.table.leading:
            self.table.leading = leading
            self.table.redraw()
        least = _TALL if leading else LOWEST
        most = (1 if self.size.width < _PAIRS else 2) if leading else None
        if (least, most) != (self.histograms.least, self.histograms.most):
            self.histograms.least, self.histograms.most = least, most
            self.histograms.redraw()

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        """Return each part with its height: the table leaves room for histograms, but keeps its essential rows."""
        width, height = size
        words, shown = self._words(width), self._shown(size)
        gauge, advice = self._gauge(height), self._advice(size)
        weights = self._weights if shown == "both" else 0
        if height < _LOW:
            words = min(words, 2)
        height -= gauge + weights + advice
        if self._stale:  # the whole reason is shown, at the cost of the histograms
            words = max(words, len(wrapped(self.glyphs.say(self._remark), width - 1)))
        elif shown == "histograms" and height < words + 2 * LOWEST + 1:
            words = 0
        if shown == "both" and self.leading:
            table = self._leading_table(size.height, height - words)
        elif shown == "both":
            comfortable = _COMFORTABLE + self.histograms.gutter.height
            table = min(max(height - words - comfortable, self._least_table), _WHOLE + self.table.gutter.height)
        else:
            table = height - words if shown == "table" else 0
        table = max(min(table, height), 0)
        histograms = max(height - table - words, 0)
        if not self.leading:
            return (self.table, table), (self.words, words), (self.histograms, histograms)
        return (
            (self.histograms, histograms), (self.weights, weights), (self.gauge, gauge), (self.table, table),
            (self.words, words), (self.advice, advice),
        )  # fmt: skip

    def _words(self, width: int) -> int:
        """Return the lines reserved for the paragraph: those of most sentences, or a third for a longer one."""
        if width < _NARROW:
            return 4 if width < 48 else 3
        return min(max(len(wrapped(self._sentence, width - 1)), 2), 3)

    def _gauge(self, height: int) -> int:
        """Return the lines of the gauge: without its axis on a low screen."""
        if not self.leading:
            return 0
        return (2 if height < _AXIS else 3) + self.gauge.gutter.height

    @property
    def _weights(self) -> int:
        """The lines of the weights of a query."""
        return 2 + self.weights.gutter.height if self.leading and self.weights.row else 0

    def _advice(self, size: Size) -> int:
        """Return the lines of the advice."""
        if not self.leading or size.height < _LOW:
            return 0
        return 1 if size.width >= _ADVICE else 2

    def _leading_table(self, whole: int, room: int) -> int:
        """Return the lines of the table that leaves a pair of histograms its height."""
        gutter = self.table.gutter.height
        rest = room - gutter - LOWEST - self.histograms.gutter.height
        wanted = _WHOLE if self.table.has_focus else _SPACED if whole >= _SPACIOUS else _USUAL_LEADING
        return max(min(max(wanted, self.beside[1]), rest), _LEAST_LEADING) + gutter
