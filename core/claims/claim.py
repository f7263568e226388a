"""Claims: statements about √d_k, each with the figures that test it.

A claim is data: quantities, the bounds claimed for each, and a source to read each from. This module does not need
NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from ..message import message
from ..parameters import Parameters
from ..statistics.measurement import Estimate
from ..training.settings import Race

Verdict = Literal["holds", "holds in the limit", "depends on the measure", "does not hold", "not testable here"]

VERDICT_WORDS: dict[Verdict, str] = {
    "holds": "true",
    "holds in the limit": "true only in a limit",
    "depends on the measure": "true by one measure",
    "does not hold": "false",
    "not testable here": "not testable here",
}


class Reading(NamedTuple):
    """A quantity: the measured value, and the exact one if it is known."""

    measured: Estimate | None
    exact: float | None = None


Source: TypeAlias = Callable[[Any], Reading]  # takes the Results of `examine`


@dataclass(frozen=True)
class FromLab:
    """The source of a statistic of the Lab's unscaled column, or of the scaled one."""

    statistic: str
    parameters: Parameters
    scaled: bool = False

    def __call__(self, results: Any) -> Reading:
        """Return the statistic, from the Results of `examine`."""
        measured = results.measure(self.parameters).columns[int(self.scaled)].measured[self.statistic]
        return Reading(measured, results.predict(self.parameters).columns[int(self.scaled)].values[self.statistic])


@dataclass(frozen=True)
class Difference:
    """The source of `one` minus `other`, two statistics that are measured independently."""

    one: FromLab
    other: FromLab

    def __call__(self, results: Any) -> Reading:
        """Return the difference, from the Results of `examine`."""
        (a, exact_a), (b, exact_b) = self.one(results), self.other(results)
        exact = exact_a - exact_b if exact_a is not None and exact_b is not None else None
        if a is None or b is None or a.value is None or b.value is None:
            return Reading(None, exact)
        return Reading(Estimate(a.value - b.value, math.hypot(a.stderr or 0.0, b.stderr or 0.0)), exact)


@dataclass(frozen=True)
class FromTrial:
    """The result of a measurement that the Lab does not make, by its name; or a part of it."""

    trial: str
    arguments: tuple[Any, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class OwnTrial:
    """The source of a claim that calls the function of such a measurement."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    part: str = ""

    def __call__(self, results: Any) -> Reading:
        """Return the result, from the Results of `examine`."""
        found = results.cached(self.function, *self.arguments)
        return found[self.part] if self.part else found


@dataclass(frozen=True)
class Bounds:
    """The bounds, both inclusive, that a claim puts on a quantity."""

    low: float
    high: float
    words: str  # the bounds in words, as the claim puts them


def figure_text(number: float, digits: int = 4) -> str:
    """Return a claimed, measured or exact number: whole numbers in full, others with this many digits."""
    if number == round(number) and abs(number) < 1e12:
        return f"{number:.0f}"
    mantissa, _, exponent = f"{number:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


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


@dataclass(frozen=True)
class ClaimFinding:
    """One figure of a claim: the claimed, measured and exact values."""

    label: str
    claimed: str  # in words: "64", "at least 0.99"
    measured: Estimate | None
    exact: float | None
    agrees: bool


@dataclass(frozen=True)
class Outcome:
    """The result of testing a claim."""

    claim: Claim
    findings: tuple[ClaimFinding, ...]
    verdict: Verdict
    reason: str  # one line


def without_figures(claim: Claim) -> Claim:
    """Return the claim without its figures, whose functions are not to be sent."""
    return replace(claim, figures=())
