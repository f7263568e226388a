"""Cards: steps and questions with their numbers filled in, for print and flash cards. Does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..message import joined, message
from .bugs import CAUSES, SYMPTOMS, Bug, BugEvidence, facts
from .sources import Reading
from .step import InterviewQuestion, PaneState, TourFigure, TourStep, Unit, filled, usual_guesses

Kind = Literal["step", "question", "bug"]

WRONG = message("What is wrong, if anything?")
USUAL = message("Usual wrong answers:")
BUG_SHOWN = message("The capture, with its verdict; v replays every rule on the head.")
MEASURED = (message("measured"), message("exact"))
RETURNED = (message("returned"), message("as the file says"))


@dataclass(frozen=True)
class CardFigure:
    """A figure with its reading."""

    label: str
    unit: Unit
    reading: Reading
    digits: int = 4


@dataclass(frozen=True)
class Card:
    """A question and its answer."""

    kind: Kind
    number: int  # from 1
    id: str
    title: str
    source: str
    introduction: tuple[str, ...]
    question: str
    shown: PaneState
    answer: tuple[str, ...] = ()  # paragraphs; none on the front of a card
    figures: tuple[CardFigure, ...] = ()
    asked: CardFigure | None = None  # the figure that answers the question, if it asks for a number
    usual: tuple[str, ...] = ()  # what each usual wrong guess means
    columns: tuple[str, str] = MEASURED  # what the two values of each figure are
    guess: float | None = None  # what the user answered: a number, or that of a cause
    right: bool | None = None  # whether that is right; None if nothing was answered

    @property
    def place(self) -> str:
        """What the command line calls it: 3, q3 or b3."""
        return f"{'' if self.kind == 'step' else self.kind[0]}{self.number}"


def step_front(number: int, step: TourStep) -> Card:
    """Return the card of a step without its answer."""
    return Card(
        kind="step",
        number=number,
        id=step.id,
        title=step.title,
        source=step.source,
        introduction=tuple(filled(text, step.given) for text in step.introduction),
        question=filled(step.guess.question, step.given),
        shown=step.shown,
    )


def step_card(number: int, step: TourStep, readings: Mapping[str, Reading]) -> Card:
    """Return the card of a step whose figures have been measured."""

    def figure(name: str) -> CardFigure:
        return card_figure(step.figures[name], step.given, readings[name])

    return replace(
        step_front(number, step),
        answer=tuple(filled(text, step.given, step.figures, readings) for text in step.explanation),
        figures=tuple(figure(name) for name in step.table),
        asked=figure(step.guess.figure),
        usual=tuple(usual_guesses(step, readings).values()),
    )


def question_front(number: int, question: InterviewQuestion) -> Card:
    """Return the card of a question without its answer."""
    asked = filled(question.question, question.given)
    return Card("question", number, question.id, asked, "", (), asked, question.shown)


def question_card(number: int, question: InterviewQuestion, readings: Mapping[str, Reading]) -> Card:
    """Return the card of a question whose figures have been measured."""

    def say(text: str) -> str:
        return filled(text, question.given, question.figures, readings)

    usual: tuple[str, ...] = ()
    if question.usual:
        usual = (message("The usual answer: “{usual}” {verdict}", usual=question.usual, verdict=question.verdict),)
    return replace(
        question_front(number, question),
        answer=(say(question.short), *usual, *map(say, question.long)),
        figures=tuple(
            card_figure(figure, question.given, readings[name]) for name, figure in question.figures.items()
        ),
    )


def bug_front(number: int, bug: Bug, evidence: BugEvidence) -> Card:
    """Return the card of a bug whose capture has been examined, without the cause."""
    causes = joined((joined([str(place), CAUSES[cause]]) for place, cause in enumerate(bug.choices, 1)), "; ")
    return Card(
        kind="bug",
        number=number,
        id=bug.id,
        title=bug.title,
        source="",
        introduction=(bug.story, facts(bug), message("Causes to choose from: {causes}.", causes=causes)),
        question=WRONG,
        figures=symptoms(evidence),
        shown=PaneState("Capture", BUG_SHOWN, head=(0, bug.head)),
        columns=RETURNED,
    )


def bug_card(number: int, bug: Bug, evidence: BugEvidence) -> Card:
    """Return the card of a bug whose capture has been examined."""
    return replace(bug_front(number, bug, evidence), answer=(*diagnosis(evidence), bug.lesson))


def diagnosis(evidence: BugEvidence) -> tuple[str, ...]:
    """Return what the diagnosis says, and which causes would look the same."""
    cause = CAUSES.get(evidence.cause, evidence.cause)
    also = joined((CAUSES.get(name, name) for name in evidence.also), "; ")
    if evidence.cause == "undecided":
        says = message("The diagnosis names the most common cause: “{says}”.", says=evidence.says)
        return says, message("The weights fit all of these alike: {also}.", also=also)
    says = message("The diagnosis: {cause}. It says “{says}”.", cause=cause, says=evidence.says)
    if not evidence.also:
        return (says,)
    return says, message("The weights alone do not tell it from: {also}.", also=also)


def symptoms(evidence: BugEvidence) -> tuple[CardFigure, ...]:
    """Return the symptoms of a bug."""
    return tuple(
        CardFigure(SYMPTOMS[name].label, SYMPTOMS[name].unit, reading) for name, reading in evidence.symptoms.items()
    )


def card_figure(figure: TourFigure, given: Mapping[str, float | str], reading: Reading) -> CardFigure:
    """Return a figure with its label filled in."""
    return CardFigure(filled(figure.label, given), figure.unit, reading, max(figure.digits, 4))
