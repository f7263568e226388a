"""A list to choose from: a filter, the rows that match it, and what the selected row means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

from ....core.errors import ParameterError
from ....core.message import message
from ..bars import Key, key_at, key_line
from ..glyphs import Glyphs
from ..lines import Line, Role, ends, fitted, line_width, wrapped
from ..lines import window as first_line
from .choices import Choice, is_like_formula
from .matching import matching

_KEYS: tuple[Key, ...] = (
    ("Enter", "choose"),
    ("Esc", "cancel"),
    ("↑↓", "move"),
    ("a-z", "filter"),
    ("PgUp PgDn", "page"),
)
_KEYS_OF_SEVERAL: tuple[Key, ...] = (
    ("Enter", "done"), ("Tab", "mark"), ("Esc", "cancel"), ("↑↓", "move"), ("a-z", "filter"), ("PgUp PgDn", "page"),
)  # fmt: skip
_NAME = 34  # cells that names may take at most
_EXPLAINED = ((30, 4), (20, 3), (14, 2), (0, 1))  # lines of help, from a height

_RULED = 18  # lines from which a line separates the rows from the help

# Returns rows for what the words of a filter mean besides, such as a formula; raises ParameterError.
Beyond: TypeAlias = Callable[[str], Sequence[Choice]]

_FORMULA = (message("or a formula: {formula}", formula="log(n)/sqrt(d)"), message("or a formula"))


@dataclass(frozen=True)
class ChoiceList:
    """The state of a list."""

    title: str
    choices: Sequence[Choice]
    current: str = ""  # the value that is chosen now
    also: tuple[str, ...] = ()  # other values that are, of a list of several things
    words: str = ""  # the filter
    cursor: int = 0  # among the rows that match
    beyond: Beyond | None = None  # what a filter means that is not a row
    hints: Sequence[str] = _FORMULA  # what that may be, the longest text first
    marked: tuple[str, ...] | None = None  # the values chosen so far; None if only one can be
    before: tuple[str, ...] = ()  # those that were marked when the list was opened
    live: bool = False  # whether the row with the cursor takes effect at once, until the list is cancelled
    offered: Sequence[Choice] = ()  # the rows shown until a word is typed, if not all; families then stay together

    @classmethod
    def at(
        cls,
        title: str,
        choices: Sequence[Choice],
        current: str,
        beyond: Beyond | None = None,
        marked: tuple[str, ...] | None = None,
        live: bool = False,
    ) -> ChoiceList:
        """Return a list with the cursor on the current value, or on the first one that is marked."""
        own = [row for value in (current, *(marked or ())) for row in _own(choices, value, beyond)]
        found = ChoiceList(
            title, (*choices, *own), current, beyond=beyond, marked=marked, before=marked or (), live=live
        )
        values, first = [choice.value for choice in found.rows], marked[0] if marked else current
        return replace(found, cursor=values.index(first)) if first in values else found

    @cached_property
    def rows(self) -> list[Choice]:
        """The rows that match the filter; that of a typed formula before those whose help contains its signs."""
        rows = self.matches
        known = [row.value for row in rows]
        typed = [row for row in self.typed[0] if row.value not in known]
        return [*typed, *rows] if is_like_formula(self.words) else [*rows, *typed]

    @cached_property
    def ranked(self) -> list[Choice]:
        """The choices that match the filter, the best first; one that means something itself is no misspelling."""
        return matching(self.choices, self.words, guess=not self.typed[0])

    @property
    def matches(self) -> list[Choice]:
        """The choices that match the filter, in the order in which they are shown."""
        if not self.offered:
            return self.ranked
        families = list(dict.fromkeys(row.family for row in self.choices))
        return sorted(self.ranked, key=lambda row: families.index(row.family)) if self.words else [*self.offered]

    @cached_property
    def typed(self) -> tuple[Sequence[Choice], ParameterError | None]:
        """The rows that the filter itself means, or why it means none."""
        try:
            return (self.beyond(self.words) if self.beyond else ()), None
        except ParameterError as error:
            return (), error if is_like_formula(self.words) else None

    @property
    def chosen(self) -> Choice | None:
        """The row with the cursor; None if no row matches."""
        rows = self.rows
        return rows[self.cursor] if rows else None

    def filtered(self, words: str) -> ChoiceList:
        """Return the list with another filter, with the cursor on the row that matches best."""
        choices = replace(self, words=words, cursor=0)
        return (
            replace(choices, cursor=choices.rows.index(choices.ranked[0]))
            if self.offered and choices.rows
            else choices
        )

    def toggled(self) -> ChoiceList:
        """Return the list with the selected row marked, or no longer marked; a typed formula becomes a row."""
        row = self.chosen
        if row is None or self.marked is None:
            return self
        marked = self.marked
        marked = tuple(v for v in marked if v != row.value) if row.value in marked else (*marked, row.value)
        known = row.value in [choice.value for choice in self.choices]
        return replace(self, marked=marked, choices=self.choices if known else (*self.choices, row))

    @property
    def values(self) -> tuple[str, ...]:
        """What is chosen: the marked rows, with the selected one if no mark was changed; or the selected row."""
        if self.marked is None:
            return (self.chosen.value,) if self.chosen else ()
        found = self.toggled() if self.marked == self.before else self
        return found.marked or ()

    def moved(self, step: int) -> ChoiceList:
        """Return the list with the cursor moved, at most to the first or last row."""
        return replace(self, cursor=min(max(self.cursor + step, 0), max(len(self.rows) - 1, 0)))


def _own(choices: Sequence[Choice], value: str, beyond: Beyond | None) -> list[Choice]:
    """Return the row of a value that is not among the choices, such as a formula."""
    if beyond is None or not value or value in [choice.value for choice in choices]:
        return []
    return [replace(row, name=message("your formula"), family=choices[-1].family) for row in beyond(value)]


def list_lines(choices: ChoiceList, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the list as `height` lines: filter, rows, the help and source of the selected one, and keys."""
    shown = _shown(choices, height)
    rows, matches = (
        len(choices.rows),
        len(choices.matches),
    )  # the row of a typed formula is counted among both numbers
    count = glyphs.say("{count} of {all}", count=rows, all=len(choices.choices) + rows - matches)
    asked: Line = ((glyphs.say("filter: "), "label"), (glyphs.say(choices.words), "accent"), (" ", "cursor"))
    asked = (*asked, (_hint(choices, width - line_width(asked) - cell_len(count), glyphs), "dim"))
    lines: list[Line] = [ends(asked, ((count, "dim"),), width)]
    if not shown:
        lines += _nothing(choices, width, glyphs)
    if choices.offered:
        names = width - 4 - min(max(cell_len(glyphs.say(row.formula)) for row in choices.offered), width // 3)
    else:
        names = min(max((cell_len(glyphs.say(row.name)) for row in choices.choices), default=0), _NAME, width // 2)
    lines += [_line(choices, row, names, width, glyphs) for row in shown]
    if height >= _RULED:
        lines += [()] * (1 + _room(height) - len(lines))
        lines.append(((glyphs.rule * width, "dim"),))
        lines += explanation(choices.chosen, width, height - len(lines) - 1, glyphs)
    else:  # help may also fill the lines without rows
        below = [line for line in explanation(choices.chosen, width, height - len(lines) - 1, glyphs) if line]
        lines += [()] * (height - len(lines) - len(below) - 1) + below
    return [fitted(line, width) for line in (*lines, key_line(_keys(choices), width + 2, glyphs)[1:])]


def _hint(choices: ChoiceList, width: int, glyphs: Glyphs) -> str:
    """Return what else can be typed, as long as nothing is typed; empty if it does not fit."""
    if choices.beyond is None or choices.words:
        return ""
    said = (f" {glyphs.say(hint)}" for hint in choices.hints)
    return next((hint for hint in said if cell_len(hint) < width - 1), "")


def _keys(choices: ChoiceList) -> Sequence[Key]:
    return _KEYS if choices.marked is None else _KEYS_OF_SEVERAL


def _nothing(choices: ChoiceList, width: int, glyphs: Glyphs) -> list[Line]:
    """Return why no row is shown: where a formula is faulty, or that nothing contains the words."""
    _, fault = choices.typed
    if fault is None:
        return wrapped(glyphs.say("Nothing contains these words. Backspace erases, Ctrl+U clears."), width, "alert")
    pointed: list[Line] = [((f"  {line}", "alert"),) for line in fault.pointer.splitlines()]
    reason = str(fault).rpartition(": ")[2] if pointed else str(fault)
    return [*pointed, *wrapped(glyphs.say("Not a formula: {reason}.", reason=reason), width, "alert")]


def clicked(choices: ChoiceList, width: int, height: int, glyphs: Glyphs, x: int, y: int) -> int | str | None:
    """Return the row of a list that was clicked, as the index of a match, or the clicked key; not on its border."""
    if not 0 <= x < width:
        return None
    if y == height - 1:
        word = key_at(_keys(choices), width + 2, glyphs, x + 1)
        return None if word == "a-z" else word
    shown = _shown(choices, height)
    row = shown[y - 1] if 1 <= y < 1 + len(shown) else None
    return choices.rows.index(row) if isinstance(row, Choice) else None


def page(height: int) -> int:
    """Return how many rows a page moves in a list of this height."""
    return max(_room(height) - 1, 1)


def explanation(choice: Choice | None, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the help of a row and its source, in exactly `height` lines."""
    if choice is None or height <= 0:
        return [()] * max(height, 0)
    below = _paragraph(glyphs.say(choice.help), width, max(height - 1, 1), "text", glyphs)
    source = glyphs.say(message("Source: {source}", source=choice.source) if choice.source else "")
    lines = [*below, *_paragraph(source, width, height - len(below), "dim", glyphs)]
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
    below = next(lines for least, lines in _EXPLAINED if height >= least)
    return max(height - 2 - below - 1 - (height >= _RULED), 1)


def _shown(choices: ChoiceList, height: int) -> list[Choice | str]:
    """Return the rows to show, around the cursor."""
    rows, top = window(choices, height)
    return rows[top : top + _room(height)]


def window(choices: ChoiceList, height: int) -> tuple[list[Choice | str], int]:
    """Return all rows, and the first one to show; without a filter, the name of a family stands above its rows."""
    rows: list[Choice | str] = []
    family, at = "", 0
    for index, row in enumerate(choices.rows):
        if row.family and row.family != family and (choices.offered or not choices.words):
            rows.append(row.family)
        family = row.family
        if index == choices.cursor:
            at = len(rows)
        rows.append(row)
    room = _room(height)
    return rows, first_line(at, len(rows), room)


def _line(choices: ChoiceList, row: Choice | str, names: int, width: int, glyphs: Glyphs) -> Line:
    """Return the line of a row: a mark, the name, the formula; or of the name of a family."""
    if isinstance(row, str):
        return ((glyphs.say(row), "dim"),)
    here = row == choices.chosen
    name, formula = _cut(glyphs.say(row.name), names, glyphs), glyphs.say(row.formula)
    now = glyphs.say(" (now)") if row.value in (choices.current, *choices.also) else ""
    role: Role = "accent" if here else "label"
    mark: Line = ((glyphs.cursor if here else " ", "accent"), (" ", "text"))
    if choices.marked is not None:
        mark = (*mark, (f"[{glyphs.say('✓') if row.value in choices.marked else ' '}] ", "text"))
        width -= 4
    left: Line = (*mark, *fitted(((name, role),), names), ("  ", "text"))
    room = max(width - names - 4 - cell_len(now), 0)
    formula = _cut(formula, room, glyphs)
    return fitted(
        (*left, *fitted(((formula, "text"),), room), (now, "dim")), width + 4 * (choices.marked is not None)
    )


def _cut(text: str, room: int, glyphs: Glyphs) -> str:
    """Return a text, cut with … if it does not fit."""
    sign = glyphs.say("…")
    return text if cell_len(text) <= room else set_cell_size(text, max(room - len(sign), 0)) + sign
