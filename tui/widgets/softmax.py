"""A handful of scores on their way through softmax, with a cursor over the scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..views.lines import Line
from ..views.softmax import Editing, Worked, row_of, softmax_lines
from .scrolled import ScrolledLines


class SoftmaxText(ScrolledLines):
    """Shows scores, worked out; scrolls to the score that is being edited."""

    worked: Worked | None = None
    editing = Editing(0)
    _follows = False  # whether the score with the cursor is to be seen

    def show(self, worked: Worked, editing: Editing) -> None:
        """Show these, and the score with the cursor among them."""
        self.worked, self.editing, self._follows = worked, editing, True
        self.redraw()

    def scroll_by(self, lines: int) -> None:
        self._follows = False
        super().scroll_by(lines)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self._follows and self.worked is not None:
            row = row_of(self.worked, width, self.glyphs, self.editing)
            if row < height - 1:
                self.top = 0
            elif not self.top <= row < self.top + height - 1:
                self.top = row - height + 2
        return super().compose_lines(width, height)

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        lines = softmax_lines(self.worked, width, self.glyphs, self.editing)
        return lines if len(lines) <= height else [line for line in lines if line]
