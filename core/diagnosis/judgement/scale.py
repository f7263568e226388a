"""Whether the multiplier that fits best is the expected one, and its names if it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...arrays import FloatArray
from ...message import joined, message
from ..causes.hypothesis import as_stored
from ..fitting.evidence import Arithmetic, FittingEvidence, arithmetics, is_short, observe, residual, spacing, unit
from ..fitting.misfit import logit_noise, misfits
from ..fitting.model import LogitModel, logits
from ..multipliers import Name, is_scale, names, near
from ..results import Expected, Finding, amount
from ..subject import Evidence, StatedFacts, Subject, some_rows, spread_rows
from ..trial import SIGMAS, Candidate, fitted
from .agreement import SURE

# These were chosen by hand; the counts are of 2,160 healthy heads and 34 faults of benchmarks/calibrate.py (seed 0).
LEAST_NUMBERS = 4  # of evidence, to name a multiplier; at 2 and 8: 0 accused, 34 named
_FEW_ROWS = 2  # on which candidates are looked at first, to save time
_COARSE = 0.03  # rounding of logits above which it blurs the multiplier; at 0.015 and 0.06: 0 accused, 34 named
_CERTAIN = 10.0  # the logarithm of a ratio of likelihoods; at 5: 2 accused, 34 named; at 20: 0 accused, 34 named


class FittedScale:
    """Whether the multiplier of the best explanation is the expected one, and its names if it is not."""

    def __init__(self, subject: Subject, observed: FittingEvidence, best: Candidate, expected: Expected) -> None:
        self.subject, self.observed, self.best, self.expected = subject, observed, best, expected.start
        error = float(best.fit.errors[0])
        relative = error / abs(best.multiplier) if best.multiplier else math.inf
        self.tolerance = max(min(SIGMAS * relative, 0.5), least_tolerance(subject, observed.evidence))
        sides = None if best.arithmetic is None else best.arithmetic.sides
        if sides is not None:  # the error of a query is common to its whole row
            self.tolerance = max(self.tolerance, 3 * unit(sides) / math.sqrt(max(int(subject.used.sum()), 1)))
        away = best.multiplier / self.expected
        far = away > 0 and abs(math.log(away)) > max(SIGMAS * relative, 1.0)
        self.sure = relative <= SURE or far

    @property
    def is_expected(self) -> bool:
        """Whether the expected multiplier explains the evidence."""
        return near(self.best.multiplier, self.expected, self.tolerance) or self._explains(self.expected)

    @property
    def rounded(self) -> bool:
        """Whether it is the expected multiplier, rounded to the format of q and k."""
        rounded = _rounded(self.expected, self.subject.format)
        return near(self.best.multiplier, self.expected, 0.02) and self._fits(rounded)

    def names(self) -> list[Name]:
        """Return its names, the likeliest first."""
        return names(self.best.multiplier, self.tolerance, self.expected, self.subject.facts, self._fits)

    def _fits(self, candidate: float) -> bool:
        if near(self.best.multiplier, candidate, self.tolerance):
            return True
        if not near(self.best.multiplier, candidate, 1e-3) and not self._is_blurred:
            theta = self.best.fit.theta.copy()
            theta[0] = candidate
            most = 1.02 * self.best.fit.distance + 0.02
            if self._least_distance(theta) > most:
                return False
            if residual(self.observed, self.best.model, theta).distance > most:
                return False
        return self._explains(candidate)

    def _least_distance(self, theta: FloatArray) -> float:
        """Return what a few rows alone make of the distance of all: most candidates are far off in any row."""
        if self._few is None:
            return 0.0
        observed, model, numbers = self._few
        left = residual(observed, model, theta).r
        return math.sqrt(float(np.vdot(left, left)) / numbers)

    @cached_property
    def _is_blurred(self) -> bool:
        """Whether rounding blurs the multiplier in a way that its standard error does not show.

        Large logits are rounded coarsely, and outputs of 16 bits do not tell nearly one-hot rows from one-hot ones.
        """
        theta, model, evidence = self.best.fit.theta, self.best.model, self.observed.evidence
        arithmetic = self.best.arithmetic or arithmetics(self.observed.subject, evidence)[-1]
        if logit_noise(self.observed, model, theta, arithmetic) > _COARSE:
            return True
        if evidence.kind != "o" or not is_short(evidence.format):
            return False
        top = logits(model, theta).softmax.weights.max(axis=-1)[self.observed.subject.used]
        return 1 - top.sum().item() / max(top.size, 1) < 4 * unit(evidence.format)

    @cached_property
    def _few(self) -> tuple[FittingEvidence, LogitModel, int] | None:
        """A few rows, the explanation of these, and how many numbers all rows have; None if they are needed whole.

        The errors of weights are weighed by all rows.
        """
        hypothesis, observed = self.best.hypothesis, self.observed
        rows = observed.subject.q.shape[1]
        if rows <= _FEW_ROWS or observed.evidence.kind == "weights" or (hypothesis is not None and hypothesis.whole):
            return None
        some = some_rows(observed.subject, spread_rows(rows, _FEW_ROWS))
        model = as_stored(some) if hypothesis is None else hypothesis.build(some)
        all_rows = residual(observed, self.best.model, self.best.fit.theta)
        return observe(some, some.evidence[0], self.expected), model, all_rows.r.size

    def _is_likely(self, candidate: Candidate, arithmetic: Arithmetic) -> bool:
        """Return whether another multiplier is not much less likely than the best one, in one arithmetic."""
        [best] = misfits(self.observed, self.best.model, self.best.fit.theta, (arithmetic,))
        better = (candidate.misfit**2 - best**2) / (2 * max(best, 1.0) ** 2)
        return self.observed.errors * better < _CERTAIN

    def _explains(self, candidate: float) -> bool:
        """Return whether another multiplier explains the evidence, in an arithmetic that is no coarser for sure."""
        ratio = candidate / self.best.multiplier if self.best.multiplier else math.inf
        if not 0 < ratio < math.inf:
            return False
        theta = self.best.fit.theta.copy()
        theta[: len(self.best.model.inner)] *= ratio
        best = self.best
        found = fitted(self.observed, best.hypothesis, best.model, theta, free=False)
        if found.arithmetic is None:
            return best.arithmetic is None and found.misfit <= 1.1 * best.misfit
        if best.arithmetic is None or found.arithmetic_index <= best.arithmetic_index:
            return self._is_likely(found, found.arithmetic)
        if self.observed.errors < LEAST_NUMBERS:  # too few to tell a coarser arithmetic from another computation
            return False
        # The coarser arithmetic is less likely by the ratio of its noise for each number, unless the finer misfits.
        [finer] = misfits(self.observed, found.model, found.fit.theta, (best.arithmetic,), 0)
        better = math.log(finer / found.misfit) - (best.misfit**2 - found.misfit**2) / 2
        return self.observed.errors * better < _CERTAIN


def _rounded(number: float, format: str) -> float:
    step = float(spacing(np.array(number), format))
    return round(number / step) * step


def least_tolerance(subject: Subject, evidence: Evidence) -> float:
    """Return the least relative tolerance of a multiplier: the scale itself may be rounded."""
    short = subject.facts.scores or ("float32" if evidence.kind == "lse" else evidence.format)
    if is_short(short):
        return 2 * unit(short)
    return 3e-5 if is_short(subject.format) else 3e-6


_ALIKE = 1e-3  # relative: what rounding makes of one factor that is inside q and k, and applied again


def other_scale(multiplier: float, expected: float, facts: StatedFacts, named: Sequence[Name]) -> Finding:
    """Return the finding that q·k as stored was multiplied by another number, which has these names."""
    first, *others = named
    words = _composed(multiplier, expected, facts, first.words)
    return Finding(first.cause, words, tuple(cause.cause for cause in others))


def _composed(multiplier: float, expected: float, facts: StatedFacts, words: str) -> str:
    """Return why the multiplier is what it is: of which factors it is the product, if there are several."""
    if facts.prescaled == 1:
        return words
    arrives, applied = _arriving(facts), amount(multiplier)
    whole = facts.product(multiplier)
    if is_scale(facts.prescaled, expected * facts.prescaled) and near(facts.prescaled, multiplier, _ALIKE):
        return message(
            "applied twice: {arrives}, then attention × {again:.4g} again", arrives=arrives, again=multiplier
        )
    if near(whole, 1, _ALIKE):
        return message("not scaled: {arrives}, which undoes attention's {applied}", arrives=arrives, applied=applied)
    if near(multiplier, 1, _ALIKE):
        return message("{words}: {arrives}", words=words, arrives=arrives)
    return message("{words}: {arrives}, then attention {applied}", words=words, arrives=arrives, applied=applied)


def _arriving(facts: StatedFacts) -> str:
    """Return what q and k contain: `q arrives × 0.1768`."""
    sides = [
        message("{side} arrives {amount}", side=side, amount=amount(factor))
        for side, factor in zip(("q", "k"), facts.inside, strict=True)
        if factor != 1
    ]
    return joined(sides, ", ")


def unusual(multiplier: float, assumed: float, facts: StatedFacts, named: Sequence[Name]) -> tuple[str, Finding]:
    """Return what is said of a recorded multiplier that is not 1/√d_k, where nothing says what is intended."""
    scale = other_scale(multiplier, assumed, facts, named)
    says = message(
        "{used}, where 1/√{d_k} is {usual}: {why}?",
        used=amount(facts.product(multiplier)),
        d_k=facts.d_k,
        usual=amount(facts.product(assumed)),
        why=scale.says,
    )
    return says, scale
