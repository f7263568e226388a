"""One item as it stands on the screen, with its parts closer together, or fewer, where they would not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ....core.learning.card import step_card
from ....core.learning.grading import Grade, accepted, grade
from ....core.learning.step import Shown, Step
from ....core.learning.wording import best, filled
from ...views.glyphs import Glyphs
from ...views.lines import Line, wrapped
from .items import Attempt, Item
from .view import figure_lines, paragraphs

if TYPE_CHECKING:
    from ....core.claims.claim import Reading

Block: TypeAlias = Sequence[Line]

CURSOR = "_"
WIDEST = 100  # cells of a line of prose


def item_lines(
    item: Item,
    attempt: Attempt,
    readings: Mapping[str, Reading] | None,
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Return the lines of an item; if they do not fit in any setting, those of the tightest."""
    width = min(width, WIDEST)
    lines: list[Line] = []
    for whole, apart, gaps in ((True, True, True), (True, False, True), (False, False, True), (False, False, False)):
        blocks = _step_blocks(item.content, item.number, attempt, readings, width, glyphs, whole, apart)
        lines = _joined(blocks, gaps)
        if len(lines) <= height:
            return lines
    return lines


def _joined(blocks: Iterable[Block], gaps: bool) -> list[Line]:
    """Return blocks below each other, with blank lines between them if `gaps`."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [(), *block] if lines and gaps else block
    return lines


def _step_blocks(
    step: Step,
    number: int,
    attempt: Attempt,
    readings: Mapping[str, Reading] | None,
    width: int,
    glyphs: Glyphs,
    whole: bool,
    apart: bool,
) -> list[Block]:
    """Return the parts of a step. Without `whole`, an answered step leaves out its introduction."""
    blocks: list[Block] = []
    if whole or not attempt.stage:
        texts = [filled(text, step.given) for text in step.introduction]
        blocks.append(paragraphs(texts, width, glyphs, apart=apart))
    blocks.append(wrapped(glyphs.say(filled(step.guess.question, step.given)), width, "accent"))
    if not attempt.stage:
        return [*blocks, _field(step, attempt, width, glyphs)]
    if readings is None:
        return [*blocks, wrapped(glyphs.say("Measuring…"), width, "dim")]
    card = step_card(number, step, readings)
    found = graded(step, attempt, readings)
    if found is not None:
        blocks.append(wrapped(glyphs.say(found.sentence), width, "scaled" if found.close else "unscaled"))
    blocks.append(figure_lines(card.figures, card.asked, width, glyphs))
    blocks.append(paragraphs(card.answer, width, glyphs, apart=apart))
    blocks.append(_pointer(card.shown, width, glyphs))
    return blocks


def graded(step: Step, attempt: Attempt, readings: Mapping[str, Reading]) -> Grade | None:
    """Return how far off the guess was; None without a guess."""
    figure = step.figures[step.guess.figure]
    answer = best(readings[step.guess.figure])
    if attempt.guess is None or answer is None:
        return None
    return grade(attempt.guess, answer, step.guess.compare, figure.unit)


def _field(step: Step, attempt: Attempt, width: int, glyphs: Glyphs) -> Block:
    """Return the field for the guess, and what it accepts."""
    unit = step.figures[step.guess.figure].unit
    field: Line = (("Your guess: ", "label"), (attempt.text + CURSOR, "accent"))
    if attempt.objection:
        return [field, *wrapped(glyphs.say(f"{attempt.objection}."), width, "alert")]
    hint = f"Type {accepted(unit)}. Enter shows the answer, also without a guess."
    return [field, *wrapped(glyphs.say(hint), width, "dim")]


def _pointer(shown: Shown, width: int, glyphs: Glyphs) -> Block:
    """Return the lines that say which pane shows this."""
    first, *others = wrapped(glyphs.say(f"E opens {shown.pane}. {shown.what}"), width, "dim")
    [(text, role)] = first
    return [((text[:1], "key"), (text[1:], role)), *others]
