"""Measurements whose logits are multiples of one dot product; its moments are known, so one pass is enough."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from ..statistics import tally
from .sampling import CHUNK, Draws, chunks, components
from .scoring import (
    LOSS,
    STRIDE,
    MatrixFactors,
    dtype_of,
    factors_of,
    gradient_norms,
    hidden,
    kept_draws,
    loss_of,
    one_draw,
    sides,
)


def from_cache(p: Parameters, draws: Draws, kept: tally.Tally, gradients: bool) -> Iterator[tuple[float, float]]:
    """Tally the scores of kept components, block by block; yield the finished fraction and the draws done."""
    done, total = 0, p.batch * p.n_queries
    group, factors, backward = slice(0, 0), None, None
    scratch = np.empty(0, dtype=dtype_of(p))
    for which, rows in tally.blocks(kept.shape):
        if factors is None or which != group:
            group, factors = which, factors_of(p, kept_draws(p, sides(p), draws, which))
            if gradients:
                backward = _backward(p, kept, factors.k, kept_draws(loss_of(p), LOSS, draws.loss, which))
        shape = (which.stop - which.start, rows.stop - rows.start, p.n_keys)
        if scratch.size < math.prod(shape):
            scratch = np.empty(math.prod(shape), dtype=dtype_of(p))
        scores = _scores(factors, rows, scratch[: math.prod(shape)].reshape(shape))
        offsets = None if factors.of_query is None else factors.of_query[:, rows]
        tally.add(kept, which, rows, scores, hidden(p, rows), offsets, _of_rows(backward, rows))
        done += shape[0] * shape[1]
        yield done / total, done / p.n_queries


def draw_by_draw(p: Parameters, kept: tally.Tally, gradients: bool) -> Iterator[tuple[float, float]]:
    """Do the same one draw at a time: scores grow over the columns from components that are not kept.

    Only the keys of one draw are kept, because gradients need all their columns again.
    """
    shape = tally.Shape(1, p.n_queries, p.n_keys)
    strides, parts = range(0, p.d_k, STRIDE), sum(1 for _ in tally.blocks(shape))
    steps, step = p.batch * (len(strides) * (len(sides(p)) + parts) + parts), 0
    keys = np.empty((1, p.d_k, p.n_keys), dtype_of(p)) if gradients else None
    for draw in range(p.batch):
        scores = np.zeros((1, p.n_queries, p.n_keys), dtype_of(p))
        offsets = backward = None
        for first in strides:
            last = min(first + STRIDE, p.d_k)
            raw: list[FloatArray] = []
            for side in sides(p):
                made = [components(p, side, draw, c) for c in range(first // CHUNK, chunks(last))]
                raw.append(np.concatenate(made)[np.newaxis, : last - first].astype(dtype_of(p), copy=False))
                step += 1
                yield step / steps, draw
            factors = factors_of(p, raw)
            if keys is not None:
                keys[:, first:last] = factors.k
            for _, rows in tally.blocks(shape):
                scores[:, rows] += _scores(factors, rows, np.empty_like(scores[:, rows]))
                step += 1
                yield step / steps, draw
            if factors.of_query is not None:
                offsets = factors.of_query if offsets is None else offsets + factors.of_query
        if keys is not None:
            backward = _backward(p, kept, keys, one_draw(loss_of(p), LOSS, draw))
        for _, rows in tally.blocks(shape):
            of_rows = None if offsets is None else offsets[:, rows]
            where = slice(draw, draw + 1), rows
            tally.add(kept, *where, scores[:, rows], hidden(p, rows), of_rows, _of_rows(backward, rows))
            step += 1
            yield step / steps, draw + rows.stop / p.n_queries


def _scores(factors: MatrixFactors, rows: slice, out: FloatArray) -> FloatArray:
    """Return the scores (draws, rows, keys) of some queries, minus their mean and `of_query`."""
    np.matmul(factors.q[:, :, rows].mT, factors.k, out=out)
    if factors.of_key is not None:
        out += factors.of_key
    return out


def _backward(p: Parameters, kept: tally.Tally, keys: FloatArray, loss: list[FloatArray]) -> tally.Backward:
    """Return the backward pass to all queries of some draws; `keys` (draws, d, keys) are standardised.

    Without a sink, a row of ∂L/∂z sums to 0, so the mean of the keys makes no difference.
    """
    v, g = (side.mT for side in loss)
    unit = p.std_k
    if kept.sink is not None and p.mean_k:
        keys, unit = keys * keys.dtype.type(p.std_k) + keys.dtype.type(p.mean_k), 1.0
    keys = keys.mT
    return tally.Backward(
        g, v, lambda gradients, rule, _: gradient_norms(gradients, unit * kept.rules[rule][1], keys)
    )


def _of_rows(backward: tally.Backward | None, rows: slice) -> tally.Backward | None:
    """Return the backward pass to some of the queries."""
    return None if backward is None else tally.Backward(backward.g[:, rows], backward.v, backward.query_norms)
