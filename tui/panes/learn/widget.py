"""The list of items with a cursor, and the selected item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from ...views.lines import Line, ends, fitted, middle_cut
from ...widgets.lines import LinesWidget
from ...widgets.scrolled import ScrolledLines
from .items import ITEMS, Attempt
from .screen import item_lines

if TYPE_CHECKING:
    from ....core.claims.claim import Reading

_HEADINGS = {"step": "the tour"}


class ItemList(LinesWidget):
    """Shows the steps, and which of them were answered."""

    HEADED, TITLE = True, "learn"
    DEFAULT_CLASSES = "region"

    class Moved(Message):
        """Another item is selected."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        self.done: set[str] = set()

    def note(self) -> Line:
        return ((f"{len(self.done)} of {len(ITEMS)} done", "dim"),)

    def show(self, cursor: int, done: set[str]) -> None:
        """Show the cursor at an item, and marks at those that were answered."""
        self.cursor, self.done = cursor, done
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        first = self._first(height)
        return [self._line(index, width) for index in range(first, min(first + height, len(ITEMS)))]

    def _first(self, height: int) -> int:
        """Return the first item shown: the cursor stays in view."""
        return min(max(self.cursor - height // 2, 0), max(len(ITEMS) - height, 0))

    def _line(self, index: int, width: int) -> Line:
        item, chosen = ITEMS[index], index == self.cursor
        mark = self.glyphs.say("✓") if item.id in self.done else " "
        room = max(width - 8, 0)
        title = middle_cut(self.glyphs.say(item.title), room, self.glyphs.say("…"))
        line: Line = (
            (self.glyphs.cursor if chosen else " ", "accent"),
            (f"{item.number:2} ", "dim"),
            (title, "accent" if chosen else "label"),
        )
        return fitted(ends(line, ((mark, "scaled"), (" ", "text")), width), width)

    def on_click(self, event: events.Click) -> None:
        y = self.place_of(event).y
        at = y + self._first(self.room.height)
        if y >= 0 and at < len(ITEMS):
            self.post_message(self.Moved(at))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.post_message(self.Moved(min(self.cursor + 1, len(ITEMS) - 1)))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.post_message(self.Moved(max(self.cursor - 1, 0)))


class ItemText(ScrolledLines):
    """Shows one item, with its answer once that is asked for."""

    LEADS = True
    DEFAULT_CLASSES = "region"

    def __init__(self) -> None:
        super().__init__()
        self.at = 0
        self.attempt = Attempt()
        self.readings: Mapping[str, Reading] | None = None

    def show(self, at: int, attempt: Attempt, readings: Mapping[str, Reading] | None) -> None:
        """Show an item; scroll to the top if it is another one, or shows more."""
        if (at, attempt.stage) != (self.at, self.attempt.stage):
            self.top = 0
        self.at, self.attempt, self.readings = at, attempt, readings
        self.redraw()

    def heading(self, width: int) -> Line:
        item = ITEMS[self.at]
        count = sum(each.kind == item.kind for each in ITEMS)
        return ((self.glyphs.say(f"{item.number} of {count}: {item.title}"), "heading"),)

    def write(self, width: int, height: int) -> Sequence[Line]:
        return item_lines(ITEMS[self.at], self.attempt, self.readings, width - 1, height, self.glyphs)
