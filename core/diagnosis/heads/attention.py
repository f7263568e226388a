"""The attention weights of a captured head: all of them in cells, or one row under several rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.computation import Computation
from ...attention.softmax import softmax, softmax_of, weight_statistics
from ...captures.blocks import rounded_row
from ...captures.capture import Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile, HeadData, read_head
from ...captures.rules import Rule, computation, file_rule, shown_multiplier
from ...message import message, plain
from ...statistics.catalogue import DEAD
from ..results import AttentionCells, AttentionRow, RowColumn
from ..subject import Indices
from .rows import Rows, logits, rows_at, scores, variance

LISTED = 256  # keys of a row that are listed
_BLOCK = 1 << 20  # scores computed at a time
_FEW = 2  # queries of each row of cells in a rough matrix
_MOST = 1 << 27  # scores above which a matrix stays rough
_STEPS = 60  # of bisection


def attention_matrix(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    rule: Rule,
    text: int,
    queries: tuple[int, int],
    keys: tuple[int, int],
    down: int,
    across: int,
) -> Iterator[AttentionCells | None]:
    """Yield the weights of a range of queries and keys in at most `down` × `across` cells; None between answers.

    A large matrix comes twice: rough, from a few queries of each cell, then exact; a very large one only rough. Raise
    CaptureError if the head cannot be read or the text does not exist.
    """
    data = read_head(capture, layer, head)
    if not 0 <= text < layer.batch:
        raise CaptureError(
            "{path}: layer {index} has texts 0 to {batch}, not {text}",
            path=plain(capture.path),
            index=layer.index,
            batch=layer.batch - 1,
            text=text,
        )
    below, beside = _edges(queries, down), _edges(keys, across)
    count = layer.keys * (queries[1] - queries[0])

    def found(shares: FloatArray, rough: bool) -> AttentionCells:
        lines = [tuple(None if math.isnan(x) else x for x in line) for line in shares.tolist()]
        positions = tuple(data.positions[list(below[:-1])].tolist())
        return AttentionCells(layer.position, head, text, below, beside, positions, tuple(lines), rough)

    longest = max(end - first for first, end in pairwise(below))
    steps = [max(longest // _FEW, 1)] if count > _BLOCK else []
    steps += [1] if count <= _MOST and 1 not in steps else []
    for step in steps:
        for shares in _cells(data, layer, rule, text, below, beside, step):
            yield None if shares is None else found(shares, step > 1)


def _edges(ends: tuple[int, int], most: int) -> tuple[int, ...]:
    """Return the first index of each of at most `most` parts as equal as possible, and the end."""
    first, end = ends
    count = min(max(most, 1), end - first)
    return tuple(first + (end - first) * number // count for number in range(count + 1))


def _cells(
    data: HeadData, layer: Layer, rule: Rule, text: int, below: Sequence[int], beside: Sequence[int], step: int
) -> Iterator[FloatArray | None]:
    """Yield None between blocks of queries, then mean weights of every `step`-th query; NaN where all is hidden."""
    places = np.array(beside[:-1], np.intp)
    sums = np.zeros((len(below) - 1, len(places)))
    seen = np.zeros(sums.shape, np.bool_)
    most = max(_BLOCK // layer.keys, 1) * step
    for number, (first, end) in enumerate(pairwise(below)):
        count = 0
        for start in range(first, end, most):
            rows = rows_at(data, layer, slice(text, text + 1), slice(start, min(start + most, end), step))
            p = softmax(_finite_logits(rows, rule), rows.terms.hidden, data.sink)[0, :, : beside[-1]]
            sums[number] += np.add.reduceat(p, places, axis=1)[rows.used[0]].sum(axis=0)
            count += int(np.count_nonzero(rows.used))
            if rows.seen is None:
                seen[number] = True
            else:
                shown: BoolArray = np.any(rows.seen[0, :, : beside[-1]], axis=0)
                seen[number] |= np.logical_or.reduceat(shown, places)
            if p.size > _BLOCK // 4:
                yield None
        sums[number] /= max(count, 1)
    yield np.where(seen, sums, np.nan)


def _finite_logits(rows: Rows, rule: Rule) -> FloatArray:
    """Return the logits of these rows; raise CaptureError if a visible one overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = logits(rows, rule)
    if not (np.isfinite(z) | ~rows.visible).all():
        raise CaptureError("layer {index}: logits overflow float64", index=rows.layer.index)
    return np.where(rows.visible, z, 0)


def attention_row(
    capture: CaptureFile, layer: Layer, head: int, rules: Sequence[Rule], text: int, query: int
) -> AttentionRow:
    """Return one query's attention under each rule. Raise CaptureError if the head or row cannot be read."""
    data = read_head(capture, layer, head)
    if not (0 <= text < layer.batch and 0 <= query < layer.queries):
        where = message(
            "{path}: layer {index} has {batch} texts of {queries} queries",
            path=plain(capture.path),
            index=layer.index,
            batch=layer.batch,
            queries=layer.queries,
        )
        raise CaptureError("{where}; there is no query {query} of text {text}", where=where, query=query, text=text)
    row = rows_at(data, layer, slice(text, text + 1), slice(query, query + 1))
    every = [_computed_row(row, rule, text, query) for rule in rules]
    most = np.max([np.nan_to_num(p[0, 0]) for _, p, _ in every], axis=0)
    shown = np.broadcast_to(row.visible, (1, 1, layer.keys))[0, 0]
    count = int(row.counts[0, 0])
    best = np.argsort(np.where(shown, -most, np.inf), kind="stable")[: min(LISTED, count)]
    listed = np.sort(best)
    columns = [_column(rule, row, *at_row, listed) for rule, at_row in zip(rules, every, strict=True)]
    return AttentionRow(
        layer.position,
        head,
        query,
        int(data.positions[query]),
        count,
        tuple(listed.tolist()),
        tuple(columns),
        _threshold(row, computation(rules[-1], layer, data)),
    )


def _computed_row(row: Rows, rule: Rule, text: int, query: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the logits and weights (1, 1, keys) of a single row under a rule, and its sink's share (1, 1)."""
    if rule.computed.is_exact:
        z = _finite_logits(row, rule)
        weights = softmax_of(z, row.terms.hidden, row.data.sink)
        return z, weights.weights, weights.sink
    z, weights = rounded_row(row.data, computation(rule, row.layer, row.data), text, query)
    return z.astype(np.float64), weights.weights.astype(np.float64), weights.sink


def _column(rule: Rule, row: Rows, z: FloatArray, p: FloatArray, sink: FloatArray, listed: Indices) -> RowColumn:
    is_nan = bool(np.isnan(p).any())
    p = np.where(np.isnan(p), 0, p)
    finite = np.isfinite(z) & row.visible
    hidden = None if row.terms.hidden is None else row.terms.hidden[0]
    statistics = weight_statistics(p[0], row.counts[0], hidden)
    weights: FloatArray = p[0, 0][listed]
    jacobian = math.sqrt(max(float(statistics.jacobian_norm_squared[0]), 0.0))
    count = int(np.count_nonzero(finite))
    deviation = float(z[finite].std()) if count else 0.0
    return RowColumn(
        rule=rule.name,
        multiplier=shown_multiplier(rule, row.layer, row.data),
        weights=tuple(weights.tolist()),
        rest=max(float(p.sum() - weights.sum()), 0.0),
        sink=None if row.data.sink is None else float(np.nan_to_num(sink[0, 0])),
        entropy=float(statistics.entropy[0]),
        jacobian=jacobian,
        dead=jacobian < DEAD,
        saturation=deviation / math.sqrt(2 * math.log(count)) if count > 1 else None,
        apart=rule.computed.apart,
        is_nan=is_nan,
    )


def _threshold(row: Rows, c: Computation) -> float | None:
    """Return the multiplier of q·k, without stored factors, at which σ of the row's logits is √(2 ln n).

    Without soft-cap and bias σ is proportional to it. With them, it is the root nearest to the file's multiplier.
    """
    count, layer = int(row.counts[0, 0]), row.layer
    if count < 2:
        return None
    products = scores(row, "none") / layer.own_factor
    saturated, spread = math.sqrt(2 * math.log(count)), math.sqrt(variance(products, row.seen)[0, 0])
    if spread == 0:
        return None
    simple = saturated / spread
    if c.softcap is None and not row.terms.biases:
        return simple
    exact = replace(c, precision="float64")

    def excess(exponent: float) -> float:
        z = exact.logits(products, row.terms._replace(multiplier=simple * math.exp(exponent)))
        return math.sqrt(variance(z, row.seen)[0, 0]) - saturated

    stored = shown_multiplier(file_rule(layer), layer, row.data)
    root = _root(excess, math.log(stored / simple))
    return None if root is None else simple * math.exp(root)


def _root(f: Callable[[float], float], near: float) -> float | None:
    """Return the root of f nearest to `near`, among those within ±12 that a grid of step 0.25 separates."""
    grid = np.arange(-12.0, 12.25, 0.25).tolist()
    values = [f(x) for x in grid]
    crossings = [(a, b) for a, b, u, v in zip(grid, grid[1:], values, values[1:], strict=False) if (u < 0) != (v < 0)]
    if not crossings:
        return None
    low, high = min(crossings, key=lambda ends: abs(sum(ends) / 2 - near))
    rising = f(low) < 0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (f(middle) < 0) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
