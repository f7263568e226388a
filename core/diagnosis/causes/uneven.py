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
from .hypothesis import Hypothesis, as_stored, in_rows
from .transforms import splits

_BLOCKS = (16, 32, 64, 128, 256)
_MOST_BLOCKS = 16
_POWERS = 5  # of ln(position + 1)


def uneven(subject: Subject) -> Iterator[Hypothesis]:
    """Yield multipliers that differ within a head: by position, block of keys, or part of the components."""
    for words, feature in (
        ("the multiplier grows with the logarithm of the number of visible keys", _ln_visible),
        ("the multiplier grows with the logarithm of the number of visible keys and 1", partial(_ln_visible, more=1)),
        ("the multiplier grows with the logarithm of the position", _ln_position),
        ("the multiplier grows with the position", _position),
    ):
        if float(np.ptp(feature(subject))) > 0:

            def build(s: Subject, feature: Callable[[Subject], FloatArray] = feature) -> Model:
                base = as_stored(s)
                return replace(base, inner=(*base.inner, base.inner[0] * feature(s)))

            for growth in (0.0, 0.3):
                yield Hypothesis("scale-by-position", words, build, inner=(1.0, growth))
    if float(np.ptp(_ln_position(subject))) > 0:

        def smooth(s: Subject) -> Model:
            base, x = as_stored(s), np.log(s.positions + 1.0)[np.newaxis, :, np.newaxis] / 5
            return replace(base, inner=tuple(base.inner[0] * x**power for power in range(_POWERS)))

        words = "the multiplier changes smoothly with the position"
        yield Hypothesis("scale-by-position", words, smooth, inner=(1.0, *(0.0,) * (_POWERS - 1)))
    for place in splits(subject):

        def parted(s: Subject, place: int = place) -> Model:
            first = in_rows(s, s.q[..., :place] @ s.k[..., :place].mT)
            return replace(as_stored(s), inner=(first, in_rows(s, s.q[..., place:] @ s.k[..., place:].mT)))

        words = message("the multiplier differs between components below {place} and from {place} up", place=place)
        yield Hypothesis("scale-by-part", words, parted, inner=(1.0, 1.0))


def uneven_blocks(subject: Subject) -> Iterator[Hypothesis]:
    keys = subject.k.shape[1]
    for size in _BLOCKS:
        blocks = -(-keys // size)
        if 2 <= blocks <= _MOST_BLOCKS:
            words = message("the multiplier differs between blocks of {size} keys", size=size)
            for start in ((1.0,) * blocks, tuple(math.log2(math.e) ** block for block in range(blocks))):
                yield Hypothesis("scale-by-block", words, partial(_blocked, "keys", size, 0), inner=start)
        for shift in (0, 1):  # a temperature grows with ⌊position / size⌋ or ⌊(position + 1) / size⌋
            blocks = (int(subject.positions.max()) + shift) // size + 1
            if 2 <= blocks <= _MOST_BLOCKS:
                words = message("the multiplier differs between blocks of {size} positions", size=size)
                build = partial(_blocked, "rows", size, shift, blocks=blocks)
                yield Hypothesis("scale-by-position", words, build, inner=(1.0,) * blocks)


def _blocked(axis: Literal["keys", "rows"], size: int, shift: int, subject: Subject, blocks: int = 0) -> Model:
    """Return a model with a multiplier for each block of keys or rows."""
    base = as_stored(subject)
    of = places(subject.k.shape[1]) if axis == "keys" else subject.positions[:, np.newaxis]
    of = (of + shift) // size
    count = blocks or int(of.max()) + 1
    return replace(base, inner=tuple(base.inner[0] * (of == block) for block in range(count)))


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
