"""Measurements whose logits follow no law known in advance.

Their logits come from other mechanisms, normalised queries and keys, soft-caps or low precision. They are computed
twice, or kept: first for their mean, spread and extremes, then for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import FloatArray
from ..attention.precision import logits_of, nan_rows, product_inputs, product_scores, row_weights, stored
from ..attention.row_gradients import LogitGradients, query_gradient_norms
from ..attention.scores import Weights, scores
from ..attention.softmax import softcap
from ..parameters import ROUNDED, Parameters
from ..statistics import tally
from ..statistics.survey import Survey
from .sampling import Draws
from .scoring import (
    LOSS,
    Preparation,
    RuleColumn,
    factors_of_rows,
    fits,
    hidden,
    kept_draws,
    learned_weights,
    loss_of,
    one_draw,
    preparation,
    rows_of,
    sides,
    sink_of,
    vectors_of,
    with_norm,
)

# The most logits kept from the first pass to the second.
_KEPT = 1 << 24
_BINS = 1024


@dataclass(eq=False)
class Column:
    """One column of the result, while its logits are surveyed."""

    rule: str
    factors: FloatArray  # (queries or 1, 1) the multipliers of the rows
    how: Preparation
    survey: Survey = field(default_factory=Survey)


@dataclass(frozen=True, eq=False)
class Group:
    """Some draws: their queries and keys and, for gradients, their values and upstream gradients."""

    draws: slice
    q: FloatArray  # (draws, m, d)
    k: FloatArray  # (draws, n, d)
    inputs: Mapping[Preparation, tuple[FloatArray, FloatArray]]  # the vectors multiplied, in a rounded format
    loss: Sequence[FloatArray] = ()  # values (draws, n, d_v) and ∂L/∂O (draws, m, d_v)


def stream(
    p: Parameters, draws: Draws, gradients: bool, asked: Sequence[RuleColumn]
) -> Iterator[tuple[float, float, Sequence[tally.Tally]]]:
    """Yield the finished fraction, the draws done and, in the second pass, the tally of each column.

    `asked` are the columns. If all components fit, `draws` must hold them.
    """
    columns = [Column(each.rule, factors_of_rows(p, each), preparation(p, each)) for each in asked]
    weights = learned_weights(p)
    how = [column.how for column in columns]
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    kept: dict[tuple[int, int, int], FloatArray] = {}
    keep = len(columns) * shape.draws * shape.rows * shape.keys <= _KEPT
    total = p.batch * p.n_queries * len(columns)
    done = 0
    for group in _groups(p, draws, weights, how, gradients=False):
        for rows in _rows(group, p):
            for number, column in enumerate(columns):
                logits = _logits(p, column, weights, group, rows)
                column.survey.add(_counted(p, logits, rows))
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
    for group in _groups(p, draws, weights, how, gradients):
        for rows in _rows(group, p):
            for number, column in enumerate(columns):
                logits = kept.pop((number, group.draws.start, rows.start), None)
                logits = _logits(p, column, weights, group, rows) if logits is None else logits
                backward = _backward(p, column, weights, group, rows, logits) if gradients else None
                unseen, rounded = hidden(p, rows), None
                if p.precision in ROUNDED:
                    rounded = row_weights(logits, p.precision, p.arithmetic, unseen, sink_of(p))
                logits = logits - logits.dtype.type(column.survey.centre)
                tally.add(tallies[number], group.draws, rows, logits, unseen, None, backward, rounded)
                done += len(logits) * logits.shape[1]
                # A draw is done when the last column has its rows too; until then, half a row marks it as partial.
                rows_done = done / len(columns) if column is columns[-1] else done // len(columns) + 0.5
                yield (1 + done / total) / 2, rows_done / p.n_queries, tallies


def _groups(
    p: Parameters, draws: Draws, weights: Weights, how: Iterable[Preparation], gradients: bool
) -> Iterator[Group]:
    """Yield every draw once, several at a time if the components of all are kept."""
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    if fits(p):
        # Several blocks in a row may be of the same draws.
        for which in dict.fromkeys((d.start, d.stop) for d, _ in tally.blocks(shape)):
            group = slice(*which)
            q, k = vectors_of(p, kept_draws(p, sides(p), draws, group))
            loss = kept_draws(loss_of(p), LOSS, draws.loss, group) if gradients else []
            yield _group(p, group, q, k, loss, weights, how)
    else:
        for draw in range(p.batch):
            q, k = vectors_of(p, one_draw(p, sides(p), draw))
            loss = one_draw(loss_of(p), LOSS, draw) if gradients else []
            yield _group(p, slice(draw, draw + 1), q, k, loss, weights, how)


def _group(
    p: Parameters,
    draws: slice,
    q: FloatArray,
    k: FloatArray,
    loss: Sequence[FloatArray],
    weights: Weights,
    how: Iterable[Preparation],
) -> Group:
    """Return a group of these vectors and components (draws, d_v, vectors) of the loss."""
    loss = [side.mT for side in loss]
    if p.precision not in ROUNDED:
        return Group(draws, q, k, {}, loss)
    inputs: dict[Preparation, tuple[FloatArray, FloatArray]] = {}
    for each in how:
        if each not in inputs:
            inputs[each] = inputs_of(p, q, k, each, weights)
    return Group(draws, q, k, inputs, [stored(loss[0], p.precision), loss[1]] if loss else [])


def _rows(group: Group, p: Parameters) -> Iterator[slice]:
    """Return the queries of a group, as many at a time as a block holds."""
    return (rows for _, rows in tally.blocks(tally.Shape(len(group.q), p.n_queries, p.n_keys)))


def _counted(p: Parameters, logits: FloatArray, rows: slice) -> FloatArray:
    """Return the visible logits without, in rounded formats, infinite ones and those of NaN rows."""
    unseen = hidden(p, rows)
    if p.precision not in ROUNDED or np.isfinite(logits).all():
        return logits if unseen is None else logits[:, ~unseen]
    counted = np.isfinite(logits)
    counted &= ~nan_rows(logits, unseen, p.sink != "none")[..., np.newaxis]
    if unseen is not None:
        counted &= ~unseen
    return logits[counted]


def _logits(p: Parameters, column: Column, weights: Weights, group: Group, rows: slice) -> FloatArray:
    """Return logits (draws, rows, keys): normalise → score → scale → soft-cap."""
    how, c = column.how, rows_of(column.factors, rows)
    if p.precision in ROUNDED:
        q, k = group.inputs[how]
        raw = product_scores(q[:, rows], k, p.precision, p.arithmetic, weights)
        return logits_of(raw, p.precision, p.arithmetic, c, p.softcap or None)
    raw = raw_scores(p, group.q[:, rows], group.k, how, weights)
    logits = np.multiply(raw, c.astype(raw.dtype), out=raw)
    return softcap(logits, p.softcap, out=logits) if p.softcap else logits


def raw_scores(p: Parameters, q: FloatArray, k: FloatArray, how: Preparation, weights: Weights) -> FloatArray:
    """Return scores (draws, m, n) of q (draws, m, d) and k (draws, n, d): prepare → score, in the number format."""
    if p.precision in ROUNDED:
        return product_scores(*inputs_of(p, q, k, how, weights), p.precision, p.arithmetic, weights)
    q, k = (with_norm(p, side, how.normalise) for side in (q, k))
    return scores(q, k, p.mechanism, weights)


def inputs_of(
    p: Parameters, q: FloatArray, k: FloatArray, how: Preparation, weights: Weights
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors that are multiplied, prepared and as stored in a rounded format."""
    q, k = (with_norm(p, side, how.normalise) for side in (q, k))
    return product_inputs(q, k, p.precision, p.mechanism, weights, how.factor)


def _backward(
    p: Parameters, column: Column, weights: Weights, group: Group, rows: slice, logits: FloatArray
) -> tally.Backward:
    """Return the backward pass to some queries of a group, through the rounded keys; rounding passes gradients on."""
    v, g = group.loss
    how = column.how
    q = group.q[:, rows]
    k = group.inputs[how][1] if p.precision in ROUNDED else with_norm(p, group.k, how.normalise)
    slopes = None
    if p.softcap:
        slopes = np.maximum(1 - np.square(logits / logits.dtype.type(p.softcap)), 0)

    def norms(found: LogitGradients, _: int, d: slice, r: slice) -> FloatArray:
        if slopes is not None:
            np.multiply(found.entries, slopes[d, r].reshape(found.entries.shape), out=found.entries)
        norms = query_gradient_norms(
            found, how.factor, k[d], q[d, r], p.mechanism, weights, how.normalise, p.norm_gain
        )
        of_block = rows_of(column.factors, rows)
        return norms * np.broadcast_to(rows_of(of_block, r).T, q[d, r].shape[:2]).ravel()

    return tally.Backward(g[:, rows], v, norms)
