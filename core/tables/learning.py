"""The outcomes of claims; the tour and the questions, also as flash cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..learning.card import USUAL
from ..learning.claim import VERDICT_WORDS
from ..learning.step import exact_text, measured_text
from ..message import joined, plain
from ..statistics.measurement import NOTHING
from .formats import Say, pair
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
                {name: getattr(finding, name) for name in ("label", "claimed", "measured", "exact", "agrees")}
                for finding in outcome.findings
            ],
        }

    def rows(outcome: Outcome) -> Iterator[list[Any]]:
        place = [outcome.claim.id, outcome.verdict]
        for finding in outcome.findings:
            measured = pair(finding.measured or NOTHING)
            yield [*place, finding.label, finding.claimed, *measured, finding.exact, finding.agrees]
        if not outcome.findings:
            yield [*place, *[None] * 6]

    def page() -> list[Block]:
        lines = [(VERDICT_WORDS[outcome.verdict], outcome.claim.statement, outcome.reason) for outcome in outcomes]
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
        "guess": card.guess,
        "right": card.right,
    }


def _figure(figure: CardFigure) -> dict[str, Any]:
    measured, exact = figure.reading
    return {"label": figure.label, "unit": figure.unit, "measured": measured, "exact": exact}


def _flash_card(card: Card) -> Iterator[Block]:
    """Yield the heading and the question, the line `---` that divides front and back, the answer and its figures.

    A card without an answer is a question on a handout; the symptoms of a bug stand there.
    """
    yield Heading(joined([f"{card.place}.", card.title]))
    yield from card.introduction
    if card.question != card.title:
        yield Bold(card.question)
    if card.answer:
        yield "---"
        yield from card.answer
    if card.usual:
        yield joined([USUAL, *card.usual])
    if card.figures:
        yield TextGrid(("", *card.columns), _rows(card))


def _rows(card: Card) -> list[tuple[str, str, str]]:
    """Return the label of each figure, with both values."""
    return [
        (
            figure.label,
            measured_text(figure.reading, figure.unit),
            exact_text(figure.reading, figure.unit, figure.digits),
        )
        for figure in card.figures
    ]


def anki_text(cards: Iterable[Card], say: Say) -> str:
    """Return cards as a text that Anki imports: id, front, back, tag. A card imported again replaces the old one."""
    head = "#separator:tab\n#html:true\n#guid column:1\n#columns:id\tfront\tback\ttags\n#tags column:4\n"
    return head + "".join(map("{}\n".format, (_anki_line(card, say) for card in cards)))


def _anki_line(card: Card, say: Say) -> str:
    """Return a card on one line: the figures stand in a table, of a bug on its front, otherwise on the back."""

    def said(text: str) -> str:
        return escape(plain(say(text)))

    cells = ("".join(f"<td>{said(cell)}</td>" for cell in row) for row in (("", *card.columns), *_rows(card)))
    table = f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if card.figures else ""
    front = "".join(f"<p>{said(text)}</p>" for text in card.introduction) + f"<p><b>{said(card.question)}</b></p>"
    usual = [joined([USUAL, *card.usual])] if card.usual else []
    back = "".join(f"<p>{said(text)}</p>" for text in (*card.answer, *usual))
    sides = (front + table, back) if card.kind == "bug" else (front, back + table)
    return "\t".join((f"attn-tui-{card.id}", *sides, f"attn-tui::{card.kind}"))
