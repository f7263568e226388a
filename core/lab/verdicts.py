"""What is claimed, what is found, and the verdict that follows from both.

A claim is data: quantities, each with the bounds that people put it in and a source to read it from. A verdict is
never stored: change a claimed figure and it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ..parameters import Parameters
from ..statistics.catalogue import FAR
from ..statistics.measurement import Estimate, Measurement
from .experiment import run
from .prediction import Prediction
from .sampling import Draws
from .theory import predict

Verdict = Literal["holds", "holds in the limit", "does not hold", "not testable here"]
T = TypeVar("T")


class Reading(NamedTuple):
    """What a quantity is: measured, and exactly where that is known."""

    measured: Estimate | None
    exact: float | None = None


@dataclass(eq=False)
class Bench:
    """Where one claim is put to the test: whatever several of its figures need is done once."""

    _draws: Draws = field(default_factory=Draws)
    _done: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])

    def once(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns for these arguments, which must be hashable."""
        key = (function, *arguments)
        if key not in self._done:
            self._done[key] = function(*arguments)
        return self._done[key]

    def measure(self, p: Parameters) -> Measurement[Parameters]:
        """The Lab's measurement."""
        return self.once(run, p, self._draws, False)

    def predict(self, p: Parameters) -> Prediction:
        """The Lab's theory."""
        return self.once(predict, p)


Source: TypeAlias = Callable[[Bench], Reading]


def lab(statistic: str, p: Parameters, scaled: bool = False) -> Source:
    """A statistic of the Lab's unscaled column, or of the one with the chosen rule."""

    def read(bench: Bench) -> Reading:
        column = int(scaled)
        measured = bench.measure(p).columns[column].measured[statistic]
        return Reading(measured, bench.predict(p).columns[column].values[statistic])

    return read


def enough(d_k: int, n_keys: int = 128, **others: int | float | str) -> Parameters:
    """Parameters with enough draws for three digits, which take no longer than a tenth of a second or two."""
    rows = max(8, min(64, 2**22 // (32 * max(d_k, n_keys))))
    return replace(Parameters(d_k, n_keys, rows, batch=32), **others)


def trial(function: Callable[..., Reading], *arguments: Any) -> Source:
    """A measurement that is not the Lab's."""
    return lambda bench: bench.once(function, *arguments)


def trial_part(part: str, function: Callable[..., Mapping[str, Reading]], *arguments: Any) -> Source:
    """One of several things that such a measurement finds at once."""
    return lambda bench: bench.once(function, *arguments)[part]


def less(one: Source, other: Source) -> Source:
    """The difference of two quantities that are measured independently."""

    def read(bench: Bench) -> Reading:
        (a, exact_a), (b, exact_b) = one(bench), other(bench)
        exact = exact_a - exact_b if exact_a is not None and exact_b is not None else None
        if a is None or b is None or a.value is None or b.value is None:
            return Reading(None, exact)
        return Reading(Estimate(a.value - b.value, math.hypot(a.stderr or 0.0, b.stderr or 0.0)), exact)

    return read


@dataclass(frozen=True)
class Said:
    """What people say of a quantity: that it lies between two bounds, ends included."""

    low: float
    high: float
    words: str  # as people say it


def value(number: float, within: float = 0.0, words: str = "") -> Said:
    """That it is this number, give or take what the claim leaves open."""
    return Said(number - within, number + within, words or f"{number:.10g}")


def at_least(low: float, words: str = "") -> Said:
    """That it is this number or more."""
    return Said(low, math.inf, words or f"at least {low:.10g}")


def at_most(high: float, words: str = "") -> Said:
    """That it is this number or less."""
    return Said(-math.inf, high, words or f"at most {high:.10g}")


NOTHING = Said(-math.inf, math.inf, "nothing")  # for a figure that belongs to the picture and that no one claims


@dataclass(frozen=True)
class Figure:
    """One quantity of a claim: what is said of it, and where to read it."""

    label: str
    said: Said
    source: Source
    in_the_limit: bool = False  # whether it says what becomes of the others in the limit


@dataclass(frozen=True)
class Claim:
    """Something that is said about √d_k."""

    id: str
    statement: str  # in our own words
    source: str  # who says it
    why: str  # why it is so, or is not
    parameters: Parameters | None = None  # with which the Lab shows it
    figures: tuple[Figure, ...] = ()  # without any it cannot be tested
    limit: str = ""  # when it holds, if it does only in a limit: "as d_k grows"
    untestable: str = ""  # why it cannot be tested here
    timed: bool = False  # whether it takes the time of something, and so wants nothing beside it


@dataclass(frozen=True)
class Finding:
    """One figure of a claim: what is claimed, measured and exactly known."""

    label: str
    claimed: str  # as people read it: "64", "at least 0.99"
    measured: Estimate | None
    exact: float | None
    agrees: bool


@dataclass(frozen=True)
class Outcome:
    """What became of a claim."""

    claim: Claim
    findings: tuple[Finding, ...]
    verdict: Verdict
    reason: str  # one line


def examine(claim: Claim) -> Outcome:
    """Put a claim to the test."""
    bench = Bench()
    readings = [figure.source(bench) for figure in claim.figures]
    findings = tuple(
        Finding(figure.label, figure.said.words, *reading, agrees(figure.said, reading))
        for figure, reading in zip(claim.figures, readings, strict=True)
    )
    return Outcome(claim, findings, *_verdict(claim, findings))


def agrees(said: Said, reading: Reading) -> bool:
    """Whether what is said is true of the exact value, and of the measured one up to FAR standard errors."""
    measured, exact = reading
    bounds: list[tuple[float, float]] = []  # a value, and how far from what is said it may be
    if exact is not None:
        bounds.append((exact, 1e-9 * max(abs(exact), 1)))
    if measured is not None and measured.value is not None:
        bounds.append((measured.value, FAR * (measured.stderr or 0.0) + 1e-5 * abs(measured.value)))
    return bool(bounds) and all(said.low - slack <= found <= said.high + slack for found, slack in bounds)


def _verdict(claim: Claim, findings: Sequence[Finding]) -> tuple[Verdict, str]:
    """The verdict and the line that gives its reason."""
    if not findings:
        return "not testable here", claim.untestable
    said = [figure for figure in claim.figures if figure.said != NOTHING]
    differing = [finding for finding in findings if not finding.agrees]
    if not differing:
        return "holds", "What is claimed is what is found."
    example = _difference(differing[0])
    limits = [finding for figure, finding in zip(claim.figures, findings, strict=True) if figure.in_the_limit]
    if limits and all(finding.agrees for finding in limits):
        return "holds in the limit", f"It holds {claim.limit}, but not always: {example}."
    return "does not hold", f"{_count(len(differing), len(said))}: {example}."


def _count(differing: int, said: int) -> str:
    """How many figures differ, in words."""
    return f"{differing} of {said} figures differ{'s' * (differing == 1)}" if said > 1 else "The figure differs"


def _difference(finding: Finding) -> str:
    """How one figure differs, in words."""
    found = finding.exact
    if found is None and finding.measured is not None:
        found = finding.measured.value
    return f"{finding.label}: claimed {finding.claimed}, " + ("not found" if found is None else f"found {found:.4g}")
