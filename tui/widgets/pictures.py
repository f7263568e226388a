"""Pictures of a measurement: its saturation and its histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.message import joined, message
from ...core.statistics.measurement import Column, HistogramName
from ..views.lines import Line, fitted
from ..views.page import picture_columns
from ..views.plots.histograms import LOWEST, TITLES, grid_lines, pair_names, pairs_at_once
from ..views.plots.lab_pictures import SATURATION, gauge_lines, gauge_note
from ..views.results.table import TableContents
from .lines import Content, LinesWidget

if TYPE_CHECKING:
    from ...core.statistics.histogram import Histogram


class SaturationGauge(LinesWidget):
    """Shows the saturation of each column of a measurement."""

    TITLE = SATURATION
    DEFAULT_CLASSES = "region"

    contents: Content[TableContents] = Content(TableContents(()))

    def note(self) -> Line:
        note = gauge_note(self.contents)
        return ((self.glyphs.say(note), "dim"),) if note else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return gauge_lines(self.contents, picture_columns(width), self.glyphs)[:height]


class Histograms(LinesWidget):
    """Shows the histograms of a measurement's columns; on small screens, in pages."""

    TITLE = "histograms"
    DEFAULT_CLASSES = "region"

    columns: Content[Sequence[Column]] = Content(())
    curves: Content[Sequence[Histogram | None]] = Content(())  # the exact laws of their scores, drawn over logits
    paged = True  # whether a key turns to pairs that do not fit
    first: Content[int] = Content(0)  # index of the first pair shown
    least = LOWEST  # lines of a pair
    most: int | None = None  # pairs shown; None: all, in pages
    reach: Content[float | None] = Content(None)  # which fixes the axis of logits
    earlier: Content[Sequence[Column]] = Content(())  # those on screen before the last keys

    def next_page(self) -> bool:
        """Show the next page, if there is one; return whether there is."""
        later = self._later(*self.size)
        if later:
            self.first = len(pair_names(self.columns)) - len(later)
        return bool(later)

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
