"""Claims: statements about √d_k, each with the figures that test it.

A claim is data: quantities, the bounds claimed for each, and a source to read each from. This module does not need
NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..message import message
from ..parameters import Parameters
from ..training.settings import Race
from .sources import FromTrial, Source, figure_text

Verdict = Literal["holds", "holds in the limit", "depends on the measure", "does not hold", "not testable here"]

VERDICT_WORDS: dict[Verdict, str] = {
    "holds": "true",
    "holds in the limit": "true only in a limit",
    "depends on the measure": "true by one measure",
    "does not hold": "false",
    "not testable here": "not testable here",
}


@dataclass(frozen=True)
class Bounds:
    """The bounds, both inclusive, that a claim puts on a quantity."""

    low: float
    high: float
    words: str  # the bounds in words, as the claim puts them


def value(number: float, within: float = 0.0, words: str = "") -> Bounds:
    """Return the bounds `number` ± `within`, the tolerance that the claim leaves open."""
    return Bounds(number - within, number + within, words or figure_text(number))


def at_least(low: float, words: str = "") -> Bounds:
    """Return the bounds from `low` up."""
    return Bounds(low, math.inf, words or message("at least {low}", low=figure_text(low)))


def at_most(high: float, words: str = "") -> Bounds:
    """Return the bounds up to `high`."""
    return Bounds(-math.inf, high, words or message("at most {high}", high=figure_text(high)))


UNCLAIMED = Bounds(-math.inf, math.inf, "nothing")  # for a figure shown only for comparison


@dataclass(frozen=True)
class ClaimFigure:
    """One quantity of a claim: its claimed bounds and where to read it."""

    label: str
    claimed: Bounds
    source: Source
    in_the_limit: bool = False  # whether it shows the claim's limiting case
    measure: str = ""  # what it measures the claim by, if the verdict depends on that: "operations"


@dataclass(frozen=True)
class Claim:
    """A statement about √d_k."""

    id: str
    statement: str  # paraphrased
    source: str  # where it is made
    why: str  # why it is true or false
    parameters: Parameters | None = None  # those that show it in the Lab
    figures: tuple[ClaimFigure, ...] = ()  # empty if it cannot be tested
    limit: str = ""  # the limit in which it holds, if it does not always: "as d_k grows"
    untestable: str = ""  # why it cannot be tested here
    title: str = ""  # in a few words
    scores: tuple[float, ...] = ()  # those of the row of softmax that it is about
    race: Race | None = None  # of training that shows it

    @property
    def by_label(self) -> Mapping[str, ClaimFigure]:
        """Its figures by their labels."""
        return {figure.label: figure for figure in self.figures}


def precise(d_k: int, n_keys: int = 128, **others: int | float | str) -> Parameters:
    """Return parameters with enough draws for three digits within a tenth of a second or two."""
    rows = max(8, min(64, 2**22 // (32 * max(d_k, n_keys))))
    return replace(Parameters(d_k, n_keys, rows, batch=32), **others)


def trial(name: str, *arguments: Any) -> FromTrial:
    """Read the result of a measurement that the Lab does not make."""
    return FromTrial(name, arguments)


def trial_part(part: str, name: str, *arguments: Any) -> FromTrial:
    """Read one of several results of such a measurement."""
    return FromTrial(name, arguments, part)
