"""The widgets of the Sweep pane: the plot with its cursor, the table of landmarks, and the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from textual import events

from ....core.message import message
from ....core.parameters import Parameters
from ....core.statistics.catalogue import STATISTIC, Statistic
from ...language.cells import joining
from ...views.lines import EDGES, Line, line_width
from ...views.plots.plot import Drawing, Point, Series, draw, with_cursor
from ...views.results.table import TableContents
from ...widgets.lines import ChoosingLines, Content
from .curve_view import (
    LOGARITHMIC,
    Other,
    SweepCurve,
    facts_line,
    points_of,
    reading_lines,
    sweep_plot,
    title_line,
    unit_words,
)
from .map_view import MapResults, layout, map_lines
from .requests import landmarks_of
from .width_table import axis_words, landmark_lines, rows_in

Reading: TypeAlias = tuple[Parameters, TableContents | None]  # the result at the cursor
_LEAST = 6  # lines of the plot that values of other rules at the cursor leave


class SweepPlot(ChoosingLines):
    """Shows a statistic over d_k or keys; a click chooses a value of what is swept."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    swept: Content[SweepCurve] = Content(SweepCurve(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    others: Content[Sequence[Other]] = Content(())  # curves beside A and B
    cursor: Content[int] = Content(64)  # a value of what is swept
    headed = False  # whether a headline above shows the values of A and B at the cursor
    reading: Content[Reading] = Content((Parameters(), None))
    other_axis: Content[frozenset[str]] = Content(frozenset())  # statistics whose axis is not their default

    _drawing: Drawing | None = None
    _drawn: object = None  # what `_drawing` depends on

    @property
    def logarithmic(self) -> bool:
        """Whether the axis of the statistic is logarithmic."""
        return (self.statistic.name in LOGARITHMIC) != (self.statistic.name in self.other_axis)

    def heading(self, width: int) -> Line:
        return title_line(self.statistic, self.logarithmic, self.glyphs, self.swept.over)

    def note(self) -> Line:
        title, room = self.heading(0), self.outer_size.width - EDGES - 3
        return facts_line(self.swept, room - line_width(title), self.glyphs)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        (p, here), glyphs = self.reading, self.glyphs
        lines = reading_lines(p, here, self.statistic, width, glyphs, self.swept.over, self.others)
        lines = lines[2 if self.headed else 0 :][: self._above(height)]
        drawing = self._draw(width, height - len(lines))
        if drawing is None:
            return lines
        readings = [(here, index) for index in range(2)] + [(other.here, 1) for other in self.others]
        extra: list[tuple[Series, Point]] = []
        for series, (found, index) in zip(drawing.at.plot.series, readings, strict=True):
            point = points_of(found, self.cursor, self.statistic)[index] if found else None
            if point is not None and getattr(p, self.swept.over) == self.cursor:
                extra.append((series, point))
        return [*lines, *with_cursor(drawing, self.cursor, extra, glyphs)]

    def _above(self, height: int) -> int:
        """Return how many lines above the plot show values at the cursor: A's and B's, and those that fit."""
        least = 0 if self.headed else 2
        return max(min(least + len(self.others), height - _LEAST), least)

    def _draw(self, width: int, height: int) -> Drawing | None:
        """Return the plot without the cursor, so that moving the cursor does not draw it again."""
        every = [self.swept, *(other.swept for other in self.others)]
        data = [(swept, swept.exact, len(swept.points)) for swept in every]
        wanted = data, self.statistic, self.logarithmic, width, height
        if wanted != self._drawn:
            self._drawn, glyphs = wanted, self.glyphs
            shown = height > 0
            plot = sweep_plot(self.swept, self.statistic, self.logarithmic, glyphs, self.others) if shown else None
            self._drawing = draw(plot, width, height, glyphs) if plot else None
        return self._drawing

    async def on_click(self, event: events.Click) -> None:
        place = self.place_of(event)
        if place.y < 0:  # on the name of the statistic
            await self.app.run_action("find", self.parent)  # pyright: ignore[reportUnknownMemberType]
        elif self._drawing is not None and place.y >= self._above(self.size.height):
            self._choose(round(self._drawing.at.x_of(place.x)))


class WidthTable(ChoosingLines):
    """Shows a row for each landmark, which a click chooses."""

    DEFAULT_CLASSES = "region"

    swept: Content[SweepCurve] = Content(SweepCurve(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    cursor: Content[int] = Content(64)

    def heading(self, width: int) -> Line:
        words = message("widths of real models") if self.swept.over == "d_k" else message("numbers of keys")
        return ((self.glyphs.say(words), "heading"),)

    def note(self) -> Line:
        words = axis_words(self.swept, self.statistic, self.room.width, self.glyphs)
        return ((self.glyphs.say(words), "dim"),) if words else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return landmark_lines(self.swept, self.statistic, self.cursor, width, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        rows = rows_in(landmarks_of(self.swept.over, self.swept.values), self.cursor, self.size.height)
        y = self.place_of(event).y
        if 0 < y <= len(rows):
            self._choose(rows[y - 1])


_ABOVE = 2  # lines above the panels: the values at the cursor
_BELOW = 2  # lines of the legend


class SweepMap(ChoosingLines):
    """Shows a statistic over d_k and the number of keys; a click chooses a place."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    headed = False  # whether a headline above shows the values at the place
    mapped: Content[MapResults] = Content(MapResults(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    logarithmic: Content[bool] = Content(False)
    reading: Content[Reading] = Content((Parameters(), None))

    def heading(self, width: int) -> Line:
        unit = unit_words(self.statistic)
        scale = message(", log scale") if self.logarithmic else ""
        words = message(" over d_k (across) and keys (up){unit}{scale}", unit=unit, scale=scale)
        label = self.glyphs.say(self.statistic.label)
        return (label, "heading"), (joining(label, self.glyphs.say(words)), "dim")

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        glyphs = self.glyphs
        lines = [] if self.headed else reading_lines(*self.reading, self.statistic, width, glyphs)
        cursor = self.reading[0].d_k, self.reading[0].n_keys
        room = height - len(lines)
        if room < _BELOW + 3:
            return lines
        return [*lines, *map_lines(self.mapped, self.statistic, self.logarithmic, cursor, width, room, glyphs)]

    def on_click(self, event: events.Click) -> None:
        clicked = self.place_of(event)
        above = 0 if self.headed else _ABOVE
        at = layout(self.size.width, self.size.height - above - _BELOW)
        place = at.place_at(clicked.x, clicked.y - above)
        if place is not None:
            self._choose(place)
