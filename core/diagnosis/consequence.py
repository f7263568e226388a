"""What a fault did to a head: its weights as they were, and as they would have been."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from .causes.hypothesis import as_stored
from .fitting.model import dot, logits, softmax
from .subject import Subject
from .trial import Trial

_LEAST = 1e-45  # of a weight: the smallest number of float32


@dataclass(frozen=True)
class Consequence:
    """Means over rows: as attention was, and as the file says with the expected multiplier."""

    entropy: float  # nats
    expected_entropy: float
    max_weight: float
    expected_max_weight: float
    divergence: float  # KL(as it was ‖ as expected) in nats; expected weights below 1e-45 count as that
    changed_rows: float  # share of rows whose largest weight is on another key


def consequence(trial: Trial, expected: float) -> Consequence | None:
    """Return what a fault did; None if its cause has no model of the weights."""
    best = trial.best
    subject = trial.observed.subject
    if math.isnan(best.multiplier) or best.model.axis != -1 or best.model.inner[0].shape != subject.scores.shape:
        return None
    was = softmax(logits(best.model, best.fit.theta, slopes=False).z, best.model.seen, _sink(trial)).p
    stored = as_stored(subject)
    other = logits(stored, np.array([expected]), slopes=False)
    should = softmax(other.z, stored.seen, other.sink).p
    return _compared(subject, was, should)


def _sink(trial: Trial) -> float | None:
    return float(trial.best.fit.theta[-1]) if trial.best.model.free_sink else trial.best.model.sink


def _compared(subject: Subject, was: FloatArray, should: FloatArray) -> Consequence | None:
    rows = subject.used & np.greater(np.sum(was, axis=-1), 0)
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    p, q = was[rows], should[rows]
    own: FloatArray = np.log(np.where(p > 0, p, 1))
    other: FloatArray = np.log(np.where(q > 0, np.maximum(q, _LEAST), _LEAST))
    logarithms: FloatArray = np.log(np.where(q > 0, q, 1))
    return Consequence(
        entropy=max(-dot(p, own).sum().item() / count, 0.0),
        expected_entropy=max(-dot(q, logarithms).sum().item() / count, 0.0),
        max_weight=p.max(axis=-1).sum().item() / count,
        expected_max_weight=q.max(axis=-1).sum().item() / count,
        divergence=max(dot(p, own - other).sum().item() / count, 0.0),
        changed_rows=int(np.count_nonzero(p.argmax(axis=-1) != q.argmax(axis=-1))) / count,
    )
