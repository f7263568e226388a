"""Add blocks of scores to a tally; the block size does not matter. `reading` reads a measurement from it.

A block is processed in cache-sized pieces. The tally keeps only a few sums for each draw and the counts of its
histograms, so its memory depends neither on the number of scores nor on the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, Counts, FloatArray
from ..attention.row_gradients import LogitGradients, Upstream, logit_gradients, upstream, weight_gradients
from ..attention.softmax import (
    ShiftedRows,
    Softmax,
    logits_below,
    row_statistics,
    row_sums,
    shift_rows,
    sink_power,
)
from .counting import Chosen, count, count_inside, counted_rows
from .histogram import Axis
from .measurement import HISTOGRAMS, HistogramName
from .rounded_rows import RoundedResults, RoundedRows, clear_infinite, rounded_rows
from .summary import Sums, power_sums, row_moments, sums_of_rows, sums_of_scores

# Entries of scores computed at once: matrix products are most efficient when large.
BLOCK = 1 << 20
# Entries processed at once: fewer cost more calls, and more miss the caches.
PIECE = 1 << 18
# The most entries that the histograms of logits and of weights count, in whole rows spread evenly over all draws: a
# plot has a few hundred columns, and counting an entry costs more than all other work on it.
COUNTED = 1 << 16
# The most rows of a draw whose gradients are computed, spread evenly over it: each costs as much as its scores.
DIFFERENTIATED = 256
WEIGHTS = Axis(-12.0, 0.0, 240, log10=True)
JACOBIAN = Axis(0.0, 0.5, 200)  # the largest ‖J‖_F is ½, of two equal weights
GRADIENTS = Axis(-8.0, 4.0, 240, log10=True)
_ORDINARY = 20  # the largest power of two, and minus the smallest, of scores whose fourth powers are safe in float32


@dataclass(frozen=True)
class Shape:
    """The number of independent draws, rows of each draw, and keys of each row."""

    draws: int
    rows: int
    keys: int

    @property
    def every(self) -> int:
        """The size of the groups of rows of which the histograms of logits and weights count one row each."""
        return math.ceil(self.draws * self.rows * self.keys / COUNTED)

    @property
    def differentiated(self) -> slice:
        """The rows of a draw whose gradients are computed."""
        step = math.ceil(self.rows / DIFFERENTIATED)
        return slice(step // 2, None, step)


@dataclass(eq=False)
class Tally:
    """The accumulated sums and counts; `add` fills it, `reading.columns` reads it.

    `centre` has been subtracted from every score; `band` is the half-width of ±3σ about it (NaN if σ does not exist);
    `axis` counts scores minus the centre; `rules` are pairs of a rule's name and its multiplier; `sink` is the logit
    of the attention sink.
    """

    shape: Shape
    rules: Sequence[tuple[str, float]]
    centre: float
    band: float
    axis: Axis
    sink: float | None = None
    held: slice = field(default_factory=lambda: slice(0, 0))  # the draws whose sums are held; by default all
    histograms: Collection[HistogramName] = HISTOGRAMS  # those that are counted
    smallest: float = math.inf  # score minus the centre, like `largest`
    largest: float = -math.inf
    score_sums: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])
    row_sums: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])  # (rules, draws held)
    counts: dict[tuple[HistogramName, int], Counts] = field(init=False)  # by rule; scores under rule 0
    gradient_norms: FloatArray | None = None  # ‖∂L/∂q‖ (rules, draws, rows measured), NaN if unseen
    scratch: list[FloatArray] = field(default_factory=list[FloatArray])  # reused by pieces

    def __post_init__(self) -> None:
        self.held = self.held if self.held.stop else slice(0, self.shape.draws)
        self.counts = {
            (name, rule): np.zeros(axis.bins + 2, np.int64)
            for name, axis in self.axes.items()
            for rule in range(1 if name == "logits" else len(self.rules))
        }

    @cached_property
    def axes(self) -> Mapping[HistogramName, Axis]:
        """The axes of the histograms counted."""
        axes: dict[HistogramName, Axis] = {"logits": self.axis, "weights": WEIGHTS, "entropy": self.entropies}
        axes["jacobian_norm"] = JACOBIAN
        return {name: axis for name, axis in axes.items() if name in self.histograms}

    @cached_property
    def unit(self) -> float:
        """1, or a power of two near the largest scores if the fourth powers of such scores leave float32's range."""
        exponent = math.frexp(self.axis.high)[1]
        return 1.0 if abs(exponent) <= _ORDINARY else math.ldexp(1, exponent)

    @property
    def entropies(self) -> Axis:
        """The axis from 0 to ln n."""
        return Axis(0.0, math.log(self.shape.keys) or 1.0, 200)


@dataclass(frozen=True, eq=False)
class Backward:
    """The backward pass of a loss L = Σ G∘O to the queries of a block."""

    g: FloatArray  # (draws, rows, d_v) ∂L/∂O
    v: FloatArray  # (draws, keys, d_v) values
    # Called with ∂L/∂z under a rule, the rule's index, draws and rows of the block; returns ‖∂L/∂q‖ of each row.
    query_norms: Callable[[LogitGradients, int, slice, slice], FloatArray]


class _GradientRows(NamedTuple):
    """The rows of a piece whose gradients are computed."""

    backward: Backward
    draws: slice  # of the block
    rows: slice  # of each of these draws
    chosen: Chosen  # their indices among the rows of the piece


class _Piece(NamedTuple):
    """Some rows of a block."""

    draws: slice  # of the block
    rows: slice  # of all rows of the block
    scores: FloatArray  # (rows, keys) minus the centre
    hidden: BoolArray | None  # (rows, keys)
    offsets: FloatArray | None  # (rows,)
    counted: npt.NDArray[np.intp] | None  # the rows that the histograms of logits and weights count
    gradients: _GradientRows | None
    rounded: RoundedRows | None


class _RowResults(NamedTuple):
    """Row results of one block, filled piece by piece; arrays end in (rows,)."""

    precision: float  # of the scores: the spacing of numbers at 1
    offsets: FloatArray | float  # (draws, rows) still to be added to the scores
    inside: FloatArray  # (draws,) the visible scores within the band
    visible: FloatArray  # keys whose scores are added; (1,) if none is hidden
    smallest: FloatArray  # minus the centre, offset included, like `largest`
    largest: FloatArray
    powers: FloatArray  # (4, rows) sums of the first four powers of the scores minus the centre
    sums: FloatArray  # (5, rules, rows) `softmax.row_sums`
    gradients: FloatArray | None  # (rules, rows) ‖∂L/∂q‖, NaN where not computed
    rounded: RoundedResults | None


def blocks(shape: Shape, size: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Yield slices (draws, rows) that cover every row once, of about `size` entries: several draws or part of one."""
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


def add(
    tally: Tally,
    draws: slice,
    rows: slice,
    scores: FloatArray,
    hidden: BoolArray | None = None,
    offsets: FloatArray | None = None,
    backward: Backward | None = None,
    rounded: Softmax | None = None,
) -> None:
    """Add one block.

    `scores` (draws, rows, keys), minus the tally's centre, is overwritten; `hidden` broadcasts to its shape and marks
    masked keys. `offsets` (draws, rows, 1) is still to be added to all scores of a row: softmax ignores it, and
    adding it to the scores would cost precision. `backward`, of the same draws and rows, is given with every block or
    with none.

    `rounded` are the rows' weights in a number format, not computed from the scores, which are the logits of the
    tally's single rule. Infinite scores and NaN rows are left out of all statistics.
    """
    block = Shape(*scores.shape)
    masked = hidden = None if hidden is None else np.broadcast_to(hidden, scores.shape)
    if rounded is not None:
        hidden = clear_infinite(scores, rounded, hidden)
    total, rules = block.draws * block.rows, len(tally.rules)
    results = _RowResults(
        precision=float(np.finfo(scores.dtype).eps),
        offsets=0.0 if offsets is None else offsets[..., 0].astype(np.float64),
        inside=np.zeros(block.draws),
        visible=np.full(1 if hidden is None else total, float(block.keys)),
        smallest=np.empty(total),
        largest=np.empty(total),
        powers=np.empty((4, total)),
        sums=np.empty((5, rules, total)),
        gradients=None if backward is None else np.full((rules, total), np.nan),
        rounded=None if rounded is None else RoundedResults.empty(total),
    )
    for d, r in blocks(block, PIECE):
        first = (draws.start + d.start) * tally.shape.rows + rows.start + r.start
        at = d.start * block.rows + r.start
        own = None if offsets is None else offsets[d, r]
        flat = scores[d, r].reshape(-1, block.keys)
        piece = _Piece(
            draws=d,
            rows=slice(at, at + len(flat)),
            scores=flat,
            hidden=None if hidden is None else hidden[d, r].reshape(flat.shape),
            offsets=None if own is None else own.ravel(),
            counted=counted_rows(tally.shape.every, first, len(flat)) if tally.counts else None,
            gradients=None if backward is None else _gradient_rows(tally.shape, backward, d, r, rows.start),
            rounded=None if rounded is None else rounded_rows(rounded, masked, d, r),
        )
        _add_piece(tally, results, piece)
    _reduce(tally, draws, rows, block, results)


def _gradient_rows(shape: Shape, backward: Backward, draws: slice, rows: slice, first: int) -> _GradientRows | None:
    """Select, from these draws and rows of a block, the rows whose gradients are computed; None if there are none.

    `first` is the number of the block's first row within the draw.
    """
    start, step = shape.differentiated.start, shape.differentiated.step
    skipped = (start - first - rows.start) % step
    length = rows.stop - rows.start
    if skipped >= length:
        return None
    chosen: Chosen = slice(skipped, None, step)
    if step > 1 and draws.stop - draws.start > 1:
        ends = length * np.arange(draws.stop - draws.start, dtype=np.intp)
        chosen = np.add.outer(ends, np.arange(skipped, length, step, dtype=np.intp)).reshape(-1)
    return _GradientRows(backward, draws, slice(rows.start + skipped, rows.stop, step), chosen)


def _add_piece(tally: Tally, results: _RowResults, piece: _Piece) -> None:
    """Process some rows of a block."""
    scores, hidden, counted, rows = piece.scores, piece.hidden, piece.counted, piece.rows
    logits, scratch, weights_gradient = _scratch(tally, scores)
    own = 0.0 if piece.offsets is None else piece.offsets
    draws = piece.draws.stop - piece.draws.start
    results.inside[piece.draws] += count_inside(tally.band, draws, scores, hidden, piece.offsets, logits)
    unseen = None if hidden is None or counted is None else hidden[counted]
    if hidden is not None:
        np.copyto(scores, 0, where=hidden)
    results.powers[:, rows] = power_sums(scores, tally.unit, logits, scratch)
    if counted is not None and ("logits", 0) in tally.counts:
        shift = 0.0 if piece.offsets is None else piece.offsets[counted, np.newaxis]
        tally.counts["logits", 0] += count(scores[counted], tally.axis, 1.0, shift, unseen)
    shifted = shift_rows(scores, hidden)
    if hidden is not None:
        results.visible[rows] = shifted.visible
    results.smallest[rows], results.largest[rows] = shifted.smallest + own, shifted.largest + own
    if piece.rounded is not None:
        _add_rounded(tally, results, piece, piece.rounded, shifted, weights_gradient)
        return
    received, some = None, shifted
    if piece.gradients is not None:
        received, some = _upstream(piece.gradients, shifted, weights_gradient)
    for index, (_, multiplier) in enumerate(tally.rules):
        sums = row_sums(logits_below(shifted, multiplier, logits), shifted, scratch)
        results.sums[:, index, rows] = sums
        sink = _above_largest(tally, multiplier, results.largest[rows])
        if piece.gradients is not None and received is not None:
            chosen, out = piece.gradients.chosen, logits[: len(some.below)]
            above = None if sink is None else sink[chosen]
            found = logit_gradients(some, multiplier, received, above, scratch[chosen], out)
            _add_norms(results, piece, index, found)
        if counted is not None and ("weights", index) in tally.counts:
            others = sums[1, counted] + (0.0 if sink is None else sink_power(sink[counted]))
            shift = np.log1p(others)[:, np.newaxis] / -_LN10
            tally.counts["weights", index] += count(scores[counted], WEIGHTS, multiplier / _LN10, shift, unseen)


def _add_norms(results: _RowResults, piece: _Piece, rule: int, found: LogitGradients) -> None:
    """Add ‖∂L/∂q‖ of the rows of a piece whose gradients are computed; NaN rows have none."""
    assert piece.gradients is not None
    assert results.gradients is not None
    chosen = piece.gradients.chosen
    norms = piece.gradients.backward.query_norms(found, rule, piece.gradients.draws, piece.gradients.rows)
    if piece.rounded is not None:
        norms = np.where(piece.rounded.failed[chosen], np.nan, norms)
    results.gradients[rule, piece.rows][chosen] = norms


def _upstream(gradients: _GradientRows, shifted: ShiftedRows, out: FloatArray) -> tuple[Upstream, ShiftedRows]:
    """Return ∂L/∂p of the rows whose gradients are computed, and these rows."""
    some, backward = shifted.only(gradients.chosen), gradients.backward
    g, v = backward.g[gradients.draws, gradients.rows], backward.v[gradients.draws]
    return upstream(g, v, some, out[: len(some.below)]), some


def _add_rounded(
    tally: Tally, results: _RowResults, piece: _Piece, found: RoundedRows, shifted: ShiftedRows, out: FloatArray
) -> None:
    """Add the statistics of rounded weights of some rows."""
    assert results.rounded is not None
    results.rounded.put(piece.rows, found)
    if piece.gradients is not None:
        chosen, received = piece.gradients.chosen, _upstream(piece.gradients, shifted, out)[0]
        _add_norms(results, piece, 0, weight_gradients(found.weights[chosen], received, found.missing[chosen]))
    if piece.counted is not None and ("weights", 0) in tally.counts:
        with np.errstate(divide="ignore"):
            tally.counts["weights", 0] += count(np.log10(found.seen_weights(piece.counted)), WEIGHTS)


def _above_largest(tally: Tally, multiplier: FloatArray | float, largest: FloatArray) -> FloatArray | None:
    """Return the sink logit minus each row's largest logit; `largest` is a score minus the centre."""
    return None if tally.sink is None else tally.sink - multiplier * (tally.centre + largest)


def _reduce(tally: Tally, draws: slice, rows: slice, block: Shape, results: _RowResults) -> None:
    """Add the row results of a block to the sums of its draws and to the histograms of rows."""
    shape = (block.draws, block.rows)
    seen = results.visible > 0
    tally.smallest = min(tally.smallest, float(results.smallest.min(where=seen, initial=math.inf)))
    tally.largest = max(tally.largest, float(results.largest.max(where=seen, initial=-math.inf)))
    visible = results.visible.reshape(shape if results.visible.size > 1 else (1, 1))
    moments = row_moments(visible, results.powers.reshape(4, *shape), results.offsets, results.precision)
    _accumulate(tally, tally.score_sums, sums_of_scores(moments), draws)
    if not math.isnan(tally.band):
        _accumulate(tally, tally.score_sums, {"inside": results.inside}, draws)
    rounded = results.rounded
    if rounded is not None:
        visible = rounded.visible.reshape(shape)
        add_sums(tally, draws, rounded.sums(shape))
        found = rounded.row_statistics((1, *shape))
    else:
        multipliers = np.array([multiplier for _, multiplier in tally.rules])[:, np.newaxis, np.newaxis]
        sink = _above_largest(tally, multipliers, results.largest.reshape(shape))
        found = row_statistics(results.sums.reshape(5, -1, *shape), visible, sink)
    add_sums(tally, draws, sums_of_rows(found, visible))
    unseen = None if visible.all() else visible == 0
    for name, index in tally.counts:
        if name == "entropy":
            tally.counts[name, index] += count(found.entropy[index], tally.entropies, hidden=unseen)
        elif name == "jacobian_norm":
            values = np.sqrt(found.jacobian_norm_squared[index])
            tally.counts[name, index] += count(values, JACOBIAN, hidden=unseen)
    if results.gradients is not None:
        taken = tally.shape.differentiated
        if tally.gradient_norms is None:
            held = tally.held.stop - tally.held.start
            whole = (len(tally.rules), held, len(range(tally.shape.rows)[taken]))
            tally.gradient_norms = np.full(whole, np.nan, np.float32)
        norms = results.gradients.reshape(-1, *shape)[..., (taken.start - rows.start) % taken.step :: taken.step]
        before = len(range(rows.start)[taken])
        own = slice(draws.start - tally.held.start, draws.stop - tally.held.start)
        tally.gradient_norms[:, own, before : before + norms.shape[-1]] = norms


def add_sums(tally: Tally, draws: slice, sums: Sums) -> None:
    """Add sums over some rows of these draws: (draws,) of every rule, or (rules, draws)."""
    _accumulate(tally, tally.row_sums, sums, draws, len(tally.rules))


_LN10 = math.log(10)


def _accumulate(tally: Tally, into: dict[str, FloatArray], sums: Sums, draws: slice, *rules: int) -> None:
    first = tally.held.start
    for name, values in sums.items():
        if name not in into:
            into[name] = np.zeros((*rules, tally.held.stop - first))
        into[name][..., draws.start - first : draws.stop - first] += values


def _scratch(tally: Tally, like: FloatArray) -> list[FloatArray]:
    """Return arrays of a piece's shape, reusing memory: allocating costs more than the arithmetic."""
    if not tally.scratch or tally.scratch[0].size < like.size:
        tally.scratch = [np.empty(like.size, like.dtype) for _ in range(3)]
    return [each[: like.size].reshape(like.shape) for each in tally.scratch]
