"""Pictures of a measurement: its saturation, the weights of one query, entropy over d_k, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from ...core.message import joined, message
from ...core.statistics.measurement import Column, HistogramName, RowWeights
from ..views.lines import Line, fitted
from ..views.plots.entropy_curve import TITLE as ENTROPY
from ..views.plots.entropy_curve import Curve, entropy_lines
from ..views.plots.gauge import TITLE, gauge_lines, threshold_note
from ..views.plots.histograms import LOWEST, TITLES, grid_lines, pair_names, pairs_at_once
from ..views.plots.weights import TITLE as WEIGHTS
from ..views.plots.weights import weight_lines
from ..views.results.table import TableContents
from .lines import LinesWidget

if TYPE_CHECKING:
    from ...core.parameters import Parameters
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
        known = [column.saturation.threshold for column in self.contents.theory if column.saturation]
        return ((threshold_note(known[0] if len({*known}) == 1 else None, self.glyphs), "dim"),)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return gauge_lines(self.contents, width, height, self.glyphs)


class QueryWeights(LinesWidget):
    """Shows how one query divides its attention among the keys, under each column."""

    TITLE = WEIGHTS
    DEFAULT_CLASSES = "region"

    columns: Sequence[Column] = ()
    row: Sequence[RowWeights] = ()

    def show(self, columns: Sequence[Column], row: Sequence[RowWeights]) -> None:
        """Show the weights of a query under these columns; none are known if `row` is empty."""
        self.columns, self.row = columns, row
        self.redraw()

    def note(self) -> Line:
        keys = {weights.keys for weights in self.row}
        return ((self.glyphs.say(message("{keys} keys", keys=keys.pop())), "dim"),) if len(keys) == 1 else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return weight_lines(self.row, self.columns, width, self.glyphs)[:height] if self.row else ()


class EntropyCurve(LinesWidget):
    """Shows the exact entropy over d_k, with a cursor at the d_k of the measurement."""

    TITLE = ENTROPY
    DEFAULT_CLASSES = "region"

    columns: Sequence[Column] = ()
    parameters: Parameters | None = None
    curves: tuple[Curve, ...] = ()

    class Placed(Message):
        """It has a place, or another one."""

    def on_resize(self) -> None:
        self.post_message(self.Placed())

    def show(self, parameters: Parameters, columns: Sequence[Column], curves: tuple[Curve, ...]) -> None:
        """Show these curves, and the measurement of these parameters."""
        self.parameters, self.columns, self.curves = parameters, columns, curves
        self.redraw()

    def note(self) -> Line:
        return ((self.glyphs.say(message("0 to ln n")), "dim"),)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.parameters is None or not self.curves:
            return ()
        return entropy_lines(self.curves, self.columns, self.parameters, width, height, self.glyphs)


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
