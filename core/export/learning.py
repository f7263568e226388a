"""Export the tour and the questions: JSON, and Markdown for flash cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..learning.wording import exact_text, measured_text
from .columns import estimate_json
from .formats import Say, escaped, existing, json_text, marked_table, version

if TYPE_CHECKING:
    from ..learning.card import Card, Told

_LEARN = "attn-tui/learn-1"


def learning_json(cards: Sequence[Card]) -> str:
    """Return steps and questions as one JSON object."""
    return json_text(
        {
            "schema": _LEARN,
            "version": version(),
            "cards": [
                {
                    "kind": card.kind,
                    "number": card.number,
                    "id": card.id,
                    "title": card.title,
                    "source": card.source,
                    "introduction": list(card.introduction),
                    "question": card.question,
                    "asked": None if card.asked is None else _figure(card.asked),
                    "answer": list(card.answer),
                    "figures": [_figure(told) for told in card.figures],
                    "pane": card.shown.pane,
                }
                for card in cards
            ],
        }
    )


def _figure(told: Told) -> dict[str, object]:
    measured, exact = told.reading
    return {
        "label": told.label,
        "unit": told.unit,
        "measured": None if measured is None else estimate_json(measured),
        "exact": existing(exact),
    }


def learning_markdown(cards: Sequence[Card], say: Say = str) -> str:
    """Return flash cards: a heading and the question, a rule, and the answer with its figures."""
    return "\n".join(_card(card, say) for card in cards)


def _card(card: Card, say: Say) -> str:
    """Return one card; the line `---` divides front and back."""

    def paragraph(text: str) -> str:
        return f"{escaped(text, say)}\n"

    parts = [f"## {card.place}. {escaped(card.title, say)}\n", *map(paragraph, card.introduction)]
    parts += [f"**{escaped(card.question, say)}**\n"] if card.question != card.title else []
    parts.append("---\n")
    parts += map(paragraph, card.answer)
    if card.figures:
        lines = [
            (told.label, measured_text(told.reading, told.unit), exact_text(told.reading, told.unit, told.digits))
            for told in card.figures
        ]
        cells = [tuple(escaped(cell, say) for cell in line) for line in (("", *card.columns), *lines)]
        parts.append(marked_table(cells[0], cells[1:]))
    return "\n".join(parts)
