"""A measurement on screen: the table, a paragraph on what it means, the histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from ...core.statistics.catalogue import STATISTICS
from ..views.glyphs import Glyphs
from ..views.histograms import LOWEST
from ..views.lines import wrapped
from ..views.sentence import row_words, sentence
from ..views.table import ESSENTIAL, Contents, layout
from .bars import Paragraph
from .ground import Ground
from .histograms import Histograms
from .statistics_table import StatisticsTable

if TYPE_CHECKING:
    from ...core.lab.prediction import ScoreCurve

View: TypeAlias = Literal["both", "table", "histograms"]

_SHORT = (
    len(ESSENTIAL) + 2
)  # lines of the rows that a small screen shows, with the gauge of freezing and the head line
_WHOLE = len(STATISTICS) + len({statistic.group for statistic in STATISTICS}) + 1
_AT_EASE = 12  # of two rows of histograms, their bars two lines high


class Results(Ground):
    """Shows columns; both panes that measure something hold one of these."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.table = StatisticsTable()
        self.words = Paragraph()
        self.histograms = Histograms()
        self.view: View = "both"
        self._contents = Contents(())
        self._meaning = self._contents, ""  # what was put in words last, and these
        self._remark = ""
        self._stale = False

    @property
    def layout(self) -> Layout:
        return _STACK

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.words
        yield self.histograms

    @property
    def why_stale(self) -> str:
        """Why what is on screen is not what is asked for; empty where it is."""
        return self._remark if self._stale else ""

    def show(self, contents: Contents, remark: str = "", curve: ScoreCurve | None = None) -> None:
        """Show this as current; the remark goes before the sentence on what it means."""
        self._contents, self._remark = contents, remark
        self._mark(stale=False)
        self.table.show(contents)
        self.histograms.show(contents.columns, curve)
        self._say()

    def rehearse(self, contents: Contents, curve: ScoreCurve | None) -> None:
        """This is likely to be shown next."""
        self.table.rehearse(contents=contents)
        self.words.rehearse(text=self._in_words(contents), role="text")
        self.histograms.rehearse(columns=contents.columns, curve=curve)

    def show_stale(self, reason: str) -> None:
        """What is on screen is not what is asked for: it stands back, and the reason stands under it."""
        self._remark = reason
        self._mark(stale=True)
        self._arrange()
        self._say()

    def next_view(self) -> bool:
        """Table and histograms, or one of them in all the room there is; True once all have been shown."""
        if self.shown == "histograms" and self.histograms.next_page():
            return False
        views = self._views(self.size)
        at = (views.index(self.shown) + 1) % len(views)
        self._turn(views[at] if at else "both")
        return at == 0

    def first_view(self) -> None:
        """What is shown first."""
        self._turn("both")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self.shown == "histograms":  # what has the focus is to be seen
            self._turn("table")

    def _turn(self, view: View) -> None:
        self.view = view
        self.histograms.first_page()
        if view == "histograms" and self.table.has_focus:
            self.table.leave()
        self._arrange()
        self._say()

    @property
    def shown(self) -> View:
        """The view on screen."""
        return self._shown(self.size)

    def _shown(self, size: Size) -> View:
        """The view that has room, in place of the one that is wanted."""
        return self.view if self.view in self._views(size) else "table"

    def _views(self, size: Size) -> Sequence[View]:
        """The views that this size has room for."""
        width, height = size
        if height >= _SHORT + _words(width) + LOWEST:
            return "both", "table", "histograms"
        return "table", "histograms"

    def on_resize(self) -> None:
        self._say()  # how much it says of a row depends on the width

    def on_statistics_table_described(self, event: StatisticsTable.Described) -> None:
        event.stop()
        self._say()

    def _mark(self, stale: bool) -> None:
        if stale == self._stale:
            return
        self._stale = stale
        self._arrange()
        for widget in (self.table, self.histograms):
            widget.stand_back(stale)

    def _say(self) -> None:
        """Under the table: an objection, what the row with the cursor is, or what the numbers mean."""
        statistic = self.table.statistic
        if self._stale:
            self.words.show(self.glyphs.say(self._remark), "alert")
        elif statistic is not None:
            narrow = bool(layout(self._contents, self.size.width).alone)
            self.words.show(row_words(statistic, self._contents, self.glyphs, narrow))
        elif self._contents.columns:
            self.words.show(self._remark + self._in_words(self._contents))

    def _in_words(self, contents: Contents) -> str:
        if contents != self._meaning[0]:
            self._meaning = contents, sentence(contents, self.glyphs)
        return self._meaning[1]

    def _arrange(self) -> None:
        """Lay the parts out again if they are to be of other heights."""
        if any(part.size.height != lines for part, lines in self.heights(self.size)):
            self.words.refresh(layout=True)  # one of the parts: only that makes their parent arrange them again

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        """Each part with its lines: the table as far as it leaves histograms at ease, its telling rows always."""
        width, height = size
        words, shown = _words(width), self._shown(size)
        if self._stale:  # a reason is shown to its end, at the cost of the histograms
            words = max(words, len(wrapped(self.glyphs.say(self._remark), width - 1)))
        elif shown == "histograms" and height < words + 2 * LOWEST + 1:
            words = 0
        if shown == "both":
            table = min(max(height - words - _AT_EASE, _SHORT), _WHOLE)
        else:
            table = height - words if shown == "table" else 0
        table = max(min(table, height), 0)
        return (self.table, table), (self.words, words), (self.histograms, max(height - table - words, 0))


def _words(width: int) -> int:
    """Lines that the sentence under a table takes."""
    return 4 if width < 48 else 3 if width < 72 else 2


class _Stack(Layout):
    """Places the parts of Results. Heights in their styles, set when Results has its size, take a second layout."""

    name = "stack"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> list[WidgetPlacement]:
        assert isinstance(parent, Results)
        placements: list[WidgetPlacement] = []
        y = 0
        for part, lines in parent.heights(size):
            if part in children:
                placements.append(WidgetPlacement(Region(0, y, size.width, lines), NULL_OFFSET, Spacing(), part))
                y += lines
        return placements


_STACK = _Stack()
