"""The items of the Learn pane, in order, and what the user did with each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..field import next_of
from ..message import message
from ..parameters import Parameters
from .bugs import BUGS, CAUSES, Bug, BugEvidence
from .card import BUG_SHOWN, Card, bug_card, bug_front, question_card, question_front, step_card, step_front
from .claim import Claim, ClaimFigure
from .claims.catalogue import CLAIMS
from .questions import QUESTIONS
from .step import (
    GuessError,
    InterviewQuestion,
    PaneState,
    TourFigure,
    TourStep,
    filled,
    graded,
    parse_choice,
    parse_guess,
)
from .tour import STEPS

if TYPE_CHECKING:
    from .sources import Reading

Kind: TypeAlias = Literal["step", "question", "bug", "claim"]
Found: TypeAlias = "Mapping[str, Reading] | BugEvidence"  # what the engine found out about an item

SECTIONS: dict[Kind, str] = {
    "step": message("the tour"),
    "question": message("interview questions"),
    "bug": message("find the bug"),
    "claim": message("what is said"),
}


_KINDS: dict[type, Kind] = {TourStep: "step", InterviewQuestion: "question", Bug: "bug", Claim: "claim"}
_OF_CLAIMS = {
    "Lab": message("The parameters of the claim, unscaled beside scaled."),
    "Softmax": message("The row of scores that the claim is about."),
    "Train": message("The race that tests the claim."),
}
_NOWHERE = message("No tab shows this claim; its figures are all there is.")


@dataclass(frozen=True)
class Item:
    """A row of the list."""

    number: int  # within its section, from 1
    content: TourStep | InterviewQuestion | Bug | Claim

    @property
    def kind(self) -> Kind:
        """The section that it is in."""
        return _KINDS[type(self.content)]

    @property
    def id(self) -> str:
        """Its name in the settings."""
        return self.content.id

    @property
    def word(self) -> str:
        """What the command line calls it."""
        return f"{'' if self.kind == 'step' else self.kind[0]}{self.number}"

    @property
    def title(self) -> str:
        """Its title in the list."""
        content = self.content
        return filled(content.question, content.given) if isinstance(content, InterviewQuestion) else content.title

    @property
    def statement(self) -> str:
        """What a claim says."""
        return self.content.statement if isinstance(self.content, Claim) else ""

    @property
    def source(self) -> str:
        """Where it is from."""
        return self.content.source if isinstance(self.content, TourStep | Claim) else ""

    @property
    def figures(self) -> Mapping[str, TourFigure | ClaimFigure]:
        """What is measured of it, by name; nothing of a bug, whose capture is made on the spot."""
        match self.content:
            case Bug():
                return {}
            case Claim() as claim:
                return claim.by_label
            case content:
                return content.figures

    @property
    def shown(self) -> PaneState:
        """The pane that shows what it says; without a title if none does."""
        match self.content:
            case Bug(head=head):
                return PaneState("Capture", BUG_SHOWN, head=(0, head))
            case Claim(parameters=p, scores=scores, race=race):
                pane = "Softmax" if scores else "Train" if race else "Lab" if p else ""
                what = _OF_CLAIMS.get(pane, _NOWHERE)
                return PaneState(pane, what, p or Parameters(), scores, race=race)
            case content:
                return content.shown

    @property
    def asks(self) -> bool:
        """Whether there is something to type before the answer: a guess, or a cause."""
        return self.kind in ("step", "bug")

    @property
    def stages(self) -> int:
        """How many times Enter shows more of it: of a claim, all is shown."""
        return {"question": 2, "claim": 0}.get(self.kind, 1)

    def front(self, found: Found | None = None) -> Card:
        """Return the card without its answer; that of a bug has what was found out about it."""
        match self.content, found:
            case Bug() as bug, BugEvidence():
                return bug_front(self.number, bug, found)
            case TourStep() as step, _:
                return step_front(self.number, step)
            case InterviewQuestion() as question, _:
                return question_front(self.number, question)
            case _:
                raise TypeError("this item has no front")

    def card(self, found: Found) -> Card:
        """Return it with its numbers filled in."""
        match self.content, found:
            case Bug() as bug, BugEvidence():
                return bug_card(self.number, bug, found)
            case TourStep() as step, Mapping():
                return step_card(self.number, step, found)
            case InterviewQuestion() as question, Mapping():
                return question_card(self.number, question, found)
            case _:
                raise TypeError("these are not the figures of this item")

    def answered(self, card: Card, guess: float | None, found: Found) -> Card:
        """Return the card with what the user answered, and whether that is right."""
        if guess is None:
            return card
        right = is_right(self, Attempt(guess=guess), found)
        return replace(card, guess=None if self.kind == "question" else guess, right=right)


ITEMS: tuple[Item, ...] = tuple(
    Item(number, content) for section in (STEPS, QUESTIONS, BUGS, CLAIMS) for number, content in enumerate(section, 1)
)
AT = {item.id: index for index, item in enumerate(ITEMS)}


def count(kind: Kind) -> int:
    """Return the number of items in a section."""
    return sum(item.kind == kind for item in ITEMS)


def section_from(at: int) -> int:
    """Return the first item of the next section, around the end."""
    name = next_of([*SECTIONS], ITEMS[at].kind)
    return next(index for index, item in enumerate(ITEMS) if item.kind == name)


@dataclass(frozen=True)
class Attempt:
    """What the user did with an item."""

    text: str = ""  # the guess, as typed
    guess: float | None = None  # the number that it means, that of a cause, or whether an answer was known
    stage: int = 0  # how much of the answer is shown
    objection: str = ""  # why the text is not a guess
    refused: bool = False  # whether Enter was pressed nevertheless


def typed(item: Item, text: str, say: Callable[[str], str]) -> Attempt:
    """Return a text that was typed so far, with the number that it means, or why it means none."""
    content = item.content
    try:
        if text and isinstance(content, Bug):
            return Attempt(text, parse_choice(text, [CAUSES[cause] for cause in content.choices], say))
        if text and isinstance(content, TourStep):
            return Attempt(text, parse_guess(text, content.figures[content.guess.figure].unit, content.given, say))
    except GuessError as error:
        return Attempt(text, objection=str(error))
    return Attempt()


def is_right(item: Item, attempt: Attempt, found: Found) -> bool:
    """Return whether an answer that is shown was not missed.

    No guess is not wrong, but names no cause; of a question, the user says whether the answer was known.
    """
    match item.content, found:
        case Bug() as bug, BugEvidence():
            return attempt.guess is not None and bug.choices[int(attempt.guess) - 1] == found.cause
        case TourStep() as step, Mapping():
            how_far = None if attempt.guess is None else graded(step, attempt.guess, found)
            return how_far is None or how_far.close
        case _:
            return bool(attempt.guess)


def remembered(progress: Mapping[str, Any]) -> tuple[int, set[str]]:
    """Return the index of the item to show, and the items that were answered, from the settings."""
    done = progress.get("done", ())
    return AT.get(str(progress.get("at", "")), 0), {name for name in map(str, done) if name in AT}


def to_remember(at: int, done: Collection[str]) -> dict[str, Any]:
    """Return what the settings file keeps, a table; empty if nothing was done."""
    kept = {"at": ITEMS[at].id, "done": [item.id for item in ITEMS if item.id in done]}
    return {"learn": kept} if at or done else {}
