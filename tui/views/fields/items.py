"""The items of the Learn pane as rows of a list, found by their texts."""

from __future__ import annotations

from ....core.learning.bugs import Bug
from ....core.learning.claim import Claim
from ....core.learning.items import SECTIONS, Item
from ....core.learning.step import InterviewQuestion, TourStep
from ....core.message import joined
from .choices import Choice


def item_row(item: Item, value: str, formula: str) -> Choice:
    """Return the row of an item of the Learn pane, found by what it asks and by the texts of its answer."""
    said: tuple[str, ...]
    match item.content:
        case TourStep() as step:
            asks, said = step.guess.question, (*step.introduction, *step.explanation)
        case InterviewQuestion() as question:
            asks, said = question.short, (question.usual, question.verdict, *question.long)
        case Bug(story=story):  # its lesson would tell the cause
            asks, said = story, ()
        case Claim() as claim:
            asks, said = claim.statement, (claim.why,)
    labels = tuple(figure.label for figure in item.figures.values())
    name = joined([f"{item.word}.", item.title])
    help = item.statement or item.shown.what
    words = (item.id, item.title, SECTIONS[item.kind], asks)
    return Choice(value, name, formula, help, item.source, words=words, also=(*said, *labels, item.shown.what))
