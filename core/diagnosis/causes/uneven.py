"""Multipliers that differ within a head: by position, block of keys or rows, or part of the components."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from ...arrays import FloatArray
from ...message import message
from ..fitting.model import Model
from ..subject import Subject, places
from .edits import Case
from .hypothesis import Hypothesis, in_rows
from .transforms import splits

_BLOCKS = (16, 32, 64, 128, 256)
_MOST_BLOCKS = 16
_POWERS = 5  # of ln(position + 1)


def by_position(case: Case) -> Iterator[Hypothesis]:
    """Yield multipliers that grow with the position."""
    subject = case.subject
    for words, feature in (
        ("the multiplier grows with the logarithm of the number of visible keys", _ln_visible),
        ("the multiplier grows with the logarithm of the number of visible keys and 1", partial(_ln_visible, more=1)),
        ("the multiplier grows with the logarithm of the position", _ln_position),
        ("the multiplier grows with the position", _position),
    ):
        if float(np.ptp(feature(subject))) > 0:

            def edit(s: Subject, model: Model, feature: Callable[[Subject], FloatArray] = feature) -> Model:
                return replace(model, inner=(*model.inner, model.inner[0] * feature(s)))

            for growth in (0.0, 0.3):
                yield Hypothesis(words, edit, inner=(1.0, growth))
    if float(np.ptp(_ln_position(subject))) > 0:

        def smooth(s: Subject, model: Model) -> Model:
            x = np.log(s.positions + 1.0)[np.newaxis, :, np.newaxis] / 5
            return replace(model, inner=tuple(model.inner[0] * x**power for power in range(_POWERS)))

        words = "the multiplier changes smoothly with the position"
        yield Hypothesis(words, smooth, inner=(1.0, *(0.0,) * (_POWERS - 1)))


def by_part(case: Case) -> Iterator[Hypothesis]:
    """Yield multipliers that differ between two parts of the components."""
    for place in splits(case.subject):

        def parted(s: Subject, model: Model, place: int = place) -> Model:
            first = in_rows(s, s.q[..., :place] @ s.k[..., :place].mT)
            return replace(model, inner=(first, in_rows(s, s.q[..., place:] @ s.k[..., place:].mT)))

        words = message("the multiplier differs between components below {place} and from {place} up", place=place)
        yield Hypothesis(words, parted, inner=(1.0, 1.0))


def uneven_blocks(case: Case) -> Iterator[Hypothesis]:
    """Yield multipliers that differ between blocks of keys."""
    keys = case.subject.k.shape[1]
    for size in _BLOCKS:
        blocks = -(-keys // size)
        if 2 <= blocks <= _MOST_BLOCKS:
            words = message("the multiplier differs between blocks of {size} keys", size=size)
            for start in ((1.0,) * blocks, tuple(math.log2(math.e) ** block for block in range(blocks))):
                yield Hypothesis(words, partial(_blocked, "keys", size, 0, 0), inner=start)


def uneven_rows(case: Case) -> Iterator[Hypothesis]:
    """Yield multipliers that grow with ⌊position / size⌋ or ⌊(position + 1) / size⌋."""
    for size in _BLOCKS:
        for shift in (0, 1):
            blocks = (int(case.subject.positions.max()) + shift) // size + 1
            if 2 <= blocks <= _MOST_BLOCKS:
                words = message("the multiplier differs between blocks of {size} positions", size=size)
                yield Hypothesis(words, partial(_blocked, "rows", size, shift, blocks), inner=(1.0,) * blocks)


def _blocked(
    axis: Literal["keys", "rows"], size: int, shift: int, blocks: int, subject: Subject, model: Model
) -> Model:
    """Return a model with a multiplier for each block of keys or rows."""
    of = places(subject.k.shape[1]) if axis == "keys" else subject.positions[:, np.newaxis]
    of = (of + shift) // size
    count = blocks or int(of.max()) + 1
    return replace(model, inner=tuple(model.inner[0] * (of == block) for block in range(count)))


def _ln_visible(subject: Subject, more: int = 0) -> FloatArray:
    """Return ln of the number of visible keys and `more`, [texts, rows, 1], less its mean."""
    texts, rows, keys = subject.scores.shape
    count = np.full((texts, rows), keys) if subject.seen is None else subject.seen.sum(axis=-1)
    return _centred(np.log(np.maximum(count + more, 1.0)))


def _ln_position(subject: Subject) -> FloatArray:
    return _centred(np.log(subject.positions + 1.0)[np.newaxis])


def _position(subject: Subject) -> FloatArray:
    return _centred(subject.positions[np.newaxis] / max(int(subject.positions.max()), 1))


def _centred(values: FloatArray) -> FloatArray:
    return (values - values.mean())[..., np.newaxis]
