"""The four pairs of histograms, as large as their room allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.statistics.measurement import Column
from ..views.histograms import grid_lines
from ..views.lines import Line
from .lines import LinesWidget

if TYPE_CHECKING:
    from ...core.lab.theory import ScoreCurve


class Histograms(LinesWidget):
    """Shows the histograms of a measurement's columns."""

    columns: Sequence[Column] = ()
    curve: ScoreCurve | None = None

    def show(self, columns: Sequence[Column], curve: ScoreCurve | None = None) -> None:
        """Show these columns, with the exact law of a score over the logits."""
        self.columns, self.curve = columns, curve
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return grid_lines(self.columns, width, height, self.glyphs, self.curve) if self.columns else ()
