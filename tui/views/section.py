"""A region of the screen: one thin rule with its title, and what is said of all of it at the right."""

from __future__ import annotations

from typing import NamedTuple

from ..language.cells import to_left
from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted, middle_cut, ruled


def section_line(title: Line | str, note: Line | str, width: int, glyphs: Glyphs, lit: bool = False) -> Line:
    """Return `── title ───────── note ──`; the note is left out if both do not fit. `lit` marks the focus."""
    role: Role = "lit" if lit else "frame"
    named: Line = ((glyphs.say(title), "lit" if lit else "title"),) if isinstance(title, str) else title
    said: Line = ((glyphs.say(note), "dim"),) if isinstance(note, str) and note else ()
    return ruled(named, said if isinstance(note, str) else note, width, role, glyphs, glyphs.rule * 2)


class PictureColumns(NamedTuple):
    """The columns that all pictures of a page share, in cells: names, the picture, and words on it."""

    name: int
    picture: int
    words: int


def picture_columns(width: int) -> PictureColumns:
    """Return the columns for a width."""
    name, words = (13, 27) if width >= 110 else (12, 24) if width >= 96 else (11, 17) if width >= 70 else (10, 11)
    return PictureColumns(name, max(width - name - words, 4), words)


def picture_line(
    name: str,
    role: Role,
    picture: Line,
    words: str,
    at: PictureColumns,
    glyphs: Glyphs,
    said: Role | None = None,
) -> Line:
    """Return a line of a picture with its name before it and words after it, both in a role, or words as `said`."""
    cut = middle_cut(name, at.name - 2, glyphs.say("…"))
    before: Span = (to_left(f" {cut}", at.name), role)
    return fitted((before, *fitted(picture, at.picture), (f"  {words}", said or role)), sum(at))
