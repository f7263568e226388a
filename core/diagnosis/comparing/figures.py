"""The attention weights of a head, as far as its evidence and its file tell, and statistics of them."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import BoolArray, FloatArray
from ..causes.hypothesis import as_stored
from ..fitting.model import dot, logits, softmax
from ..subject import Subject, some_rows, spread_rows
from ..verdict import Examined
from .results import Figures

_ROWS = 64  # of a head that statistics are taken over
_ONE_HOT = 0.95
_LEAST = 1e-45  # of a weight: the smallest number of float32


def sampled(subject: Subject) -> Subject:
    """Return some rows of a head, evenly spread."""
    return some_rows(subject, spread_rows(subject.q.shape[1], _ROWS))


def weights_of(subject: Subject, found: Examined, multiplier: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights [texts, rows, keys] and the logits: stored weights, else those of the best explanation."""
    trial = found.trial
    model, theta = as_stored(subject), np.array([multiplier])
    if trial is not None and math.isfinite(trial.best.multiplier) and trial.best.model.axis == -1:
        best = trial.best
        if best.hypothesis is None:
            theta = best.fit.theta if found.verdict.verdict != "undecided" else theta
        elif not best.hypothesis.whole:
            model, theta = best.hypothesis.build(subject), best.fit.theta
    z = logits(model, theta, slopes=False)
    p = softmax(model, z).weights
    stored = next((each.values for each in subject.evidence if each.kind == "weights"), None)
    if stored is not None and np.isfinite(stored).all():
        p = stored
    return p, z.z


def figures(subject: Subject, p: FloatArray, z: FloatArray, multiplier: float) -> Figures | None:
    """Return the statistics of the rows that see at least one key; None if there are none."""
    seen: BoolArray = np.ones(p.shape, np.bool_) if subject.seen is None else subject.seen
    counts = np.count_nonzero(seen, axis=-1)
    used, wide = counts > 0, counts > 1
    if not used.any():
        return None
    entropy = -dot(p, np.log(np.where(p > 0, p, 1)))
    shown = np.where(seen, z, 0)
    away = np.where(seen, z - (shown.sum(axis=-1) / np.maximum(counts, 1))[..., np.newaxis], 0)
    deviation = np.sqrt(dot(away, away) / np.maximum(counts, 1))
    top = p.max(axis=-1)
    first = np.take_along_axis(p, np.argmax(seen, axis=-1)[..., np.newaxis], axis=-1)[..., 0]
    return Figures(
        multiplier,
        _mean(deviation, used),
        _mean(entropy, used),
        _mean(entropy / np.log(np.maximum(counts, 2)), wide) if wide.any() else None,
        _mean(top, used),
        _mean(np.greater(top, _ONE_HOT).astype(np.float64), wide) if wide.any() else None,
        _mean(first, used),
    )


def _mean(values: FloatArray, rows: BoolArray) -> float:
    return float(np.mean(values[rows]))


def divergence(one: Subject, other: Subject, p: FloatArray, r: FloatArray) -> tuple[float, float] | None:
    """Return KL(p ‖ r) in nats and the share of rows whose largest weight moved, over rows that both use."""
    rows = one.used & other.used & np.greater(p.sum(axis=-1), 0) & np.greater(r.sum(axis=-1), 0)
    if not rows.any():
        return None
    a, b = p[rows], r[rows]
    gap = np.log(np.where(a > 0, a, 1)) - np.log(np.where(a > 0, np.maximum(b, _LEAST), 1))
    kl: FloatArray = dot(a, gap) - a.sum(axis=-1) + b.sum(axis=-1)  # weights beside a sink do not sum to 1
    top = np.take_along_axis(a, a.argmax(axis=-1)[:, np.newaxis], -1)[:, 0]
    there = np.take_along_axis(a, b.argmax(axis=-1)[:, np.newaxis], -1)[:, 0]
    return max(float(np.mean(kl)), 0.0), float(np.mean(there < top * (1 - 1e-2)))
