"""What steps of the tour and questions consist of: texts, figures and numbers in words. Needs no NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..claims.claim import FromLab, FromTrial, Reading, figure_text
from ..message import message
from ..parameters import Parameters
from ..training.settings import Race

Unit: TypeAlias = Literal["number", "share", "count"]  # a share is shown in per cent


@dataclass(frozen=True)
class Quotient:
    """One source over another that is measured in the same draws, or has no error."""

    one: FromLab | FromTrial
    other: FromLab | FromTrial


Source: TypeAlias = FromLab | FromTrial | Quotient


@dataclass(frozen=True)
class Figure:
    """One number: its label in tables, its source and its unit."""

    label: str
    source: Source
    unit: Unit = "number"
    digits: int = 3  # in texts


def lab(label: str, statistic: str, parameters: Parameters, scaled: bool = False, unit: Unit = "number") -> Figure:
    """Return the figure of a statistic of the Lab."""
    return Figure(label, FromLab(statistic, parameters, scaled), unit)


def trial(label: str, name: str, *arguments: Any, part: str = "", unit: Unit = "number") -> Figure:
    """Return the figure of a trial."""
    return Figure(label, FromTrial(name, arguments, part), unit)


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


@dataclass(frozen=True)
class Question:
    """A question, the answer in 30 seconds, the long one, and the pane that shows the evidence.

    Texts hold placeholders as those of `Step`; `given` and `figures` may be used in all of them but the question.
    """

    id: str
    question: str
    short: str
    long: tuple[str, ...]
    figures: Mapping[str, Figure]
    shown: Shown
    usual: str = ""  # the usual answer, if it is wrong or half right
    verdict: str = ""  # what is wrong with it
    given: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])


PENDING = "…"  # for a number that is being measured


def number_text(value: float | None, unit: Unit = "number", digits: int = 3) -> str:
    """Return a number with three digits: a share in per cent, a count with separators between thousands."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{number_text(100 * value, 'number', digits)} %"
    if abs(value) >= 1000 and (unit == "count" or abs(value) < 1e6):
        return f"{value:,.0f}".replace("-", "−")
    return figure_text(value, digits).replace("-", "−")


def best(reading: Reading) -> float | None:
    """Return the exact value if it is known, otherwise the measured one."""
    return reading.exact if reading.exact is not None or reading.measured is None else reading.measured.value


def measured_text(reading: Reading, unit: Unit) -> str:
    """Return the measured value with its standard error: `63.9 ± 0.4`; a dash if nothing was measured."""
    if reading.measured is None or reading.measured.value is None:
        return "–"
    value, stderr = reading.measured
    if not stderr or value is None:
        return number_text(value, unit, 4)
    factor, sign = (100, " %") if unit == "share" else (1, "")
    decimals = min(max(1 - math.floor(math.log10(factor * stderr)), 0), 9)  # two digits of the error
    return f"{factor * value:,.{decimals}f} ± {factor * stderr:,.{decimals}f}{sign}".replace("-", "−")


def exact_text(reading: Reading, unit: Unit, digits: int = 4) -> str:
    """Return the exact value; a dash if it is not known."""
    return number_text(reading.exact, unit, digits)


def filled(
    text: str,
    given: Mapping[str, float | str],
    figures: Mapping[str, Figure] | None = None,
    readings: Mapping[str, Reading] | None = None,
) -> str:
    """Return a text with its placeholders replaced; those of figures without a reading become `PENDING`."""
    values = {name: value if isinstance(value, str) else number_text(value) for name, value in given.items()}
    for name, figure in (figures or {}).items():
        found = (readings or {}).get(name)
        values[name] = PENDING if found is None else number_text(best(found), figure.unit, figure.digits)
    return message(text, **values)
