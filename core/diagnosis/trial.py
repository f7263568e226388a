"""Try what the file says on the evidence; if that does not explain it, every hypothesis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..message import message
from .causes import dropout, factors
from .causes.hypotheses import declared, hypotheses
from .causes.hypothesis import Hypothesis, as_stored
from .fitting.estimate import Fit, fit, search
from .fitting.evidence import Observed, observe
from .fitting.misfit import misfit
from .fitting.model import Model
from .subject import Evidence, Subject, some_rows, spread_rows

EXPLAINED = 1.5  # misfit, in units of rounding, up to which nothing else is tried
TOLERATED = 4.0  # misfit up to which a model explains the evidence, if no other does so much better
# How much the residual must fall for something the file declares to count as lost, or for a bend; for anything else;
# and for an explanation that leaves more than rounding.
_EXACT = 1e-6  # distance, in the same units, below which nothing is left to explain
_DECLARED, _PARSIMONY, _ROUGH = 1.2, 1.5, 30.0
_MOST = 1 << 16  # scores that the last fit uses
_QUICK = 1 << 13  # scores that hypotheses are tried on, of 16 to 40 rows
_STEPS = 20  # of a fit on these
_FINALISTS = 6
# What factors of queries, keys and components say, the fewest first.
_FACTORS = (
    (
        "scale-by-position",
        message("each row has its own multiplier: a temperature that depends on the position, or a norm of queries"),
        False,
        False,
    ),
    (
        "qk-norm-missing",
        message("each query and key has its own factor: a QK-norm is missing or extra, or ran over all heads"),
        True,
        False,
    ),
    (
        "qk-norm-missing",
        message(
            "each query and key has its own factor, and each component: a QK-norm is missing or extra, or ran over "
            "all heads"
        ),
        True,
        True,
    ),
)
_ALSO = {"qk-norm-missing": ("qk-norm-extra",)}
_BENDS = ("softcap-missing", "softcap-extra", "softcap-other", "sink-missing", "bias-missing", "scale-by-position")


@dataclass(frozen=True, eq=False)
class Found:
    """A fitted hypothesis; None is what the file says."""

    hypothesis: Hypothesis | None
    model: Model
    fit: Fit
    misfit: float

    @property
    def multiplier(self) -> float:
        """The multiplier; NaN if the hypothesis has none."""
        return float(self.fit.theta[0])

    @property
    def cost(self) -> float:
        """The distance, more for free coefficients."""
        extra = 0 if self.hypothesis is None else self.hypothesis.extra
        return self.fit.distance * (1.1 + 0.02 * extra if extra else 1.0)


@dataclass(frozen=True, eq=False)
class Trial:
    """The best explanation of one kind of evidence, and others that come as close."""

    observed: Observed
    best: Found
    close: tuple[Found, ...]


def attempt(whole: Subject, evidence: Evidence, expected: float) -> Trial:
    """Explain one kind of evidence of a head; `expected` is the multiplier that it should have."""
    only, subject, observed, stored = _as_said(whole, evidence, expected)
    if stored.misfit > EXPLAINED:
        quick, glimpse = _glimpse(subject, expected)
        other = _fitted(observed, None, stored.model, search(glimpse, as_stored(quick), np.array([expected]), ()))
        stored = min(stored, other, key=lambda found: found.fit.distance)
    if stored.misfit > EXPLAINED or _is_something_lost(subject, observed, stored):
        return _chosen(observed, stored, _finalists(only, subject, observed, stored, expected), expected)
    return Trial(observed, stored, ())


def may_fit(whole: Subject, expected: float) -> bool:
    """Return whether what the file says explains all evidence of a head, with some multiplier."""
    return all(_as_said(whole, each, expected)[-1].misfit <= TOLERATED for each in whole.evidence)


def _as_said(whole: Subject, evidence: Evidence, expected: float) -> tuple[Subject, Subject, Observed, Found]:
    """Fit what the file says; return the head with this evidence, some of its rows, their evidence, and the fit."""
    only = replace(whole, evidence=(evidence,))
    rows = max(16, _MOST // only.k.shape[1] // only.q.shape[0])
    subject = some_rows(only, spread_rows(only.q.shape[1], rows))
    observed = observe(subject, subject.evidence[0], expected)
    return only, subject, observed, _fitted(observed, None, as_stored(subject), np.array([expected]))


def _is_something_lost(subject: Subject, observed: Observed, stored: Found) -> bool:
    """Return whether the evidence fits better without something that the file declares."""
    for each in declared(subject):
        left = fit(observed, each.build(subject), stored.fit.theta[:1]).distance
        if max(left * _DECLARED, _EXACT) < stored.fit.distance:
            return True
    return False


def _glimpse(subject: Subject, expected: float) -> tuple[Subject, Observed]:
    """Return the subject with few rows, and its evidence."""
    rows = min(max(16, _QUICK // subject.k.shape[1]), 40)
    quick = some_rows(subject, spread_rows(subject.q.shape[1], rows))
    return quick, observe(quick, quick.evidence[0], expected)


def _fitted(observed: Observed, hypothesis: Hypothesis | None, model: Model, start: FloatArray) -> Found:
    found = fit(observed, model, start)
    return Found(hypothesis, model, found, misfit(observed, model, found.theta))


def _finalists(only: Subject, subject: Subject, observed: Observed, stored: Found, expected: float) -> list[Found]:
    """Try hypotheses on few rows, stage by stage, and the best ones on all, until one explains the evidence."""
    quick, glimpse = _glimpse(subject, expected)
    everything = observe(only, only.evidence[0], expected)
    before = fit(glimpse, as_stored(quick), stored.fit.theta, _STEPS).distance
    found: list[Found] = []
    for stage in hypotheses(only, only.evidence[0], stored.multiplier, expected):
        ranked: list[tuple[float, Hypothesis, FloatArray]] = []
        for each in stage:
            place, seen = (only, everything) if each.whole else (quick, glimpse)
            model = each.build(place)
            best = min(
                (
                    fit(seen, model, start, _STEPS)
                    for start in _starts(seen, model, each, (expected, stored.multiplier))
                ),
                key=lambda fitted: fitted.distance,
            )
            ranked.append((best.distance, each, best.theta))
        ranked.sort(key=lambda each: each[0])
        promising = [each for each in ranked[:_FINALISTS] if each[0] <= min(4 * ranked[0][0], before / _DECLARED)]
        for _, each, theta in promising:
            place, seen = (only, everything) if each.whole else (subject, observed)
            fitted = _fitted(seen, each, each.build(place), theta)
            if _is_plausible(seen, fitted):
                found.append(fitted)
        if any(each.misfit <= EXPLAINED for each in found):
            return found
    return [*found, *_last_resort(quick, glimpse, expected)]


def _starts(
    observed: Observed, model: Model, hypothesis: Hypothesis, guesses: Sequence[float]
) -> Iterator[FloatArray]:
    """Yield starting coefficients, near the best multiplier for each start of the others.

    The logarithms of weights are linear in the multiplier, so that these are fitted from any start.
    """
    inner = np.array(hypothesis.inner) * guesses[0]
    linear = observed.evidence.kind == "weights" or hypothesis.whole
    for others in hypothesis.others:
        yield search(observed, model, np.array([*inner, *others]), guesses, everywhere=not linear)


def _last_resort(quick: Subject, glimpse: Observed, expected: float) -> list[Found]:
    """Try what is not a model with a few coefficients."""
    model, theta = as_stored(quick), np.array([expected])
    if glimpse.evidence.kind == "lse":
        return []
    found: list[Found] = []

    def add(cause: str, words: str, distance: float, multiplier: float) -> None:
        hypothesis = Hypothesis(cause, words, as_stored, _ALSO.get(cause, ()))
        found.append(Found(hypothesis, model, Fit(np.array([multiplier]), np.array([math.inf]), distance), distance))

    if glimpse.evidence.kind == "o" and dropout.shows_in_output(glimpse, model, theta):
        add("dropout-on", "outputs lack keys at random: dropout was on", 1.0, expected)
    for cause, words, of_keys, of_components in _FACTORS:
        left = factors.left_with_factors(glimpse, model, expected, of_keys, of_components)
        add(cause, words, left, math.nan)
        if left <= EXPLAINED:
            break
    return found


def _is_plausible(observed: Observed, found: Found) -> bool:
    """Return whether the coefficients make sense for the hypothesis."""
    hypothesis, theta = found.hypothesis, found.fit.theta
    assert hypothesis is not None
    if not math.isfinite(found.fit.distance):
        return False
    if hypothesis.cause in ("softcap-extra", "softcap-other"):
        model = found.model
        scores = model.inner[0] if model.seen is None else np.where(model.seen, model.inner[0], 0)
        return math.exp(min(float(theta[1]), 300.0)) <= 5 * abs(found.multiplier) * float(np.abs(scores).max())
    if hypothesis.cause == "sink-extra":
        return float(theta[-1]) > -30
    if hypothesis.cause == "dropout-on":
        return dropout.shows_in_weights(observed, found.model, theta)
    return True


def _chosen(observed: Observed, stored: Found, finalists: Sequence[Found], expected: float) -> Trial:
    """Choose between what the file says and the hypotheses that fit best."""
    if any(each.misfit <= EXPLAINED and not each.model.gaps for each in finalists):
        finalists = [each for each in finalists if not each.model.gaps]  # dropout explains any zeros
    if not finalists:
        return Trial(observed, stored, ())
    best = min(finalists, key=lambda found: found.cost)
    assert best.hypothesis is not None
    lost = best.hypothesis.cause in _BENDS
    gained = stored.fit.distance / max(best.fit.distance, 1e-12)
    needed = _DECLARED if lost else _PARSIMONY
    if best.misfit > 2 * TOLERATED:
        needed = _ROUGH
    if gained < needed or (stored.misfit <= EXPLAINED and not lost):
        return Trial(observed, stored, ())
    limit = best.cost * _PARSIMONY
    close = [each for each in finalists if each.cost <= limit and each.misfit <= max(TOLERATED, best.misfit * 1.5)]

    def rank(found: Found) -> tuple[int, float]:
        assert found.hypothesis is not None
        ratio = found.multiplier / expected
        return found.hypothesis.extra, abs(math.log(ratio)) if ratio > 0 else math.inf

    close.sort(key=rank)
    return Trial(observed, close[0], tuple(close))
