"""The saturation gauge: how far the logits of A and B spread, over the spread at which softmax saturates."""

from __future__ import annotations

from collections.abc import Sequence

from ..views.lines import Line
from ..views.plots.gauge import TITLE, gauge_lines, threshold_note
from ..views.results.table import Contents
from .lines import LinesWidget


class SaturationGauge(LinesWidget):
    """Shows a bar for each column of a measurement."""

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
