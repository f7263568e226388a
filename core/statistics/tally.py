"""Blocks of scores in, one measurement out, however the blocks were cut.

A block is as large as a cache; what is kept of it is a few numbers per row and the counts of its histograms, so
memory does not grow with the number of scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import BoolArray, Counts, FloatArray
from ..attention.softmax import ShiftedRows, exponentials, row_statistics, row_sums, shift_rows
from .histogram import Axis, Histogram, count, histogram
from .measurement import Column, HistogramName
from .summary import ScoreMoments, estimates, sums_of_scores

# Entries of scores that are made at once: a product of matrices wants them large.
BLOCK = 1 << 20
# Entries worked on at once: with its two companions such a piece stays in a core's second-level cache.
PIECE = 1 << 17
# Entries that the histograms of logits and of weights count at most, as whole rows spread evenly over all draws:
# a picture has a few hundred columns, and counting is dearer than everything else done to an entry.
COUNTED = 1 << 17
WEIGHTS = Axis(-12.0, 0.0, 240, log10=True)
JACOBIAN = Axis(0.0, 0.5, 200)  # ½, of two equal weights, is the largest ‖J‖_F there is


@dataclass(frozen=True)
class Shape:
    """How many scores there are: independent draws, rows of each, keys of each row."""

    draws: int
    rows: int
    keys: int

    @property
    def every(self) -> int:
        """Of how many rows one is counted in the histograms of logits and weights."""
        return math.ceil(self.draws * self.rows * self.keys / COUNTED)


@dataclass(eq=False)
class Tally:
    """What is kept of the blocks seen so far; `add` fills it, `columns` reads it.

    centre is what has been subtracted from every score; band the half-width of ±3σ about it (NaN where σ does not
    exist); axis where scores less the centre are counted; rules pairs of a rule's name and its multiplier.
    """

    shape: Shape
    rules: Sequence[tuple[str, float]]
    centre: float
    band: float
    axis: Axis
    visible: FloatArray = field(init=False)  # (draws, rows) keys that each row sees
    largest: FloatArray = field(init=False)  # (draws, rows) scores less the centre, as is `smallest`
    smallest: FloatArray = field(init=False)
    powers: FloatArray = field(init=False)  # (4, draws, rows), sums of the first four powers of s − max s
    inside: FloatArray = field(init=False)  # (draws,)
    sums: FloatArray = field(init=False)  # (rules, 5, draws, rows), the row_sums of softmax
    scores: Counts = field(init=False)  # (bins + 2,)
    weights: Counts = field(init=False)  # (rules, bins + 2)
    scratch: list[FloatArray] = field(init=False)  # two arrays that blocks are worked on in

    def __post_init__(self) -> None:
        draws, rows = self.shape.draws, self.shape.rows
        self.visible, self.largest, self.smallest = np.zeros((3, draws, rows))
        self.powers = np.zeros((4, draws, rows))
        self.inside = np.zeros(draws)
        self.sums = np.zeros((len(self.rules), 5, draws, rows))
        self.scores = np.zeros(self.axis.bins + 2, dtype=np.int64)
        self.weights = np.zeros((len(self.rules), WEIGHTS.bins + 2), dtype=np.int64)
        self.scratch = []


def blocks(shape: Shape, size: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Slices (draws, rows) that cover every row once, each of about `size` entries: several draws, or part of one."""
    per_draw = shape.rows * shape.keys
    if per_draw <= size:
        step = size // per_draw
        for first in range(0, shape.draws, step):
            yield slice(first, min(first + step, shape.draws)), slice(0, shape.rows)
    else:
        step = max(size // shape.keys, 1)
        for draw in range(shape.draws):
            for first in range(0, shape.rows, step):
                yield slice(draw, draw + 1), slice(first, min(first + step, shape.rows))


def add(tally: Tally, draws: slice, rows: slice, scores: FloatArray, hidden: BoolArray | None = None) -> None:
    """Take in one block.

    scores (draws, rows, keys), less the tally's centre, is overwritten; hidden broadcasts to its shape and marks
    keys that a row may not see.
    """
    if hidden is not None:
        hidden = np.broadcast_to(hidden, scores.shape)
    for d, r in blocks(Shape(*scores.shape), PIECE):
        where = (
            slice(draws.start + d.start, draws.start + d.stop),
            slice(rows.start + r.start, rows.start + r.stop),
        )
        _add_piece(tally, *where, scores[d, r], None if hidden is None else hidden[d, r])


def _add_piece(tally: Tally, draws: slice, rows: slice, scores: FloatArray, hidden: BoolArray | None) -> None:
    """Take in a piece of a block, as `add` does."""
    piece = scores.shape[:2]
    flat = scores.reshape(-1, scores.shape[-1])
    if hidden is not None:
        hidden = hidden.reshape(flat.shape)
    if not math.isnan(tally.band):
        tally.inside[draws] += _inside(flat, hidden, tally.band, piece[0])
    counted = _counted(tally.shape, draws, rows)
    if counted is not None:
        tally.scores += count(_visible(flat[counted], hidden, counted), tally.axis)
    powers, squares = _scratch(tally, flat)
    shifted = shift_rows(flat, hidden)
    tally.visible[draws, rows] = shifted.visible.reshape(piece)
    tally.largest[draws, rows] = shifted.largest.reshape(piece)
    tally.smallest[draws, rows] = shifted.smallest.reshape(piece)
    tally.powers[:, draws, rows] = _power_sums(shifted, squares).reshape(-1, *piece)
    for index, (_, multiplier) in enumerate(tally.rules):
        sums = row_sums(exponentials(shifted, multiplier, powers), shifted, squares)
        tally.sums[index, :, draws, rows] = sums.reshape(-1, *piece)
        if counted is not None:
            log10_p = flat[counted] * flat.dtype.type(multiplier / _LN10)
            log10_p -= (np.log1p(sums[1, counted]) / flat.dtype.type(_LN10))[:, np.newaxis]
            tally.weights[index] += count(_visible(log10_p, hidden, counted), WEIGHTS)


def columns(tally: Tally, draws: int, unbiased: bool) -> tuple[Column, ...]:
    """The columns of a measurement from the first so many draws, all of whose blocks must be in."""
    moments = _moments(tally, draws)
    score_sums = sums_of_scores(moments)
    about_zero = replace(tally.axis, low=tally.axis.low + tally.centre, high=tally.axis.high + tally.centre)
    logits = histogram(tally.scores, about_zero)
    entropies = Axis(0.0, math.log(tally.shape.keys) or 1.0, 200)
    seen = moments.visible > 0
    result: list[Column] = []
    for (rule, multiplier), sums, weights in zip(tally.rules, tally.sums, tally.weights, strict=True):
        rows = row_statistics(sums[:, :draws], moments.visible, multiplier)
        histograms: dict[HistogramName, Histogram] = {
            "logits": logits.scaled(multiplier),
            "weights": histogram(weights, WEIGHTS),
            "entropy": histogram(count(rows.entropy[seen], entropies), entropies),
            "jacobian_norm": histogram(count(np.sqrt(rows.jacobian_norm_squared[seen]), JACOBIAN), JACOBIAN),
        }
        measured = estimates(moments, score_sums, rows, multiplier, unbiased)
        result.append(Column(rule, multiplier, measured, histograms))
    return tuple(result)


_LN10 = math.log(10)


def _scratch(tally: Tally, like: FloatArray) -> list[FloatArray]:
    """Two arrays of a block's shape, the same memory for every block: fresh memory costs more than the arithmetic."""
    if not tally.scratch or tally.scratch[0].size < like.size:
        tally.scratch = [np.empty(like.size, like.dtype) for _ in range(2)]
    return [each[: like.size].reshape(like.shape) for each in tally.scratch]


def _power_sums(shifted: ShiftedRows, squares: FloatArray) -> FloatArray:
    """Sums of the first four powers of s − max s in each row; shape (4, rows).

    They are taken in the scores' own precision: the largest score is only a few standard deviations away, so
    that central moments lose no digits that matter, wherever the scores lie.
    """
    below = shifted.below
    np.multiply(below, below, out=squares)
    sums = np.empty((4, len(below)), below.dtype)
    np.matmul(below, np.ones(below.shape[1], below.dtype), out=sums[0])
    np.vecdot(below, below, out=sums[1])
    np.vecdot(squares, below, out=sums[2])
    np.vecdot(squares, squares, out=sums[3])
    return sums


def _moments(tally: Tally, draws: int) -> ScoreMoments:
    """The moments of each row's scores in the first so many draws."""
    visible = tally.visible[:draws]
    e1, e2, e3, e4 = tally.powers[:, :draws] / np.maximum(visible, 1)
    return ScoreMoments(
        visible=visible,
        mean=tally.largest[:draws] + e1,
        m2=e2 - e1 * e1,
        m3=e3 - e1 * (3 * e2 - 2 * e1 * e1),
        m4=e4 - e1 * (4 * e3 - e1 * (6 * e2 - 3 * e1 * e1)),
        smallest=tally.smallest[:draws],
        largest=tally.largest[:draws],
        inside=None if math.isnan(tally.band) else tally.inside[:draws],
        centre=tally.centre,
    )


def _inside(scores: FloatArray, hidden: BoolArray | None, band: float, draws: int) -> list[int]:
    """How many visible scores (rows, n) of each draw lie within ±band of the centre."""
    inside = scores >= scores.dtype.type(-band)
    inside &= scores <= scores.dtype.type(band)
    if hidden is not None:
        inside &= ~hidden
    return [int(np.count_nonzero(each)) for each in inside.reshape(draws, -1)]


def _visible(values: FloatArray, hidden: BoolArray | None, counted: slice) -> FloatArray:
    """The values (counted rows, n) without those that are hidden."""
    return values if hidden is None else values[~hidden[counted]]


def _counted(shape: Shape, draws: slice, rows: slice) -> slice | None:
    """Which rows of a block are counted in the histograms: of all rows of all draws, every so many."""
    first = draws.start * shape.rows + rows.start
    last = (draws.stop - 1) * shape.rows + rows.stop
    skip = -first % shape.every
    return slice(skip, None, shape.every) if first + skip < last else None
