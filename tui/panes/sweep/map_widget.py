"""The widget of the map of the Sweep pane."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from ....core.message import message
from ....core.parameters import Parameters
from ....core.statistics.catalogue import STATISTIC, Statistic
from ...language.cells import joining
from ...views.lines import Line
from ...views.results.table import Contents
from ...widgets.lines import LinesWidget
from .curve_view import reading_lines, unit_words
from .map_requests import Place
from .map_view import Mapped, layout, map_lines

_ABOVE = 2  # lines above the panels: the values at the cursor
_BELOW = 2  # lines of the legend


class PlaceChosen(Message):
    """A place of the map was clicked."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class SweepMap(LinesWidget):
    """Shows a statistic over d_k and the number of keys."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    mapped = Mapped(Parameters())
    statistic: Statistic = STATISTIC["entropy"]
    logarithmic = False
    reading: tuple[Parameters, Contents | None] = (Parameters(), None)  # the result at the cursor

    def show(
        self, mapped: Mapped, statistic: Statistic, logarithmic: bool, reading: tuple[Parameters, Contents | None]
    ) -> None:
        """Set what is shown; `redraw` shows it."""
        self.mapped, self.statistic, self.logarithmic, self.reading = mapped, statistic, logarithmic, reading

    def heading(self, width: int) -> Line:
        unit = unit_words(self.statistic)
        scale = message(", log scale") if self.logarithmic else ""
        words = message(" over d_k (across) and keys (up){unit}{scale}", unit=unit, scale=scale)
        label = self.glyphs.say(self.statistic.label)
        return (label, "heading"), (joining(label, self.glyphs.say(words)), "dim")

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        glyphs = self.glyphs
        lines = reading_lines(*self.reading, self.statistic, width, glyphs)
        cursor = self.reading[0].d_k, self.reading[0].n_keys
        room = height - _ABOVE
        if room < _BELOW + 3:
            return lines
        return [*lines, *map_lines(self.mapped, self.statistic, self.logarithmic, cursor, width, room, glyphs)]

    def on_click(self, event: events.Click) -> None:
        clicked = self.place_of(event)
        at = layout(self.size.width, self.size.height - _ABOVE - _BELOW)
        place = at.place_at(clicked.x, clicked.y - _ABOVE)
        if place is not None:
            self.post_message(PlaceChosen(place))
