"""Statements on heads as blocks of lines: what is wrong, where, what q·k was multiplied by and should be, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...language.cells import cells, to_left
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, wrapped

if TYPE_CHECKING:
    from ....core.tables.table import Statement

_LABEL = 15  # cells of the longest label, with a space before and after it
_IS = 15  # cells for what it is, before what it should be


def statement_lines(statements: Iterable[Statement], glyphs: Glyphs, width: int) -> list[Line]:
    """Return each statement as a label, what stands beside it, and more lines below that; and a blank line."""
    return [line for each in statements for line in _block(each, glyphs, width)]


def _block(statement: Statement, glyphs: Glyphs, width: int) -> list[Line]:
    word = f" {glyphs.say(statement.label)} "
    role: Role = statement.tone if statement.tone in ("right", "wrong") else "heading"
    numbers = ""
    if statement.used:
        numbers = f"{to_left(glyphs.say(statement.used), _IS)}  {glyphs.say(statement.expected)}"
    indent = max(_LABEL, cells(word) + 1)
    lines: list[Line] = []
    for number, text in enumerate((statement.where, numbers, *statement.sentences)):
        room, shade = max(width - indent, 20), "text" if number else "heading"
        said = glyphs.say(text)
        fits: list[Line] = [((said, shade),)] if said and cells(said) <= room else []
        for line in fits or wrapped(said, room, shade):
            first: tuple[Span, ...] = ((" " * indent, "text"),)
            if not lines:
                first = ((word, role), (" " * (indent - cells(word)), "text"))
            lines.append((*first, *line))
    return [*lines, ()]
