"""A sliding window that the file does not say: its length is searched in the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...message import message
from ..fitting.evidence import observe, residual
from ..fitting.model import Model
from ..subject import Subject, places, some_rows, spread_rows
from .edits import Case
from .hypothesis import Hypothesis, as_stored

_ROWS = 16
_EVERY = 512  # keys up to which every length is tried; of longer texts, those near powers of two


def windows(said: bool, case: Case) -> Iterator[Hypothesis]:
    """Yield the window that fits the evidence best, if attention is causal; `said` is whether the file has one."""
    subject = case.subject
    if (subject.facts.window is not None) != said:
        return
    quick = some_rows(subject, spread_rows(subject.q.shape[1], _ROWS))
    observed = observe(quick, next(each for each in quick.evidence if each.kind == case.evidence.kind), case.expected)
    own = int(subject.positions.max()) + 1  # keys that the last query may see
    future = places(subject.k.shape[1]) > subject.positions[:, np.newaxis]
    if subject.seen is None or bool((subject.seen & future).any()) or own < 3:
        return
    lengths = list(range(1, own)) if own <= _EVERY else _usual(own)
    guesses = [np.array([each]) for each in dict.fromkeys((case.expected, 1.0, case.expected**2))]
    stored = as_stored(quick)

    def left(length: int) -> float:
        model = _within(length, quick, stored)
        return min(residual(observed, model, theta, slopes=False).distance for theta in guesses)

    length = min(lengths, key=left)
    if length == subject.facts.window:
        return
    if said:
        words = message("the window has {length} keys, not {said}", length=length, said=subject.facts.window)
    else:
        words = message("queries see a window of {length} keys, which the file does not have", length=length)
    yield Hypothesis(words, partial(_within, length))


def _usual(most: int) -> list[int]:
    powers = [1 << power for power in range(most.bit_length())]
    near = {power + more for power in powers for more in (-1, 0, 1)}
    return sorted(each for each in near if 1 <= each < most)


def _within(length: int, subject: Subject, model: Model) -> Model:
    """Return the model with a causal window of this many keys instead of the file's mask of positions."""
    place, own = places(subject.k.shape[1]), subject.positions[:, np.newaxis]
    near = (place <= own) & (place > own - length)
    seen = np.broadcast_to(near, subject.scores.shape)
    if subject.present is not None:
        seen = seen & subject.present[:, np.newaxis]
    return replace(model, seen=seen & subject.used[..., np.newaxis])
