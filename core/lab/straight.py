"""Questions whose logits are multiples of one dot product: its law is known, so that one pass serves all columns."""

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
    Factors,
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
    """Blocks of scores from kept components; yields the part of the work and the draws that are done."""
    done, total = 0, p.batch * p.n_queries
    group, factors, way = slice(0, 0), None, None
    scratch = np.empty(0, dtype=dtype_of(p))
    for which, rows in tally.blocks(kept.shape):
        if factors is None or which != group:
            group, factors = which, factors_of(p, kept_draws(p, sides(p), draws, which))
            if gradients:
                way = _backward(p, kept, factors.k, kept_draws(loss_of(p), LOSS, draws.loss, which))
        shape = (which.stop - which.start, rows.stop - rows.start, p.n_keys)
        if scratch.size < math.prod(shape):
            scratch = np.empty(math.prod(shape), dtype=dtype_of(p))
        scores = _scores(factors, rows, scratch[: math.prod(shape)].reshape(shape))
        offsets = None if factors.of_query is None else factors.of_query[:, rows]
        tally.add(kept, which, rows, scores, hidden(p, rows), offsets, _of_rows(way, rows))
        done += shape[0] * shape[1]
        yield done / total, done / p.n_queries


def draw_by_draw(p: Parameters, kept: tally.Tally, gradients: bool) -> Iterator[tuple[float, float]]:
    """Scores of one draw at a time, grown over the columns from components that are made and forgotten.

    Gradients need all columns of the keys again: those of one draw are kept.
    """
    shape = tally.Shape(1, p.n_queries, p.n_keys)
    strides, parts = range(0, p.d_k, STRIDE), sum(1 for _ in tally.blocks(shape))
    steps, step = p.batch * (len(strides) * (len(sides(p)) + parts) + parts), 0
    keys = np.empty((1, p.d_k, p.n_keys), dtype_of(p)) if gradients else None
    for draw in range(p.batch):
        scores = np.zeros((1, p.n_queries, p.n_keys), dtype_of(p))
        offsets = way = None
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
            way = _backward(p, kept, keys, one_draw(loss_of(p), LOSS, draw))
        for _, rows in tally.blocks(shape):
            own = None if offsets is None else offsets[:, rows]
            where = slice(draw, draw + 1), rows
            tally.add(kept, *where, scores[:, rows], hidden(p, rows), own, _of_rows(way, rows))
            step += 1
            yield step / steps, draw + rows.stop / p.n_queries


def _scores(factors: Factors, rows: slice, out: FloatArray) -> FloatArray:
    """The scores of some queries less their mean and their part of `of_query`; (draws, rows, keys)."""
    np.matmul(factors.q[:, :, rows].mT, factors.k, out=out)
    if factors.of_key is not None:
        out += factors.of_key
    return out


def _backward(p: Parameters, kept: tally.Tally, keys: FloatArray, loss: list[FloatArray]) -> tally.Backward:
    """The way back to all queries of some draws, for keys (draws, d, keys) less their mean and in units of σ_k.

    Without a sink a row of ∂L/∂z sums to 0, so that a mean of the keys makes no difference.
    """
    v, g = (side.mT for side in loss)
    unit = p.std_k
    if kept.sink is not None and p.mean_k:
        keys, unit = keys * keys.dtype.type(p.std_k) + keys.dtype.type(p.mean_k), 1.0
    keys = keys.mT
    return tally.Backward(
        g, v, lambda found, rule, draws, _: gradient_norms(found, unit * kept.rules[rule][1], keys[draws])
    )


def _of_rows(way: tally.Backward | None, rows: slice) -> tally.Backward | None:
    """The way back to some of the queries."""
    return None if way is None else tally.Backward(way.g[:, rows], way.v, way.query_norms)
