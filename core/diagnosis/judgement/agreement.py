"""What several kinds of evidence of one head say together.

The log-sum-exp speaks of the scores, weights and outputs also of what comes after. Where two kinds are of different
computations, nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...message import joined, message
from ..causes.hypothesis import as_stored
from ..fitting.evidence import FittingEvidence, arithmetics, is_short, observe, unit, values_under
from ..fitting.model import logits
from ..multipliers import near
from ..results import ORDER, STAGES, Finding, StageName, Verdict, amount, is_of_scale
from ..subject import Evidence, Subject
from ..trial import SIGMAS, Candidate, Trial, fitted, misfit_of

# Both were chosen by hand. Of the 2,160 healthy heads of benchmarks/calibrate.py (seed 0), 9 exceed the first; at
# 0.05 and at 0.2, none is accused, and 34 of 34 faults are named. None comes to the second.
SURE = 0.1  # relative standard error of a multiplier up to which it is known
_OFF = 0.01  # relative: how far outputs are from the weighted values if a factor is told
_AFTER: tuple[StageName, ...] = ("weights", "v", "o")  # stages of which a log-sum-exp does not tell


@dataclass(frozen=True, eq=False)
class Examination:
    """A verdict and the explanation behind it; None if nothing could be fitted."""

    verdict: Verdict
    trial: Trial | None


def together(subject: Subject, examinations: Sequence[Examination]) -> Examination:
    """Return the verdict on a head from those of its kinds of evidence, the most precise first.

    The first one that decides speaks of the scores; later ones add what comes after softmax, or contradict it.
    """
    examinations = [*_with_sinks(examinations)]
    first = next((examination for examination in examinations if _decides(examination)), examinations[0])
    added: list[Finding] = []
    base = first
    for examination in examinations[examinations.index(first) + 1 :]:
        if examination.verdict.word != "healthy" and _are_weighted(subject, examination.verdict):
            continue
        if (factor := _factor(first, examination)) is not None:
            added.append(factor)
        elif examination.verdict.word == "unexplained":
            if first.verdict.word in ("healthy", "undecided") and not added:
                return _unexplained(first, examination)
        elif _contradicts(first, examination):
            return replace(first, verdict=_disagreement(first, examination))
        else:
            known = [finding.cause for finding in (*first.verdict.findings, *added)]
            later = [one for one in examination.verdict.findings if one.stage in _AFTER and one.cause not in known]
            base = examination if later and not added and not first.verdict.findings else base
            added += later
    if not added:
        return first
    return replace(base, verdict=with_findings(base.verdict, [*first.verdict.findings, *added]))


def with_findings(verdict: Verdict, findings: Sequence[Finding]) -> Verdict:
    """Return the verdict that these causes were found, in the order of computing."""
    ordered = sorted(findings, key=lambda finding: ORDER.index(finding.stage))
    says = joined([finding.says for finding in ordered], "; ") if len(ordered) > 1 else ordered[0].says
    expected = verdict.expected.says
    if verdict.multiplier is not None and expected and any(map(is_of_scale, ordered)):
        template = "{used}, should be {expected}: {why}"
        says = message(template, used=amount(verdict.multiplier), expected=expected, why=says)
    return replace(verdict, word="cause", findings=tuple(ordered), says=says)


def _with_sinks(examinations: Sequence[Examination]) -> Sequence[Examination]:
    """Return what is found without a log-sum-exp that lacks the sink, if other evidence has it.

    Its caller renormalises: outputs are multiplied by σ(lse − sink).
    """
    if not any(examination.verdict.word == "healthy" for examination in examinations):
        return examinations
    return [
        examination
        for examination in examinations
        if (examination.verdict.evidence, examination.verdict.cause) != ("lse", "sink-missing")
    ]


def _decides(examination: Examination) -> bool:
    """Return whether it is known what one kind of evidence says of the scores."""
    if examination.verdict.word in ("healthy", "cause", "unexplained"):
        return True
    return examination.trial is not None and _is_settled(examination.trial.best)


def is_fitting(best: Candidate) -> bool:
    """Return whether an explanation leaves no more than rounding, in an arithmetic that the file allows."""
    return best.arithmetic is not None


def _is_settled(best: Candidate) -> bool:
    """Return whether an explanation fits the evidence, with a multiplier that is known."""
    return is_fitting(best) and best.multiplier != 0 and float(best.fit.errors[0]) <= SURE * abs(best.multiplier)


def _unexplained(first: Examination, later: Examination) -> Examination:
    says = later.verdict.says
    if first.verdict.word == "healthy":
        says = _both(first.verdict, later.verdict)
    return replace(later, verdict=replace(later.verdict, says=says))


def _contradicts(first: Examination, later: Examination) -> bool:
    """Return whether a later kind of evidence is of another computation than the first."""
    one, other = first.verdict, later.verdict
    if later.trial is None or first.trial is None or one.word == "unexplained":
        return False
    if other.word == "undecided" and not is_fitting(later.trial.best):
        return False
    if one.word == other.word == "healthy":
        return False
    if other.findings and all(finding.stage in _AFTER for finding in other.findings):
        return False
    best = first.trial.best
    if _have_same_causes(one, other):
        return False
    if math.isnan(best.multiplier) or math.isnan(later.trial.best.multiplier):  # one factor a row, or a key
        return True
    return not _explains(best, later.trial.observed)


def _have_same_causes(one: Verdict, other: Verdict) -> bool:
    """Return whether two verdicts name the same causes of the scores, and the same multiplier."""
    of = [
        {
            name
            for finding in verdict.findings
            if finding.stage not in _AFTER
            for name in (finding.cause, *finding.also)
        }
        for verdict in (one, other)
    ]
    same = bool(of[0] & of[1]) or not (of[0] or of[1])
    if not same or one.multiplier is None or other.multiplier is None:
        return same
    errors = [(verdict.multiplier_error or 0) / abs(verdict.multiplier or 1) for verdict in (one, other)]
    return near(one.multiplier, other.multiplier, 0.02 + SIGMAS * sum(errors))


def _explains(best: Candidate, observed: FittingEvidence) -> bool:
    """Return whether an explanation of one kind of evidence explains another one, with the same coefficients."""
    subject = observed.subject
    if best.hypothesis is not None and best.hypothesis.whole:
        return False
    model = as_stored(subject) if best.hypothesis is None else best.hypothesis.build(subject)
    if misfit_of(observed, model, best.fit.theta)[1] < len(arithmetics(subject, observed.evidence)):
        return True
    again = fitted(observed, best.hypothesis, model, best.fit.theta)
    away = np.abs(again.fit.theta - best.fit.theta)
    error = SIGMAS * (again.fit.errors + best.fit.errors + 2e-4 * np.abs(best.fit.theta))
    known = again.arithmetic is not None and away[0] <= SURE * abs(best.multiplier)
    return bool(known and np.all(away <= error))


def _are_weighted(subject: Subject, verdict: Verdict) -> bool:
    """Return whether outputs are the values times the stored weights, so that they say nothing of their own."""
    of = {evidence.kind: evidence for evidence in subject.evidence}
    if verdict.evidence != "o" or not {"weights", "o"} <= of.keys():
        return False
    weights, o = of["weights"], of["o"]
    assert o.v is not None
    short = [format for format in (weights.format, o.format, o.v_format) if is_short(format)]
    step = max(map(unit, short), default=16 * unit("float32"))
    used = subject.used
    shown, size = (weights.values @ o.v)[used], (np.abs(weights.values) @ np.abs(o.v))[used]
    away = o.values[used] - shown
    factor = abs(float(np.vdot(away, shown))) / max(float(np.vdot(shown, shown)), 1e-300)
    return factor < step / 2 and bool(np.all(np.abs(away) <= 4 * step * size + 1e-30))


def _disagreement(first: Examination, later: Examination) -> Verdict:
    says = message("{both}: the two disagree", both=_both(first.verdict, later.verdict))
    maybe = tuple(name for finding in later.verdict.findings for name in (finding.cause, *finding.also))
    verdict = replace(
        first.verdict, word="undecided", findings=(), consequence=None, maybe=tuple(dict.fromkeys(maybe))
    )
    return replace(verdict, says=says, conflict=True, note=says)


def _both(first: Verdict, later: Verdict) -> str:
    """Return `log-sum-exp: × 0.125, as expected; output: × 1: the scores were not scaled`."""
    shown = [
        message("{evidence}: {says}", evidence=words, says=verdict.says)
        for verdict in (first, later)
        for stage, words in STAGES.items()
        if stage == verdict.evidence
    ]
    return joined(shown, "; ")


def _factor(first: Examination, later: Examination) -> Finding | None:
    """Return the finding that outputs are one factor times what the first evidence explains."""
    if later.verdict.evidence != "o" or later.trial is None or first.trial is None:
        return None
    if later.verdict.word not in ("cause", "unexplained") or math.isnan(first.trial.best.multiplier):
        return None
    if first.verdict.word == "unexplained" or not _is_settled(first.trial.best):
        return None
    best = first.trial.best
    if best.hypothesis is not None and best.hypothesis.whole:
        return None
    factor = output_factor(later.trial.observed, best)
    return None if factor is None else of_factor(factor)


def output_factor(observed: FittingEvidence, best: Candidate) -> float | None:
    """Return the number that outputs are times the weighted values of an explanation; None if they are not."""
    subject = observed.subject
    model = as_stored(subject) if best.hypothesis is None else best.hypothesis.build(subject)
    theta, v = best.fit.theta, values_under(model, observed.evidence)
    shown = (logits(model, theta).softmax.weights @ v) * (observed.weight > 0)
    size = float(np.vdot(shown, shown))
    factor = float(np.vdot(shown, observed.target)) / size if size else 0.0
    if not math.isfinite(factor) or factor == 0 or abs(factor - 1) <= _OFF:
        return None
    evidence: Evidence = replace(observed.evidence, values=observed.evidence.values / factor)
    again = observe(subject, evidence, best.multiplier)
    found = fitted(again, best.hypothesis, model, theta)
    if found.arithmetic is None or not near(found.multiplier, best.multiplier, _OFF):
        return None
    return factor


def of_factor(factor: float) -> Finding:
    """Return the finding that outputs have a factor."""
    says = message("outputs are × {factor:.4g} of the weighted values", factor=factor)
    return Finding("outputs-scaled", says, stage="o")
