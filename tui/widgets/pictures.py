"""Pictures of a measurement: its saturation, and the weights of one query."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.message import message
from ...core.statistics.measurement import Column, RowWeights
from ..views.lines import Line
from ..views.plots.gauge import TITLE, gauge_lines, threshold_note
from ..views.plots.weights import TITLE as WEIGHTS
from ..views.plots.weights import weight_lines
from ..views.results.table import Contents
from .lines import LinesWidget


class SaturationGauge(LinesWidget):
    """Shows the saturation of each column of a measurement."""

    TITLE = TITLE
    DEFAULT_CLASSES = "region"

    contents = Contents(())

    def show(self, contents: Contents) -> None:
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
