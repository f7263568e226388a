"""The map of all heads of a capture, with a cursor, and facts on the file and the selected head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.statistics.measurement import Estimate
from ....core.statistics.status import Status, status
from ...views.lines import Line, fitted
from ...widgets.lines import LinesWidget
from .heatmap import HeadMap, head_at, map_lines
from .view import capture_lines

if TYPE_CHECKING:
    from ....core.captures.capture import Capture

_FACTS = 7  # lines reserved for the facts


class HeadMapWidget(LinesWidget):
    """Shows one statistic of every head. The cursor is (position of the layer, head)."""

    TITLE = "heads"
    LEADS = True
    DEFAULT_CLASSES = "region"

    class Moved(Message):
        """Another head is selected."""

    capture: Capture | None = None
    statistic: Statistic = STATISTIC["entropy_fraction"]
    cursor: tuple[int, int] = (0, 0)

    def __init__(self) -> None:
        super().__init__()
        self._top = 0  # first line shown of the facts
        self.measured: dict[tuple[int, int], Mapping[str, Estimate] | None] = {}

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.capture is None:
            return ()
        layers = self.capture.layers
        values = {
            where: None if found is None else found[self.statistic.name].value
            for where, found in self.measured.items()
        }
        statuses: dict[tuple[int, int], Status | None] = {
            where: status(found) for where, found in self.measured.items() if found is not None
        }
        head_map = HeadMap([layer.index for layer in layers], [layer.heads for layer in layers], values, statuses)
        room = min(len(layers) + 3, max(height - _FACTS, 6))
        lines = [*map_lines(head_map, self.statistic, self.cursor, width, room + 1, self.glyphs), fitted((), width)]
        layer, head = self.cursor
        facts = capture_lines(self.capture, layers[layer], head, self.measured, self.cursor, width - 1, self.glyphs)
        room = height - len(lines)
        self._top = min(self._top, max(len(facts) - room, 0))
        shown = facts[self._top : self._top + room]
        if shown and self._top + room < len(facts):
            shown[-1] = ((f"{len(facts) - self._top - room + 1} more lines (PgDn)", "dim"),)
        return [*lines, *(fitted(line, width) for line in shown)]

    def read(self, lines: int) -> None:
        """Scroll the facts down by `lines`; up if negative."""
        self._top = max(self._top + lines, 0)
        self.redraw()

    def move(self, down: int, right: int) -> None:
        """Move the cursor, at most to the edges of the map."""
        if self.capture is None:
            return
        layers = self.capture.layers
        layer = min(max(self.cursor[0] + down, 0), len(layers) - 1)
        head = min(max(self.cursor[1] + right, 0), layers[layer].heads - 1)
        if (layer, head) != self.cursor:
            self.cursor = (layer, head)
            self.redraw()
            self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        if self.capture is None:
            return
        layers = self.capture.layers
        head_map = HeadMap([layer.index for layer in layers], [layer.heads for layer in layers], {}, {})
        width, height = self.size
        room = min(len(layers) + 3, max(height - _FACTS, 6)) + 1
        found = head_at(head_map, self.cursor, width, room, *self.place_of(event))
        if found is not None:
            self.move(found[0] - self.cursor[0], found[1] - self.cursor[1])

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(1, 0)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-1, 0)
