"""A handful of scores on their way through softmax, with a cursor over the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..views.lines import Line, fitted
from ..views.softmax import Editing, Worked, row_of, step_lines, word_lines
from .scrolled import ScrolledLines

_PINNED = (60, 16)  # cells and lines from which on the words stay in sight, and the steps are scrolled above them


class SoftmaxText(ScrolledLines):
    """Shows scores, worked out; scrolls to the score that is being edited."""

    worked: Worked | None = None
    editing = Editing(0)
    _follows = False  # whether the score with the cursor is to be seen
    _words: Sequence[Line] = ()  # what is scrolled with the steps

    def show(self, worked: Worked, editing: Editing) -> None:
        """Show these, and the score with the cursor among them."""
        self.worked, self.editing, self._follows = worked, editing, True
        self.redraw()

    def score_at(self, y: int) -> int | None:
        """The place of the score on this line."""
        if self.worked is None:
            return None
        at = y + self.top - row_of(self.worked, self.size.width, self.glyphs, replace(self.editing, at=0))
        return at if 0 <= at < len(self.worked.handful.scores) else None

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
        """Scroll so that this line is seen, and from the top if it can be."""
        if row < height - 1:
            self.top = 0
        elif not self.top <= row < self.top + height - 1:
            self.top = row - height + 2

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        lines: list[Line] = []
        for tall in (True, False):
            lines = [*step_lines(self.worked, width, self.glyphs, self.editing, tall), *self._words]
            if len(lines) < height:
                return lines
        return lines if len(lines) <= height else [line for line in lines if line]
