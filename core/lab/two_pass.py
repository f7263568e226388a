"""Measurements whose logits follow no law known in advance.

Their logits come from other mechanisms, normalised queries and keys, soft-caps or low precision. They are computed
twice, or kept: first for their mean, spread and extremes, then for everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.formats import number_format
from ..attention.normalise import normalised
from ..attention.precision import low_precision_scores
from ..attention.row_gradients import LogitGradients, query_gradient_norms
from ..attention.scores import Weights, scores
from ..attention.softmax import softcap
from ..parameters import Parameters
from ..scales import SCALE_RULES, Normalise
from ..statistics import tally
from ..statistics.survey import Survey
from .sampling import Draws
from .scoring import (
    LOSS,
    fits,
    hidden,
    kept_draws,
    loss_of,
    one_draw,
    sides,
    sink_of,
    vectors_of,
    weights_of,
)

# The most logits kept from the first pass to the second.
_KEPT = 1 << 24
_BINS = 1024


@dataclass(eq=False)
class Column:
    """One column of the result, while its logits are surveyed."""

    rule: str
    multiplier: float
    normalisation: Normalise
    survey: Survey = field(default_factory=Survey)


@dataclass(frozen=True, eq=False)
class Group:
    """Some draws: their queries and keys and, for gradients, their values and upstream gradients."""

    draws: slice
    q: FloatArray  # (draws, m, d)
    k: FloatArray  # (draws, n, d)
    loss: Sequence[FloatArray] = ()  # values (draws, n, d_v) and ∂L/∂O (draws, m, d_v)


def stream(
    p: Parameters, draws: Draws, gradients: bool, rules: Sequence[tuple[str, float]]
) -> Iterator[tuple[float, float, Sequence[tally.Tally]]]:
    """Yield the finished fraction, the draws done and, in the second pass, the tally of each column.

    `rules` are the columns, each with its multiplier. If all components fit, `draws` must hold them.
    """
    columns = [Column(name, c, SCALE_RULES[name].normalise) for name, c in rules]
    weights = weights_of(p)
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    kept: dict[tuple[int, int, int], FloatArray] = {}
    keep = len(columns) * shape.draws * shape.rows * shape.keys <= _KEPT
    total = p.batch * p.n_queries * len(columns)
    done = 0
    for group in _groups(p, draws, gradients=False):
        for rows in _rows(group, p):
            seen = _visible(p, rows)
            for number, column in enumerate(columns):
                logits = _logits(p, column, weights, group, rows)
                column.survey.add(logits if seen is None else logits[:, seen])
                if keep:
                    kept[number, group.draws.start, rows.start] = logits
                done += len(logits) * logits.shape[1]
                yield done / total / 2, 0, ()
    tallies: list[tally.Tally] = []
    for column in columns:
        known = column.survey
        band = 3 * known.std if known.std else np.nan
        tallies.append(tally.Tally(shape, [(column.rule, 1.0)], known.centre, band, known.axis(_BINS), sink_of(p)))
    done = 0
    for group in _groups(p, draws, gradients):
        for rows in _rows(group, p):
            for number, column in enumerate(columns):
                logits = kept.pop((number, group.draws.start, rows.start), None)
                logits = _logits(p, column, weights, group, rows) if logits is None else logits
                backward = _backward(p, column, weights, group, rows, logits) if gradients else None
                logits = logits - logits.dtype.type(column.survey.centre)
                tally.add(tallies[number], group.draws, rows, logits, hidden(p, rows), None, backward)
                done += len(logits) * logits.shape[1]
                # A draw is done when the last column has its rows too; until then, half a row marks it as partial.
                rows_done = done / len(columns) if column is columns[-1] else done // len(columns) + 0.5
                yield (1 + done / total) / 2, rows_done / p.n_queries, tallies


def _groups(p: Parameters, draws: Draws, gradients: bool) -> Iterator[Group]:
    """Yield every draw once, several at a time if the components of all are kept."""
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    if fits(p):
        # Several blocks in a row may be of the same draws.
        for which in dict.fromkeys((d.start, d.stop) for d, _ in tally.blocks(shape)):
            group = slice(*which)
            q, k = vectors_of(p, kept_draws(p, sides(p), draws, group))
            loss = kept_draws(loss_of(p), LOSS, draws.loss, group) if gradients else []
            yield Group(group, q, k, [side.mT for side in loss])
    else:
        for draw in range(p.batch):
            q, k = vectors_of(p, one_draw(p, sides(p), draw))
            loss = one_draw(loss_of(p), LOSS, draw) if gradients else []
            yield Group(slice(draw, draw + 1), q, k, [side.mT for side in loss])


def _rows(group: Group, p: Parameters) -> Iterator[slice]:
    """Return the queries of a group, as many at a time as a block holds."""
    return (rows for _, rows in tally.blocks(tally.Shape(len(group.q), p.n_queries, p.n_keys)))


def _visible(p: Parameters, rows: slice) -> BoolArray | None:
    unseen = hidden(p, rows)
    return None if unseen is None else ~unseen


def _logits(p: Parameters, column: Column, weights: Weights, group: Group, rows: slice) -> FloatArray:
    """Return logits (draws, rows, keys): normalise → score → scale → soft-cap."""
    raw = raw_scores(p, group.q[:, rows], group.k, column.normalisation, weights)
    logits = np.multiply(raw, raw.dtype.type(column.multiplier), out=raw)
    return softcap(logits, p.softcap, out=logits) if p.softcap else logits


def raw_scores(p: Parameters, q: FloatArray, k: FloatArray, how: Normalise, weights: Weights) -> FloatArray:
    """Return scores (draws, m, n) of q (draws, m, d) and k (draws, n, d): normalise → score, in the number format.

    Scores that overflow are clipped to the largest number, since ∞ would turn their row into NaN.
    """
    q, k = (normalised(side, how) for side in (q, k))
    if p.precision in ("float32", "float64"):
        return scores(q, k, p.mechanism, weights)
    raw, largest = low_precision_scores(q, k, p.precision, p.mechanism, weights).values, _largest(p)
    return np.clip(raw, -largest, largest, out=raw)


def _largest(p: Parameters) -> np.float32:
    return np.float32(number_format(p.precision).largest)


def _backward(
    p: Parameters, column: Column, weights: Weights, group: Group, rows: slice, logits: FloatArray
) -> tally.Backward:
    """Return the backward pass to some queries of a group; rounding is treated as the identity."""
    v, g = group.loss
    q, k = group.q[:, rows], normalised(group.k, column.normalisation)
    slopes = 1 - np.square(logits / logits.dtype.type(p.softcap)) if p.softcap else None

    def norms(found: LogitGradients, _: int, d: slice, r: slice) -> FloatArray:
        if slopes is not None:
            np.multiply(found.entries, slopes[d, r].reshape(found.entries.shape), out=found.entries)
        how = column.normalisation
        return query_gradient_norms(found, column.multiplier, k[d], q[d, r], p.mechanism, weights, how)

    return tally.Backward(g[:, rows], v, norms)
