"""What a step of the tour consists of. This module does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..parameters import Parameters
from ..training.settings import Race
from .figures import Figure

Compare = Literal["ratio", "difference"]


@dataclass(frozen=True)
class Guess:
    """A question that has a number for its answer, asked before the answer is shown."""

    question: str
    figure: str  # the name of the figure that answers it
    compare: Compare = "ratio"  # how the distance of a guess is told


@dataclass(frozen=True)
class Shown:
    """A pane in a certain state, which shows what a text says."""

    pane: str  # its title
    what: str  # what to look at there, a sentence
    parameters: Parameters = field(default_factory=Parameters)
    scores: tuple[float, ...] = ()  # the row of the Softmax pane
    head: tuple[int, int] | None = None  # layer and head in the Capture pane, of the sample
    claim: str = ""  # the claim to select in the Claims pane
    race: Race | None = None  # of the Train pane
    statistic: str = ""  # the row of the Lab's table to select


@dataclass(frozen=True)
class Step:
    """One step of the tour: an introduction, a question, and after a guess the answer, a table and an explanation.

    Texts hold placeholders, such as {d_k}: names of `given`, the values that the step chooses, or of `figures`, which
    are measured.
    """

    id: str
    title: str
    source: str  # the study notes it follows
    introduction: tuple[str, ...]  # paragraphs; only values of `given` in them
    guess: Guess
    explanation: tuple[str, ...]
    figures: Mapping[str, Figure]
    table: tuple[str, ...]  # the names of the figures in the table, in order
    shown: Shown
    given: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])
