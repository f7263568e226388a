"""The verdict on a head: what was done to it, as far as the evidence tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ..message import joined, message
from .configuration import Configuration
from .consequence import Consequence, consequence
from .fitting.evidence import Observed, residual
from .fitting.misfit import logit_noise, misfit
from .fitting.model import logits, softmax
from .fitting.rounding import is_short, spacing, unit
from .multipliers import Expected, Name, expected_multiplier, names
from .subject import Evidence, Facts, Subject
from .trial import EXPLAINED, TOLERATED, Found, Trial, attempt

Word: TypeAlias = Literal["healthy", "cause", "undecided", "unexplained", "no-evidence"]

_UNSURE = 0.1  # relative standard error of a multiplier above which it is not known
_COARSE = 0.03  # rounding of logits above which it blurs the multiplier
_ORDER: tuple[Word, ...] = ("cause", "unexplained", "healthy", "undecided", "no-evidence")


@dataclass(frozen=True)
class Verdict:
    """What was done to a head, as far as the evidence tells."""

    verdict: Word
    cause: str | None
    says: str
    expected: Expected
    evidence: str | None = None
    also: tuple[str, ...] = ()  # causes that explain the evidence as well
    multiplier: float | None = None
    multiplier_error: float | None = None
    misfit: float | None = None  # in units of rounding
    consequence: Consequence | None = None


@dataclass(frozen=True, eq=False)
class Examined:
    """A verdict and the explanation behind it; None if nothing could be fitted."""

    verdict: Verdict
    trial: Trial | None


def diagnose(subject: Subject, given: Configuration | None = None) -> Verdict:
    """Return the verdict on a head. `given` is the user's configuration; the file's own is in the subject's facts."""
    return examine(subject, given).verdict


def examine(subject: Subject, given: Configuration | None = None) -> Examined:
    """Return the verdict on a head with its explanation.

    Every kind of evidence is used; the first one that shows a cause decides.
    """
    expected = expected_multiplier(subject.facts, given)
    if subject.facts.over_queries:
        says = "softmax ran over the queries instead of the keys, as the file says"
        return Examined(Verdict("cause", "softmax-axis", says, expected), None)
    if not subject.evidence:
        says = "q and k alone cannot tell which scale was used"
        return Examined(Verdict("no-evidence", None, says, expected), None)
    if wrong := _not_finite_inputs(subject):
        return Examined(
            not_finite(subject.facts, message("{wrong} has values that are NaN or infinite", wrong=wrong)), None
        )
    found = [_of_evidence(subject, evidence, expected) for evidence in subject.evidence]
    if any(each.verdict.verdict == "healthy" for each in found):
        # A log-sum-exp without the sink is renormalised by σ(lse − sink): the output and the weights have it.
        found = [each for each in found if (each.verdict.evidence, each.verdict.cause) != ("lse", "sink-missing")]
    return min(found, key=lambda each: _ORDER.index(each.verdict.verdict))


def not_finite(facts: Facts, says: str) -> Verdict:
    """Return the verdict on a head whose q or k cannot be used."""
    return Verdict("cause", "not-finite", says, expected_multiplier(facts, None))


def _not_finite_inputs(subject: Subject) -> str | None:
    return next((name for name, x in (("q", subject.q), ("k", subject.k)) if not np.isfinite(x).all()), None)


def _of_evidence(subject: Subject, evidence: Evidence, expected: Expected) -> Examined:
    values = evidence.values[subject.used]
    if not len(values):
        says = "no query sees a key"
        return Examined(Verdict("undecided", None, says, expected, evidence.kind), None)
    wrong = ~np.isfinite(values)
    rows = int(wrong.reshape(len(values), -1).any(axis=-1).sum())
    says = message(
        "{kind}: {rows} of {count} rows have values that are NaN or infinite",
        kind=evidence.kind,
        rows=rows,
        count=len(values),
    )
    broken = Verdict("cause", "not-finite", says, expected, evidence.kind)
    if rows > len(values) // 4:
        return Examined(broken, None)
    trial = attempt(subject, evidence, expected.multiplier)
    found = _judged(subject, trial, expected)
    if rows and found.verdict == "cause":  # a mask that hides all keys of a row explains that row
        found = replace(found, also=tuple(dict.fromkeys([*found.also, "not-finite"])))
    elif rows:
        found, trial = broken, None
    return Examined(found, trial)


def _judged(subject: Subject, trial: Trial, expected: Expected) -> Verdict:
    """Put the best explanation into words."""
    observed, best = trial.observed, trial.best
    multiplier, error = best.multiplier, float(best.fit.errors[0])
    relative = error / abs(multiplier) if multiplier else math.inf

    def verdict(word: Word, cause: str | None, also: Sequence[str], says: str) -> Verdict:
        return Verdict(
            verdict=word,
            cause=cause,
            says=says,
            expected=expected,
            evidence=observed.evidence.kind,
            also=tuple(dict.fromkeys(each for each in also if each != cause)),
            multiplier=None if math.isnan(multiplier) else multiplier,
            multiplier_error=error if math.isfinite(error) else None,
            misfit=best.misfit,
            consequence=consequence(trial, expected.multiplier) if word == "cause" else None,
        )

    hypothesis = best.hypothesis
    if hypothesis is not None:
        also = [*hypothesis.also]
        for each in trial.close:
            assert each.hypothesis is not None
            also += [each.hypothesis.cause, *each.hypothesis.also]
        return verdict("cause", hypothesis.cause, also, _times(multiplier, hypothesis.words))
    if best.misfit > TOLERATED and not _is_noise(observed, best):
        return verdict("unexplained", None, (), "no hypothesis explains the evidence")
    if subject.facts.unknown_factor:
        says = message(
            "× {multiplier:.4g} as recorded; q or k contains a factor that is unknown, so the whole scale is, too",
            multiplier=multiplier,
        )
        return verdict("undecided", None, (), says)
    tolerance = max(min(5 * relative, 0.5), _floor(observed))
    sure = relative <= _UNSURE

    def fits(candidate: float) -> bool:
        return (sure and _near(multiplier, candidate, tolerance)) or _explains(observed, best, candidate)

    if sure and _near(multiplier, expected.multiplier, max(0.02, tolerance)):
        if fits(expected.multiplier):
            return verdict("healthy", None, (), message("× {multiplier:.4g}, as expected", multiplier=multiplier))
        if fits(_rounded(expected.multiplier, subject.format)):
            return verdict(
                "healthy",
                None,
                (),
                message(
                    "× {multiplier:.6g}, as expected, rounded to {format}",
                    multiplier=multiplier,
                    format=subject.format,
                ),
            )
    if (_is_blurred(observed, best) or not sure) and _explains(observed, best, expected.multiplier):
        return verdict("undecided", None, (), "the evidence does not determine the multiplier")
    named = names(multiplier, tolerance, expected.multiplier, subject.facts, fits)
    also = [name.cause for name in named]
    if expected.assumed and subject.facts.observed:
        return verdict("undecided", None, also, _unusual(multiplier, expected.multiplier, subject.facts, named))
    return verdict("cause", named[0].cause, also, _times(multiplier, named[0].words))


def _times(multiplier: float, words: str) -> str:
    return (
        words
        if math.isnan(multiplier)
        else message("× {multiplier:.4g}: {words}", multiplier=multiplier, words=words)
    )


def _unusual(multiplier: float, assumed: float, facts: Facts, named: Sequence[Name]) -> str:
    """Return what is said of a recorded multiplier that is not 1/√d_k, where nothing says what is intended."""
    known = {"multiplier": multiplier, "d_k": facts.d_k, "assumed": assumed}
    likely = [name.cause for name in named if name.cause != "scale-other"][:2]
    if not likely:
        return message(
            "× {multiplier:.4g} as recorded; 1/√{d_k} would be × {assumed:.4g}. `--config` says what the "
            "model intends",
            **known,
        )
    return message(
        "× {multiplier:.4g} as recorded; 1/√{d_k} would be × {assumed:.4g}, so {causes}? `--config` says what the "
        "model intends",
        causes=joined(likely, ", "),
        **known,
    )


def _rounded(number: float, format: str) -> float:
    step = float(spacing(np.array(number), format))
    return round(number / step) * step


def _near(a: float, b: float, tolerance: float) -> bool:
    return abs(a / b - 1) <= tolerance


def _explains(observed: Observed, found: Found, multiplier: float) -> bool:
    """Return whether another multiplier explains the evidence as well as the fitted one does."""
    theta = found.fit.theta.copy()
    theta[0] = multiplier
    near = _near(multiplier, found.multiplier, 1e-3)
    if not near and not _is_blurred(observed, found):
        distance = residual(observed, found.model, theta, slopes=False).distance
        if distance > 1.02 * found.fit.distance + 0.02:
            return False
    return misfit(observed, found.model, theta) <= max(EXPLAINED, 1.1 * found.misfit)


def _is_blurred(observed: Observed, found: Found) -> bool:
    """Return whether rounding blurs the multiplier in a way that its standard error does not show.

    Large logits are rounded coarsely, and outputs of 16 bits do not tell nearly one-hot rows from one-hot ones.
    """
    theta, evidence = found.fit.theta, observed.evidence
    if logit_noise(observed, found.model, theta) > _COARSE:
        return True
    if evidence.kind != "o" or not is_short(evidence.format):
        return False
    shown = logits(found.model, theta, slopes=False)
    top = softmax(found.model, shown).weights.max(axis=-1)[observed.subject.used]
    return 1 - top.sum().item() / max(top.size, 1) < 4 * unit(evidence.format)


def _floor(observed: Observed) -> float:
    """Return the least relative tolerance of a multiplier: the scale itself may be rounded."""
    subject, evidence = observed.subject, observed.evidence
    short = subject.facts.scores or ("float32" if evidence.kind == "lse" else evidence.format)
    if is_short(short):
        return 2 * unit(short)
    return 3e-5 if is_short(subject.format) else 3e-6


def _is_noise(observed: Observed, found: Found) -> bool:
    """Return whether rounding the logits to 16 bits would explain what is left."""
    if observed.subject.facts.scores is not None:
        return False
    if not is_short(observed.subject.format) and not is_short(observed.evidence.format):
        return False
    return misfit(observed, found.model, found.fit.theta, "bfloat16") <= EXPLAINED
