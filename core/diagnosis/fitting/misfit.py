"""How far evidence is from what a model predicts, over what rounding alone makes of it at the fitted multiplier."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import Softmax
from .evidence import (
    SINGLE,
    SPREAD,
    Arithmetic,
    Observed,
    Residual,
    approximation,
    is_short,
    residual,
    smallest,
    spacing,
    unit,
)
from .model import Logits, Model, dot, logits, softmax


def misfits(
    observed: Observed, model: Model, theta: FloatArray, allowed: tuple[Arithmetic, ...], enough: float = 0.0
) -> list[float]:
    """Return the misfit under each arithmetic, up to the first that is `enough`."""
    left = residual(observed, model, theta, slopes=False)
    if not left.r.size or math.isinf(left.rest):
        return [math.inf] * len(allowed)
    found = logits(model, theta, slopes=False)
    soft = softmax(model, found)
    measure = {"weights": _of_weights, "lse": _of_lse, "o": _of_o}[observed.evidence.kind]
    result: list[float] = []
    for arithmetic in allowed:
        noise = _Noise(observed, found, theta, arithmetic)
        result.append(measure(observed, model, left, soft, noise))
        if result[-1] <= enough:
            break
    return result


class _Noise:
    """The variance of what an arithmetic adds to the logits."""

    def __init__(self, observed: Observed, found: Logits, theta: FloatArray, arithmetic: Arithmetic) -> None:
        subject = observed.subject
        multiplier, z = abs(float(theta[0])), found.z
        step = unit(arithmetic.scores)
        q, k = (np.sqrt(dot(side, side)) for side in (subject.q, subject.k))
        # Products are summed in float32 whatever the format is, in an unknown order.
        sums = 0.5 * SINGLE * multiplier * q[..., np.newaxis] * k[:, np.newaxis, :]
        if sums.shape != z.shape:
            sums = np.broadcast_to(sums.max(axis=(-1, -2), keepdims=True), z.shape)
        self.single = sums * sums + SINGLE * SINGLE  # of each logit on its own
        if is_short(arithmetic.scores):
            least = smallest(arithmetic.scores)
            self.single += 2 * (SPREAD * step * z) ** 2 + (1 + multiplier * multiplier) * least * least / 12
        else:
            self.single += 2 * (SPREAD * step * z) ** 2
        self.sides: tuple[FloatArray, FloatArray] | None = None  # squares of errors of q, and k: of whole rows
        if arithmetic.sides is not None and sums.shape == subject.scores.shape:
            least = smallest(arithmetic.sides)
            small = least * least / 12 if arithmetic.sides == "float16" else 0.0
            own = multiplier if subject.row_scales is None else multiplier * subject.row_scales[..., np.newaxis]
            error = (own * SPREAD * unit(arithmetic.sides) * subject.q) ** 2 + small
            self.sides = error, subject.k
            self.single += error @ np.square(subject.k).mT

    def of_lse(self, p: FloatArray) -> FloatArray | float:
        """Return the variance that errors of q add to the log-sum-exp of each row."""
        if self.sides is None:
            return 0.0
        error, k = self.sides
        return dot(error, np.square(p @ k))

    def of_o(self, p: FloatArray, v: FloatArray, o: FloatArray) -> FloatArray | float:
        """Return the sum over components of the variance that errors of q add to the output of each row."""
        if self.sides is None:
            return 0.0
        error, k = self.sides
        found = np.empty(p.shape[:-1])
        for place in np.ndindex(found.shape):
            text = place[0]
            covariance = (p[place][:, np.newaxis] * k[text]).T @ v[text] - np.outer(p[place] @ k[text], o[place])
            found[place] = error[place] @ dot(covariance, covariance)
        return found

    def of_entries(self, share: FloatArray) -> FloatArray | float:
        """Return the variance that errors of q add to each logit less the mean of its row with these shares."""
        if self.sides is None:
            return 0.0
        error, k = self.sides
        middle = share @ k
        return error @ np.square(k).mT - 2 * (error * middle) @ k.mT + dot(error, middle * middle)[..., np.newaxis]


def _of_lse(observed: Observed, model: Model, left: Residual, soft: Softmax, noise: _Noise) -> float:
    fixed, lse = observed.weight, observed.target
    variance = dot(soft.weights * soft.weights, noise.single, axis=model.axis)
    if model.axis == -1:
        variance = variance + noise.of_lse(soft.weights)
    variance = variance + (2 * SINGLE * (1 + np.abs(lse))) ** 2 + approximation(observed.subject) ** 2
    if is_short(observed.evidence.format):
        variance = variance + spacing(np.where(lse == 0, 1.0, lse), observed.evidence.format) ** 2 / 12
    ratio = left.r / (fixed * np.sqrt(variance))[left.used]
    return float(np.sqrt(np.mean(ratio * ratio)))


def _of_o(observed: Observed, model: Model, left: Residual, soft: Softmax, noise: _Noise) -> float:
    evidence, fixed = observed.evidence, observed.weight
    v = evidence.v if model.v is None else model.v
    assert v is not None
    o = soft.weights @ v
    p2 = soft.weights * soft.weights
    lengths = dot(v, v)
    weighted = p2 * noise.single
    around = dot(weighted, lengths[:, np.newaxis]) - 2 * dot(weighted @ v, o)
    around = np.maximum(around + weighted.sum(axis=-1) * dot(o, o), 0)
    if model.axis == -1:
        around += noise.of_o(soft.weights, v, o)
    stored = spacing(np.where(o == 0, 1.0, o), evidence.format)
    variance = around + dot(stored, stored) / 12
    inside = unit(evidence.v_format) if is_short(evidence.v_format) else 0.0
    squares = dot(p2, lengths[:, np.newaxis])
    # Sums over keys are in float32, in an unknown order: the error of a partial sum stays in all later ones.
    keys = v.shape[-2]
    variance += ((SPREAD * inside) ** 2 + SINGLE**2 * (4 + keys / 6)) * squares
    variance += SINGLE**2 * (4 + keys / 64) * dot(o, o)
    assert left.used is not None
    rows = left.used[..., 0]
    own = left.r.reshape(-1, v.shape[-1])
    ratio: FloatArray = dot(own, own) / np.square(fixed[..., 0][rows]) / np.maximum(variance[rows], 1e-300)
    return float(np.sqrt(np.mean(ratio)))


def _of_weights(observed: Observed, model: Model, left: Residual, soft: Softmax, noise: _Noise) -> float:
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
    variance = relative * relative / 12 + noise.single + (3 * SINGLE) ** 2
    if noise.sides is not None and model.axis == -1:
        square = weight * weight
        variance = variance + noise.of_entries(square / np.maximum(square.sum(axis=-1, keepdims=True), 1e-300))
    ratio = np.square(entries[used] / weight[used]) / variance[used]
    # Sums of rows have their own weights: rounding of p. That of logits changes what a sink takes of a row.
    rows = max(int(np.count_nonzero(sums)), 1)
    squares = np.square(sums / math.sqrt(count / rows))
    if model.axis == -1 and soft.sink.any():
        assert observed.sums is not None
        shares = soft.weights / np.maximum(1 - soft.sink, 1e-300)[..., np.newaxis]
        of_lse = dot(shares * shares, noise.single) + noise.of_lse(shares)
        squares = squares / (1 + np.square(observed.sums[1] * soft.sink) * of_lse).reshape(-1)
    return math.sqrt(float(np.mean(ratio)) + min(left.rest, 1e30)) + 0.25 * math.sqrt(float(squares.sum()) / rows)


def rounding_divergence(observed: Observed, model: Model, theta: FloatArray, arithmetic: Arithmetic) -> float:
    """Return about what rounding the logits makes of KL(exact ‖ rounded), the mean over rows in nats."""
    found = logits(model, theta, slopes=False)
    weights, noise = softmax(model, found).weights, _Noise(observed, found, theta, arithmetic)
    of_each = noise.single + noise.of_entries(weights) if model.axis == -1 else noise.single
    return 0.5 * float(np.mean(dot(weights, of_each, axis=model.axis)))


def logit_noise(observed: Observed, model: Model, theta: FloatArray, arithmetic: Arithmetic) -> float:
    """Return the mean rounding error of the logits that carry weight."""
    found = logits(model, theta, slopes=False)
    soft = softmax(model, found)
    coarse = max(unit(arithmetic.scores), unit(arithmetic.sides or "float32"))
    return SPREAD * coarse * float(np.mean(dot(soft.weights, np.abs(found.z), axis=model.axis)))
