"""The results of the Lab: its page; the table of all numbers, below the headline or beside the page; histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget

from ...views.results.lab_page import HEADLINE, LabPage, page_lines
from ...views.results.table import TableContents
from ...widgets.lines import LinesWidget
from ...widgets.results import Results, View

if TYPE_CHECKING:
    from ....core.statistics.catalogue import Statistic
    from ....core.statistics.histogram import Histogram
    from ....core.statistics.measurement import Column
    from ...views.glyphs import Glyphs
    from ...views.lines import Line

_TABLE = 88  # cells of the table beside the page
_BESIDE = 166  # cells from which it stands there
_HEADED = 20  # lines from which the headline stands above the other views


class PageLines(LinesWidget):
    """Shows the page of the Lab."""

    undimmed = ("accent", "alert")
    page: LabPage | None = None

    class Resized(Message):
        """Another part of the page has room."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def show(self, page: LabPage) -> None:
        """Show this page."""
        if page != self.page:
            self.page = page
            self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return () if self.page is None else page_lines(self.page, width, height, self.glyphs)


class LabResults(Results):
    """Shows a measurement of the Lab: `both` is its page."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.page = PageLines()
        super().__init__(glyphs)

    def compose(self) -> ComposeResult:
        yield self.page
        yield from super().compose()

    class Turned(Message):
        """The view shows everything now, or no longer."""

    shows_all = False  # whether more than the page is on screen, since `Turned` was posted last

    def show(
        self,
        contents: TableContents,
        remark: str = "",
        curves: Sequence[Histogram | None] = (),
        earlier: Sequence[Column] = (),
    ) -> None:
        super().show(contents, remark, curves, earlier)
        known = [column.saturation.reach for column in contents.theory if column.saturation]
        self.histograms.reach = max(known) if len(known) == len(contents.columns) else None

    @property
    def shows_d_k(self) -> bool:
        """Whether the headline is on screen."""
        return self.shown == "both" or self.size.height >= _HEADED

    def views(self, size: Size) -> Sequence[View]:
        return "both", "table", "histograms"

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        if size.width < _BESIDE or size.height < _HEADED or self.shown_in(size) != "table":
            return super().regions(size)
        left = size.width - _TABLE
        words = self.lines_of_words(_TABLE) if self.table.has_focus else 0  # the page has the sentence
        return (
            (self.page, Region(0, 0, left, size.height)),
            (self.table, Region(left, 0, _TABLE, size.height - words)),
            (self.words, Region(left, size.height - words, _TABLE, words)),
        )

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        shown = self.shown_in(size)
        if shown == "both":
            return ((self.page, size.height),)
        head = HEADLINE if size.height >= _HEADED else 0
        below = Size(size.width, size.height - head)
        return ((self.page, head), *super().heights(below))

    def explain(self, statistic: Statistic) -> bool:
        if self.shown != "table":
            self.turn("table")
        return super().explain(statistic)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self.shown != "table":  # the focused table must be visible
            self.turn("table")
        self.words.refresh(layout=True)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        self.words.refresh(layout=True)

    def rearrange(self) -> None:
        super().rearrange()
        shows_all = bool(self.size) and self.shown != "both"
        if shows_all != self.shows_all:
            self.shows_all = shows_all
            self.post_message(self.Turned())
