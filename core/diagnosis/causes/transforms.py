"""What may have been done to queries and keys before the scores, and multipliers that differ within a head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from ...arrays import FloatArray
from ...attention.normalise import normalised
from ...message import message
from ...scales import Normalise
from ..fitting.model import LogitModel
from ..subject import Indices, Subject, places
from .edits import HypothesisCase
from .hypothesis import Hypothesis, in_rows, rescored

_THETAS = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 150_000.0, 5_000_000.0, 8_000_000.0)
_USUAL = 3  # of these, for a part of the components


def normalisations(_: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield a QK-norm that the file does not have: of q and k, or of one of them."""
    kinds: tuple[tuple[Normalise, str], ...] = (("rms", "the root mean square"), ("layer_norm", "LayerNorm"))
    for how, words in kinds:
        said = message("q and k were normalised by {words}", words=words)
        yield Hypothesis(said, rescored(partial(_normalised, how, True, True)))
    for of_q, word in ((True, "q"), (False, "k")):
        yield Hypothesis(
            message("{word} was normalised", word=word), rescored(partial(_normalised, "rms", of_q, not of_q))
        )


def _normalised(how: Normalise, of_q: bool, of_k: bool, subject: Subject) -> FloatArray:
    q = normalised(subject.q, how) if of_q else subject.q
    k = normalised(subject.k, how) if of_k else subject.k
    return q @ k.mT


def rotations(sign: int, case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield queries and keys rotated once more than they are stored, or once less with a `sign` of −1."""
    subject = case.subject
    config, width = subject.facts.config, subject.q.shape[-1]
    thetas = list(dict.fromkeys(([config.rope_theta] if config and config.rope_theta else []) + list(_THETAS)))
    for first, count in _rotated_parts(subject, width):
        for interleaved in (False, True):
            for theta in thetas if count == width else thetas[:_USUAL]:
                words = f"θ {theta:g}{', interleaved' if interleaved else ''}"
                if count < width:
                    words += message(", components {first} to {last}", first=first, last=first + count - 1)
                said = (
                    message("q and k were not rotated ({words})", words=words)
                    if sign < 0
                    else message("q and k were rotated once more than stored ({words})", words=words)
                )
                yield Hypothesis(said, rescored(partial(_turned, sign, theta, first, count, interleaved)))


def _turned(sign: int, theta: float, first: int, count: int, interleaved: bool, subject: Subject) -> FloatArray:
    q = rotated(subject.q, sign * subject.positions, theta, first, count, interleaved)
    k = rotated(subject.k, sign * places(subject.k.shape[1]), theta, first, count, interleaved)
    return q @ k.mT


def _rotated_parts(subject: Subject, width: int) -> list[tuple[int, int]]:
    """Return the first component and the number of components that may be rotated, the likeliest first."""
    config = subject.facts.config
    parts: list[tuple[int, int]] = []
    if config and config.rope_dim and config.rope_dim < width:
        parts += [(width - config.rope_dim, config.rope_dim), (0, config.rope_dim)]
    if config and config.rotary_share:
        parts.append((0, int(width * config.rotary_share) // 2 * 2))
    parts.append((0, width // 2 * 2))
    if width in (192, 576):
        parts.append((width - 64, 64))
    parts += [(0, width // 4 * 2), (0, width // 8 * 2)]
    return [part for part in dict.fromkeys(parts) if part[1] >= 2]


def rotated(
    vectors: FloatArray, positions: Indices, theta: float, first: int, count: int, interleaved: bool
) -> FloatArray:
    """Return vectors [texts, tokens, d] with a rotary embedding on `count` components from `first` on."""
    half = count // 2
    angles = positions[:, np.newaxis] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    result = vectors.copy()
    part = vectors[..., first : first + count]
    a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    turned = result[..., first : first + count]
    if interleaved:
        turned[..., 0::2], turned[..., 1::2] = a * cos - b * sin, b * cos + a * sin
    else:
        turned[..., :half], turned[..., half:] = a * cos - b * sin, b * cos + a * sin
    return result


def splits(subject: Subject) -> list[int]:
    """Return where components may divide into parts with and without rotary embedding."""
    config, width = subject.facts.config, subject.q.shape[-1]
    places = [width * eighth // 8 for eighth in (4, 2, 6, 1, 7, 3, 5)]
    if width % 3 == 0:
        places += [width // 3, 2 * width // 3]
    if width > 64:
        places += [width - 64, 64]
    if config and config.rope_dim:
        places = [width - config.rope_dim, config.rope_dim, *places]
    if config and config.rotary_share:
        places.insert(0, int(width * config.rotary_share) // 2 * 2)
    return [place for place in dict.fromkeys(places) if 0 < place < width]


_BLOCKS = (16, 32, 64, 128, 256)
_MOST_BLOCKS = 16
_POWERS = 5  # of ln(position + 1)


def by_position(case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield multipliers that grow with the position."""
    subject = case.subject
    for words, feature in (
        ("the multiplier grows with the logarithm of the number of visible keys", _ln_visible),
        ("the multiplier grows with the logarithm of the number of visible keys and 1", partial(_ln_visible, more=1)),
        ("the multiplier grows with the logarithm of the position", _ln_position),
        ("the multiplier grows with the position", _position),
    ):
        if float(np.ptp(feature(subject))) > 0:

            def edit(s: Subject, model: LogitModel, feature: Callable[[Subject], FloatArray] = feature) -> LogitModel:
                return replace(model, inner=(*model.inner, model.inner[0] * feature(s)))

            for growth in (0.0, 0.3):
                yield Hypothesis(words, edit, inner=(1.0, growth))
    if float(np.ptp(_ln_position(subject))) > 0:

        def smooth(s: Subject, model: LogitModel) -> LogitModel:
            x = np.log(s.positions + 1.0)[np.newaxis, :, np.newaxis] / 5
            return replace(model, inner=tuple(model.inner[0] * x**power for power in range(_POWERS)))

        words = "the multiplier changes smoothly with the position"
        yield Hypothesis(words, smooth, inner=(1.0, *(0.0,) * (_POWERS - 1)))


def by_part(case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield multipliers that differ between two parts of the components."""
    for place in splits(case.subject):

        def parted(s: Subject, model: LogitModel, place: int = place) -> LogitModel:
            first = in_rows(s, s.q[..., :place] @ s.k[..., :place].mT)
            return replace(model, inner=(first, in_rows(s, s.q[..., place:] @ s.k[..., place:].mT)))

        words = message("the multiplier differs between components below {place} and from {place} up", place=place)

        def told(theta: FloatArray, place: int = place) -> str:
            words = "components from {place} up count {ratio:.4g} × as much as those below"
            return message(words, place=place, ratio=theta[1] / theta[0])

        yield Hypothesis(words, parted, inner=(1.0, 1.0), told=told)


def uneven_blocks(case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield multipliers that differ between blocks of keys."""
    keys = case.subject.k.shape[1]
    for size in _BLOCKS:
        blocks = -(-keys // size)
        if 2 <= blocks <= _MOST_BLOCKS:
            words = message("the multiplier differs between blocks of {size} keys", size=size)
            for start in ((1.0,) * blocks, tuple(math.log2(math.e) ** block for block in range(blocks))):
                yield Hypothesis(words, partial(_blocked, "keys", size, 0, 0), inner=start)


def uneven_rows(case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield multipliers that grow with ⌊position / size⌋ or ⌊(position + 1) / size⌋."""
    for size in _BLOCKS:
        for shift in (0, 1):
            blocks = (int(case.subject.positions.max()) + shift) // size + 1
            if 2 <= blocks <= _MOST_BLOCKS:
                words = message("the multiplier differs between blocks of {size} positions", size=size)
                yield Hypothesis(words, partial(_blocked, "rows", size, shift, blocks), inner=(1.0,) * blocks)


def _blocked(
    axis: Literal["keys", "rows"], size: int, shift: int, blocks: int, subject: Subject, model: LogitModel
) -> LogitModel:
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
