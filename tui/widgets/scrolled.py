"""A text that may be longer than its widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events

from ..views.border import Thumb
from ..views.lines import Line, fitted
from .lines import LinesWidget


class ScrolledLines(LinesWidget):
    """Shows the lines that `write` returns; if they do not fit, they scroll, and the last line says so."""

    INDENT: ClassVar[str] = ""  # before the line that counts those below

    top = 0
    _total = 0  # lines of the whole text

    def write(self, width: int, height: int) -> Sequence[Line]:
        """Return the whole text for a widget of this size."""
        raise NotImplementedError

    def scroll_by(self, lines: int) -> None:
        """Scroll down by `lines`; up if negative."""
        self.top = max(self.top + lines, 0)
        self.redraw()

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.scroll_by(3 * direction)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = self.write(width, height)
        self._total = len(lines)
        last_line = int(not self.boxed)  # counts the lines below; a border has room for that
        self.top = min(self.top, max(len(lines) - height + last_line, 0)) if len(lines) > height else 0
        shown = list(lines[self.top : self.top + height])
        if shown and last_line and self.top + height < len(lines):
            below = self.glyphs.say("{count} more lines (PgDn)", count=len(lines) - self.top - height + 1)
            shown[-1] = ((self.INDENT + below, "dim"),)
        return [fitted(line, width) for line in shown]

    def thumb(self) -> Thumb | None:
        return Thumb(self.top, self.room.height, self._total)

    @property
    def below(self) -> int:
        """The lines below those shown."""
        return max(self._total - self.top - self.room.height, 0)

    def foot(self) -> Line:
        below = self.below
        return ((self.glyphs.say("{below} more lines (PgDn)", below=below), "dim"),) if below else ()
