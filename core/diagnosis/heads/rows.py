"""Some rows of a captured head, their logits under a scale rule, and rough statistics for a first look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.computation import Computation, Terms
from ...attention.softmax import RowStatistics, softmax, weight_statistics
from ...captures.capture import Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile, HeadData, read_head
from ...captures.heads import LARGEST
from ...captures.rules import Rule, computation, file_rule
from ...message import plain
from ...scales import Normalise
from ...statistics.measurement import NOTHING, Estimate
from ...statistics.summary import RowMoments, estimates, sums_of_rows, sums_of_scores
from ..subject import Indices

_MOST_TEXTS = 4
_STRIP = 128  # rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a head, [texts, rows, …], and what their logits consist of beside scaled scores."""

    data: HeadData
    layer: Layer
    q: FloatArray  # float64
    k: FloatArray
    terms: Terms  # hidden keys and biases
    counts: Indices  # visible keys, [texts, rows]
    used: BoolArray  # rows that see a key
    at: slice

    @cached_property
    def seen(self) -> BoolArray | None:
        """The visible keys, [texts, rows, keys]; None: all."""
        return None if self.terms.hidden is None else ~self.terms.hidden

    @property
    def visible(self) -> BoolArray:
        """The visible keys, which broadcast to [texts, rows, keys]."""
        return np.ones((1, 1, 1), np.bool_) if self.seen is None else self.seen


def spread(count: int, most: int) -> slice:
    """Return at most `most` of the rows below `count`, evenly spread, the last included."""
    step = max(1, -(-count // most))
    return slice((count - 1) % step, count, step)


def some_rows(data: HeadData, layer: Layer, rows: int) -> Rows:
    """Return at most `rows` rows of each of the first texts, evenly spread."""
    return rows_at(data, layer, slice(0, min(layer.batch, _MOST_TEXTS)), spread(layer.queries, rows))


def rows_at(data: HeadData, layer: Layer, texts: slice, at: slice, span: slice = slice(None)) -> Rows:
    """Return the rows `at` of some texts, with the keys in `span`."""
    q, k = data.q[texts, at].astype(np.float64), data.k[texts, span].astype(np.float64)
    terms = data.terms(texts, at, span)
    counts: Indices = np.full(q.shape[:2], k.shape[1], np.intp)
    if terms.hidden is not None:
        counts -= np.count_nonzero(terms.hidden, axis=-1)
    return Rows(data, layer, q, k, terms, counts, counts > 0, at)


def strips_of(data: HeadData, layer: Layer, rows: int) -> list[Rows]:
    """Return at most `rows` rows of each of the first texts in strips, each with the keys that its rows may see."""
    texts, at = slice(0, min(layer.batch, _MOST_TEXTS)), spread(layer.queries, rows)
    places = range(layer.queries)[at]
    found: list[Rows] = []
    for first in range(0, len(places), _STRIP):
        some = places[first : first + _STRIP]
        rows_of = slice(some.start, some.stop, some.step)
        span = slice(None) if data.visibility is None else data.visibility.span(rows_of)
        found.append(rows_at(data, layer, texts, rows_of, span))
    return found


def scores(rows: Rows, how: Normalise) -> FloatArray:
    """Return the scores q·k as stored, [texts, rows, keys], of q and k normalised in this way."""
    c = Computation(norms=(how, how))
    return c.scores(*c.vectors(rows.q, rows.k))


def factors(rows: Rows, rule: Rule) -> FloatArray:
    """Return what a rule multiplies the scores as stored by; broadcasts to [texts, rows, keys]."""
    multipliers = computation(rule, rows.layer, rows.data).multipliers(rows.counts, slice(0, len(rows.q)), rows.at)
    return np.full((1, 1, 1), multipliers) if isinstance(multipliers, int | float) else multipliers


def logits(rows: Rows, rule: Rule) -> FloatArray:
    """Return the logits of these rows under a rule, hidden ones included."""
    c = computation(rule, rows.layer, rows.data)
    return c.logits(scores(rows, rule.normalise), rows.terms._replace(multiplier=factors(rows, rule)))


def variance(z: FloatArray, seen: BoolArray | None) -> FloatArray:
    """Return the variance of each row's visible numbers, [texts, rows]; 0 for a row that sees no key."""
    if seen is None:
        return np.var(z, axis=-1)
    count = np.maximum(np.count_nonzero(seen, axis=-1), 1)
    shown = np.where(seen, z, 0)
    mean = np.sum(shown, axis=-1) / count
    away = np.where(seen, z - mean[..., np.newaxis], 0)
    return np.sum(away * away, axis=-1) / count


def require_logits(z: FloatArray, capture: CaptureFile, layer: Layer, head: int) -> None:
    """Raise CaptureError if logits have no statistics in float64."""
    if not np.isfinite(z).all() or np.abs(z).max(initial=0) > LARGEST:
        raise overflow(capture, layer, head)


def overflow(capture: CaptureFile, layer: Layer, head: int) -> CaptureError:
    """Return the error of a head whose numbers are too large for float64."""
    return CaptureError(
        "{path}: layer {index}, head {head}: logits overflow float64",
        path=plain(capture.path),
        index=layer.index,
        head=head,
    )


ROWS = 8  # of each text that are looked at
LARGE = 1 << 16  # scores of a head from which a first look saves time


def is_large(layer: Layer) -> bool:
    """Return whether a first look at some rows of a head saves time."""
    return layer.batch * layer.queries * layer.keys > LARGE


def rough_statistics(capture: CaptureFile, layer: Layer, head: int, rows: int = ROWS) -> Mapping[str, Estimate]:
    """Return the statistics that every measurement has, of some rows at the file's scale.

    With all rows of at most four texts they are those of `measure_head`, without standard errors. Raise CaptureError
    if the head cannot be read.
    """
    data = read_head(capture, layer, head)
    part = some_rows(data, layer, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.where(part.visible, logits(part, file_rule(layer)), 0)
    require_logits(z, capture, layer, head)
    hidden = part.terms.hidden
    p = softmax(z, hidden, data.sink)
    visible = part.counts.astype(np.float64)
    keys = layer.keys
    flat = weight_statistics(
        p.reshape(-1, keys), visible.reshape(-1), None if hidden is None else hidden.reshape(-1, keys)
    )
    of_rows = RowStatistics(*(column[np.newaxis] for column in flat))
    sums = {**sums_of_scores(_moments(z, part)), **sums_of_rows(of_rows, visible.reshape(1, -1))}
    found = estimates(sums, 0.0, [1.0], unbiased=False)[0]  # of one draw, which has no standard errors
    shown = z[np.broadcast_to(part.visible, z.shape)]
    mean, deviation = found["logit_mean"].value, found["logit_std"].value
    if shown.size and mean is not None and deviation is not None:
        near = np.abs(shown - mean) <= 3 * deviation
        found["logit_min"], found["logit_max"] = _plain(shown.min()), _plain(shown.max())
        found["logit_within_3sd"] = _plain(np.count_nonzero(near) / shown.size)
    if data.sink is None:
        found["sink_weight"] = NOTHING
    return found


def _plain(value: float | np.floating) -> Estimate:
    number = float(value)
    return Estimate(number if math.isfinite(number) else None, None)


def _moments(z: FloatArray, part: Rows) -> RowMoments:
    """Return the central moments of each row's visible logits, (1, texts · rows)."""
    count = np.maximum(part.counts, 1)
    mean = np.where(part.visible, z, 0).sum(axis=-1) / count
    away = np.where(part.visible, z - mean[..., np.newaxis], 0)
    squares = away * away
    each = (
        part.counts.astype(np.float64),
        mean,
        squares.sum(axis=-1) / count,
        np.vecdot(squares, away) / count,
        np.vecdot(squares, squares) / count,
    )
    return RowMoments(*(array.reshape(1, -1) for array in each))
