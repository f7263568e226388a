"""The widgets of the Sweep pane: the plot with its cursor, and the table of landmarks."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from ....core.model_widths import landmarks
from ....core.parameters import Parameters
from ....core.statistics.catalogue import STATISTIC, Statistic
from ...views.border import EDGES
from ...views.lines import Line, line_width
from ...views.plots.plot import Drawing, draw, with_cursor
from ...views.results.table import Contents
from ...widgets.lines import LinesWidget
from .view import LOGARITHMIC, Swept, facts_line, points_of, reading_lines, sweep_plot, title_line
from .width_table import landmark_lines, rows_in

_ABOVE = 2  # lines above the plot: the values at the cursor


class Chosen(Message):
    """A d_k was clicked."""

    def __init__(self, d_k: int) -> None:
        super().__init__()
        self.d_k = d_k


class SweepPlot(LinesWidget):
    """Shows a statistic over d_k."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    swept = Swept(Parameters())
    statistic: Statistic = STATISTIC["entropy"]
    cursor = 64  # a d_k
    reading: tuple[Parameters, Contents | None] = (Parameters(), None)  # the result at the cursor
    other_axis: frozenset[str] = frozenset()  # statistics whose axis is not their default

    _drawing: Drawing | None = None
    _drawn: object = None  # what `_drawing` depends on

    @property
    def logarithmic(self) -> bool:
        """Whether the axis of the statistic is logarithmic."""
        return (self.statistic.name in LOGARITHMIC) != (self.statistic.name in self.other_axis)

    def heading(self, width: int) -> Line:
        return title_line(self.statistic, self.logarithmic, self.glyphs)

    def note(self) -> Line:
        title, room = self.heading(0), self.outer_size.width - EDGES - 3
        return facts_line(self.swept, room - line_width(title), self.glyphs)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        d_k, here = self.reading[0].d_k, self.reading[1]
        lines = reading_lines(self.reading[0], here, self.statistic, width, self.glyphs)
        drawing = self._draw(width, height - _ABOVE)
        if drawing is None:
            return lines
        points = points_of(here, d_k, self.statistic) if here and d_k == self.cursor else ()
        extra = [(series, p) for series, p in zip(drawing.at.plot.series, points, strict=False) if p is not None]
        return [*lines, *with_cursor(drawing, self.cursor, extra, self.glyphs)]

    def _draw(self, width: int, height: int) -> Drawing | None:
        """Return the plot without the cursor, so that moving the cursor does not draw it again."""
        swept = self.swept
        data = swept, swept.exact, len(swept.points)
        wanted = data, self.statistic, self.logarithmic, width, height
        if wanted != self._drawn:
            self._drawn = wanted
            plot = sweep_plot(swept, self.statistic, self.logarithmic, self.glyphs) if height > 0 else None
            self._drawing = draw(plot, width, height, self.glyphs) if plot else None
        return self._drawing

    async def on_click(self, event: events.Click) -> None:
        place = self.place_of(event)
        if place.y < 0:  # on the name of the statistic
            await self.app.run_action("find", self.parent)  # pyright: ignore[reportUnknownMemberType]
        elif self._drawing is not None and place.y >= _ABOVE:
            self.post_message(Chosen(round(self._drawing.at.x_of(place.x))))


class WidthTable(LinesWidget):
    """Shows a row for each landmark."""

    TITLE = "widths of real models"
    DEFAULT_CLASSES = "region"

    swept = Swept(Parameters())
    statistic: Statistic = STATISTIC["entropy"]
    cursor = 64

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return landmark_lines(self.swept, self.statistic, self.cursor, width, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        rows = rows_in(landmarks(self.swept.d_ks), self.cursor, self.size.height)
        y = self.place_of(event).y
        if 0 < y <= len(rows):
            self.post_message(Chosen(rows[y - 1]))
