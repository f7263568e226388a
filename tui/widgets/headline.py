"""The headline of a pane: its one number in large digits, with a few lines of words beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ..views.headline import LOW, headline_lines, words_at
from ..views.lines import Line, Role
from ..views.section import picture_columns
from .lines import Content, LinesWidget


class Headline(LinesWidget):
    """Shows a label, a number and lines of words, at the bottom of its lines."""

    undimmed = ("heading", "accent", "alert")
    label: Content[str] = Content("")
    number: Content[str] = Content("")
    role: Content[Role] = Content("heading")  # of the number
    words: Content[Sequence[Line]] = Content(())

    @property
    def room_for_words(self) -> int:
        """The cells of a line of words, also before the first layout: a headline is as wide as the screen."""
        width = self.app.size.width  # pyright: ignore[reportUnknownMemberType]
        return max(width - words_at(width) - 1, 1)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        at, beside = picture_columns(width).name if width >= 70 else 6, words_at(width)
        lines = headline_lines(self.label, self.number, self.words, width, self.glyphs, at, self.role, beside=beside)
        blank: Line = ((" " * width, "text"),)
        return [*[blank] * (height - LOW), *lines[:LOW]]
