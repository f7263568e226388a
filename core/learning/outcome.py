"""What testing a claim gives: its figures beside what was found, and the verdict that follows from them.

Verdicts are never stored: changing a claimed figure changes the verdict. This module does not need NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..message import counted, message
from ..statistics.catalogue import FAR
from ..statistics.measurement import Estimate
from .claim import UNCLAIMED, Bounds, Claim, Verdict
from .sources import Reading, figure_text


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


def judged(claim: Claim, readings: Mapping[str, Reading]) -> Outcome:
    """Return the outcome of a claim, given what was read for its figures, by their labels."""
    findings = tuple(
        ClaimFinding(
            figure.label,
            figure.claimed.words,
            *readings[figure.label],
            agrees(figure.claimed, readings[figure.label]),
        )
        for figure in claim.figures
    )
    return Outcome(claim, findings, *_verdict(claim, findings))


def agrees(claimed: Bounds, reading: Reading) -> bool:
    """Return whether the bounds hold for the exact value, and for the measured one up to FAR standard errors."""
    measured, exact = reading
    values: list[tuple[float, float]] = []  # each with its tolerance
    if exact is not None:
        values.append((exact, 1e-9 * max(abs(exact), 1)))
    if measured is not None and measured.value is not None:
        values.append((measured.value, FAR * (measured.stderr or 0.0) + 1e-5 * abs(measured.value)))
    return bool(values) and all(claimed.low - slack <= number <= claimed.high + slack for number, slack in values)


def _verdict(claim: Claim, findings: Sequence[ClaimFinding]) -> tuple[Verdict, str]:
    """Return the verdict and its reason in one line."""
    if not findings:
        return "not testable here", claim.untestable
    claimed = sum(figure.claimed != UNCLAIMED for figure in claim.figures)
    off = [finding for finding in findings if not finding.agrees]
    if not off:
        return "holds", message("Measurement and theory agree with the claim.")
    example = _example(off[0])
    by_measure = _by_measure(claim, findings)
    true = [group[0] for group in by_measure.values() if all(finding.agrees for finding in group)]
    if true and len(true) < len(by_measure):
        right, wrong = (
            _all_of([name for name, found in by_measure.items() if (found[0] in true) is each])
            for each in (True, False)
        )
        shown = message(
            "True by {right}: {found} for {label}", right=right, found=_found(true[0]), label=true[0].label
        )
        return "depends on the measure", message(
            "{shown}. False by {wrong}: {example}.", shown=shown, wrong=wrong, example=example
        )
    limits = [finding for figure, finding in zip(claim.figures, findings, strict=True) if figure.in_the_limit]
    if limits and all(finding.agrees for finding in limits):
        return "holds in the limit", message(
            "True {limit}, but not in general: {example}.", limit=claim.limit, example=example
        )
    return "does not hold", message("{off}: {example}.", off=_count(len(off), claimed), example=example)


def _all_of(names: Sequence[str]) -> str:
    """Return names joined by “and”."""
    found, *others = names
    for other in others:
        found = message("{one} and {other}", one=found, other=other)
    return found


def _by_measure(claim: Claim, findings: Sequence[ClaimFinding]) -> dict[str, list[ClaimFinding]]:
    """Return the findings of each measure that figures of the claim name."""
    by_measure: dict[str, list[ClaimFinding]] = {}
    for figure, finding in zip(claim.figures, findings, strict=True):
        if figure.measure:
            by_measure.setdefault(figure.measure, []).append(finding)
    return by_measure


def _count(off: int, claimed: int) -> str:
    """Describe how many of the claimed figures are off."""
    if claimed == 1:
        return message("The figure is off")
    return counted(
        "{number} of {claimed} figures is off", "{number} of {claimed} figures are off", off, claimed=claimed
    )


def _example(finding: ClaimFinding) -> str:
    """Describe how one figure is off."""
    found = _found(finding)
    correction = message("it is {found}", found=found) if found else message("it cannot be measured")
    return message(
        "the claim says {claimed} for {label}; {correction}",
        claimed=finding.claimed,
        label=finding.label,
        correction=correction,
    )


def _found(finding: ClaimFinding) -> str:
    """Return the exact value of a figure, or else the measured one; empty if there is neither."""
    measured = None if finding.measured is None else finding.measured.value
    value = measured if finding.exact is None else finding.exact
    return "" if value is None else figure_text(value).replace("-", "−")
