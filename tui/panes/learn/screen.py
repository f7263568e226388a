"""One item as it stands on the screen, with its parts closer together, or fewer, where they would not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ....core.learning.card import step_card
from ....core.learning.grading import Grade, accepted, grade
from ....core.learning.question import Question
from ....core.learning.step import Shown, Step
from ....core.learning.wording import best, filled
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, wrapped
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
    width, content = min(width, WIDEST), item.content
    lines: list[Line] = []
    for whole, apart, gaps in ((True, True, True), (True, False, True), (False, False, True), (False, False, False)):
        page = _Page(attempt, readings, width, glyphs, whole, apart)
        blocks = _of_step(content, item.number, page) if isinstance(content, Step) else _of_question(item, page)
        lines = _joined(blocks, gaps)
        if len(lines) <= height:
            return lines
    return lines


@dataclass(frozen=True, eq=False)
class _Page:
    """What is shown of an item, and in which setting."""

    attempt: Attempt
    readings: Mapping[str, Reading] | None
    width: int
    glyphs: Glyphs
    whole: bool  # otherwise, an answered item leaves out what stood before the question, or the short answer
    apart: bool  # whether blank lines divide paragraphs

    def paragraphs(self, *texts: str) -> Block:
        """Return paragraphs."""
        return paragraphs(texts, self.width, self.glyphs, apart=self.apart)

    def words(self, text: str, role: Role) -> Block:
        """Return a text in a role."""
        return wrapped(self.glyphs.say(text), self.width, role)


def _joined(blocks: Iterable[Block], gaps: bool) -> list[Line]:
    """Return blocks below each other, with blank lines between them if `gaps`."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [(), *block] if lines and gaps else block
    return lines


def _of_step(step: Step, number: int, page: _Page) -> list[Block]:
    """Return the parts of a step."""
    attempt, readings = page.attempt, page.readings
    blocks: list[Block] = []
    if page.whole or not attempt.stage:
        blocks.append(page.paragraphs(*(filled(text, step.given) for text in step.introduction)))
    blocks.append(page.words(filled(step.guess.question, step.given), "accent"))
    if not attempt.stage:
        return [*blocks, _field(step, page)]
    if readings is None:
        return [*blocks, page.words("Measuring…", "dim")]
    card = step_card(number, step, readings)
    found = graded(step, attempt, readings)
    if found is not None:
        blocks.append(page.words(found.sentence, "scaled" if found.close else "unscaled"))
    blocks.append(figure_lines(card.figures, card.asked, page.width, page.glyphs))
    return [*blocks, page.paragraphs(*card.answer), _pointer(card.shown, page)]


def _of_question(item: Item, page: _Page) -> list[Block]:
    """Return the parts of a question."""
    stage, readings = page.attempt.stage, page.readings
    blocks: list[Block] = [page.words(item.title, "accent")]
    if not stage:
        return [*blocks, page.words("Answer aloud, in half a minute. Then press Enter.", "dim")]
    if readings is None:
        return [*blocks, page.words("Measuring…", "dim")]
    card = item.card(readings)
    short, *others = card.answer
    usual, long = (others[:1], others[1:]) if len(others) > len(_long(item)) else ([], others)
    if page.whole or stage < item.stages:
        blocks += [page.paragraphs(short), *(page.words(text, "unscaled") for text in usual)]
    if stage < item.stages:
        return [*blocks, page.words("Enter shows the long answer.", "dim"), _pointer(card.shown, page)]
    blocks.append(figure_lines(card.figures, None, page.width, page.glyphs))
    return [*blocks, page.paragraphs(*long), _pointer(card.shown, page)]


def _long(item: Item) -> tuple[str, ...]:
    return item.content.long if isinstance(item.content, Question) else ()


def graded(step: Step, attempt: Attempt, readings: Mapping[str, Reading]) -> Grade | None:
    """Return how far off the guess was; None without a guess."""
    figure = step.figures[step.guess.figure]
    answer = best(readings[step.guess.figure])
    if attempt.guess is None or answer is None:
        return None
    return grade(attempt.guess, answer, step.guess.compare, figure.unit)


def _field(step: Step, page: _Page) -> Block:
    """Return the field for the guess, and what it accepts."""
    unit, attempt = step.figures[step.guess.figure].unit, page.attempt
    field: Line = (("Your guess: ", "label"), (attempt.text + CURSOR, "accent"))
    if attempt.objection:
        return [field, *page.words(f"{attempt.objection}.", "alert")]
    return [field, *page.words(f"Type {accepted(unit)}. Enter shows the answer, also without a guess.", "dim")]


def _pointer(shown: Shown, page: _Page) -> Block:
    """Return the lines that say which pane shows this."""
    first, *others = page.words(f"E opens {shown.pane}. {shown.what}", "dim")
    [(text, role)] = first
    return [((text[:1], "key"), (text[1:], role)), *others]
