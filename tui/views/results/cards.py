"""Steps, questions, bugs and claims as lines, closer together or fewer where they would not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from ....core.learning.bugs import CAUSES, Bug, BugEvidence, facts
from ....core.learning.card import MEASURED, RETURNED, USUAL, WRONG, Card, diagnosis, symptoms
from ....core.learning.claim import Claim
from ....core.learning.items import Attempt, Found, Item
from ....core.learning.outcome import judged
from ....core.learning.step import (
    Grade,
    InterviewQuestion,
    PaneState,
    TourStep,
    accepted,
    best,
    exact_text,
    filled,
    graded,
    measured_text,
    number_text,
)
from ....core.message import joined, message
from ....core.setting_text import is_number
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, fitted, middle_cut, wrapped
from ..numbers import signed
from ..plots.guess import guess_lines
from .claims import claim_lines

if TYPE_CHECKING:
    from ....core.learning.card import CardFigure

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
        if cells(label) > room:  # what it is comes before why: `score, variance: a sum of d_k variances`
            label = re.split(": |：", label)[0]
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
    if not card.answer:
        return [*lines, *figure_lines(card.figures, None, width, glyphs, card.columns), ()] if card.figures else lines
    lines += [*answer_lines(card, grade, width, glyphs), ()]
    if card.usual:
        lines += [*paragraphs((USUAL, *card.usual), width, glyphs, apart=False), ()]
    return lines + wrapped(
        glyphs.say("In the app: {place}. {what}", place=card.shown.place, what=card.shown.what), width, "dim"
    )


Block: TypeAlias = Sequence[Line]
Groups: TypeAlias = Sequence[Sequence[Block]]

CURSOR = "_"
WIDEST = 100  # cells of a line of prose


def item_lines(
    item: Item,
    attempt: Attempt,
    found: Found | None,
    width: int,
    height: int,
    glyphs: Glyphs,
    cursor: str = CURSOR,
    whole: bool = False,
) -> list[Line]:
    """Return the lines of an item, in the widest setting that fits; if none does, in the tightest.

    `cursor` follows what is typed; it is empty if the field does not have the focus. If `whole`, nothing is left out.
    """
    width, content = min(width, WIDEST), item.content
    lines: list[Line] = []
    for level in _LEVELS[: _LEVELS.index(_SHORTENED) if whole else None]:
        page = _Page(attempt, found, width, glyphs, level, cursor)
        match content:
            case TourStep():
                groups = _of_step(content, item, page)
            case InterviewQuestion():
                groups = _of_question(content, item, page)
            case Bug():
                groups = _of_bug(content, item, page)
            case Claim():
                outcome = judged(content, found) if isinstance(found, Mapping) else None
                groups = [[claim_lines(content, outcome, width, glyphs, True)], [_pointer(item.shown, page)]]
        blocks = [_joined(group, level < _BY_TABLE) for group in groups]
        lines = _joined(blocks, level < _CLOSE)
        if len(lines) <= height:
            return lines
    return lines


# The settings, each tighter than the one before: blank lines divide paragraphs, then only blocks, then only groups
# of them, such as the table; then nothing; then what is said elsewhere, too, is left out; then the axis of a step.
_LEVELS = _WIDE, _BY_BLOCKS, _BY_TABLE, _CLOSE, _SHORTENED, _SHORTEST = range(6)


@dataclass(frozen=True, eq=False)
class _Page:
    """What is shown of an item, and in which setting."""

    attempt: Attempt
    found: Found | None
    width: int
    glyphs: Glyphs
    level: int
    cursor: str  # after what is typed

    @property
    def whole(self) -> bool:
        """Whether an answered item has what stood before the question, or the short answer."""
        return self.level < _SHORTENED

    def paragraphs(self, *texts: str) -> Block:
        """Return paragraphs."""
        return paragraphs(texts, self.width, self.glyphs, apart=self.level < _BY_BLOCKS)

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


def _of_step(step: TourStep, item: Item, page: _Page) -> Groups:
    """Return the parts of a step: before the answer its introduction, and afterwards guess and answer on one axis."""
    attempt, found = page.attempt, page.found
    question = page.words(filled(step.guess.question, step.given), "accent")
    if not attempt.stage:
        introduction = page.paragraphs(*(filled(text, step.given) for text in step.introduction))
        return [[introduction], [question, _field(step, page), _axis_of(step, page)]]
    if not isinstance(found, Mapping):
        return [[question], [page.words(message("Measuring…"), "dim")]]
    how_far = None if attempt.guess is None else graded(step, attempt.guess, found)
    role: Role = "scaled" if how_far is not None and how_far.close else "unscaled"
    axis = _axis_of(step, page, best(found[step.guess.figure]), role)
    said: Block = () if how_far is None else page.words(how_far.sentence, role)
    return [[question, [*axis, *said]], *_answer(item.card(found), page)]


def _axis_of(step: TourStep, page: _Page, answer: float | None = None, role: Role = "unscaled") -> Block:
    """Return the axis of the guess, and of the answer once it is known."""
    unit, indent = step.figures[step.guess.figure].unit, "  "
    lines = guess_lines(
        page.attempt.guess, answer, unit, step.guess.compare, max(page.width - 6, 8), page.glyphs, role
    )
    return [((indent, "text"), *line) for line in lines] if page.level < _SHORTEST else []


def _answer(card: Card, page: _Page) -> Groups:
    """Return the figures, what they mean, and unless a key says so already where to see it."""
    table = figure_lines(card.figures, card.asked, page.width, page.glyphs, card.columns)
    return [[table], [page.paragraphs(*card.answer), _pointer(card.shown, page) if page.whole else ()]]


def _of_question(question: InterviewQuestion, item: Item, page: _Page) -> Groups:
    """Return the parts of a question."""
    stage, found = page.attempt.stage, page.found
    blocks: list[Block] = [page.words(item.title, "accent")]
    if not stage:
        return [blocks, [page.words(message("Answer aloud, in half a minute. Then press Enter."), "dim")]]
    if found is None:
        return [blocks, [page.words(message("Measuring…"), "dim")]]
    card = item.card(found)
    short, *others = card.answer
    usual, long = others[: len(others) - len(question.long)], others[len(others) - len(question.long) :]
    if page.whole or stage < item.stages:
        blocks += [page.paragraphs(short), *(page.words(text, "unscaled") for text in usual)]
    if stage < item.stages:
        keys = message("Enter shows the long answer. 1: I knew it. 2: not yet, ask again.")
        return [blocks, [page.words(keys, "dim"), _pointer(card.shown, page)]]
    return [blocks, *_answer(replace(card, answer=tuple(long)), page)]


def _of_bug(bug: Bug, item: Item, page: _Page) -> Groups:
    """Return the parts of a bug to be found."""
    attempt, found = page.attempt, page.found
    blocks: list[Block] = []
    if page.whole or not attempt.stage:
        blocks.append(page.paragraphs(bug.story, facts(bug)))
    if not isinstance(found, BugEvidence):
        return [blocks, [page.words(message("Making the capture…"), "dim")]]
    table = figure_lines(symptoms(found), None, page.width, page.glyphs, RETURNED)
    if not attempt.stage:
        return [blocks, [table], [page.words(WRONG, "accent"), _choices(bug, page), _choice_field(bug, page)]]
    chosen = "" if attempt.guess is None else bug.choices[int(attempt.guess) - 1]
    right = chosen == found.cause
    if chosen:
        said = CAUSES[chosen]
        text = message("Right: {chosen}.", chosen=said) if right else message("No. You said: {chosen}.", chosen=said)
        blocks.append(page.words(text, "scaled" if right else "unscaled"))
    return [blocks, [table], [page.paragraphs(*diagnosis(found), bug.lesson), _pointer(item.shown, page)]]


def _choices(bug: Bug, page: _Page) -> Block:
    """Return the causes to choose from, in two columns if they fit."""
    texts = [f"{place} {page.glyphs.say(CAUSES[cause])}" for place, cause in enumerate(bug.choices, 1)]
    half = -(-len(texts) // 2)
    column = max(map(cells, texts)) + 2
    if 2 * column > page.width:
        return [((text, "text"),) for text in texts]
    pairs = zip_longest(texts[:half], texts[half:], fillvalue="")
    return [((to_left(one, column), "text"), (other, "text")) for one, other in pairs]


def _choice_field(bug: Bug, page: _Page) -> Block:
    """Return the field for a cause."""
    hint = message("Type its number, 1 to {count}, or words of it; Enter has the capture diagnosed.",
                   count=len(bug.choices))  # fmt: skip
    guess = page.attempt.guess
    meant = (
        ""
        if guess is None
        else message("{number} {cause}", number=int(guess), cause=CAUSES[bug.choices[int(guess) - 1]])
    )
    return _typed_field(message("Your answer: "), meant, hint, page)


def _field(step: TourStep, page: _Page) -> Block:
    """Return the field for the guess."""
    figure, guess, text = step.figures[step.guess.figure], page.attempt.guess, page.attempt.text
    plain = figure.unit != "share" and is_number(text)
    meant = "" if guess is None or plain else number_text(guess, figure.unit)
    if guess is not None and figure.unit == "share" and 0 < guess < 0.01 and is_number(text):  # 0.12 for 12 %
        meant = message("{meant}; for {more}, type {number}", meant=meant, more=number_text(100 * guess, "share"),
                        number=number_text(100 * 100 * guess))  # fmt: skip
    hint = message("Type {accepted}. Enter shows the answer, guess or not.", accepted=accepted(figure.unit))
    return _typed_field(message("Your guess: "), meant, hint, page)


def _typed_field(label: str, meant: str, hint: str, page: _Page) -> Block:
    """Return a field: what is typed, what it means unless that is plain, and below it what the field accepts.

    Once Enter was pressed on a text that means nothing, the reason stands in the place of the hint.
    """
    attempt, glyphs = page.attempt, page.glyphs
    field: Line = ((glyphs.say(label), "label"), (attempt.text + page.cursor, "accent"))
    if meant:
        field = (*field, (glyphs.say("  = {meant}", meant=meant), "dim"))
    if attempt.refused:
        return [field, *page.words(message("{objection}.", objection=attempt.objection), "alert")]
    return [field, *page.words(hint, "dim")]


def _pointer(shown: PaneState, page: _Page) -> Block:
    """Return the lines that say which pane shows this."""
    if not shown.pane:
        return page.words(shown.what, "dim")
    first, *others = page.words(message("E opens {place}. {what}", place=shown.place, what=shown.what), "dim")
    [(text, role)] = first
    return [((text[:1], "key"), (text[1:], role)), *others]
