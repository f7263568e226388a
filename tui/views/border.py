"""The border of a region: thin lines, a title in the upper one, and a scroll bar in the right one."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted, line_width

BORDER_ROLES: tuple[Role, ...] = ("frame", "lit", "title")
EDGES = 6  # cells of a side's ends: corner, line and blank at each


class Thumb(NamedTuple):
    """The part of a text that is shown: from line `first` on, `shown` of `total` lines."""

    first: int
    shown: int
    total: int

    def rows(self, height: int) -> range:
        """Return the rows of a scroll bar of this height that its thumb covers; none if the whole text is shown."""
        if self.shown >= self.total or height < 1:
            return range(0)
        length = max(min(round(height * self.shown / self.total), height - 1), 1)
        start = round((height - length) * min(self.first / (self.total - self.shown), 1))
        return range(start, start + length)


@lru_cache(maxsize=256)
def top_line(
    title: Line, note: Line, width: int, role: Role, glyphs: Glyphs, left: bool = True, right: bool = True
) -> Line:
    """Return the upper side with a title at its left and a note at its right, if they fit; corners at these sides."""
    corners = (glyphs.box[0] if left else " ") + (glyphs.box[1] if right else " ")
    named: Role = "lit" if role == "lit" else "title"
    words: Line = tuple((text, named if of == "heading" else of) for text, of in title)
    return _side(words, note, width, role, glyphs, corners)


@lru_cache(maxsize=256)
def bottom_line(text: Line, width: int, role: Role, glyphs: Glyphs) -> Line:
    """Return the lower side with its corners, and a text at its right if it fits."""
    return _side((), text, width, role, glyphs, glyphs.box[2:4])


def _side(left: Line, right: Line, width: int, role: Role, glyphs: Glyphs, corners: str) -> Line:
    """Return `╭─ left ──── right ─╮`."""
    if width < 2:
        return fitted((), max(width, 0))
    rule, room = glyphs.rule, max(width - EDGES, 0)
    if line_width(left) > room:
        sign = glyphs.say("…")
        left = (*fitted(left, max(room - len(sign), 0)), (sign[:room], left[-1][1]))
    if line_width(left) + line_width(right) + 3 * bool(left) > room:
        right = ()
    blank: Span = (" ", role)
    before: Line = ((corners[0] + rule, role), blank, *left, blank) if left else ((corners[0] + rule, role),)
    after: Line = (blank, *right, blank, (rule + corners[1], role)) if right else ((rule + corners[1], role),)
    between = rule * (width - line_width(before) - line_width(after))
    return fitted((*before, (between, role), *after), width)


def side(width: int, role: Role, glyphs: Glyphs, thumb: bool, at_left: bool = False) -> Line:
    """Return the left or right side with its padding, `width` cells together; `thumb` marks the scroll bar."""
    edge: Span = (glyphs.thumb if thumb else glyphs.box[4], "lit" if thumb else role)
    padding: Span = (" " * (width - 1), "text")
    return (edge, padding) if at_left else (padding, edge)
