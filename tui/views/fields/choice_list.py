"""A list to choose from: a filter, the rows that match it, and what the selected row means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

from ..bars import key_at, key_line
from ..glyphs import Glyphs
from ..lines import Line, Role, ends, fitted, wrapped
from .choices import Choice, matching

_KEYS = (("Enter", "choose"), ("Esc", "cancel"), ("↑↓", "move"), ("a-z", "filter"), ("PgUp PgDn", "page"))
_NAME = 34  # cells that names may take at most
_EXPLAINED = ((30, 4), (20, 3), (14, 2), (0, 1))  # lines of help, from a height

_RULED = 18  # lines from which a line separates the rows from the help


@dataclass(frozen=True)
class ChoiceList:
    """The state of a list."""

    title: str
    choices: Sequence[Choice]
    current: str = ""  # the value that is chosen now
    words: str = ""  # the filter
    cursor: int = 0  # among the rows that match

    @classmethod
    def at(cls, title: str, choices: Sequence[Choice], current: str) -> ChoiceList:
        """Return a list with the cursor on the current value."""
        found = ChoiceList(title, choices, current)
        values = [choice.value for choice in found.rows]
        return replace(found, cursor=values.index(current)) if current in values else found

    @property
    def rows(self) -> list[Choice]:
        """The rows that match the filter."""
        return matching(self.choices, self.words)

    @property
    def chosen(self) -> Choice | None:
        """The row with the cursor; None if no row matches."""
        rows = self.rows
        return rows[self.cursor] if rows else None

    def filtered(self, words: str) -> ChoiceList:
        """Return the list with another filter, with the cursor on the row that matches best."""
        return replace(self, words=words, cursor=0)

    def moved(self, step: int) -> ChoiceList:
        """Return the list with the cursor moved, at most to the first or last row."""
        return replace(self, cursor=min(max(self.cursor + step, 0), max(len(self.rows) - 1, 0)))


def list_lines(found: ChoiceList, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the list as `height` lines: filter, rows, the help and source of the selected one, and keys."""
    shown = _shown(found, height)
    count = f"{len(found.rows)} of {len(found.choices)}"
    asked: Line = (("filter: ", "label"), (glyphs.say(found.words), "accent"), (" ", "cursor"))
    lines: list[Line] = [ends(asked, ((count, "dim"),), width)]
    if not shown:
        lines += wrapped("Nothing contains these words. Backspace erases, Ctrl+U clears.", width, "alert")
    names = max((cell_len(glyphs.say(row.name)) for row in found.choices), default=0)
    names = min(names, _NAME, width // 2)
    lines += [_line(found, row, min(names, _NAME), width, glyphs) for row in shown]
    room = _room(height)
    lines += [()] * (1 + room - len(lines))
    below = height - len(lines) - 1
    if height >= _RULED:
        lines.append(((glyphs.rule * width, "dim"),))
        below -= 1
    lines += explanation(found.chosen, width, below, glyphs)
    return [fitted(line, width) for line in (*lines, key_line(_KEYS, width + 2, glyphs)[1:])]


def clicked(found: ChoiceList, width: int, height: int, glyphs: Glyphs, x: int, y: int) -> int | str | None:
    """Return the row of a list that was clicked, as the index of a match, or the clicked key."""
    if y == height - 1:
        word = key_at(_KEYS, width + 2, glyphs, x + 1)
        return None if word == "a-z" else word
    shown = _shown(found, height)
    row = shown[y - 1] if 1 <= y < 1 + len(shown) else None
    return found.rows.index(row) if isinstance(row, Choice) else None


def page(height: int) -> int:
    """Return how many rows a page moves in a list of this height."""
    return max(_room(height) - 1, 1)


def explanation(choice: Choice | None, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the help of a row and its source, in exactly `height` lines."""
    if choice is None or height <= 0:
        return [()] * max(height, 0)
    told = _paragraph(glyphs.say(choice.help), width, max(height - 1, 1), "text", glyphs)
    source = glyphs.say(f"Source: {choice.source}" if choice.source else "")
    lines = [*told, *_paragraph(source, width, height - len(told), "dim", glyphs)]
    return [*lines, *[()] * (height - len(lines))]


def _paragraph(text: str, width: int, height: int, role: Role, glyphs: Glyphs) -> list[Line]:
    """Return a paragraph in at most `height` lines; the last one is cut with … if more is said."""
    lines = wrapped(text, width, role)
    if len(lines) <= height or height <= 0:
        return lines[: max(height, 0)]
    rest = " ".join(text for line in lines[height - 1 :] for text, _ in line)
    return [*lines[: height - 1], ((_cut(rest, width, glyphs), role),)]


def _room(height: int) -> int:
    """Return how many lines there are for rows, beside the filter, help, source and keys."""
    told = next(lines for least, lines in _EXPLAINED if height >= least)
    return max(height - 2 - told - 1 - (height >= _RULED), 1)


def _shown(found: ChoiceList, height: int) -> list[Choice | str]:
    """Return the rows to show, around the cursor."""
    rows, top = window(found, height)
    return rows[top : top + _room(height)]


def window(found: ChoiceList, height: int) -> tuple[list[Choice | str], int]:
    """Return all rows, and the first one to show; without a filter, the name of a family stands above its rows."""
    rows: list[Choice | str] = []
    family, at = "", 0
    for index, row in enumerate(found.rows):
        if row.family and row.family != family and not found.words:
            rows.append(row.family)
        family = row.family
        if index == found.cursor:
            at = len(rows)
        rows.append(row)
    room = _room(height)
    return rows, min(max(at - room // 2, 0), max(len(rows) - room, 0))


def _line(found: ChoiceList, row: Choice | str, names: int, width: int, glyphs: Glyphs) -> Line:
    """Return the line of a row: a mark, the name, the formula; or of the name of a family."""
    if isinstance(row, str):
        return ((glyphs.say(row), "dim"),)
    here = row is found.chosen
    name, formula = _cut(glyphs.say(row.name), names, glyphs), glyphs.say(row.formula)
    now = " (now)" if row.value == found.current else ""
    role: Role = "accent" if here else "label"
    mark: Line = ((glyphs.cursor if here else " ", "accent"), (" ", "text"))
    left: Line = (*mark, *fitted(((name, role),), names), ("  ", "text"))
    room = max(width - names - 4 - len(now), 0)
    formula = _cut(formula, room, glyphs)
    return fitted((*left, *fitted(((formula, "text"),), room), (now, "dim")), width)


def _cut(text: str, room: int, glyphs: Glyphs) -> str:
    """Return a text, cut with … if it does not fit."""
    sign = glyphs.say("…")
    return text if cell_len(text) <= room else set_cell_size(text, max(room - len(sign), 0)) + sign
