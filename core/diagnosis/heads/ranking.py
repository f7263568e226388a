"""Find out why the heads of a layer are as they are, and rank heads worst first.

For one query q with multiplier c, the variance of its logits is c² qᵀCq, where C is the covariance of its visible
keys. Averaged over rows it is, exactly,
(c √d_k)² · (query size)² · (key spread)² · alignment,
with query size² = E|q|²/d_k, key spread² = E(|q|² tr C)/(d_k E|q|²) and alignment = E(qᵀCq)/E(|q|² tr C/d_k). All
four factors are 1 for independent standard normal components under 1/√d_k; alignment is d_k if keys differ along
queries only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...arrays import FloatArray
from ...captures.capture import HeadSubject, Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile, read_head
from ...captures.rules import file_rule
from ...statistics.measurement import Estimate, Measurement
from ..configuration import Configuration
from ..results import Verdict
from ..subject import Indices
from ..verdict import diagnose_head
from .reasons import HeadReasons, Traits, has_evidence, reasons, severity
from .rows import Rows, factors, scores, some_rows, variance

ROWS = 64  # of each text that are looked at
HELD = 0.9  # the share of the scores' variance that `dimensions` hold


def traits(capture: CaptureFile, layer: Layer, head: int, rows: int = ROWS) -> Traits | None:
    """Return what spreads the logits of a head; None if no query sees a key or a square overflows.

    At most `rows` rows of each of the first texts are looked at. Raise CaptureError if the head cannot be read.
    """
    data = read_head(capture, layer, head)
    part = some_rows(data, layer, rows)
    if not part.used.any():
        return None
    d, used, (f_q, f_k) = layer.d_k, part.used, layer.inside
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum(np.square(part.q), axis=-1) / f_q**2  # |q|², [texts, rows]
        traces = _traces(part) / f_k**2
        products = scores(part, "none")
        within = variance(products, part.seen) / (f_q * f_k) ** 2
        size, weighted = float(squares[used].mean()), float((squares * traces)[used].mean())
    if not (np.isfinite(within[used]).all() and math.isfinite(weighted)):
        return None
    lengths = np.sqrt(np.sum(np.square(part.k), axis=-1)) / f_k  # [texts, keys]
    typical = float(np.median(lengths)) or 1.0
    longest = int(lengths.max(axis=0).argmax())
    near, first, all_keys = _cosines(products, part)
    return Traits(
        scale=_scale(part) * math.sqrt(d),
        query_size=math.sqrt(size / d),
        key_spread=math.sqrt(weighted / (d * size)) if size else 0.0,
        alignment=float(within[used].mean()) * d / weighted if weighted else 0.0,
        dimensions=_dimensions(part),
        cosine=near,
        first_key_size=float(np.median(_first_lengths(lengths, part))) / typical,
        first_key_cosine=first,
        other_cosine=all_keys,
        longest_key=longest,
        longest_key_size=float(lengths.max()) / typical,
        query_variety=variety(part.q),
        key_variety=variety(part.k),
        bias_spread=_bias_spread(part),
    )


def _bias_spread(part: Rows) -> float | None:
    """Return the spread of the biases within rows; None without biases."""
    if not part.terms.biases:
        return None
    bias = np.broadcast_to(sum(part.terms.biases), (*part.used.shape, part.k.shape[1]))
    return math.sqrt(float(variance(bias, part.seen)[part.used].mean()))


def _scale(part: Rows) -> float:
    """Return the root mean square of the file's multiplier of q·k without stored factors, over rows."""
    applied = factors(part, file_rule(part.layer))[..., 0]
    multipliers = np.broadcast_to(applied, part.used.shape)[part.used] * part.layer.own_factor
    return math.sqrt(float(np.mean(multipliers * multipliers)))


def _traces(part: Rows) -> FloatArray:
    """Return the trace of the covariance of the keys that each row sees, [texts, rows]."""
    centre = part.k.mean(axis=1, keepdims=True)  # any: it keeps the digits of keys that differ little
    away = part.k - centre
    squares = np.sum(away * away, axis=-1)[:, np.newaxis]  # [texts, 1, keys]
    if part.seen is None:
        return np.broadcast_to(squares.mean(axis=-1), part.used.shape)
    count = np.maximum(part.counts, 1)[..., np.newaxis]
    share = part.seen / count
    means = share @ away
    return np.maximum(np.sum(share * squares, axis=-1) - np.sum(means * means, axis=-1), 0.0)


def _dimensions(part: Rows) -> int:
    """Return how many singular values of the scores of all pairs, about the mean key, hold HELD of their squares."""
    q, k = part.q[part.used], part.k - part.k.mean(axis=1, keepdims=True)
    keys = k.reshape(-1, k.shape[-1])
    # With Q = U R and K = V S, the singular values of Q Kᵀ are those of R Sᵀ.
    small: FloatArray = np.linalg.qr(q).R @ np.linalg.qr(keys).R.mT
    squares: FloatArray = np.square(np.linalg.svd(small, compute_uv=False))
    total = squares.sum()
    if not total > 0:
        return 0
    return int(np.count_nonzero(np.add.accumulate(squares) < HELD * total * (1 - 1e-12))) + 1


def _cosines(products: FloatArray, part: Rows) -> tuple[float | None, float | None, float | None]:
    """Return mean cosines of queries: with the key each scores highest, the first one it sees, and all it sees."""
    wide = part.counts > 1
    if not wide.any():
        return None, None, None
    lengths = np.sqrt(np.sum(np.square(part.q), axis=-1))[..., np.newaxis]
    keys = np.sqrt(np.sum(np.square(part.k), axis=-1))[:, np.newaxis]
    both = lengths * keys
    cosines = np.divide(products, both, out=np.zeros_like(products), where=both > 0)
    top = np.where(part.visible, products, -np.inf).argmax(axis=-1)
    seen = np.broadcast_to(part.visible, products.shape)
    first = seen.argmax(axis=-1)

    def at(places: Indices) -> float:
        found = np.take_along_axis(cosines, places[..., np.newaxis], axis=-1)[..., 0]
        return float(found[wide].mean())

    mean = np.where(part.visible, cosines, 0).sum(axis=-1)[wide] / part.counts[wide]
    return at(top), at(first), float(mean.mean())


def _first_lengths(lengths: FloatArray, part: Rows) -> FloatArray:
    """Return the length of the first key that each row sees."""
    seen = np.broadcast_to(part.visible, (*part.used.shape, lengths.shape[1]))
    return np.take_along_axis(lengths, seen.argmax(axis=-1), axis=1)[part.used]


def variety(vectors: FloatArray) -> float:
    """Return the root mean square of what differs between tokens over that of all, [texts, tokens, d_k]."""
    size = float(np.sum(np.square(vectors, dtype=np.float64)))
    if vectors.shape[1] == 1 or size == 0:
        return 1.0 if size else 0.0
    away = vectors - vectors.mean(axis=1, keepdims=True)
    return math.sqrt(float(np.sum(np.square(away, dtype=np.float64))) / size)


class HeadFacts(NamedTuple):
    """What is known of a head besides its statistics."""

    traits: Traits | None  # None if it cannot be read
    verdict: Verdict | None  # None without evidence


def known(capture: CaptureFile, layer: Layer, head: int, own: Configuration | None) -> HeadFacts:
    """Return what spreads the logits of a head, and what its evidence says; `own` is the file's configuration."""
    try:
        found = traits(capture, layer, head)
    except CaptureError:
        found = None
    return HeadFacts(found, judge(capture, layer, head, own))


def judge(capture: CaptureFile, layer: Layer, head: int, own: Configuration | None) -> Verdict | None:
    """Return what the evidence says of a head; None if there is none, or the head cannot be read."""
    if not has_evidence(layer):
        return None
    try:
        verdict = diagnose_head(capture, layer, head, own, None)
    except CaptureError:
        return None
    return None if verdict.word == "no-evidence" else verdict


def explained(measured: Mapping[str, Estimate], head: int, layer: Mapping[int, HeadFacts]) -> HeadReasons:
    """Return the reasons of a head; `layer` has what is known of all heads of its layer."""
    own = layer[head]
    others = [facts.traits for facts in layer.values() if facts.traits is not None]
    return HeadReasons(reasons(measured, own.traits, others, own.verdict), own.verdict)


def rank(
    heads: Sequence[Measurement[HeadSubject]], layers: Mapping[tuple[Path, int], Mapping[int, HeadFacts]]
) -> list[tuple[Measurement[HeadSubject], HeadReasons]]:
    """Return the heads with their reasons, worst first.

    The heads must have been measured at the file's scale. `layers` has what is known of all heads of their layers, by
    path and position of the layer, and by head.
    """
    found: list[tuple[Measurement[HeadSubject], HeadReasons]] = []
    for place in heads:
        layer, head = place.subject.layer, place.subject.head
        found.append((place, explained(place.columns[-1].measured, head, layers[layer.path, layer.position])))
    return sorted(found, key=lambda place: severity(place[0].columns[-1].measured, place[1].verdict))
