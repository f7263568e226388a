"""Test a claim: read its figures and derive the verdict from them.

Verdicts are never stored: changing a claimed figure changes the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..lab.experiment import run
from ..lab.sampling import Draws
from ..message import counted, message
from ..parameters import Parameters
from ..statistics.catalogue import FAR
from ..statistics.measurement import Measurement
from ..theory.predict import predict
from ..theory.prediction import Prediction
from .claim import (
    UNCLAIMED,
    Bounds,
    Claim,
    ClaimFinding,
    FromLab,
    Outcome,
    OwnTrial,
    Reading,
    Source,
    Verdict,
    figure_text,
)

T = TypeVar("T")


@dataclass(eq=False)
class ResultCache:
    """The cached results for one claim, so that work shared by several figures is done once."""

    _draws: Draws = field(default_factory=Draws)
    _cache: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])

    def cached(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, from the cache if possible; the arguments must be hashable."""
        key = (function, *arguments)
        if key not in self._cache:
            self._cache[key] = function(*arguments)
        return self._cache[key]

    def measure(self, p: Parameters) -> Measurement[Parameters]:
        """Return the Lab's measurement."""
        return self.cached(run, p, self._draws, False)

    def predict(self, p: Parameters) -> Prediction:
        """Return the Lab's prediction."""
        return self.cached(predict, p)


def lab(statistic: str, p: Parameters, scaled: bool = False) -> FromLab:
    """Read a statistic from the Lab's unscaled column, or from the scaled one."""
    return FromLab(statistic, p, scaled)


def precise(d_k: int, n_keys: int = 128, **others: int | float | str) -> Parameters:
    """Return parameters with enough draws for three digits within a tenth of a second or two."""
    rows = max(8, min(64, 2**22 // (32 * max(d_k, n_keys))))
    return replace(Parameters(d_k, n_keys, rows, batch=32), **others)


def trial(function: Callable[..., Reading], *arguments: Any) -> Source:
    """Read the result of a measurement that the Lab does not make."""
    return OwnTrial(function, arguments)


def trial_part(part: str, function: Callable[..., Mapping[str, Reading]], *arguments: Any) -> Source:
    """Read one of several results of such a measurement."""
    return OwnTrial(function, arguments, part)


def examine(claim: Claim) -> Outcome:
    """Test a claim; its findings are in the order of its figures."""
    results = ResultCache()
    readings = [figure.source(results) for figure in claim.figures]
    findings = tuple(
        ClaimFinding(figure.label, figure.claimed.words, *reading, agrees(figure.claimed, reading))
        for figure, reading in zip(claim.figures, readings, strict=True)
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
    return bool(values) and all(claimed.low - slack <= found <= claimed.high + slack for found, slack in values)


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
    true = [found[0] for found in by_measure.values() if all(finding.agrees for finding in found)]
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
    found = measured if finding.exact is None else finding.exact
    return "" if found is None else figure_text(found).replace("-", "−")
