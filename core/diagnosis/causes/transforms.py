"""What may have been done to queries and keys between the file and the scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...arrays import FloatArray
from ...attention.normalise import normalised
from ...message import message
from ...scales import Normalise
from ..subject import Indices, Subject, places
from .edits import Case
from .hypothesis import Hypothesis, rescored

_THETAS = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 150_000.0, 5_000_000.0, 8_000_000.0)
_USUAL = 3  # of these, for a part of the components


def normalisations(_: Case) -> Iterator[Hypothesis]:
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


def rotations(sign: int, case: Case) -> Iterator[Hypothesis]:
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
