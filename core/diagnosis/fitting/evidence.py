"""What evidence is rounded to, and how far it is from a prediction, over a noise without the model's multiplier.

If noise in proportion to the logits entered the fit, a huge multiplier would excuse anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.formats import FORMATS, NumberFormat
from ...attention.softmax import Softmax
from ..subject import Evidence, Indices, Subject
from .model import LogitModel, Logits, derivatives, dot, logits

# The standard deviation of a relative rounding error, over half a unit in the last place: mantissas are spread evenly
# in the logarithm, so the mean of 1/m² over 1 ≤ m < 2 is 0.541, and √(0.541/3) = 0.42.
SPREAD = 0.42
SINGLE = 2.0**-24
_FORMATS = {**FORMATS, "tfloat32": NumberFormat("tfloat32", "TF32", 19, 10, -126, FORMATS["float32"].largest)}
# Kernels on 16-bit inputs may use an approximate exponential: with that of PyTorch's flash attention on CPUs,
# log-sum-exps are up to 6e-5 off, and 4e-5 in the root mean square of rows with few large weights.
_APPROXIMATE = 4e-5


def unit(format: str) -> float:
    """Return half a unit in the last place of 1."""
    known = _FORMATS.get(format)
    return 2.0 ** -(known.mantissa + 1) if known else SINGLE


def spacing(values: FloatArray, format: str) -> FloatArray:
    """Return the distance between neighbouring numbers of the format at these values."""
    known = _FORMATS.get(format, FORMATS["float32"])
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponents - 1, known.min_exponent) - known.mantissa)


def smallest(format: str) -> float:
    """Return the smallest positive number of the format."""
    known = FORMATS[format] if format in FORMATS else FORMATS["float32"]
    return 2.0 ** (known.min_exponent - known.mantissa)


def is_short(format: str) -> bool:
    """Return whether the format has fewer bits than float32."""
    return unit(format) > SINGLE


@dataclass(frozen=True)
class Arithmetic:
    """How logits may have been computed from q and k as stored."""

    scores: str  # the number format of scores and logits
    sides: str | None = None  # the format that q and k were rounded to once more, after a factor; None: not again

    @property
    def coarsest(self) -> float:
        """Half a unit in the last place of 1 in the coarsest of its formats."""
        return max(unit(self.scores), unit(self.sides or "float32"))


def arithmetics(subject: Subject, evidence: Evidence) -> tuple[Arithmetic, ...]:
    """Return the arithmetics that what the file says allows, the finest first.

    Weights and outputs of 16 bits mostly come from logits of 16 bits, while kernels return the log-sum-exp of logits
    in float32. q of 16 bits may have been multiplied and rounded again before it met k, and float32 may be TF32, or
    rounded to the shorter format of the scores.
    """
    said, evidence_format = subject.facts.scores, evidence.format
    short, stored = is_short(subject.format), is_short(evidence_format)
    if said is not None:
        scores = [said]
    elif short:
        scores = [subject.format] if stored and evidence.kind != "lse" else ["float32", subject.format]
    else:
        scores = ["float32"]
    found = [Arithmetic(format) for format in scores]
    if short:
        found.append(Arithmetic(scores[-1], subject.format))
    elif is_short(scores[-1]):  # q and k were rounded before they met, as torch.autocast does
        found.append(Arithmetic(scores[-1], scores[-1]))
    elif said is None and stored:
        found.append(Arithmetic(evidence_format, evidence_format))
    elif scores[-1] == "float32":
        found.append(Arithmetic("float32", "tfloat32"))
    if said is None and short and subject.format != "bfloat16":
        found.append(Arithmetic("bfloat16"))
    return tuple(found)


def values_under(model: LogitModel, evidence: Evidence) -> FloatArray:
    """Return the values that weights meet in a model: its own, or those of the evidence."""
    v = evidence.v if model.v is None else model.v
    assert v is not None
    return v


def approximation(subject: Subject) -> float:
    """Return the error of log-sum-exps that a kernel's approximate exponential makes."""
    return _APPROXIMATE if is_short(subject.format) else 0.0


_SMALL = 1 << 16  # numbers of evidence whose equal rows are counted once


@dataclass(frozen=True, eq=False)
class FittingEvidence:
    """Evidence, prepared for fitting."""

    subject: Subject
    evidence: Evidence
    target: FloatArray  # ln p, lse, or o
    weight: FloatArray  # 1 over a fixed noise, as `target`; 0 for entries that are not used
    sums: tuple[FloatArray, FloatArray] | None = None  # of weights: ln of a row's sum, and 1 over its rounding

    @cached_property
    def numbers(self) -> int:
        """How many independent numbers the evidence has at most: equal ones in a row, or of rows, say the same."""
        kind = self.evidence.kind
        if kind == "lse":
            return len(np.unique(self.target[self.weight > 0]))
        values = self.evidence.values[self.weight.any(axis=-1)]
        rows = np.unique(values, axis=0) if values.size < _SMALL else values
        if kind == "o":
            subject = self.subject
            keys = subject.k.shape[1] if subject.seen is None else int(subject.seen.sum(axis=-1).max())
            return len(rows) * min(rows.shape[-1], max(keys - 1, 0))
        return int(_different(rows).sum())

    @property
    def errors(self) -> int:
        """How many of these numbers have errors of their own: those of a row's logits reach all of its output."""
        return self.rows if self.evidence.kind == "o" else self.numbers

    @property
    def rows(self) -> int:
        """How many rows have evidence."""
        return int(np.count_nonzero(self.weight.any(axis=-1) if self.weight.ndim > 2 else self.weight))


@dataclass(frozen=True, eq=False)
class Residual:
    """What a model leaves unexplained, over a fixed noise: entries, their derivatives, and what no fit can change."""

    r: FloatArray  # [entries]
    jacobian: FloatArray  # [entries, coefficients]
    rest: float  # the mean square of entries that contradict the mask
    used: BoolArray | None = None  # the entries of the evidence that r has, in order; None: others

    @cached_property
    def distance(self) -> float:
        """The root mean square of all entries."""
        return math.sqrt(float(np.vdot(self.r, self.r)) / self.r.size + self.rest) if self.r.size else math.inf


def observe(subject: Subject, evidence: Evidence, expected: float) -> FittingEvidence:
    """Prepare evidence; `expected` gives the size of logits for the noise of formats with few bits."""
    if evidence.kind == "weights":
        return _observe_weights(subject, evidence, expected)
    used = subject.used
    if evidence.kind == "lse":
        values = evidence.values
        good = used & np.isfinite(values)
        noise = SINGLE * (1 + np.abs(np.where(good, values, 0))) + approximation(subject)
        return FittingEvidence(subject, evidence, np.where(good, values, 0), np.where(good, 1 / noise, 0))
    values = evidence.values
    good = used & np.isfinite(values).all(axis=-1)
    values = np.where(good[..., np.newaxis], values, 0)
    size = np.sqrt(np.mean(values * values, axis=-1, keepdims=True))
    assert evidence.v is not None
    typical = math.sqrt(float(np.vdot(evidence.v, evidence.v)) / evidence.v.size)
    noise = unit(evidence.format) * (size + 0.1 * typical) + 1e-300
    return FittingEvidence(subject, evidence, values, np.where(good[..., np.newaxis], 1 / noise, 0))


def _observe_weights(subject: Subject, evidence: Evidence, expected: float) -> FittingEvidence:
    p = evidence.values
    finite = np.isfinite(p).all(axis=-1, keepdims=True)
    if not finite.all():  # NaN is neither 0 nor more, so that these rows say nothing
        p = np.where(finite, p, np.nan)
        evidence = replace(evidence, values=p)
    positive = p > 0
    safe = np.where(positive, p, 1.0)
    step = spacing(safe, evidence.format)
    relative = step / safe
    noise = relative * relative / 12
    size = SPREAD * unit(arithmetics(subject, evidence)[0].scores) * abs(expected) * math.sqrt(2)
    scaled = size * subject.scores
    noise += scaled * scaled + (2 * SINGLE) ** 2
    good = positive & (relative < 0.1) & subject.used[..., np.newaxis]
    total = p.sum(axis=-1)
    # Equal weights have the same rounding error.
    alike = np.maximum(positive.sum(axis=-1), 1) / np.maximum(_different(p), 1)
    rounding = np.sqrt(np.where(positive, step * step, 0).sum(axis=-1) * alike / 12) + 4 * SINGLE
    # A tensor that is not quite normalised: the sum of rounded weights.
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.where(subject.used & (total > 0), np.log(total), 0)
        over = np.where(subject.used & (total > 0), total / rounding, 0)
    weight = np.where(good, 1 / np.sqrt(noise), 0)
    return FittingEvidence(subject, evidence, np.log(safe), weight, (sums, over))


def _different(rows: FloatArray) -> Indices:
    """Return how many numbers of each row differ from the next smaller one of it."""
    return np.asarray(np.count_nonzero(np.diff(np.sort(rows, axis=-1), axis=-1) > 0, axis=-1))


def residual(observed: FittingEvidence, model: LogitModel, theta: FloatArray, slopes: bool = False) -> Residual:
    """Return what the model leaves unexplained; without `slopes` there are no derivatives."""
    z = logits(model, theta)
    of_each = derivatives(model, z) if slopes else []
    if observed.evidence.kind == "weights":
        return _of_weights(observed, model, z, of_each)
    soft = z.softmax
    if observed.evidence.kind == "lse":
        return _of_lse(observed, model, soft, of_each)
    return _of_o(observed, model, soft, of_each)


def _of_lse(observed: FittingEvidence, model: LogitModel, soft: Softmax, slopes: Sequence[FloatArray]) -> Residual:
    weight = observed.weight
    lse = soft.lse
    if lse.shape != weight.shape:
        return Residual(np.empty(0), np.empty((0, model.size)), math.inf)
    seen, rest = _seeing(model, weight > 0)
    r = (model.lse_factor * np.where(seen, lse, 0) - observed.target) * weight
    columns: list[FloatArray] = [dot(soft.weights, slope, axis=model.axis) for slope in slopes]
    if model.free_sink:
        columns.append(soft.sink)
    jacobian = np.stack([model.lse_factor * column * weight for column in columns], -1) if columns else None
    return _flat(r, jacobian, seen, model, rest)


def _seeing(model: LogitModel, used: BoolArray) -> tuple[BoolArray, float]:
    """Return the rows in use that see a key in a model, and ∞ if others are more than a few.

    What a row without visible keys returns is up to the implementation: NaN, its own value, or the mean of all.
    """
    if model.seeing is None or model.axis != -1 or model.sink is not None or model.free_sink:
        return used, 0.0
    seen = used & model.seeing
    lost = int(np.count_nonzero(used)) - int(np.count_nonzero(seen))
    return seen, math.inf if lost > max(len(used), used.size // 16) else 0.0


def _of_o(observed: FittingEvidence, model: LogitModel, soft: Softmax, slopes: Sequence[FloatArray]) -> Residual:
    v, weight = values_under(model, observed.evidence), observed.weight
    o = soft.weights @ v
    r = (o - observed.target) * weight
    columns: list[FloatArray] = []
    for slope in slopes:
        mixed = soft.weights * slope
        if model.axis == -1:
            columns.append(mixed @ v - o * mixed.sum(axis=-1, keepdims=True))
        else:
            columns.append((mixed - soft.weights * mixed.sum(axis=-2, keepdims=True)) @ v)
    if model.free_sink:
        columns.append(-np.expand_dims(soft.sink, model.axis) * o)
    jacobian = np.stack([column * weight for column in columns], -1) if columns else None
    seen, rest = _seeing(model, weight[..., 0] > 0)
    return _flat(r, jacobian, np.broadcast_to(seen[..., np.newaxis], r.shape), model, rest)


def _flat(r: FloatArray, jacobian: FloatArray | None, used: BoolArray, model: LogitModel, rest: float) -> Residual:
    if used.all():
        flat = np.empty((r.size, model.size)) if jacobian is None else jacobian.reshape(r.size, -1)
        return Residual(r.reshape(-1), flat, rest, used)
    chosen = np.empty((int(used.sum()), model.size)) if jacobian is None else jacobian[used]
    return Residual(r[used], chosen, rest, used)


def _of_weights(
    observed: FittingEvidence, model: LogitModel, found: Logits, slopes: Sequence[FloatArray]
) -> Residual:
    assert observed.sums is not None
    axis = model.axis
    p, z = observed.evidence.values, found.z
    weight = observed.weight if model.seen is None else observed.weight * model.seen
    square = weight * weight
    total = square.sum(axis=axis, keepdims=True)
    inverse = np.divide(1, total, out=np.zeros_like(total), where=total > 0)

    def centre(x: FloatArray) -> FloatArray:
        return (square * x).sum(axis=axis, keepdims=True) * inverse

    away = observed.target - z
    middle = centre(away)
    r = (z - observed.target + middle) * weight
    count = max(int(np.count_nonzero(weight)), 1)
    columns = [(slope - centre(slope)) * weight for slope in slopes]
    rest = _contradictions(observed, model, z + middle, total > 0, count)
    # The sum of a row is 1, or less by what the sink takes. Along queries, sums of columns are not prepared: all rows
    # of the subject have to be there.
    if axis == -1:
        sums, over = observed.sums
    else:
        column = p.sum(axis=-2)
        sums = np.log(np.where(column > 0, column, 1))
        over = np.where(column > 0, 1 / (math.sqrt(p.shape[-2]) * unit(observed.evidence.format)), 0)
    predicted: FloatArray = np.zeros_like(sums)
    slopes_of_sums: list[FloatArray] = [np.zeros_like(sums) for _ in columns]
    if found.sink is not None:
        soft = found.softmax
        taken = soft.sink
        predicted = np.log(np.maximum(1 - taken, 1e-300))
        given = np.maximum(1 - taken, 1e-300)
        slopes_of_sums = [taken * dot(soft.weights, slope, axis=axis) / given for slope in slopes]
        if model.free_sink:
            slopes_of_sums.append(-taken)
            columns.append(np.zeros_like(r))
    if model.dropout:
        over = np.zeros_like(over)
    rows = max(int(np.count_nonzero(over)), 1)
    balance = math.sqrt(count / rows)
    r_sums = (predicted - sums) * over * balance
    flat = np.concatenate([r.reshape(-1), r_sums.reshape(-1)])
    # Entries that are not used hold 0; the mean is over those that are.
    scale = math.sqrt(flat.size / count)
    jacobian = np.empty((flat.size, len(columns)))
    for number, (entries, of_sums) in enumerate(zip(columns, slopes_of_sums, strict=True)):
        jacobian[: r.size, number] = entries.reshape(-1)
        jacobian[r.size :, number] = (of_sums * over * balance).reshape(-1)
    return Residual(flat * scale, jacobian * scale, rest)


def _contradictions(
    observed: FittingEvidence, model: LogitModel, ln_p: FloatArray, known: BoolArray, count: int
) -> float:
    """Return the mean square of weights that should be 0 and are not, and of those that are 0 and should not be."""
    p, format = observed.evidence.values, observed.evidence.format
    ln_smallest = math.log(4 * smallest(format))
    typical = float(observed.weight.sum()) / count
    used = observed.subject.used[..., np.newaxis] & known
    rest = 0.0
    if not model.dropout:
        zero = (p == 0) & used
        if model.seen is not None:
            zero &= model.seen
        if zero.any():
            excess = np.maximum(ln_p[zero] - max(ln_smallest, -80.0), 0)
            rest += float(np.vdot(excess, excess)) * typical**2 / count
    if model.seen is not None:
        shown = (p > 0) & ~model.seen & _seeing(model, observed.subject.used)[0][..., np.newaxis]
        if shown.any():
            excess = np.log(p[shown]) - math.log(smallest(format)) + 1
            rest += float(np.vdot(excess, excess)) * typical**2 / count
    return rest
