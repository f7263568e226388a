"""The widget of the Softmax pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import events

from ...views.lines import Line, fitted
from ...widgets.scrolled import ScrolledLines
from .curves import curve_lines
from .view import Editing, Worked, row_of, step_lines, word_lines

_PINNED = (60, 16)  # columns and lines from which the explanation stays in place while the steps scroll


class SoftmaxText(ScrolledLines):
    """Shows the steps from scores to weights; scrolls to the selected score."""

    TITLE = "from scores to weights"
    INDENT = " "
    LEADS = True
    DEFAULT_CLASSES = "region"

    undimmed = ("alert", "accent")  # the typed text and the reason why it is refused
    worked: Worked | None = None
    editing = Editing(0)
    _follows = False  # whether to scroll to the selected score
    _words: Sequence[Line] = ()  # the explanation, if it scrolls with the steps

    def show(self, worked: Worked, editing: Editing) -> None:
        """Show an example, with the selected score in sight."""
        self.worked, self.editing, self._follows = worked, editing, True
        self.redraw()

    def score_at(self, event: events.MouseEvent) -> int | None:
        """Return the index of the score under the mouse, if any."""
        if self.worked is None:
            return None
        at = (
            self.place_of(event).y
            + self.top
            - row_of(self.worked, self.size.width, self.glyphs, replace(self.editing, at=0))
        )
        return at if 0 <= at < len(self.worked.example.scores) else None

    def scroll_by(self, lines: int) -> None:
        self._follows = False
        super().scroll_by(lines)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        words = word_lines(self.worked, width, self.glyphs, self.editing)
        pinned: Sequence[Line] = ()
        if width >= _PINNED[0] and height >= _PINNED[1]:
            pinned, self._words = words, ()
        else:
            self._words = [(), *words]
        room = height - len(pinned)
        if self._follows:
            self._follow(row_of(self.worked, width, self.glyphs, self.editing), room)
        steps = super().compose_lines(width, room)
        space = [fitted((), width)] if len(steps) < room else []
        return [*steps, *space, *(fitted(line, width) for line in pinned)]

    def _follow(self, row: int, height: int) -> None:
        """Scroll to a line; to the top if the line is visible from there."""
        if row < height - 1:
            self.top = 0
        elif not self.top <= row < self.top + height - 1:
            self.top = row - height + 2

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        forms = [
            [*step_lines(self.worked, width, self.glyphs, self.editing, tall), *self._words] for tall in (True, False)
        ]
        for lines in forms:
            if curves := curve_lines(self.worked, width, height - len(lines) - 1, self.glyphs):
                return [*lines, *curves]
        lines = next((lines for lines in forms if len(lines) < height), forms[-1])
        return lines if len(lines) <= height else [line for line in lines if line]
