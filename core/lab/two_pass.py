"""Measurements whose logits follow no law known in advance.

Their logits come from other mechanisms, normalised queries and keys, soft-caps or low precision. They are computed
twice, or kept: first for their mean, spread and extremes, then for everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation, Terms
from ..attention.precision import nan_rows, stored
from ..attention.row_gradients import LogitGradients, query_gradient_norms
from ..attention.softmax import softcap_slopes
from ..attention.visibility import part_of
from ..parameters import ROUNDED, Parameters
from ..statistics import tally
from ..statistics.counting import RunningStatistics
from ..statistics.measurement import HistogramName
from .sampling import Draws
from .scoring import (
    LOSS,
    Preparation,
    RuleColumn,
    computation,
    fits,
    kept_draws,
    learned_weights,
    loss_of,
    one_draw,
    preparation,
    sides,
    sink_of,
    vectors_of,
)

# The most logits kept from the first pass to the second.
_KEPT = 1 << 24
_BINS = 1024


@dataclass(eq=False)
class SurveyColumn:
    """One column of the result, while its logits are surveyed."""

    rule: str
    computation: Computation
    survey: RunningStatistics = field(default_factory=RunningStatistics)


class Group(NamedTuple):
    """Some draws: their queries and keys and, for gradients, their values and upstream gradients."""

    draws: slice
    q: FloatArray  # (draws, m, d)
    k: FloatArray  # (draws, n, d)
    vectors: Mapping[Preparation, tuple[FloatArray, FloatArray]]  # that are multiplied
    loss: Sequence[FloatArray] = ()  # values (draws, n, d_v) and ∂L/∂O (draws, m, d_v)


def stream(
    p: Parameters,
    draws: Draws,
    gradients: bool,
    asked: Sequence[RuleColumn],
    statistics: Collection[str],
    histograms: Collection[HistogramName],
) -> Iterator[tuple[float, float, Sequence[tally.Tally]]]:
    """Yield the finished fraction, the draws done and, in the second pass, the tally of each column.

    `asked` are the columns. If all components fit, `draws` must hold them.
    """
    learned = learned_weights(p)
    columns = [SurveyColumn(column.rule, computation(p, column, learned)) for column in asked]
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    kept: dict[tuple[int, int, int], FloatArray] = {}
    keep = len(columns) * shape.draws * shape.rows * shape.keys <= _KEPT
    total = p.batch * p.n_queries * len(columns)
    done = 0
    for group in _groups(p, draws, columns, gradients=False):
        for rows in _rows(group, p):
            scores: dict[Preparation, FloatArray] = {}
            for number, column in enumerate(columns):
                logits, terms = _logits(column.computation, group, rows, scores)
                column.survey.add(_counted(p, logits, terms.hidden))
                if keep:
                    kept[number, group.draws.start, rows.start] = logits
                done += len(logits) * logits.shape[1]
                yield done / total / 2, 0, ()
    tallies: list[tally.Tally] = []
    for column in columns:
        known = column.survey
        band = 3 * known.std if known.std else np.nan
        axis, sink = known.axis(_BINS), sink_of(p)
        rules = [(column.rule, 1.0)]
        every = slice(0, p.batch)
        tallies.append(tally.Tally(shape, rules, known.centre, band, axis, sink, every, statistics, histograms))
    done = 0
    for group in _groups(p, draws, columns, gradients):
        for rows in _rows(group, p):
            scores = {}
            for number, column in enumerate(columns):
                c = column.computation
                known = kept.pop((number, group.draws.start, rows.start), None)
                logits, terms = _logits(c, group, rows, scores, known)
                backward = _backward(c, terms, group, rows, logits) if gradients else None
                rounded = c.weights(logits, terms.hidden) if p.precision in ROUNDED else None
                logits = logits - logits.dtype.type(column.survey.centre)
                tally.add(tallies[number], group.draws, rows, logits, terms.hidden, None, backward, rounded)
                done += len(logits) * logits.shape[1]
                # A draw is done when the last column has its rows too; until then, half a row marks it as partial.
                rows_done = done / len(columns) if column is columns[-1] else done // len(columns) + 0.5
                yield (1 + done / total) / 2, rows_done / p.n_queries, tallies


def _groups(p: Parameters, draws: Draws, columns: Sequence[SurveyColumn], gradients: bool) -> Iterator[Group]:
    """Yield every draw once, several at a time if the components of all are kept."""
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    if fits(p):
        # Several blocks in a row may be of the same draws.
        for which in dict.fromkeys((d.start, d.stop) for d, _ in tally.blocks(shape)):
            group = slice(*which)
            q, k = vectors_of(p, kept_draws(p, sides(p), draws, group))
            loss = kept_draws(loss_of(p), LOSS, draws.loss, group) if gradients else []
            yield _group(p, group, q, k, loss, columns)
    else:
        for draw in range(p.batch):
            q, k = vectors_of(p, one_draw(p, sides(p), draw))
            loss = one_draw(loss_of(p), LOSS, draw) if gradients else []
            yield _group(p, slice(draw, draw + 1), q, k, loss, columns)


def _group(
    p: Parameters,
    draws: slice,
    q: FloatArray,
    k: FloatArray,
    loss: Sequence[FloatArray],
    columns: Sequence[SurveyColumn],
) -> Group:
    """Return a group of these vectors and components (draws, d_v, vectors) of the loss."""
    distinct = {preparation(column.computation): column.computation for column in columns}
    made = {each: c.vectors(q, k) for each, c in distinct.items()}
    loss = [side.mT for side in loss]
    return Group(draws, q, k, made, [stored(loss[0], p.precision), loss[1]] if loss else [])


def _rows(group: Group, p: Parameters) -> Iterator[slice]:
    """Return the queries of a group, as many at a time as a block holds."""
    return (rows for _, rows in tally.blocks(tally.Shape(len(group.q), p.n_queries, p.n_keys)))


def _counted(p: Parameters, logits: FloatArray, hidden: BoolArray | None) -> FloatArray:
    """Return the visible logits without, in rounded formats, infinite ones and those of NaN rows."""
    if p.precision not in ROUNDED or np.isfinite(logits).all():
        return logits if hidden is None else logits[~hidden]
    counted = np.isfinite(logits)
    counted &= ~nan_rows(logits, hidden, p.sink != "none")[..., np.newaxis]
    if hidden is not None:
        counted &= ~hidden
    return logits[counted]


def _logits(
    c: Computation, group: Group, rows: slice, scores: dict[Preparation, FloatArray], known: FloatArray | None = None
) -> tuple[FloatArray, Terms]:
    """Return the logits (draws, rows, keys) of some queries, unless known, and their terms.

    `scores` keeps those of the same vectors from one column to the next.
    """
    made = preparation(c)
    q, k = group.vectors[made]
    terms = c.terms((len(q), rows.stop - rows.start, k.shape[1]), rows=rows)
    if known is not None:
        return known, terms
    if made not in scores:
        scores[made] = c.scores(q[:, rows], k)
    return c.logits(scores[made], terms), terms


def _backward(c: Computation, terms: Terms, group: Group, rows: slice, logits: FloatArray) -> tally.Backward:
    """Return the backward pass to some queries of a group, through the rounded keys; rounding passes gradients on."""
    v, g = group.loss
    q, k = group.q[:, rows], group.vectors[preparation(c)][1]
    by = np.asarray(terms.multiplier)[..., 0]
    slopes = None if c.softcap is None else softcap_slopes(logits, c.softcap)

    def norms(gradients: LogitGradients, _: int, r: slice) -> FloatArray:
        if slopes is not None:
            np.multiply(gradients.entries, slopes[:, r].reshape(gradients.entries.shape), out=gradients.entries)
        norms = query_gradient_norms(gradients, c.factor, k, q[:, r], c.mechanism, c.learned, c.norms[0], c.gain)
        return norms * np.broadcast_to(part_of(by, slice(None), r), q[:, r].shape[:2]).ravel()

    return tally.Backward(g[:, rows], v, norms)
