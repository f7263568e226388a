"""Pictures of a measurement: its saturation and its histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.message import joined, message
from ...core.statistics.measurement import Column, HistogramName
from ..views.lines import Line, fitted
from ..views.plots.histograms import LOWEST, TITLES, grid_lines, pair_names, pairs_at_once
from ..views.results.saturation import TITLE, gauge_lines, gauge_note
from ..views.results.table import TableContents
from ..views.section import picture_columns
from .lines import LinesWidget

if TYPE_CHECKING:
    from ...core.statistics.histogram import Histogram


class SaturationGauge(LinesWidget):
    """Shows the saturation of each column of a measurement."""

    TITLE = TITLE
    DEFAULT_CLASSES = "region"

    contents = TableContents(())

    def show(self, contents: TableContents) -> None:
        """Show these columns and their theory."""
        self.contents = contents
        self.redraw()

    def note(self) -> Line:
        note = gauge_note(self.contents)
        return ((self.glyphs.say(note), "dim"),) if note else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return gauge_lines(self.contents, picture_columns(width), self.glyphs)[:height]


class Histograms(LinesWidget):
    """Shows the histograms of a measurement's columns; on small screens, in pages."""

    TITLE = "histograms"
    DEFAULT_CLASSES = "region"

    columns: Sequence[Column] = ()
    curves: Sequence[Histogram | None] = ()
    paged = True  # whether a key turns to pairs that do not fit
    first = 0  # index of the first pair shown
    least = LOWEST  # lines of a pair
    most: int | None = None  # pairs shown; None: all, in pages
    reach: float | None = None  # which fixes the axis of logits
    earlier: Sequence[Column] = ()  # those on screen before the last keys

    def show(
        self,
        columns: Sequence[Column],
        curves: Sequence[Histogram | None] = (),
        reach: float | None = None,
        earlier: Sequence[Column] = (),
    ) -> None:
        """Show these columns, with the exact laws of their scores over logits, whose axis `reach` fixes."""
        self.columns, self.curves, self.reach, self.earlier = columns, curves, reach, earlier
        self.redraw()

    def next_page(self) -> bool:
        """Show the next page, if there is one; return whether there is."""
        later = self._later(*self.size)
        if later:
            self.first += len(pair_names(self.columns)) - self.first - len(later)
            self.redraw()
        return bool(later)

    def first_page(self) -> None:
        """Show the first page."""
        self.first = 0
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if not self.columns or not pair_names(self.columns):
            return ()
        lines = grid_lines(
            self.columns, width, height, self.glyphs, self.curves, self.first, self.least, self.reach, self.most,
            self.earlier,
        )  # fmt: skip
        later = self._later(width, height)
        if later and self.paged and len(lines) < height:
            names = joined([TITLES[name] for name in later], ", ")
            forms = message("v: {names}", names=names), message("v: {count} more histograms", count=len(later))
            said = self.glyphs.fitting(forms, width)
            lines += [fitted((), width)] * (height - len(lines) - 1) + [fitted(((said, "dim"),), width)]
        return lines

    def _later(self, width: int, height: int) -> list[HistogramName]:
        """Return the histograms after the current page."""
        names = pair_names(self.columns) if self.most is None else list[HistogramName](TITLES)
        shown = pairs_at_once(len(names[: self.most]), width, height, self.least)
        return names[self.first + shown :]
