"""Try what the file says on the evidence; if that does not explain it, every hypothesis, then pairs of them.

A hypothesis needs twice as many numbers of evidence as it has free coefficients, and pays for each. What rounding
explains, in an arithmetic that the file allows, is not overturned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..message import message
from .causes import dropout
from .causes.catalogue import CAUSES, RANK, ROUNDS, hypotheses, together
from .causes.edits import HypothesisCase
from .causes.factors import Free, left_with_factors
from .causes.hypothesis import Hypothesis, as_stored, both
from .fitting.evidence import Arithmetic, FittingEvidence, arithmetics, observe
from .fitting.misfit import Fit, fit, misfits, search
from .fitting.model import LogitModel
from .multipliers import names
from .subject import Evidence, Subject, some_rows, spread_rows

# These were chosen by hand. The counts beside them are of the simulated heads of benchmarks/calibrate.py (seed 0), of
# which the diagnosis accuses 0 of 2,160 healthy ones.

# Misfit, in units of rounding, up to which nothing else is tried, of many numbers. Of n it is _FEWER / √n more: 2.8
# standard errors of the root mean square of n normal numbers. All 2,160 healthy heads are within; 23 are beyond 1.5,
# and 7 beyond 2. At 0.75, 1 of 108 is accused; at 3, 1 more fault of 136 is missed, and 1 more pair of 68. At half of
# _FEWER and at twice, 0 of 2,160 are accused, and 34 of 34 faults are named.
EXPLAINED, _FEWER = 1.5, 2.0
# How much the residual must fall for a trial; to explain what nothing else does; and if more than rounding is left.
# No healthy head comes this far. In 176 of 272 faults and 95 of 102 pairs more than the multiplier is found: on few
# rows the residual fell by a factor of 1.43 or more, on all by 2.66, or 10.4 for a single fault. In 2 of these heads
# more than rounding was left. At 1.1 for a trial, as many faults and pairs are named.
_PROMISING, _PARSIMONY, _ROUGH = 1.2, 1.5, 30.0
# Twice the logarithm of the ratio of likelihoods that the best of some hundred hypotheses may reach by chance: the
# probability of 20 or more is 8e-6 for one coefficient. The least of these 271 heads was 132.
_LUCK = 20.0
# Standard errors that a multiplier may be away. As errors of one row are alike, 132 of the 2,160 healthy heads are
# farther from the expected one; of these, likelihoods decide (`_CERTAIN` in judgement/scale.py).
SIGMAS = 5.0
_MOST = 1 << 16  # scores that the last fit uses
_QUICK = 1 << 13  # scores that hypotheses are tried on, of 16 to 40 rows
_STEPS, _PAIR_STEPS = 20, 2  # of a fit on these
_FINALISTS = 6
_FEW = 2  # coefficients beside the multiplier
_PAIRED = 5  # single hypotheses, the best but for masks, that are paired with all others
_PAIR_ROWS, _LIKELY = 20, 12  # of a first look at pairs, and the pairs that are fitted on
# What factors of queries, keys and components say, the plainest first.
_FACTORS = (
    (
        "scale-by-position",
        message("each row has its own multiplier: a temperature that depends on the position, or a norm of queries"),
        Free(rows=True),
    ),
    (
        "qk-norm-weight",
        message(
            "each component of q·k has its own factor: the weight of a QK-norm is missing, extra, or another one"
        ),
        Free(components=True),
    ),
    (
        "qk-norm-missing",
        message("each query and key has its own factor: a QK-norm is missing or extra, or ran over all heads"),
        Free(rows=True, keys=True),
    ),
    (
        "qk-norm-missing",
        message(
            "each query and key has its own factor, and each component: a QK-norm is missing or extra, or ran over "
            "all heads"
        ),
        Free(rows=True, keys=True, components=True),
    ),
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted hypothesis; None is what the file says."""

    hypothesis: Hypothesis | None
    model: LogitModel
    fit: Fit
    misfit: float  # in the finest arithmetic that explains the evidence, else the least
    observed: FittingEvidence
    arithmetic_index: int  # the number of that arithmetic among those that the file allows; their count if none does

    @property
    def multiplier(self) -> float:
        """The multiplier; NaN if the hypothesis has none."""
        return float(self.fit.theta[0])

    @property
    def arithmetic(self) -> Arithmetic | None:
        """The finest arithmetic that explains the evidence, of those that the file allows; None if none does."""
        return dict(enumerate(arithmetics(self.observed.subject, self.observed.evidence))).get(self.arithmetic_index)

    @property
    def cost(self) -> float:
        """The distance, more for free coefficients."""
        extra = 0 if self.hypothesis is None else self.hypothesis.extra
        return self.fit.distance * (1.1 + 0.02 * extra if extra else 1.0)


@dataclass(frozen=True, eq=False)
class Trial:
    """The best explanation of one kind of evidence, and others that come as close."""

    best: Candidate
    close: tuple[Candidate, ...]

    @property
    def observed(self) -> FittingEvidence:
        """The evidence that the best explanation was fitted to."""
        return self.best.observed


def attempt(said: StatedFit, expected: float) -> Trial:
    """Explain one kind of evidence of a head; `expected` is the multiplier that it should have."""
    stored = said.stored
    if stored.arithmetic_index > 0:
        quick, glimpse = _glimpse(stored.observed.subject, expected)
        start = search(glimpse, as_stored(quick), np.array([expected]), ())
        again = fitted(stored.observed, None, stored.model, start)
        stored = min(stored, again, key=lambda candidate: (candidate.arithmetic_index, candidate.fit.distance))
    if stored.arithmetic is None:
        return _chosen(stored, _finalists(said.only, stored, expected), expected)
    return Trial(stored, ())


def may_fit(whole: Subject, expected: float) -> bool:
    """Return whether what the file says explains all evidence of a head, with some multiplier."""
    return all(fit_as_said(whole, evidence, expected).stored.arithmetic is not None for evidence in whole.evidence)


class StatedFit(NamedTuple):
    """A head with one kind of evidence, and the fit of what its file says."""

    only: Subject  # all its rows
    stored: Candidate  # fitted to the evidence of some of them


def fit_as_said(whole: Subject, evidence: Evidence, expected: float) -> StatedFit:
    """Fit what the file says to one kind of evidence; `expected` is the multiplier that it should have."""
    only = _only(whole, evidence)
    observed = _observed(only, expected)
    model, theta = as_stored(observed.subject), np.array([expected])
    stored = fitted(observed, None, model, theta)
    if stored.arithmetic_index > 0:  # rows with coarse logits may draw a fit away from what explains them all
        misfit, index = misfit_of(observed, model, theta)
        if index < stored.arithmetic_index:
            stored = replace(stored, fit=replace(stored.fit, theta=theta), misfit=misfit, arithmetic_index=index)
    return StatedFit(only, stored)


def explains(best: Candidate, whole: Subject, evidence: Evidence, expected: float) -> bool:
    """Return whether what the file says, with the multiplier of one kind of evidence, explains another one."""
    if best.hypothesis is not None or not np.isfinite(evidence.values[whole.used]).all():
        return False
    observed = _observed(_only(whole, evidence), expected)
    index = misfit_of(observed, as_stored(observed.subject), best.fit.theta)[1]
    return index < len(arithmetics(observed.subject, evidence))


def _only(whole: Subject, evidence: Evidence) -> Subject:
    """Return a head with one kind of evidence, and with its scores if all are used, for every kind alike."""
    only = replace(whole, evidence=(evidence,))
    only.__dict__["used"] = whole.used
    if whole.q.shape[1] <= _rows(whole):
        only.__dict__["scores"] = whole.scores
    return only


def _rows(subject: Subject) -> int:
    """Return how many rows the last fit uses at most."""
    return max(16, _MOST // subject.k.shape[1] // subject.q.shape[0])


def _observed(only: Subject, expected: float) -> FittingEvidence:
    """Return the only evidence of a head, in as many rows as the last fit uses."""
    subject = some_rows(only, spread_rows(only.q.shape[1], _rows(only)))
    return observe(subject, subject.evidence[0], expected)


def _glimpse(subject: Subject, expected: float) -> tuple[Subject, FittingEvidence]:
    """Return the subject with few rows, and its evidence."""
    rows = min(max(16, _QUICK // subject.k.shape[1]), 40)
    quick = some_rows(subject, spread_rows(subject.q.shape[1], rows))
    return quick, observe(quick, quick.evidence[0], expected)


def fitted(
    observed: FittingEvidence, hypothesis: Hypothesis | None, model: LogitModel, start: FloatArray, free: bool = True
) -> Candidate:
    """Fit a hypothesis from these coefficients; unless `free`, with this multiplier."""
    found = fit(observed, model, start, free=free, errors=True)
    misfit, index = misfit_of(observed, model, found.theta)
    return Candidate(hypothesis, model, found, misfit, observed, index)


def misfit_of(observed: FittingEvidence, model: LogitModel, theta: FloatArray) -> tuple[float, int]:
    """Return the misfit, and the number of the arithmetic that explains the evidence."""
    enough = EXPLAINED + _FEWER / math.sqrt(max(observed.errors, 1))
    found = misfits(observed, model, theta, arithmetics(observed.subject, observed.evidence), enough)
    return (found[-1], len(found) - 1) if found[-1] <= enough else (min(found), len(found))


class _Search:
    """Hypotheses on few rows, and the best ones on all."""

    def __init__(self, only: Subject, stored: Candidate, expected: float) -> None:
        self.observed, self.subject, self.stored = stored.observed, stored.observed.subject, stored
        self.quick, self.glimpse = _glimpse(self.subject, expected)
        self.only, self.everything = only, observe(only, only.evidence[0], expected)
        self.case = HypothesisCase(only, only.evidence[0], stored.multiplier, expected)
        self.guesses = (expected, stored.multiplier)
        self.before = fit(self.glimpse, as_stored(self.quick), stored.fit.theta, _STEPS).distance
        self.numbers, self.few = self.observed.numbers, self.glimpse.numbers
        self.singles: list[tuple[float, Hypothesis]] = []

    def counts(self, hypothesis: Hypothesis, numbers: int) -> bool:
        """Return whether there are enough numbers for the coefficients."""
        return numbers >= 2 * (hypothesis.extra + 2)

    def round(self, tried: Sequence[Hypothesis]) -> list[Candidate]:
        """Return those of these hypotheses that fit best, fitted to all rows."""
        ranked: list[tuple[float, Hypothesis, FloatArray]] = []
        for each in tried:
            if not self.counts(each, self.numbers):
                continue
            place, seen = (self.quick, self.glimpse) if self.counts(each, self.few) else (self.subject, self.observed)
            place, seen = (self.only, self.everything) if each.whole else (place, seen)
            model = each.build(place)
            best = min(
                (fit(seen, model, start, _STEPS) for start in self._starts(seen, model, each)),
                key=lambda candidate: candidate.distance,
            )
            ranked.append((best.distance, each, best.theta))
        self.singles += [(distance, hypothesis) for distance, hypothesis, _ in ranked]
        return self._on_all_rows(ranked)

    def _on_all_rows(self, ranked: list[tuple[float, Hypothesis, FloatArray]]) -> list[Candidate]:
        ranked.sort(key=lambda entry: entry[0])
        candidates: list[Candidate] = []
        for distance, each, theta in ranked[:_FINALISTS]:
            if distance <= min(4 * ranked[0][0], self.before / _PROMISING):
                place, seen = (self.only, self.everything) if each.whole else (self.subject, self.observed)
                one = fitted(seen, each, each.build(place), theta)
                if _is_plausible(seen, one):
                    candidates.append(one)
        return candidates

    def pairs(self) -> list[Candidate]:
        """Return the pairs of hypotheses that fit best: the likeliest on few rows, until one explains these."""
        quick = some_rows(self.quick, spread_rows(self.quick.q.shape[1], _PAIR_ROWS))
        glimpse = observe(quick, quick.evidence[0], self.case.expected)
        tried: list[tuple[float, Hypothesis, LogitModel, FloatArray]] = []
        closest = math.inf
        for pair in self._pairs():
            model = pair.build(quick)
            starts = (search(glimpse, model, start, self.guesses, False) for start in pair.starts(self.guesses[0]))
            best = min((fit(glimpse, model, start, _PAIR_STEPS) for start in starts), key=lambda one: one.distance)
            if model.dropout and not dropout.shows_in_weights(glimpse, model, best.theta):
                continue
            if best.distance < closest / _PROMISING:
                best = fit(glimpse, model, best.theta, _STEPS)
                closest = best.distance
                if misfit_of(glimpse, model, best.theta)[1] < self.stored.arithmetic_index:
                    return self._on_all_rows([(best.distance, pair, best.theta)])
            tried.append((best.distance, pair, model, best.theta))
        tried.sort(key=lambda entry: entry[0])
        ranked: list[tuple[float, Hypothesis, FloatArray]] = []
        for _, hypothesis, model, start in tried[:_LIKELY]:
            best = fit(glimpse, model, start, _STEPS)
            ranked.append((best.distance, hypothesis, best.theta))
        return self._on_all_rows(ranked)

    def without_numbers(self) -> list[Hypothesis]:
        """Return the best single hypotheses that have no coefficient and act before the weights."""
        return [
            hypothesis
            for _, hypothesis in self.singles
            if not hypothesis.extra and hypothesis.stage not in ("lse", "weights")
        ][:_PAIRED]

    def _starts(self, observed: FittingEvidence, model: LogitModel, hypothesis: Hypothesis) -> Iterator[FloatArray]:
        """Yield starting coefficients, near the best multiplier for each start of the others.

        The logarithms of weights are linear in the multiplier, so that these are fitted from any start.
        """
        known = observed.evidence.kind == "weights" or hypothesis.whole
        for start in hypothesis.starts(self.guesses[0]):
            yield search(observed, model, start, self.guesses, everywhere=not known)
            if hypothesis.extra > _FEW:  # of many coefficients, the best multiplier alone may lead astray
                yield start

    def _pairs(self) -> list[Hypothesis]:
        """Return pairs of masks, and of the best single hypotheses, with all others that have few coefficients."""
        self.singles.sort(key=lambda entry: entry[0])
        singles = [hypothesis for _, hypothesis in self.singles if hypothesis.extra <= _FEW and not hypothesis.whole]
        first = [single for single in singles if single.stage != "mask"][:_PAIRED]
        found: dict[frozenset[int], Hypothesis] = {}
        for one in [*first, *(single for single in singles if single.stage == "mask")]:
            for other in singles:
                key = frozenset((id(one), id(other)))
                pair = None if key in found else together(one, other)
                if pair is not None and self.counts(pair, self.numbers):
                    found[key] = pair
        return sorted(found.values(), key=lambda hypothesis: hypothesis.extra)


def _finalists(only: Subject, stored: Candidate, expected: float) -> list[Candidate]:
    """Try hypotheses on few rows, round by round, and the best ones on all, until one explains the evidence."""
    trying, found = _Search(only, stored, expected), list[Candidate]()
    for number in range(ROUNDS):
        found += trying.round(hypotheses(trying.case, number))
        if any(candidate.arithmetic_index < stored.arithmetic_index for candidate in found):
            return found
    found += trying.pairs()
    if any(candidate.arithmetic_index < stored.arithmetic_index for candidate in found):
        return found
    return [*found, *_last_resort(trying, stored, expected)]


def _last_resort(trying: _Search, stored: Candidate, expected: float) -> list[Candidate]:
    """Try what is not a model with a few coefficients."""
    quick, glimpse = trying.quick, trying.glimpse
    if glimpse.evidence.kind == "lse":
        return []
    model = as_stored(quick)
    found = _dropped_keys(trying, stored, expected) if glimpse.evidence.kind == "o" else []
    for cause, words, free in _FACTORS:
        left = left_with_factors(glimpse, model, expected, free)
        if left <= EXPLAINED:
            row = CAUSES[cause]
            hypothesis = Hypothesis(words, lambda _, model: model, cause, row.stage, row.also)
            about = Fit(np.array([math.nan]), np.array([math.inf]), left)
            found.append(Candidate(hypothesis, model, about, left, glimpse, stored.arithmetic_index - 1))
            break
    return found


def _dropped_keys(trying: _Search, stored: Candidate, expected: float) -> list[Candidate]:
    """Return dropout of outputs, perhaps with another multiplier that has a name, or with one other thing."""
    quick, glimpse = trying.quick, trying.glimpse
    words = "outputs lack keys at random: dropout was on"
    dropped = Hypothesis(words, lambda _, model: model, "dropout-on", "weights")
    error = float(stored.fit.errors[0]) / stored.multiplier
    shown: list[tuple[Hypothesis, LogitModel, float]] = []

    def shows(multiplier: float, other: Hypothesis | None = None) -> bool:
        model = as_stored(quick) if other is None else other.build(quick)
        if shown or not dropout.shows_in_output(glimpse, model, np.array([multiplier])):
            return False
        shown.append((dropped if other is None else both(other, dropped), model, multiplier))
        return True

    def fits(multiplier: float) -> bool:
        return abs(math.log(multiplier / stored.multiplier)) < max(SIGMAS * error, 0.02) and shows(multiplier)

    if not shows(expected):
        names(stored.multiplier, 1.0, expected, quick.facts, fits)
        for hypothesis in trying.without_numbers():
            shows(expected, hypothesis)
    return [
        Candidate(
            hypothesis,
            model,
            Fit(np.array([m]), np.array([1e-6 * m]), 1.0),
            1.0,
            glimpse,
            stored.arithmetic_index - 1,
        )
        for hypothesis, model, m in shown
    ]


def _is_plausible(observed: FittingEvidence, candidate: Candidate) -> bool:
    """Return whether the coefficients make sense for the hypothesis."""
    hypothesis, theta, model = candidate.hypothesis, candidate.fit.theta, candidate.model
    assert hypothesis is not None
    if not math.isfinite(candidate.fit.distance):
        return False
    if model.free_softcap:
        scores = model.inner[0] if model.seen is None else np.where(model.seen, model.inner[0], 0)
        cap = math.exp(min(float(theta[len(model.inner) + len(model.outer)]), 300.0))
        if cap > 5 * abs(candidate.multiplier) * float(np.abs(scores).max()):  # it lowers logits by 1.3 % at most
            return False
    if model.free_sink and float(theta[-1]) <= -30:  # less than 1e-13 of e^0
        return False
    return not model.dropout or dropout.shows_in_weights(observed, model, theta)


def _chosen(stored: Candidate, finalists: Sequence[Candidate], expected: float) -> Trial:
    """Choose between what the file says and the hypotheses that fit best."""
    explaining = [finalist for finalist in finalists if finalist.arithmetic_index < stored.arithmetic_index]
    if any(not candidate.model.dropout for candidate in explaining):
        finalists = [finalist for finalist in finalists if not finalist.model.dropout]  # dropout explains any zeros
        explaining = [candidate for candidate in explaining if not candidate.model.dropout]
    finalists = explaining or finalists
    if not finalists:
        return Trial(stored, ())
    best = min(finalists, key=lambda candidate: candidate.cost)
    assert best.hypothesis is not None
    gain = stored.fit.distance / max(best.fit.distance, 1e-12)
    extra = best.hypothesis.extra
    numbers = stored.observed.numbers
    left = numbers - extra - 1  # degrees of freedom: some hundred hypotheses are tried, and the best is kept
    paid = 2 * left * math.log(max(gain, 1e-12)) >= max(extra, 1) * math.log(numbers + 1) + _LUCK
    needed = _PARSIMONY if explaining else _ROUGH
    if gain < needed or not (paid or math.isnan(best.multiplier)):
        return Trial(stored, tuple(sorted(finalists, key=lambda candidate: candidate.cost)))
    limit = best.cost * _PARSIMONY
    close = [finalist for finalist in finalists if finalist.cost <= limit]

    def rank(candidate: Candidate) -> tuple[int, int, float, int]:
        assert candidate.hypothesis is not None
        ratio = candidate.multiplier / expected
        away = abs(math.log(ratio)) if ratio > 0 else math.inf
        return (
            len(candidate.hypothesis.parts),
            candidate.hypothesis.extra,
            round(away, 3),
            RANK[candidate.hypothesis.cause],
        )

    close.sort(key=rank)
    return Trial(close[0], tuple(close))
