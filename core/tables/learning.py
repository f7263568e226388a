"""The outcomes of claims; the tour and the questions, also as flash cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..learning.card import USUAL
from ..learning.claim import VERDICT_WORDS
from ..learning.step import exact_text, measured_text
from ..message import joined
from ..statistics.measurement import NOTHING
from .formats import pair
from .table import Block, Bold, Heading, Table, TextGrid

if TYPE_CHECKING:
    from ..learning.card import Card, CardFigure
    from ..learning.outcome import Outcome

_CLAIM_COLUMNS = {
    "claim": str, "verdict": str, "figure": str, "claimed": str, "measured": float, "stderr": float, "exact": float,
    "agrees": bool,
}  # fmt: skip


def claims_table(outcomes: Sequence[Outcome]) -> Table[Outcome]:
    """Return the outcomes of claims. CSV has a line for each figure, and one for each claim without figures."""

    def element(outcome: Outcome) -> dict[str, Any]:
        claim = outcome.claim
        return {
            "id": claim.id,
            "statement": claim.statement,
            "source": claim.source,
            "verdict": outcome.verdict,
            "reason": outcome.reason,
            "why": claim.why,
            "figures": [
                {name: getattr(found, name) for name in ("label", "claimed", "measured", "exact", "agrees")}
                for found in outcome.findings
            ],
        }

    def rows(outcome: Outcome) -> Iterator[list[Any]]:
        place = [outcome.claim.id, outcome.verdict]
        for found in outcome.findings:
            measured = pair(found.measured or NOTHING)
            yield [*place, found.label, found.claimed, *measured, found.exact, found.agrees]
        if not outcome.findings:
            yield [*place, *[None] * 6]

    def page() -> list[Block]:
        lines = [(VERDICT_WORDS[each.verdict], each.claim.statement, each.reason) for each in outcomes]
        return [TextGrid(("verdict", "claim", "because"), lines, of_words=True)]

    return Table("claims-1", {}, "claims", outcomes, lambda each: [element(each)], _CLAIM_COLUMNS, rows, page)


def cards_table(cards: Iterable[Card]) -> Table[Card]:
    """Return steps and questions, which have no CSV; for people, they are flash cards."""
    return Table(
        "learn-1", {}, "cards", cards, lambda card: [_card(card)], {}, lambda _: (),
        lambda: [block for card in cards for block in _flash_card(card)],
    )  # fmt: skip


def _card(card: Card) -> dict[str, Any]:
    said = ("kind", "number", "id", "title", "source", "introduction", "question")
    return {name: getattr(card, name) for name in said} | {
        "asked": None if card.asked is None else _figure(card.asked),
        "answer": card.answer,
        "usual": card.usual,
        "figures": [*map(_figure, card.figures)],
        "pane": card.shown.pane,
    }


def _figure(figure: CardFigure) -> dict[str, Any]:
    measured, exact = figure.reading
    return {"label": figure.label, "unit": figure.unit, "measured": measured, "exact": exact}


def _flash_card(card: Card) -> Iterator[Block]:
    """Yield the heading and the question, the line `---` that divides front and back, the answer and its figures."""
    yield Heading(f"{card.place}. {card.title}")
    yield from card.introduction
    if card.question != card.title:
        yield Bold(card.question)
    yield "---"
    yield from card.answer
    if card.usual:
        yield joined([USUAL, *card.usual])
    if card.figures:
        lines = [
            (
                figure.label,
                measured_text(figure.reading, figure.unit),
                exact_text(figure.reading, figure.unit, figure.digits),
            )
            for figure in card.figures
        ]
        yield TextGrid(("", *card.columns), lines)
