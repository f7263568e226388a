"""The verdict on a head: what was done to it, as far as the evidence tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..arrays import BoolArray
from ..attention.formats import FORMATS
from ..captures.capture import Layer
from ..captures.files import NotFiniteError
from ..captures.head import CaptureFile
from ..message import counted, joined, message
from .causes.hypothesis import Hypothesis, as_stored
from .configuration import Configuration
from .consequence import consequence
from .fitting.evidence import Observed, arithmetics, is_short, observe, residual, spacing, unit
from .fitting.misfit import logit_noise, misfits, rounding_divergence
from .fitting.model import logits, softmax
from .multipliers import Name, expected_multiplier, names, near
from .reading import read_subject
from .results import ORDER, Expected, Finding, Verdict
from .subject import Evidence, Facts, Subject
from .trial import Candidate, Trial, attempt, fitted

_TOLERATED = 4.0  # misfit up to which what the file says explains the evidence, if nothing else does
_UNSURE = 0.1  # relative standard error of a multiplier above which it is not known
_COARSE = 0.03  # rounding of logits above which it blurs the multiplier
_LEAST_NUMBERS = 4  # of evidence, to name a multiplier
_NEAREST = 2  # hypotheses that are named if none explains the evidence
_CERTAIN = 10.0  # the logarithm of a ratio of likelihoods
_LISTED = 8  # layers that are named
_LINEAR = 0.25  # nats up to which the divergence that rounding makes grows with the square of its errors
_ABSORBED = 1e-6  # the mean weight of a sink below which it has no consequence


@dataclass(frozen=True, eq=False)
class Examined:
    """A verdict and the explanation behind it; None if nothing could be fitted."""

    verdict: Verdict
    trial: Trial | None


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
        return not_finite(Facts(layer.d_k, layer.scale), str(error))


def at_birth(verdict: Verdict, layer: Layer, first: dict[Path, Layer]) -> Verdict:
    """Return the verdict on a head of a layer, given in order with `first`, empty before the first layer.

    Numbers that are not finite are named in the first layer of a file that has them: later ones have them from there.
    """
    if verdict.cause != "not-finite":
        return verdict
    born = first.setdefault(layer.path, layer)
    if born.position == layer.position:
        return verdict
    says = message("numbers that are not finite arrive from {place}, the first layer that has them", place=born.place)
    return replace(verdict, verdict="undecided", says=says, findings=())


def examine(subject: Subject, given: Configuration | None = None) -> Examined:
    """Return the verdict on a head with its explanation.

    The first evidence that decides speaks of the scores; all others speak only of what comes after the softmax.
    """
    expected = expected_multiplier(subject.facts, given)
    if subject.facts.over_queries:
        says = "softmax ran over the queries instead of the keys, as the file says"
        return Examined(Verdict("cause", says, expected, (Finding("softmax-axis", says, stage="weights"),)), None)
    if not subject.evidence:
        says = "q and k alone cannot tell which scale was used"
        if subject.facts.changed:
            says = message(
                "the weights were changed before they met the values ({how}), so outputs cannot tell",
                how=subject.facts.changed,
            )
        return Examined(Verdict("no-evidence", says, expected), None)
    if wrong := _not_finite_inputs(subject):
        says = message("{wrong} has values that are NaN or infinite", wrong=wrong)
        return Examined(not_finite(subject.facts, says), None)
    found = [_of_evidence(subject, evidence, expected) for evidence in subject.evidence]
    if any(each.verdict.verdict == "healthy" for each in found):
        # A log-sum-exp without the sink is renormalised by σ(lse − sink): the output and the weights have it.
        found = [each for each in found if (each.verdict.evidence, each.verdict.cause) != ("lse", "sink-missing")]
    first = next((each for each in found if each.verdict.verdict != "undecided"), found[0])
    later = [each for each in found[found.index(first) + 1 :] if _is_after_softmax(each.verdict)]
    if later and first.verdict.verdict in ("healthy", "undecided"):
        return min(later, key=lambda each: each.verdict.verdict != "cause")
    known = [each.cause for each in first.verdict.findings]
    more = [each for other in later for each in other.verdict.findings if each.cause not in known]
    if not more:
        return first
    return replace(first, verdict=_with_findings(first.verdict, [*first.verdict.findings, *more]))


def _is_after_softmax(verdict: Verdict) -> bool:
    """Return whether a verdict is about what comes after softmax, or evidence that nothing explains."""
    if verdict.verdict == "unexplained":
        return True
    return verdict.verdict == "cause" and all(each.stage in ("weights", "v", "o") for each in verdict.findings)


def _with_findings(verdict: Verdict, found: Sequence[Finding]) -> Verdict:
    ordered = sorted(found, key=lambda each: ORDER.index(each.stage))
    says = joined([each.says for each in ordered], "; ") if len(ordered) > 1 else ordered[0].says
    return replace(verdict, verdict="cause", findings=tuple(ordered), says=says)


def not_finite(facts: Facts, says: str) -> Verdict:
    """Return the verdict on a head whose q or k cannot be used."""
    return Verdict("cause", says, expected_multiplier(facts, None), (Finding("not-finite", says, stage="qk"),))


def _not_finite_inputs(subject: Subject) -> str | None:
    return next((name for name, x in (("q", subject.q), ("k", subject.k)) if not np.isfinite(x).all()), None)


def _of_evidence(subject: Subject, evidence: Evidence, expected: Expected) -> Examined:
    values = evidence.values[subject.used]
    if not len(values):
        return Examined(Verdict("undecided", "no query sees a key", expected, evidence=evidence.kind), None)
    wrong = np.asarray(~np.isfinite(values).reshape(len(values), -1).all(axis=-1))
    rows = int(wrong.sum())
    broken = Verdict("cause", "", expected, evidence=evidence.kind)
    if rows:
        broken = _with_findings(broken, [_not_finite(subject, evidence, wrong)])
    if rows > len(values) // 4:
        return Examined(broken, None)
    trial = attempt(subject, evidence, expected.multiplier)
    found = _judged(subject, trial, expected)
    if found.verdict == "unexplained" and evidence.kind == "o" and not rows:
        found = _with_factor(trial, expected) or found
    if rows and found.verdict == "cause":  # a mask that hides all keys of a row explains that row
        first = found.findings[0]
        first = replace(first, also=tuple(dict.fromkeys([*first.also, "not-finite"])))
        found = replace(found, findings=(first, *found.findings[1:]))
    elif rows:
        found, trial = broken, None
    return Examined(found, trial)


def _not_finite(subject: Subject, evidence: Evidence, wrong: BoolArray) -> Finding:
    """Return where numbers of evidence that are not finite, in these of the rows that see a key, come from."""
    kind, short = evidence.kind, subject.facts.scores or subject.format
    says = message(
        "{kind}: {rows} of {count} rows have values that are NaN or infinite",
        kind=kind,
        rows=int(wrong.sum()),
        count=len(wrong),
    )
    shown = np.abs(subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0))
    largest, limit = shown.max(axis=-1)[subject.used], FORMATS[short if short in FORMATS else "float32"].largest
    if np.any(wrong & (largest > limit)) and not np.any(wrong & (largest < limit / 2)):
        words = "scores: |q·k| is up to {largest:.4g}, and {format} ends at {limit:.4g}; {says}"
        says = message(words, largest=largest.max(), format=short, limit=limit, says=says)
        return Finding("not-finite", says, stage="qk")
    return Finding("not-finite", says, stage=kind)


def _with_factor(trial: Trial, expected: Expected) -> Verdict | None:
    """Return the verdict if outputs are one factor times what the file says with the expected multiplier."""
    observed = trial.observed
    model, theta = as_stored(observed.subject), np.array([expected.multiplier])
    v = observed.evidence.v
    assert v is not None
    shown = (softmax(model, logits(model, theta, slopes=False)).weights @ v) * (observed.weight > 0)
    size = float(np.vdot(shown, shown))
    factor = float(np.vdot(shown, observed.target)) / size if size else 0.0
    if factor <= 0:
        return None
    evidence = replace(observed.evidence, values=observed.evidence.values / factor)
    found = fitted(observe(observed.subject, evidence, expected.multiplier), None, model, theta)
    if found.level == len(arithmetics(observed.subject, evidence)) or not near(found.multiplier, theta[0], 0.01):
        return None
    says = message(
        "× {multiplier:.4g}, as expected; outputs are × {factor:.4g} of the weighted values",
        multiplier=found.multiplier,
        factor=factor,
    )
    error, kind = float(found.fit.errors[0]), evidence.kind
    return Verdict("healthy", says, expected, (), (), kind, found.multiplier, error, found.misfit)


def _judged(subject: Subject, trial: Trial, expected: Expected) -> Verdict:
    """Put the best explanation into words."""
    observed, best = trial.observed, trial.best
    multiplier, error = best.multiplier, float(best.fit.errors[0])
    fitted = Verdict(
        "healthy",
        message("× {multiplier:.4g}, as expected", multiplier=multiplier),
        expected,
        evidence=observed.evidence.kind,
        multiplier=None if math.isnan(multiplier) else multiplier,
        multiplier_error=error if math.isfinite(error) else None,
        misfit=best.misfit,
    )
    if best.hypothesis is None and best.misfit > _TOLERATED:
        if observed.rows < _LEAST_NUMBERS:
            return replace(fitted, verdict="undecided", says=message("too few rows to tell what was done"))
        nearest = [part.cause for each in trial.close[:_NEAREST] if each.hypothesis for part in each.hypothesis.each]
        maybe = tuple(dict.fromkeys([*_scale_nearby(trial, expected), *nearest]))
        return replace(
            fitted, verdict="unexplained", says=message("no hypothesis explains the evidence"), maybe=maybe
        )
    findings = [] if best.hypothesis is None else _done(best.hypothesis, trial)
    if math.isnan(multiplier) or len(best.model.inner) > 1:
        return replace(_with_findings(fitted, findings), consequence=consequence(trial, expected.multiplier))
    if subject.facts.unknown_factor and not findings:
        says = message(
            "× {multiplier:.4g} as recorded; q or k contains a factor that is unknown, so the whole scale is, too",
            multiplier=multiplier,
        )
        return replace(fitted, verdict="undecided", says=says)
    scale = _Scale(subject, observed, best, expected)
    if scale.sure and not subject.facts.unknown_factor and not scale.is_expected:
        if scale.rounded:
            says = "× {multiplier:.6g}, as expected, rounded to {format}"
            fitted = replace(fitted, says=message(says, multiplier=multiplier, format=subject.format))
        else:
            named = scale.names()
            also = tuple(name.cause for name in named)
            if not findings and expected.assumed and subject.facts.observed:
                says = _unusual(multiplier, expected.multiplier, subject.facts, named)
                return replace(fitted, verdict="undecided", says=says, maybe=also)
            if not findings and observed.numbers < _LEAST_NUMBERS:
                return replace(fitted, verdict="undecided", says=_UNDETERMINED)
            findings.append(Finding(also[0], _other_scale(multiplier, subject.facts, named[0].words), also[1:]))
    if findings and _is_nothing(trial, expected.multiplier, findings):
        findings = []
    if findings:
        found = _with_findings(fitted, findings)
        return replace(found, consequence=consequence(trial, expected.multiplier))
    if not scale.sure or (scale.blurred and not near(multiplier, expected.multiplier, max(0.02, scale.tolerance))):
        return replace(fitted, verdict="undecided", says=_UNDETERMINED)
    return fitted


def _scale_nearby(trial: Trial, expected: Expected) -> list[str]:
    """Return the likeliest name of the multiplier that comes nearest to evidence that nothing explains."""
    near = trial.close[0] if trial.close else trial.best
    facts, ratio = trial.observed.subject.facts, near.multiplier / expected.multiplier
    error = 5 * abs(float(near.fit.errors[0]) / near.multiplier)
    if facts.unknown_factor or not ratio > 0 or not abs(math.log(ratio)) > error + 0.05:
        return []

    def fits(candidate: float) -> bool:
        return abs(math.log(candidate / near.multiplier)) <= error + 1e-4

    return [names(near.multiplier, error, expected.multiplier, facts, fits)[0].cause]


_UNDETERMINED = message("the evidence does not determine the multiplier")


def _done(hypothesis: Hypothesis, trial: Trial) -> list[Finding]:
    """Return what a hypothesis says was done; of a single one with others that come as close."""
    if hypothesis.parts:
        return [Finding(each.cause, each.words, each.also, each.stage) for each in hypothesis.parts]
    also = [*hypothesis.also]
    for each in trial.close:
        assert each.hypothesis is not None
        also += [name for part in each.hypothesis.each for name in (part.cause, *part.also)]
    named = tuple(name for name in dict.fromkeys(also) if name != hypothesis.cause)
    return [Finding(hypothesis.cause, _times(trial.best.multiplier, hypothesis.words), named, hypothesis.stage)]


def _is_nothing(trial: Trial, expected: float, findings: Sequence[Finding]) -> bool:
    """Return whether what was done leaves the weights within rounding."""
    best, observed = trial.best, trial.observed
    found = consequence(trial, expected)
    if found is None or any(each.stage in ("lse", "weights", "v", "o") for each in findings):
        return False
    if any(each.stage == "sink" for each in findings):
        stored = as_stored(observed.subject)
        shares = [softmax(model, logits(model, theta, slopes=False)).sink for model, theta in
                  ((best.model, best.fit.theta), (stored, np.array([expected])))]  # fmt: skip
        return max(float(np.mean(np.abs(shares[0] - shares[1]))), found.divergence) < _ABSORBED
    allowed = arithmetics(observed.subject, observed.evidence)
    rounding = rounding_divergence(observed, best.model, best.fit.theta, allowed[min(best.level, len(allowed) - 1)])
    return found.divergence <= 4 * min(rounding, _LINEAR) + 1e-12


class _Scale:
    """Whether the multiplier of the best explanation is the expected one, and its names if it is not."""

    def __init__(self, subject: Subject, observed: Observed, best: Candidate, expected: Expected) -> None:
        self.subject, self.observed, self.best, self.expected = subject, observed, best, expected.multiplier
        error = float(best.fit.errors[0])
        relative = error / abs(best.multiplier) if best.multiplier else math.inf
        self.tolerance = max(min(5 * relative, 0.5), least_tolerance(subject, observed.evidence))
        sides = [each.sides for each in arithmetics(subject, observed.evidence)[best.level : best.level + 1]]
        if sides and sides[0] is not None:  # the error of a query is common to its whole row
            self.tolerance = max(self.tolerance, 3 * unit(sides[0]) / math.sqrt(max(int(subject.used.sum()), 1)))
        away = best.multiplier / self.expected
        far = away > 0 and abs(math.log(away)) > max(5 * relative, 1.0)
        self.sure = relative <= _UNSURE or far
        self.blurred = _is_blurred(observed, best)

    @property
    def is_expected(self) -> bool:
        """Whether the expected multiplier explains the evidence."""
        alike = self.sure and near(self.best.multiplier, self.expected, self.tolerance)
        return alike or self._explains(self.expected)

    @property
    def rounded(self) -> bool:
        """Whether it is the expected multiplier, rounded to the format of q and k."""
        rounded = _rounded(self.expected, self.subject.format)
        return near(self.best.multiplier, self.expected, 0.02) and self._fits(rounded)

    def names(self) -> list[Name]:
        """Return its names, the likeliest first."""
        return names(self.best.multiplier, self.tolerance, self.expected, self.subject.facts, self._fits)

    def _fits(self, candidate: float) -> bool:
        if self.sure and near(self.best.multiplier, candidate, self.tolerance):
            return True
        if not near(self.best.multiplier, candidate, 1e-3) and not self.blurred:
            theta = self.best.fit.theta.copy()
            theta[0] = candidate
            distance = residual(self.observed, self.best.model, theta, slopes=False).distance
            if distance > 1.02 * self.best.fit.distance + 0.02:
                return False
        return self._explains(candidate)

    def _explains(self, candidate: float) -> bool:
        """Return whether another multiplier explains the evidence, in an arithmetic that is no coarser for sure."""
        ratio = candidate / self.best.multiplier if self.best.multiplier else math.inf
        if not 0 < ratio < math.inf:
            return False
        theta = self.best.fit.theta.copy()
        theta[: len(self.best.model.inner)] *= ratio
        best, allowed = self.best, arithmetics(self.subject, self.observed.evidence)
        found = fitted(self.observed, best.hypothesis, best.model, theta, free=False)
        if found.level == len(allowed):
            return found.level == best.level and found.misfit <= 1.1 * best.misfit
        if found.level <= best.level:
            return True
        # The coarser arithmetic is less likely by the ratio of its noise for each number, unless the finer misfits.
        [finer] = misfits(self.observed, found.model, found.fit.theta, allowed[best.level : best.level + 1], 0)
        better = math.log(finer / found.misfit) - (best.misfit**2 - found.misfit**2) / 2
        return self.observed.errors * better < _CERTAIN


def _times(multiplier: float, words: str) -> str:
    return (
        words
        if math.isnan(multiplier)
        else message("× {multiplier:.4g}: {words}", multiplier=multiplier, words=words)
    )


def _other_scale(multiplier: float, facts: Facts, words: str) -> str:
    """Return what is said of a multiplier that is not the expected one, beside those of other layers."""
    if twice := _twice(multiplier, facts):
        return message("{words}. Look where q is made", words=twice)
    return _times(multiplier, _beside_others(words, facts, facts.prescaled * multiplier))


def _twice(multiplier: float, facts: Facts) -> str:
    """Return what is said of a factor that is inside q and k and applied once more; empty if it is not."""
    if facts.prescaled == 1 or not near(facts.prescaled, multiplier, 1e-3):
        return ""
    whole = facts.prescaled * multiplier
    twice = message(
        "layer {number} multiplies twice: q and k arrive × {inside:.4g}, attention multiplies by {multiplier:.4g} "
        "again: × {whole:.4g} in all",
        number=facts.layer,
        inside=facts.prescaled,
        multiplier=multiplier,
        whole=whole,
    )
    return _beside_others(twice, facts, whole)


def _beside_others(words: str, facts: Facts, whole: float) -> str:
    """Return words on a layer's multiplier with that of most others of its kind, if it is another one."""
    of = {number: f"{multiplier:.3g}" for number, multiplier in facts.others}
    usual = max(of.values(), key=[*of.values()].count, default="")
    numbers = [str(number) for number, each in of.items() if each == usual]
    if 2 * len(numbers) <= len(of) or usual == f"{whole:.3g}":
        return words
    shown = ", ".join(numbers[:_LISTED]) + ", …" * (len(numbers) > _LISTED)
    return counted("{words}; layer {shown} has × {usual}", "{words}; layers {shown} have × {usual}",
                   len(numbers), words=words, shown=shown, usual=usual)  # fmt: skip


def _unusual(multiplier: float, assumed: float, facts: Facts, named: Sequence[Name]) -> str:
    """Return what is said of a recorded multiplier that is not 1/√d_k, where nothing says what is intended."""
    if twice := _twice(multiplier, facts):
        template = "{words}. Look where q is made, or say what is intended with `--expect` or `--config`"
        return message(template, words=twice)
    whole, likely = facts.prescaled * multiplier, [name.cause for name in named if name.cause != "scale-other"][:2]
    seen = message(
        "× {multiplier:.4g} as recorded, where 1/√{d_k} is × {usual:.4g}",
        multiplier=whole,
        d_k=facts.d_k,
        usual=assumed * facts.prescaled,
    )
    seen = _beside_others(seen, facts, whole)
    template = "{seen}: {causes}? Say what is intended with `--expect` or `--config`"
    return message(template, seen=seen, causes=joined(likely or ["scale-other"], ", "))


def _rounded(number: float, format: str) -> float:
    step = float(spacing(np.array(number), format))
    return round(number / step) * step


def _is_blurred(observed: Observed, found: Candidate) -> bool:
    """Return whether rounding blurs the multiplier in a way that its standard error does not show.

    Large logits are rounded coarsely, and outputs of 16 bits do not tell nearly one-hot rows from one-hot ones.
    """
    theta, evidence = found.fit.theta, observed.evidence
    allowed = arithmetics(observed.subject, evidence)
    if logit_noise(observed, found.model, theta, allowed[min(found.level, len(allowed) - 1)]) > _COARSE:
        return True
    if evidence.kind != "o" or not is_short(evidence.format):
        return False
    shown = logits(found.model, theta, slopes=False)
    top = softmax(found.model, shown).weights.max(axis=-1)[observed.subject.used]
    return 1 - top.sum().item() / max(top.size, 1) < 4 * unit(evidence.format)


def least_tolerance(subject: Subject, evidence: Evidence) -> float:
    """Return the least relative tolerance of a multiplier: the scale itself may be rounded."""
    short = subject.facts.scores or ("float32" if evidence.kind == "lse" else evidence.format)
    if is_short(short):
        return 2 * unit(short)
    return 3e-5 if is_short(subject.format) else 3e-6
