"""The verdict on a head: what was done to it, as far as the evidence tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import divergence, moved, weight_statistics
from ..captures.capture import Layer
from ..captures.files import NotFiniteError, ValuesNotFiniteError
from ..captures.head import CaptureFile
from ..message import joined, message
from .causes.coarse import coarse_scores
from .causes.hypothesis import Hypothesis, as_stored
from .configuration import Configuration
from .fitting.evidence import FittingEvidence, arithmetics, is_short
from .fitting.misfit import rounding_divergence
from .fitting.model import logits
from .judgement.agreement import Examination, is_fitting, of_factor, output_factor, together, with_findings
from .judgement.conventions import mask_added, of_other_offsets
from .judgement.finite import (
    inputs_not_finite,
    not_finite,
    rows_lost,
    rows_not_finite,
    scores_not_finite,
    would_overflow,
)
from .judgement.scale import LEAST_NUMBERS, FittedScale, other_scale, unusual
from .multipliers import expected_multiplier, names, near
from .reading import read_subject
from .results import Consequence, Expected, Finding, Product, Verdict, amount
from .subject import Evidence, StatedFacts, Subject
from .trial import SIGMAS, Trial, attempt, explains, fit_as_said, fitted

# Misfit up to which something explains the evidence, if nothing else explains it better; chosen by hand. It is 2.3 at
# most in 2,160 healthy heads of benchmarks/calibrate.py (seed 0), and 1.7 in 176 faults, those of the multiplier
# left out.
_TOLERATED = 4.0
_NEAREST = 2  # hypotheses that are named if none explains the evidence
_SHORT = ("bfloat16", "float16")  # the formats of torch.autocast
_LINEAR = 0.25  # nats up to which the divergence that rounding makes grows with the square of its errors
_DRAWN = 64  # weights of the average row that are kept: more than a bar can show
_ABSORBED = 1e-6  # the mean weight of a sink below which it has no consequence


def diagnose(subject: Subject, given: Configuration | None = None) -> Verdict:
    """Return the verdict on a head. `given` is the user's configuration; the file's own is in the subject's facts."""
    return examine(subject, given).verdict


def diagnose_head(
    capture: CaptureFile, layer: Layer, head: int, own: Configuration | None, given: Configuration | None
) -> Verdict:
    """Return the verdict on a head of a capture; `own` is the file's configuration. Raise CaptureError."""
    try:
        return diagnose(read_subject(capture, layer, head, own, given), given)
    except NotFiniteError as error:
        stage = "v" if isinstance(error, ValuesNotFiniteError) else "qk"
        return not_finite(StatedFacts(layer.d_k, scale=layer.scale), str(error), stage)


def not_finite_from_first_layer(verdict: Verdict, layer: Layer, first: dict[Path, Layer]) -> Verdict:
    """Return the verdict on a head of a layer, given in order with `first`, empty before the first layer.

    Numbers that are not finite are named in the first layer of a file that has them: later ones have them from there.
    """
    findings = [finding for finding in verdict.findings if finding.cause == "not-finite"]
    if not findings:
        return verdict
    born = first.setdefault(layer.path, layer)
    if born.position == layer.position or verdict.cause != "not-finite" or findings[0].born:
        return verdict
    says = message("numbers that are not finite arrive from {place}, the first layer that has them", place=born.place)
    return replace(verdict, word="undecided", says=says, findings=())


def examine(subject: Subject, given: Configuration | None = None, of_format: bool = True) -> Examination:
    """Return the verdict on a head with its explanation; `of_format`: also on the number format of its scores.

    What became of weights that nobody followed is not judged, so the head is not healthy.
    """
    examination, facts = _examine(subject, given, of_format), subject.facts
    unknown = "" if facts.followed and not facts.changed else _not_judged(facts)
    if unknown and examination.verdict.word == "healthy":
        says = joined([examination.verdict.says, unknown], "; ")
        return replace(examination, verdict=replace(examination.verdict, word="undecided", says=says, note=unknown))
    return replace(examination, verdict=replace(examination.verdict, note=unknown)) if unknown else examination


def _not_judged(facts: StatedFacts) -> str:
    """Return why outputs do not tell of the weights that softmax returned."""
    changes = [*facts.changed, *([f"dropout {facts.dropout:g}"] if facts.dropout else [])]
    if not changes:
        return message("how the weights met the values was not followed: outputs are not judged")
    words = "the weights were changed before they met the values ({how}): outputs are not judged"
    return message(words, how=", ".join(changes))


def _examine(subject: Subject, given: Configuration | None, of_format: bool) -> Examination:
    """Return the verdict on a head with its explanation, whatever became of its weights."""
    expected = expected_multiplier(subject.facts, given)
    if wrong := inputs_not_finite(subject):
        says = message("{wrong} has values that are NaN or infinite", wrong=wrong)
        return Examination(not_finite(subject.facts, says), None)
    if subject.facts.not_finite is not None:
        return Examination(scores_not_finite(subject, expected, *subject.facts.not_finite), None)
    if subject.facts.over_queries:
        return _over_queries(subject, expected)
    examination = _of_all(subject, expected)
    known = {finding.stage for finding in examination.verdict.findings}
    others: list[Finding] = []
    if (added := mask_added(subject)) is not None and not known & {"bias", "mask"}:
        others.append(added)
    if (lost := rows_lost(subject.facts)) is not None:
        others.append(lost)
    coarse = coarse_scores(subject, expected.start) if of_format and not expected.unknown else None
    if coarse is not None and "qk" not in known:
        others.append(coarse)
    if not others:
        return examination
    return replace(examination, verdict=with_findings(examination.verdict, [*examination.verdict.findings, *others]))


def _of_all(subject: Subject, expected: Expected) -> Examination:
    """Return the verdict that all evidence of a head allows."""
    if not subject.evidence:
        if not subject.facts.judges_outputs:
            return Examination(Verdict("no-evidence", _not_judged(subject.facts), expected), None)
        says = "q and k alone cannot tell which scale was used"
        note = would_overflow(subject)
        return Examination(
            Verdict("no-evidence", joined([says, note], "; ") if note else says, expected, note=note), None
        )
    if not subject.k.any():
        return Examination(
            Verdict("undecided", "all keys are 0, so all scores are, whatever the scale", expected), None
        )
    examinations: list[Examination] = []
    for evidence in subject.evidence:
        known = next(
            (one.trial for one in examinations if one.trial and one.verdict.word in ("healthy", "cause")),
            None,
        )
        if known is None or not explains(known.best, subject, evidence, expected.start):
            examinations.append(_of_evidence(subject, evidence, expected))
    return together(subject, examinations)


def _over_queries(subject: Subject, expected: Expected) -> Examination:
    """Return the verdict on a head whose softmax ran over the queries, by design or by mistake.

    Outputs prove a mistake where queries and keys are as many, as of one text; slots have fewer queries.
    """
    if subject.whole and subject.q.shape[1] == subject.k.shape[1]:
        for evidence in subject.evidence:
            examination = _of_evidence(subject, evidence, expected)
            if any(finding.cause == "softmax-axis" for finding in examination.verdict.findings):
                return examination
    says = message(
        "softmax ran over the queries instead of the keys, as the file says: of slots by design, else by mistake"
    )
    return Examination(Verdict("undecided", says, expected, note=says), None)


@np.errstate(all="ignore")  # of extreme numbers: what is not finite fits nothing
def _of_evidence(subject: Subject, evidence: Evidence, expected: Expected) -> Examination:
    values = evidence.values[subject.used]
    if not len(values):
        return Examination(Verdict("undecided", "no query sees a key", expected, evidence=evidence.kind), None)
    wrong = np.asarray(~np.isfinite(values).reshape(len(values), -1).all(axis=-1))
    rows = int(wrong.sum())
    broken = Verdict("cause", "", expected, evidence=evidence.kind)
    if rows:
        broken = with_findings(broken, [rows_not_finite(subject, evidence, wrong)])
    if rows > len(values) // 4:
        return Examination(broken, None)
    if evidence.v is not None and not evidence.values[subject.used].any():
        return Examination(_zero_outputs(evidence, expected), None)
    said = fit_as_said(subject, evidence, expected.start)
    if evidence.kind == "lse" and not is_fitting(said.stored):
        others = (fit_as_said(each, evidence, expected.start) for each in of_other_offsets(subject))
        said = next((each for each in others if is_fitting(each.stored)), said)
    if evidence.kind == "o" and not (rows or expected.unknown or is_fitting(said.stored)):
        factor = _with_factor(said.stored.observed, expected)
        if factor is not None:
            return factor
    trial = attempt(said, expected.start)
    verdict = _judged(subject, trial, expected)
    if verdict.is_wrong and (not is_fitting(trial.best) or math.isnan(trial.best.multiplier)):
        shortened = _as_if_shortened(subject, evidence, expected)
        verdict, trial = (verdict, trial) if shortened is None else shortened
    if rows and verdict.word == "cause":  # a mask that hides all keys of a row explains that row
        first = verdict.findings[0]
        first = replace(first, also=tuple(dict.fromkeys([*first.also, "not-finite"])))
        verdict = replace(verdict, findings=(first, *verdict.findings[1:]))
    elif rows:
        verdict, trial = broken, None
    return Examination(verdict, trial)


def _zero_outputs(evidence: Evidence, expected: Expected) -> Verdict:
    """Return the verdict on outputs that are all 0, as of a cache whose scale was never set."""
    verdict = Verdict("undecided", "all values are 0, so all outputs are", expected, evidence="o")
    if evidence.v is None or not evidence.v.any():
        return verdict
    return with_findings(verdict, [Finding("outputs-scaled", "outputs are all 0, and the values are not", stage="o")])


def _as_if_shortened(subject: Subject, evidence: Evidence, expected: Expected) -> tuple[Verdict, Trial] | None:
    """Return the verdict as if q and k of float32 had been multiplied in 16 bits, as under torch.autocast.

    None if the file says otherwise, or if that does not explain the evidence either.
    """
    if subject.facts.scores is not None or is_short(subject.format):
        return None
    for scores in _SHORT:
        assumed = replace(subject, facts=replace(subject.facts, scores=scores))
        said = fit_as_said(assumed, evidence, expected.start)
        if is_fitting(said.stored):
            trial = Trial(said.stored, ())
            verdict = _judged(assumed, trial, expected)
            if not verdict.is_wrong:
                words = "{used} as if multiplied in {format}: say 'scores' in the metadata if it was"
                used = amount(subject.facts.product(said.stored.multiplier))
                says = message(words, used=used, format=scores)
                verdict = replace(verdict, word="undecided", says=says)
            return verdict, trial
    return None


def _with_factor(observed: FittingEvidence, expected: Expected) -> Examination | None:
    """Return the verdict if outputs are one factor times what the file says with the expected multiplier."""
    theta = np.array([expected.start])
    said = fitted(observed, None, as_stored(observed.subject), theta, free=False)
    factor = output_factor(observed, said)
    if factor is None:
        return None
    as_expected = message("{used}, as expected", used=expected.says)
    healthy = Verdict("healthy", as_expected, expected, evidence="o", multiplier=expected.multiplier)
    verdict = with_findings(healthy, [of_factor(factor)])
    return Examination(replace(verdict, says=joined((as_expected, verdict.says), "; ")), Trial(said, ()))


def _judged(subject: Subject, trial: Trial, expected: Expected) -> Verdict:
    """Put the best explanation into words."""
    observed, best = trial.observed, trial.best
    multiplier, error = best.multiplier, float(best.fit.errors[0])
    product = subject.facts.product(multiplier)
    fitted = Verdict(
        "healthy",
        message("{used}, as expected", used=amount(product)),
        expected,
        evidence=observed.evidence.kind,
        multiplier=None if math.isnan(product) else product,
        multiplier_error=abs(subject.facts.prescaled) * error if math.isfinite(error) else None,
        misfit=best.misfit,
    )
    if best.misfit > _TOLERATED:
        if observed.rows < LEAST_NUMBERS:
            return replace(fitted, word="undecided", says=message("too few rows to tell what was done"))
        if expected.unknown:
            return replace(fitted, word="undecided", says=_not_known(expected))
        nearest = [
            part.cause
            for candidate in trial.close[:_NEAREST]
            if candidate.hypothesis
            for part in candidate.hypothesis.each
        ]
        maybe = tuple(dict.fromkeys([*_scale_nearby(trial, expected), *nearest]))
        says = message("no hypothesis explains the evidence")
        if observed.evidence.kind == "o" and not np.ptp(observed.evidence.values[subject.used], axis=0).any():
            says = message("no hypothesis explains the evidence: every query has the same output")
        return replace(fitted, word="unexplained", says=says, maybe=maybe)
    findings = [] if best.hypothesis is None else _done(best.hypothesis, trial)
    if expected.unknown and (not findings or any(finding.stage in ("qk", "multiplier") for finding in findings)):
        return replace(fitted, word="undecided", says=_not_known(expected, fitted.multiplier))
    if math.isnan(multiplier) or len(best.model.inner) > 1:
        return replace(with_findings(fitted, findings), consequence=consequence(trial, expected.start))
    if subject.facts.unknown_factor and not findings:
        words = "{used} of q and k that contain an unknown factor, so the whole scale is unknown, too"
        says = message(words, used=amount(product))
        return replace(fitted, word="undecided", says=says)
    if subject.facts.row_factors is not None and not findings:
        least, most = subject.facts.row_factors
        words = (
            "{used} of queries that were multiplied by {least:.4g} to {most:.4g} before, each by its own number: a "
            "configuration says what is intended"
        )
        says = message(words, used=amount(product), least=least, most=most)
        return replace(fitted, word="undecided", says=says)
    scale = FittedScale(subject, observed, best, expected)
    known = not (subject.facts.unknown_factor or subject.facts.row_factors or expected.unknown)
    is_other = False
    if scale.sure and known and not scale.is_expected:
        if scale.rounded:
            says = message("{used}, as expected, rounded to {format}", used=amount(product), format=subject.format)
            fitted = replace(fitted, says=says)
        else:
            named = scale.names()
            if not findings and expected.assumed and subject.facts.observed:
                says, suspect = unusual(multiplier, expected.start, subject.facts, named)
                maybe = (suspect.cause, *suspect.also)
                effect = consequence(trial, expected.start)
                return replace(fitted, word="undecided", says=says, maybe=maybe, suspect=suspect, consequence=effect)
            if not findings and observed.numbers < LEAST_NUMBERS:
                return replace(fitted, word="undecided", says=_UNDETERMINED)
            findings.append(other_scale(multiplier, expected.start, subject.facts, named))
            is_other = True
    if findings and _is_nothing(trial, expected.start, findings):
        if is_other and multiplier > 0:
            words = "{used}, within the rounding of the logits of the expected {expected}"
            says = message(words, used=amount(product), expected=expected.says)
            return replace(fitted, word="undecided", says=says)
        findings = []
    if findings:
        verdict = with_findings(fitted, findings)
        return replace(verdict, consequence=consequence(trial, expected.start))
    if not scale.sure or not near(multiplier, expected.start, max(0.02, scale.tolerance)):
        return replace(fitted, word="undecided", says=_UNDETERMINED)
    return fitted


def _scale_nearby(trial: Trial, expected: Expected) -> list[str]:
    """Return the likeliest name of the multiplier that comes nearest to evidence that nothing explains."""
    near = trial.close[0] if trial.close else trial.best
    facts, ratio = trial.observed.subject.facts, near.multiplier / expected.start
    error = SIGMAS * abs(float(near.fit.errors[0]) / near.multiplier)
    if facts.unknown_factor or not ratio > 0 or not abs(math.log(ratio)) > error + 0.05:
        return []

    def fits(candidate: float) -> bool:
        return abs(math.log(candidate / near.multiplier)) <= error + 1e-4

    return [names(near.multiplier, error, expected.start, facts, fits)[0].cause]


def _not_known(expected: Expected, used: Product | None = None) -> str:
    """Return what is said of a head whose expected multiplier is not known."""
    said = message("the expected scale is not known: {why}", why=expected.unknown)
    return said if used is None else joined([amount(used), said], "; ")


_UNDETERMINED = message("the evidence does not determine the multiplier")


def _done(hypothesis: Hypothesis, trial: Trial) -> list[Finding]:
    """Return what a hypothesis says was done; of a single one with others that come as close."""
    if hypothesis.parts:
        return [Finding(part.cause, part.words, part.also, part.stage) for part in hypothesis.parts]
    words = hypothesis.words if hypothesis.told is None else hypothesis.told(trial.best.fit.theta)
    also = [*hypothesis.also]
    for candidate in trial.close:
        assert candidate.hypothesis is not None
        also += [name for part in candidate.hypothesis.each for name in (part.cause, *part.also)]
    named = tuple(name for name in dict.fromkeys(also) if name != hypothesis.cause)
    return [Finding(hypothesis.cause, words, named, hypothesis.stage)]


def _is_nothing(trial: Trial, expected: float, findings: Sequence[Finding]) -> bool:
    """Return whether what was done leaves the weights within rounding."""
    best, observed = trial.best, trial.observed
    effect = consequence(trial, expected)
    if effect is None or any(finding.stage in ("lse", "weights", "v", "o") for finding in findings):
        return False
    if any(finding.stage == "sink" for finding in findings):
        stored = as_stored(observed.subject)
        shares = [logits(model, theta).softmax.sink for model, theta in
                  ((best.model, best.fit.theta), (stored, np.array([expected])))]  # fmt: skip
        return max(float(np.mean(np.abs(shares[0] - shares[1]))), effect.divergence) < _ABSORBED
    allowed = arithmetics(observed.subject, observed.evidence)
    rounding = rounding_divergence(
        observed, best.model, best.fit.theta, allowed[min(best.arithmetic_index, len(allowed) - 1)]
    )
    return effect.divergence <= 4 * min(rounding, _LINEAR) + 1e-12


def consequence(trial: Trial, expected: float) -> Consequence | None:
    """Return what a fault did; None if its cause has no model of the weights."""
    best, subject = trial.best, trial.observed.subject
    if math.isnan(best.multiplier) or best.model.axis != -1 or best.model.inner[0].shape != subject.scores.shape:
        return None
    was, should = logits(best.model, best.fit.theta), logits(as_stored(subject), np.array([expected]))
    rows = subject.used & np.greater(np.sum(was.softmax.weights, axis=-1), 0)
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    p, q = was.softmax.weights[rows], should.softmax.weights[rows]
    of_p, of_q = (weight_statistics(weights, np.ones(count)) for weights in (p, q))
    whole = p, q
    if was.sink is not None and should.sink is not None:
        whole = (np.concatenate([weights, 1 - weights.sum(axis=-1, keepdims=True)], axis=-1) for weights in (p, q))
    elif was.sink is not None or should.sink is not None:
        whole = (weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-45) for weights in (p, q))
    return Consequence(
        entropy=float(np.mean(of_p.entropy)),
        expected_entropy=float(np.mean(of_q.entropy)),
        max_weight=float(np.mean(of_p.max_weight)),
        expected_max_weight=float(np.mean(of_q.max_weight)),
        divergence=max(float(np.mean(divergence(*whole))), 0.0),
        changed_rows=float(np.mean(moved(p, q))),
        row=_average_row(p),
        expected_row=_average_row(q),
    )


def _average_row(weights: FloatArray) -> tuple[float, ...]:
    """Return the mean over rows of the largest weight, the second, …"""
    return tuple(np.sort(weights, axis=-1)[:, : -_DRAWN - 1 : -1].mean(axis=0).tolist())
