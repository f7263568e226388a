"""What scale rules make of some rows of a head, with a few passes over their scores for each rule.

With E = exp(c(s − max s)) of a row, everything follows from Z = ΣE and ΣE(s − max s): the log-sum-exp, the entropy,
the largest weight, and the divergence from the original weights p₀, (lse − lse₀) − (c − c₀)·Σp₀s. E is in float32 if
q and k have few bits: what that leaves is below 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.formats import FORMATS
from ...attention.normalise import normalised
from ...attention.softmax import softmax_of
from ...captures.blocks import fits_float32, mean_of_seen
from ...captures.rules import Rule, computation
from ...scales import Normalise
from ..fitting.model import dot
from .rows import Rows, factors, scores, terms, variance

_FEW_BITS = tuple(name for name, each in FORMATS.items() if each.rounded)
_HIDDEN = -1e12  # a score so far below the largest of its row that its weight is 0 under every rule


@dataclass(frozen=True, eq=False)
class RowReplay:
    """What a rule makes of each row; arrays are [rows], of the rows that see a key."""

    lse: FloatArray
    entropy: FloatArray  # of the weights, nats
    largest: FloatArray  # weight
    deviation: FloatArray  # of the logits
    divergence: FloatArray  # of the original weights from these, nats


# Return what becomes of rows with q and k normalised and these multipliers, which broadcast to [texts, rows, 1].
Replays: TypeAlias = Callable[[Normalise, FloatArray], RowReplay]


def under_rules(part: Rows, original: Rule) -> Replays:
    """Return a function that replays a rule on these rows; divergences are from the original rule."""
    if part.layer.softcap is None and part.bias is None:
        return _multiplied(part, original)
    return _evaluated(part, original)


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of rows, normalised in one way, [rows, keys]."""

    below: FloatArray  # less the largest of the row
    largest: FloatArray  # [rows]
    deviation: FloatArray  # [rows]
    original: FloatArray  # Σ p₀·below, [rows]


def _centred_scores(part: Rows, how: Normalise, number: type[np.floating]) -> tuple[FloatArray, FloatArray]:
    """Return scores of keys less the mean of those that are seen, and what softmax ignores of each row: q·(the mean).

    The scores are in this format.
    """
    q, k = normalised(part.q, how), normalised(part.k, how)
    seen: BoolArray | None = None if part.seen is None else np.any(part.seen, axis=1)
    common = mean_of_seen(k, seen)
    scores: FloatArray = q.astype(number) @ (k - common).astype(number).mT
    return scores, (q @ common.mT)[..., 0]


@dataclass(frozen=True, eq=False)
class _Sums:
    c: FloatArray  # multiplier, [rows]
    over: FloatArray  # lse − c·max
    weight: FloatArray  # of the largest score
    total: FloatArray  # of the weights: less than 1 with a sink
    heat: FloatArray  # Σ p·below


def _multiplied(part: Rows, original: Rule) -> Replays:
    sink, used = part.data.sink, part.used
    whole, counts = bool(used.all()), part.counts[used]
    known: dict[Normalise, _Scores] = {}
    short = np.float32 if part.layer.dtype in _FEW_BITS and fits_float32(part.data) else np.float64
    seen = None if part.seen is None else part.seen[used]
    buffer = np.empty((int(used.sum()), part.k.shape[1]), short)
    ones = np.ones(part.k.shape[1], short)

    def prepared(how: Normalise, weights: FloatArray | None) -> _Scores:
        found, offsets = _centred_scores(part, how, short)
        found = found.reshape(-1, found.shape[-1]) if whole else found[used]
        shown = found if seen is None else np.where(seen, found, 0)
        mean = (shown @ ones).astype(np.float64) / counts
        deviation = np.sqrt(np.maximum(dot(shown, shown).astype(np.float64) / counts - mean * mean, 0))
        if seen is not None:
            np.copyto(found, _HIDDEN, where=~seen)
        largest = found.max(axis=-1)
        found -= largest[:, np.newaxis]
        largest = largest + offsets[used]
        return _Scores(found, largest, deviation, largest if weights is None else dot(weights, found))

    def sums(of: _Scores, by: FloatArray) -> _Sums:
        c = by.reshape(1) if by.size == 1 else np.broadcast_to(by, (*used.shape, 1))[used][:, 0]
        np.exp(np.multiply(of.below, c[:, np.newaxis].astype(short), out=buffer), out=buffer)
        count = (buffer @ ones).astype(np.float64)
        over = np.log(count)
        if sink is not None:
            over = np.logaddexp(over, sink - c * of.largest)
        weight = np.exp(-over)
        return _Sums(c, over, weight, weight * count, weight * dot(buffer, of.below).astype(np.float64))

    first = prepared(original.normalise, None)
    base = sums(first, factors(part, original))
    p: FloatArray = buffer * base.weight[:, np.newaxis]
    first = replace(first, original=base.heat)
    known[original.normalise] = first

    def under(how: Normalise, by: FloatArray) -> RowReplay:
        if not (by > 0).all():  # the largest score is not the largest logit
            return _evaluated(part, original)(how, by)
        if how not in known:
            known[how] = prepared(how, p)
        of = known[how]
        now = sums(of, by)
        moved = now.c * of.original - base.c * base.heat
        top = now.c * of.largest - base.c * first.largest  # how the largest logit changes
        return RowReplay(
            lse=now.c * of.largest + now.over,
            entropy=now.over * now.total - now.c * now.heat,
            largest=now.weight,
            deviation=now.c * of.deviation,
            divergence=now.over - base.over + top * (1 - base.total) - moved,
        )

    return under


def _evaluated(part: Rows, original: Rule) -> Replays:
    """Replay with logits that are not in proportion to the scores: soft-capped, or with a bias."""
    used, seen = part.used, part.visible
    c, first = computation(original, part.layer, part.data), factors(part, original)
    of_rows = terms(part, first)
    known: dict[Normalise, FloatArray] = {}

    def replayed(how: Normalise, by: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        if how not in known:
            known[how] = scores(part, how)
        z = c.logits(known[how], of_rows._replace(multiplier=by))
        soft = softmax_of(z, of_rows.hidden, part.data.sink)
        return soft.weights, np.where(seen, z, 0), soft.lse

    p, before, lse = replayed(original.normalise, first)

    def under(how: Normalise, by: FloatArray) -> RowReplay:
        r, z, now = replayed(how, by)
        entropies = -dot(r, np.log(np.where(r > 0, r, 1)))
        return RowReplay(
            lse=now[used],
            entropy=entropies[used],
            largest=r.max(axis=-1)[used],
            deviation=np.sqrt(variance(z, part)[used]),
            divergence=now[used] - lse[used] - dot(p, z - before)[used],
        )

    return under
