"""How far evidence is from what a model predicts, over what rounding alone makes of it at the fitted multiplier."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import Softmax
from .evidence import Observed, Residual, residual
from .model import Model, dot, logits, softmax
from .rounding import SINGLE, SPREAD, approximation, is_short, scores_format, spacing, unit


def misfit(observed: Observed, model: Model, theta: FloatArray, coarse: str | None = None) -> float:
    """Return the root mean square of the residual over what rounding makes at these coefficients.

    `coarse` is the format that logits may have been rounded to; None means what the file says or its formats imply.
    """
    left = residual(observed, model, theta, slopes=False)
    if not left.r.size or math.isinf(left.rest):
        return math.inf
    found = logits(model, theta, slopes=False)
    error = _logit_error(observed, found.z, float(theta[0]), coarse)
    if observed.evidence.kind == "weights":
        return _of_weights(observed, model, left, error)
    soft = softmax(model, found)
    return (_of_lse if observed.evidence.kind == "lse" else _of_o)(observed, model, left, soft, error)


def _logit_error(observed: Observed, z: FloatArray, multiplier: float, coarse: str | None) -> FloatArray:
    """Return the variance of what rounding adds to logits z."""
    subject = observed.subject
    step = unit(coarse or scores_format(subject, observed.evidence))
    q = np.sqrt(dot(subject.q, subject.q))
    k = np.sqrt(dot(subject.k, subject.k))
    # Products are summed in float32 whatever the format is, in an unknown order.
    sums = 0.5 * SINGLE * abs(multiplier) * q[..., np.newaxis] * k[:, np.newaxis, :]
    if sums.shape != z.shape:
        sums = np.broadcast_to(sums.max(axis=(-1, -2), keepdims=True), z.shape)
    return (math.sqrt(2) * SPREAD * step * z) ** 2 + sums * sums + SINGLE * SINGLE


def _of_lse(observed: Observed, model: Model, left: Residual, soft: Softmax, error: FloatArray) -> float:
    fixed, lse = observed.weight, observed.target
    variance = dot(soft.weights * soft.weights, error, axis=model.axis)
    variance = variance + (2 * SINGLE * (1 + np.abs(lse))) ** 2 + approximation(observed.subject) ** 2
    ratio = left.r / (fixed * np.sqrt(variance))[fixed > 0]
    return float(np.sqrt(np.mean(ratio * ratio)))


def _of_o(observed: Observed, model: Model, left: Residual, soft: Softmax, error: FloatArray) -> float:
    evidence, fixed = observed.evidence, observed.weight
    v = evidence.v if model.v is None else model.v
    assert v is not None
    o = soft.weights @ v
    p2 = soft.weights * soft.weights
    lengths = dot(v, v)
    weighted = p2 * error
    around = dot(weighted, lengths[:, np.newaxis]) - 2 * dot(weighted @ v, o)
    around = np.maximum(around + weighted.sum(axis=-1) * dot(o, o), 0)
    stored = spacing(np.where(o == 0, 1.0, o), evidence.format)
    variance = around + dot(stored, stored) / 12
    inside = unit(evidence.v_format) if is_short(evidence.v_format) else 2 * SINGLE
    variance += (SPREAD * inside) ** 2 * dot(p2, lengths[:, np.newaxis]) + (2 * SINGLE) ** 2 * dot(o, o)
    rows = fixed[..., 0] > 0
    own = left.r.reshape(-1, v.shape[-1])
    ratio: FloatArray = dot(own, own) / np.square(fixed[..., 0][rows]) / np.maximum(variance[rows], 1e-300)
    return float(np.sqrt(np.mean(ratio)))


def _of_weights(observed: Observed, model: Model, left: Residual, error: FloatArray) -> float:
    p = observed.evidence.values
    weight = observed.weight if model.seen is None else observed.weight * model.seen
    used = weight > 0
    count = int(used.sum())
    if not count:  # all weight is on keys that the model hides
        return math.inf
    scale = math.sqrt(left.r.size / count)
    entries, sums = left.r[: p.size].reshape(p.shape) / scale, left.r[p.size :] / scale
    safe = np.where(p > 0, p, 1.0)
    relative = spacing(safe, observed.evidence.format) / safe
    variance = relative * relative / 12 + error + (3 * SINGLE) ** 2
    ratio = np.square(entries[used] / weight[used]) / variance[used]
    # Sums of rows have their own weights; rounding in them is already what these are.
    rows = max(int(np.count_nonzero(sums)), 1)
    balance = math.sqrt(count / rows)
    return math.sqrt(float(np.mean(ratio)) + min(left.rest, 1e30)) + 0.25 * math.sqrt(
        float(np.sum(np.square(sums / balance))) / rows
    )


def logit_noise(observed: Observed, model: Model, theta: FloatArray) -> float:
    """Return the mean rounding error of the logits that carry weight, if they have 16 bits."""
    found = logits(model, theta, slopes=False)
    soft = softmax(model, found)
    coarse = unit(scores_format(observed.subject, observed.evidence))
    return SPREAD * coarse * float(np.mean(dot(soft.weights, np.abs(found.z), axis=model.axis)))
