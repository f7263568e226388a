"""How far apart what attention returned is in two heads, over what rounding and the change of q, k and v make of it.

A head's explanation predicts log-sum-exps, weights and outputs from q, k and v as stored in each file. What the
prediction changes by is no difference of its own; the rest is measured in units of rounding, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...arrays import BoolArray, FloatArray
from ..causes.hypothesis import Hypothesis, as_stored
from ..fitting.evidence import SINGLE, Arithmetic, arithmetics, is_short, observe, spacing, values_under
from ..fitting.misfit import Noise, lse_variance, misfits, output_variance
from ..fitting.model import LogitModel, Logits, dot, logits
from ..subject import Evidence, Kind, Subject, some_rows, spread_rows
from ..trial import EXPLAINED
from ..verdict import Examination
from .processing import is_as_expected

# An explanation is an approximation, so that a prediction may be wrong by this share of its change.
_ROUGH = 0.25
_TOLERATED = 4.0  # misfit up to which an arithmetic is taken for that of a head
_ROWS = 64  # by which an arithmetic is recognised
_SINGLE = Arithmetic("float32")
_NEAR = 0.3  # relative difference up to which values are in one basis
_DISTINCT = 8  # rows that differ, to tell a factor from noise that happens to look like one
_LEAST = 1e-3  # of a factor less 1, and of a constant in nats, that no noise explains
_EXACT = 4.0  # rounding of the stored numbers up to which one head's are a factor times the other's


@dataclass(frozen=True, eq=False)
class Explanation:
    """A head with the best explanation of what was done to it."""

    subject: Subject  # as its file says, or as the other file does
    hypothesis: Hypothesis | None  # None: as the subject says
    theta: FloatArray
    examination: Examination
    given: float  # the multiplier unless the explanation fits

    @cached_property
    def model(self) -> LogitModel:
        """The model of the explanation."""
        return as_stored(self.subject) if self.hypothesis is None else self.hypothesis.build(self.subject)

    @cached_property
    def logits(self) -> Logits:
        """The logits."""
        return logits(self.model, self.theta)

    @property
    def multiplier(self) -> float:
        """The multiplier of q·k as stored."""
        return float(self.theta[0]) if self.fits else self.given

    @property
    def fits(self) -> bool:
        """Whether the explanation fits the evidence."""
        return self.examination.verdict.word in ("healthy", "cause")


def explained(subject: Subject, examination: Examination, multiplier: float) -> Explanation:
    """Return a head with its best explanation; `multiplier` is that of a head whose evidence does not tell it."""
    hypothesis, theta = None, np.array([multiplier])
    if examination.trial is not None and math.isfinite(examination.trial.best.multiplier):
        best = examination.trial.best
        if best.hypothesis is None:
            if is_as_expected(examination):
                theta = np.array([examination.verdict.expected.start])
            elif examination.verdict.word != "undecided":
                theta = best.fit.theta
        elif subject.whole or not best.hypothesis.whole:
            hypothesis, theta = best.hypothesis, best.fit.theta
    return Explanation(subject, hypothesis, theta, examination, multiplier)


def alike(one: Explanation, other: Explanation, factor: float) -> tuple[Explanation, Explanation]:
    """Return both heads under one explanation; the scores of the other are `factor` times those of the reference.

    The explanation is that of the reference, unless it fits its evidence alone. Heads with one cause keep their own.
    """
    causes = [each.examination.verdict.cause for each in (one, other)]
    if causes[0] is not None and causes[0] == causes[1]:
        return one, other
    if other.fits and not one.fits:
        return _under(other, one, 1 / factor), other
    return one, _under(one, other, factor)


def _under(base: Explanation, head: Explanation, factor: float) -> Explanation:
    """Return the q and k of a head, whose scores are `factor` times those of `base`, under the explanation of it."""
    source = head.subject
    same = factor == 1 and np.array_equal(source.q, base.subject.q) and np.array_equal(source.k, base.subject.k)
    if same and (source.format, source.k_format) == (base.subject.format, base.subject.k_format):
        return base
    subject = replace(
        base.subject,
        q=source.q / factor,
        k=source.k,
        format=source.format,
        k_format=source.k_format,
        evidence=source.evidence,
        tiled=source.tiled,
    )
    return replace(base, subject=subject, examination=head.examination)


def arithmetic_of(head: Explanation, evidence: Evidence) -> Arithmetic:
    """Return the arithmetic that explains the evidence of a head; the likeliest one if none does."""
    trial = head.examination.trial
    some = some_rows(head.subject, spread_rows(head.subject.q.shape[1], _ROWS))
    [evidence_there] = [each for each in some.evidence if each.kind == evidence.kind]
    allowed = arithmetics(some, evidence_there)
    known = trial is not None and trial.best.fit.theta is head.theta and trial.observed.evidence.kind == evidence.kind
    if trial is not None and known and trial.best.arithmetic is not None:
        return trial.best.arithmetic
    model = as_stored(some) if head.hypothesis is None or head.hypothesis.whole else head.hypothesis.build(some)
    observed = observe(some, evidence_there, float(head.theta[0]))
    left = misfits(observed, model, head.theta, allowed, EXPLAINED + 2 / math.sqrt(max(observed.errors, 1)))
    closest = int(np.argmin(left))
    return allowed[closest if left[closest] <= _TOLERATED else 0]


def score_format(head: Explanation) -> str | None:
    """Return the number format of a head's scores, as its file or else its evidence says; None if neither does."""
    said, trial = head.subject.facts.scores, head.examination.trial
    if said is not None or trial is None:
        return said
    return None if trial.best.arithmetic is None else trial.best.arithmetic.scores


@dataclass(frozen=True, eq=False)
class ReturnedChange:
    """How what attention returned differs in two heads."""

    change: float  # the root mean square over rows of what is left, over what rounding makes; ∞: not comparable
    size: float = 0.0  # the root mean square of the difference, over that of the reference
    predicted: bool = False  # whether the change of q, k or v makes more of it than rounding does
    factor: float = 1.0  # the reference's numbers times this are the other's, to rounding
    more: float = 0.0  # log-sum-exps are larger by this, to rounding
    exact: bool = False  # whether that is so to the rounding of the stored numbers, so that no noise explains it


@np.errstate(all="ignore")  # of extreme numbers: what is not finite predicts nothing
def returned(
    kind: Kind, a: Evidence, b: Evidence, heads: tuple[Explanation, Explanation], factor: float | None
) -> ReturnedChange:
    """Compare one kind of evidence of two heads.

    `factor` is that of the scores of the other; None if their scores differ, so that nothing is predicted. Of heads
    whose logits are known to be the same numbers, rounding the scores is no noise.
    """
    one, other = heads
    rows = one.subject.used & other.subject.used
    x, y = a.values, b.values
    if x.shape != y.shape and kind != "o":
        return ReturnedChange(math.inf)
    if any(not np.isfinite(array[rows]).all() for array in (x, y)):
        same = x.shape == y.shape and np.array_equal(x, y, equal_nan=True)
        return ReturnedChange(0.0 if same else math.inf)
    alike_values = kind != "o" or (a.v is not None and b.v is not None and np.array_equal(a.v, b.v))
    if x.shape == y.shape and alike_values and np.array_equal(x[rows], y[rows]):
        return ReturnedChange(0.0)
    if kind == "o":
        turn = _turn(a, b)
        if turn is not None:
            x = x @ turn
            a = replace(a, values=x, v=None if a.v is None else a.v @ turn)
    first, second = (one, other) if factor is None else alike(one, other, factor)
    variance, stored = np.zeros(rows.shape), np.zeros(rows.shape)
    for head, source, evidence in ((first, one, a), (second, other, b)):
        variance += _variance(head, evidence, arithmetic_of(source, evidence))
        stored += _variance(head, evidence, _SINGLE)
    if kind != "lse" and _have_same_logits(one, other):
        variance = stored
    x, y = (np.where(rows if kind == "lse" else rows[..., np.newaxis], array, 0) for array in (x, y))
    moved = np.zeros_like(y)
    if factor is not None and (first is not second or kind == "o"):
        moved = _predicted(kind, second, b) - _predicted(kind, first, a)
        moved = np.where(np.isfinite(moved) & (rows if kind == "lse" else rows[..., np.newaxis]), moved, 0)
    own, plain = _squares(moved), _squares(y - x)
    noise = np.maximum(variance + _ROUGH**2 * own, 1e-300)
    if not rows.any() or not np.isfinite(noise[rows]).all():  # a noise beyond float64 would excuse anything
        return ReturnedChange(math.inf)
    left = np.minimum(_squares(y - x - moved), plain) / noise
    change = math.sqrt(float(np.mean(left[rows])))
    size = math.sqrt(float(np.mean(plain[rows])) / (float(np.mean(_squares(x)[rows])) or 1e-300))
    predicted = bool(np.mean(own[rows]) > np.mean(variance[rows]))
    found = ReturnedChange(change, size, predicted)
    still = np.mean(own[rows]) <= np.mean(stored[rows])
    if still and len(np.unique(x[rows], axis=0)) >= _DISTINCT:
        exact = _in_proportion(kind, x, y, rows, stored)
        if exact is not None and max(abs(exact[0] - 1), abs(exact[1])) >= _LEAST:
            return replace(found, factor=exact[0], more=exact[1], exact=True)
    if change > _EXACT:
        factor, more = _in_proportion(kind, x, y, rows, noise) or (1.0, 0.0)
        return replace(found, factor=factor, more=more)
    return found


def _have_same_logits(one: Explanation, other: Explanation) -> bool:
    """Return whether the logits of two heads are the same numbers: lse or weights that rounded scores show are."""
    subjects = one.subject, other.subject
    if not all(np.array_equal(*(getattr(subject, side) for subject in subjects)) for side in ("q", "k")):
        return False
    for a in one.subject.evidence:
        for b in other.subject.evidence:
            if a.kind == b.kind != "o" and np.array_equal(a.values, b.values):
                return all(
                    is_short(arithmetic_of(head, evidence).scores) for head, evidence in ((one, a), (other, b))
                )
    return False


def _squares(values: FloatArray) -> FloatArray:
    """Return the sum of squares of each row's numbers, [texts, rows]."""
    return values * values if values.ndim == 2 else dot(values, values)


def _turn(a: Evidence, b: Evidence) -> FloatArray | None:
    """Return the rotation of the reference's values into the other's, [d_v, other d_v]; None if they are alike."""
    assert a.v is not None
    assert b.v is not None
    if a.v.shape == b.v.shape:
        away, size = (float(np.sqrt(np.mean(np.square(array)))) for array in (b.v - a.v, a.v))
        if away <= _NEAR * size:
            return None
    products = a.v.reshape(-1, a.v.shape[-1]).T @ b.v.reshape(-1, b.v.shape[-1])
    left, _, right = np.linalg.svd(products, full_matrices=False)
    return left @ right


def _predicted(kind: Kind, head: Explanation, evidence: Evidence) -> FloatArray:
    soft = head.logits.softmax
    if kind == "lse":
        return head.model.lse_factor * soft.lse
    if kind == "weights":
        return soft.weights
    return soft.weights @ values_under(head.model, evidence)


def _variance(head: Explanation, evidence: Evidence, arithmetic: Arithmetic) -> FloatArray:
    """Return the variance that rounding leaves in each row, summed over its numbers, [texts, rows]."""
    model, soft = head.model, head.logits.softmax
    noise = Noise(head.subject, head.logits, head.theta, arithmetic)
    if evidence.kind == "lse":
        return lse_variance(head.subject, evidence.format, evidence.values, model, soft, noise)
    if evidence.kind == "o":
        return output_variance(evidence, values_under(model, evidence), model, soft, noise)
    p = soft.weights
    square = p * p
    of_each = noise.single * (1 - 2 * p) + dot(square, noise.single)[..., np.newaxis] + noise.of_entries(p)
    return dot(square, np.maximum(of_each, 0) + (3 * SINGLE) ** 2) + _stored(evidence)


def _stored(evidence: Evidence) -> FloatArray:
    """Return the variance that rounding stored weights leaves in each row, summed over its numbers, [texts, rows]."""
    p = evidence.values
    return _squares(spacing(np.where(p == 0, 1.0, p), evidence.format) * (p != 0)) / 12


def _in_proportion(
    kind: Kind, x: FloatArray, y: FloatArray, rows: BoolArray, noise: FloatArray
) -> tuple[float, float] | None:
    """Return the factor, or for log-sum-exps the constant, that makes the reference's numbers the other's.

    `noise` is the variance of each row's numbers; None if they are alike, or in no proportion, to this noise.
    """
    weight = np.where(rows, 1 / np.maximum(noise, 1e-300), 0)
    count = max(int(np.count_nonzero(rows)), 1)

    def left(away: FloatArray) -> float:
        return math.sqrt(float(np.vdot(_squares(away), weight)) / count)

    if left(y - x) <= _EXACT:
        return None
    if kind == "lse":
        more = float(np.vdot(y - x, weight)) / float(weight.sum())
        if left(y - x - more) <= _EXACT:
            return 1.0, more
    products = x * y if kind == "lse" else dot(x, y)
    size = float(np.vdot(_squares(x), weight))
    times = float(np.vdot(products, weight)) / size if size else 0.0
    if left(y - times * x) <= _EXACT * max(1.0, abs(times)):
        return times, 0.0
    return None
