"""Scores that are rounded so coarsely that attention changes, whatever the scale."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.softmax import divergence, moved
from ...message import message
from ..fitting.evidence import is_short, spacing
from ..fitting.model import LogitModel, dot, logits
from ..results import Finding
from ..subject import Subject
from .hypothesis import as_stored

_STEP = 0.1  # nats: the distance of neighbouring logits, in the mean over rows and weights, above which it is told
# Nats of KL(exact ‖ rounded), the mean over rows, from which it is a finding: logits rounded twice to steps of half a
# nat, 2·0.5²/12, times p(1 − p)/2 of two equal keys, are half of it.
_CHANGED = 0.01


class Rounding(NamedTuple):
    """What rounding the scores to a format makes of attention."""

    step: float  # the largest distance of neighbouring visible logits
    divergence: float  # KL(exact ‖ rounded) in nats, the mean over rows
    changed_rows: float  # share of rows whose largest weight is on another key


@np.errstate(all="ignore")  # of numbers beyond the format
def rounding(model: LogitModel, theta: FloatArray, used: BoolArray, format: str) -> Rounding | None:
    """Return what rounding to a format does to rows in use; None if its steps are small where the weights are."""
    steps = abs(float(theta[0])) * spacing(model.inner[0], format)
    p = logits(model, theta).softmax.weights
    if not used.any() or not np.mean(dot(p, steps)[used]) > _STEP:
        return None
    r = rounded_weights(model, theta, format)
    shown = steps if model.seen is None else np.where(model.seen, steps, 0)
    kl, rows = float(np.mean(divergence(p, r)[used])), float(np.mean(moved(p, r)[used]))
    return Rounding(float(np.max(shown[used])), kl, rows)


def coarse_scores(subject: Subject, multiplier: float) -> Finding | None:
    """Return the finding that scores in the format that the file says are too coarse with this multiplier."""
    format = subject.facts.scores
    if format is None or not is_short(format):
        return None
    found = rounding(as_stored(subject), np.array([multiplier]), subject.used, format)
    if found is None or not found.divergence > _CHANGED:
        return None
    words = (
        "scores in {format} have steps of up to {step:.3g} of logit: KL(exact ‖ rounded) {kl:.2g} nats, and in "
        "{percent:.0f} % of rows another key has the largest weight. Keep scores in float32"
    )
    percent = 100 * found.changed_rows
    says = message(words, format=format, step=found.step, kl=found.divergence, percent=percent)
    return Finding("coarse-scores", says, stage="qk")


@np.errstate(all="ignore")
def rounded_weights(model: LogitModel, theta: FloatArray, format: str) -> FloatArray:
    """Return the weights [texts, rows, keys] of scores that are rounded to a format before and after the scale."""
    multiplier = float(theta[0])
    rounded = _to(multiplier * _to(model.inner[0], format), format) / multiplier
    inner = (rounded, *model.inner[1:])
    return logits(replace(model, inner=inner), theta).softmax.weights


def _to(values: FloatArray, format: str) -> FloatArray:
    """Return values rounded to a format."""
    step = spacing(values, format)
    return np.round(values / step) * step
