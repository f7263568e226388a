"""Cards: steps and questions with their numbers filled in, for print and flash cards. Does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..claims.claim import Reading
from .figures import Figure, Unit
from .step import Shown, Step
from .wording import filled

Kind = Literal["step", "question"]


@dataclass(frozen=True)
class Told:
    """A figure with its reading."""

    label: str
    unit: Unit
    reading: Reading


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
    answer: tuple[str, ...]  # paragraphs
    figures: tuple[Told, ...]
    asked: Told | None  # the figure that answers the question, if it asks for a number
    shown: Shown


def step_card(number: int, step: Step, readings: Mapping[str, Reading]) -> Card:
    """Return the card of a step whose figures have been measured."""

    def told(name: str) -> Told:
        return told_of(step.figures[name], step.given, readings[name])

    return Card(
        "step",
        number,
        step.id,
        step.title,
        step.source,
        tuple(filled(text, step.given) for text in step.introduction),
        filled(step.guess.question, step.given),
        tuple(filled(text, step.given, step.figures, readings) for text in step.explanation),
        tuple(told(name) for name in step.table),
        told(step.guess.figure),
        step.shown,
    )


def told_of(figure: Figure, given: Mapping[str, float | str], reading: Reading) -> Told:
    """Return a figure with its label filled in."""
    return Told(filled(figure.label, given), figure.unit, reading)
