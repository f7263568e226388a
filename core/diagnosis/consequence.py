"""What a fault did to a head: its weights as they were, and as they would have been."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import divergence, moved, weight_statistics
from .causes.hypothesis import as_stored
from .fitting.model import logits, softmax
from .results import Consequence
from .subject import Subject
from .trial import Trial


def consequence(trial: Trial, expected: float) -> Consequence | None:
    """Return what a fault did; None if its cause has no model of the weights."""
    best = trial.best
    subject = trial.observed.subject
    if math.isnan(best.multiplier) or best.model.axis != -1 or best.model.inner[0].shape != subject.scores.shape:
        return None
    found = logits(best.model, best.fit.theta)
    was = softmax(best.model, found).weights
    stored = as_stored(subject)
    other = logits(stored, np.array([expected]))
    should = softmax(stored, other).weights
    return _compared(subject, was, should, (found.sink is not None, other.sink is not None))


def _compared(subject: Subject, was: FloatArray, should: FloatArray, sinks: tuple[bool, bool]) -> Consequence | None:
    """Return the means over rows of these weights; `sinks` says which of the two have a sink."""
    rows = subject.used & np.greater(np.sum(was, axis=-1), 0)
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    p, q = was[rows], should[rows]
    own, expected = (weight_statistics(each, np.ones(count)) for each in (p, q))
    one, other = p, q
    if all(sinks):
        one, other = (np.concatenate([each, 1 - each.sum(axis=-1, keepdims=True)], axis=-1) for each in (p, q))
    elif any(sinks):
        one, other = (each / np.maximum(each.sum(axis=-1, keepdims=True), 1e-45) for each in (p, q))
    return Consequence(
        entropy=float(np.mean(own.entropy)),
        expected_entropy=float(np.mean(expected.entropy)),
        max_weight=float(np.mean(own.max_weight)),
        expected_max_weight=float(np.mean(expected.max_weight)),
        divergence=max(float(np.mean(divergence(one, other))), 0.0),
        changed_rows=float(np.mean(moved(p, q))),
    )
