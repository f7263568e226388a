"""Steps and questions as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.learning.card import MEASURED
from ....core.learning.step import exact_text, measured_text
from ....core.message import joined
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, fitted, middle_cut, wrapped
from ...views.numbers import signed

if TYPE_CHECKING:
    from ....core.learning.card import Card, CardFigure
    from ....core.learning.guesses import Grade

_GAP = 2  # cells between columns


def paragraphs(texts: Sequence[str], width: int, glyphs: Glyphs, apart: bool = True) -> list[Line]:
    """Return paragraphs, with a blank line between them if `apart`."""
    lines: list[Line] = []
    for text in texts:
        lines += [()] if lines and apart else []
        lines += wrapped(glyphs.say(text), width)
    return lines


def figure_lines(
    figures: Sequence[CardFigure],
    asked: CardFigure | None,
    width: int,
    glyphs: Glyphs,
    columns: tuple[str, str] = MEASURED,
) -> list[Line]:
    """Return a table of figures, each with two values; the one that was asked for is marked."""
    rows = [("", *columns)] + [
        (told.label, measured_text(told.reading, told.unit), exact_text(told.reading, told.unit, told.digits))
        for told in figures
    ]
    said = [
        (glyphs.say(label), *(glyphs.say(signed(glyphs.say(value), glyphs)) for value in values))
        for label, *values in rows
    ]
    measured, exact = (max(cells(row[column]) for row in said) for column in (1, 2))
    longest = max(cells(row[0]) for row in said) + 1
    room = min(longest, max(width - measured - exact - 2 * _GAP - 1, 8))
    lines: list[Line] = []
    for place, (label, found, known) in enumerate(said):
        chosen = place > 0 and figures[place - 1] == asked
        head = place == 0
        mark = glyphs.cursor if chosen else " "
        line: Line = (
            (mark, "accent"),
            (to_left(middle_cut(label, room, glyphs.say("…")), room), "accent" if chosen else "label"),
            (" " * _GAP + to_right(found, measured), "dim" if head else "text"),
            (" " * _GAP + to_right(known, exact), "dim" if head else "theory"),
        )
        lines.append(fitted(line, width))
    return lines


def answer_lines(card: Card, grade: Grade | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the answer of a card: how good the guess was, the figures, and the explanation."""
    lines: list[Line] = []
    if grade is not None:
        lines += [*wrapped(glyphs.say(grade.sentence), width, "scaled" if grade.close else "unscaled"), ()]
    parts = [figure_lines(card.figures, card.asked, width, glyphs, card.columns)] if card.figures else []
    parts.insert(0 if card.kind == "question" else 1, paragraphs(card.answer, width, glyphs))
    return lines + [line for number, part in enumerate(parts) for line in ([(), *part] if number else part)]


def card_lines(card: Card, grade: Grade | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a card in full, for print."""
    title = joined([f"{card.place}.", card.title])
    lines: list[Line] = [*wrapped(glyphs.say(title), width, "heading"), ()]
    if card.introduction:
        lines += [*paragraphs(card.introduction, width, glyphs), ()]
    if card.question != card.title:
        lines += [*wrapped(glyphs.say(card.question), width, "accent"), ()]
    lines += [*answer_lines(card, grade, width, glyphs), ()]
    return lines + wrapped(
        glyphs.say("See the {pane} pane. {what}", pane=card.shown.pane, what=card.shown.what), width, "dim"
    )
