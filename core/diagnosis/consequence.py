"""What a fault did to a head: its weights as they were, and as they would have been."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import FloatArray
from .causes.hypothesis import as_stored
from .fitting.model import dot, logits, softmax
from .results import Consequence
from .subject import Subject
from .trial import Trial

_LEAST = 1e-45  # of a weight: the smallest number of float32


def consequence(trial: Trial, expected: float) -> Consequence | None:
    """Return what a fault did; None if its cause has no model of the weights."""
    best = trial.best
    subject = trial.observed.subject
    if math.isnan(best.multiplier) or best.model.axis != -1 or best.model.inner[0].shape != subject.scores.shape:
        return None
    found = logits(best.model, best.fit.theta, slopes=False)
    was = softmax(best.model, found).weights
    stored = as_stored(subject)
    other = logits(stored, np.array([expected]), slopes=False)
    should = softmax(stored, other).weights
    return _compared(subject, was, should, (found.sink is not None, other.sink is not None))


def _compared(subject: Subject, was: FloatArray, should: FloatArray, sinks: tuple[bool, bool]) -> Consequence | None:
    """Return the means over rows of these weights; `sinks` says which of the two have a sink."""
    rows = subject.used & np.greater(np.sum(was, axis=-1), 0)
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    p, q = was[rows], should[rows]
    own: FloatArray = np.log(np.where(p > 0, p, 1))
    logarithms: FloatArray = np.log(np.where(q > 0, q, 1))
    one, other = p, q
    if all(sinks):
        one, other = (np.concatenate([each, 1 - each.sum(axis=-1, keepdims=True)], axis=-1) for each in (p, q))
    elif any(sinks):
        one, other = (each / np.maximum(each.sum(axis=-1, keepdims=True), _LEAST) for each in (p, q))
    ratio: FloatArray = np.log(np.where(one > 0, one, 1)) - np.log(np.maximum(other, _LEAST))
    return Consequence(
        entropy=max(-dot(p, own).sum().item() / count, 0.0),
        expected_entropy=max(-dot(q, logarithms).sum().item() / count, 0.0),
        max_weight=p.max(axis=-1).sum().item() / count,
        expected_max_weight=q.max(axis=-1).sum().item() / count,
        divergence=max(dot(np.maximum(one, 0), ratio).sum().item() / count, 0.0),
        changed_rows=int(np.count_nonzero(p.argmax(axis=-1) != q.argmax(axis=-1))) / count,
    )
