"""The four pairs of histograms, as large as their room allows."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.statistics.measurement import Column
from ..views.histograms import grid_lines
from ..views.lines import Line
from .lines import LinesWidget


class Histograms(LinesWidget):
    """Shows the histograms of a measurement's columns."""

    columns: Sequence[Column] = ()

    def show(self, columns: Sequence[Column]) -> None:
        """Show these columns."""
        self.columns = columns
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return grid_lines(self.columns, width, height, self.glyphs) if self.columns else ()
