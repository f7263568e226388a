"""Add blocks of scores to a tally; the block size does not matter. `reading` reads a measurement from it.

The tally keeps only a few sums for each draw and the counts of its histograms, so its memory depends neither on the
number of scores nor on the number of rows.
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
from ..attention.precision import weight_lost
from ..attention.row_gradients import LogitGradients, Upstream, logit_gradients, upstream, weight_gradients
from ..attention.softmax import (
    FLOOR,
    RowStatistics,
    ShiftedRows,
    Softmax,
    logits_below,
    row_statistics,
    row_sums,
    shift_rows,
    sink_power,
    weight_statistics,
)
from .catalogue import EVERY
from .counting import Chosen, count, count_inside, counted_rows
from .histogram import BinAxis
from .measurement import HISTOGRAMS, HistogramName
from .summary import Sums, power_sums, row_moments, sums_of_rows, sums_of_scores


class RoundedRows(NamedTuple):
    """Some rows, NaN rows with weights 0 and as if they saw nothing."""

    weights: FloatArray  # (rows, n)
    visible: FloatArray  # (rows,) keys that the row sees; 0 for a NaN row
    failed: BoolArray  # (rows,) whether the row is NaN
    lost: FloatArray  # (rows,) weight
    missing: FloatArray  # (rows,) 1 − Σp̂: the sink's share and what is lost
    statistics: RowStatistics
    hidden: BoolArray | None  # (rows, n)

    def seen_weights(self, rows: Chosen) -> FloatArray:
        """Return the weights of the visible keys of some rows, without NaN rows, in one dimension."""
        seen = np.broadcast_to(self.visible[rows, np.newaxis] > 0, self.weights[rows].shape)
        return self.weights[rows][seen if self.hidden is None else seen & ~self.hidden[rows]]

    def sums(self, shape: tuple[int, int]) -> dict[str, FloatArray]:
        """Return the sums (draws,) of lost weight and NaN rows; what is lost is not the sink's, but missing in Σp̂."""
        lost, failed = (each.reshape(shape).sum(axis=1, dtype=np.float64) for each in (self.lost, self.failed))
        return {"lost": lost, "nan": failed, "sink": -lost}


def rounded_rows(block: Softmax, hidden: BoolArray | None) -> RoundedRows:
    """Return the rows of a block of weights (draws, rows, n); `hidden` has its shape and marks masked keys."""
    weights = block.weights.reshape(-1, block.weights.shape[-1])
    rounded = Softmax(weights, block.sink.ravel(), block.lse.ravel())
    hidden = None if hidden is None else hidden.reshape(weights.shape)
    failed = np.isnan(weights[:, 0])
    if failed.any():
        weights = np.where(failed[:, np.newaxis], 0, weights)
    sees = weights.shape[1] - (0 if hidden is None else np.count_nonzero(hidden, axis=1))
    visible = np.where(failed, 0, sees).astype(np.float64)
    return RoundedRows(
        weights=weights,
        visible=visible,
        failed=failed,
        lost=np.where(visible > 0, weight_lost(rounded), 0),
        missing=1 - weights.sum(axis=1, dtype=np.float64),
        statistics=weight_statistics(weights, visible, hidden),
        hidden=hidden,
    )


def clear_infinite(scores: FloatArray, rounded: Softmax, hidden: BoolArray | None) -> BoolArray | None:
    """Replace infinite and NaN scores (…, n) by 0; return which scores are left out, None if none are.

    Those are hidden, infinite, or of a NaN row.
    """
    left_out = ~np.isfinite(scores)
    if not left_out.any():  # then no row is NaN
        return hidden
    scores[left_out] = 0
    left_out |= np.isnan(rounded.weights[..., :1])
    return left_out if hidden is None else left_out | hidden


# Entries of scores processed at once: fewer cost more calls, more miss the caches.
BLOCK = 1 << 19
# The most entries that the histograms of logits and of weights count, in whole rows spread evenly over all draws: a
# plot has a few hundred columns, and counting an entry costs more than all other work on it.
COUNTED = 1 << 16
# The most entries whose rows are sorted for the average row, and the most weights of it that are kept: more than a
# line of a terminal can show.
SORTED = 1 << 17
LARGEST = 256
# The most rows of a draw whose gradients are computed, spread evenly over it: each costs as much as its scores.
DIFFERENTIATED = 256
WEIGHTS = BinAxis(-12.0, 0.0, 240, log10=True)
JACOBIAN = BinAxis(0.0, 0.5, 200)  # the largest ‖J‖_F is ½, of two equal weights
GRADIENTS = BinAxis(-8.0, 4.0, 240, log10=True)
_ORDINARY = 20  # the largest power of two, and minus the smallest, of scores whose fourth powers are safe in float32


class Shape(NamedTuple):
    """The number of independent draws, rows of each draw, and keys of each row."""

    draws: int
    rows: int
    keys: int

    @property
    def every(self) -> int:
        """The size of the groups of rows of which the histograms of logits and weights count one row each."""
        return math.ceil(self.draws * self.rows * self.keys / COUNTED)

    @property
    def every_sorted(self) -> int:
        """The size of the groups of rows of which the average row takes one each."""
        return math.ceil(self.draws * self.rows * self.keys / SORTED)

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
    axis: BinAxis
    sink: float | None = None
    held: slice = field(default_factory=lambda: slice(0, 0))  # the draws whose sums are held; by default all
    statistics: Collection[str] = EVERY  # those that are read from it
    histograms: Collection[HistogramName] = HISTOGRAMS  # those that are counted
    smallest: float = math.inf  # score minus the centre, like `largest`
    largest: float = -math.inf
    score_sums: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])
    row_sums: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])  # (rules, draws held)
    counts: dict[tuple[HistogramName, int], Counts] = field(init=False)  # by rule; scores under rule 0
    largest_weights: FloatArray = field(init=False)  # (rules, LARGEST at most), in order; counted with weights
    averaged: int = 0  # rows whose largest weights these are
    gradient_norms: FloatArray | None = None  # (2, rules, draws, rows measured) ‖∂L/∂q‖, ‖∂L/∂z‖; NaN if unseen
    scratch: list[FloatArray] = field(default_factory=list[FloatArray])  # reused by blocks

    def __post_init__(self) -> None:
        self.held = self.held if self.held.stop else slice(0, self.shape.draws)
        self.counts = {
            (name, rule): np.zeros(axis.bins + 2, np.int64)
            for name, axis in self.axes.items()
            for rule in range(1 if name == "logits" else len(self.rules))
        }
        kept = min(self.shape.keys, LARGEST) if "weights" in self.histograms else 0
        self.largest_weights = np.zeros((len(self.rules), kept))

    @cached_property
    def axes(self) -> Mapping[HistogramName, BinAxis]:
        """The axes of the histograms counted."""
        axes: dict[HistogramName, BinAxis] = {"logits": self.axis, "weights": WEIGHTS, "entropy": self.entropies}
        axes["jacobian_norm"] = JACOBIAN
        return {name: axis for name, axis in axes.items() if name in self.histograms}

    @cached_property
    def unit(self) -> float:
        """1, or a power of two near the largest scores if the fourth powers of such scores leave float32's range."""
        exponent = math.frexp(self.axis.high)[1]
        return 1.0 if abs(exponent) <= _ORDINARY else math.ldexp(1, exponent)

    @property
    def entropies(self) -> BinAxis:
        """The axis from 0 to ln n."""
        return BinAxis(0.0, math.log(self.shape.keys) or 1.0, 200)


@dataclass(frozen=True, eq=False)
class Backward:
    """The backward pass of a loss L = Σ G∘O to the queries of a block."""

    g: FloatArray  # (draws, rows, d_v) ∂L/∂O
    v: FloatArray  # (draws, keys, d_v) values
    # Called with ∂L/∂z under a rule, its index, and rows of the block; returns ‖∂L/∂q‖ of these rows of every draw.
    query_norms: Callable[[LogitGradients, int, slice], FloatArray]


class _Block(NamedTuple):
    """The rows of a block."""

    shape: tuple[int, int]  # draws and rows of each
    scores: FloatArray  # (draws · rows, keys) minus the centre
    hidden: BoolArray | None  # (draws · rows, keys)
    offsets: FloatArray | None  # (draws · rows,)
    counted: npt.NDArray[np.intp] | None  # the rows that the histograms of logits and weights count
    unseen: BoolArray | None  # the keys that are hidden from these
    sorted: npt.NDArray[np.intp] | None  # the rows that the average row takes
    scratch: Sequence[FloatArray]  # memory for three arrays of the scores' shape
    edge: slice  # the keys outside which none is hidden


class _Differentiated(NamedTuple):
    """The rows of a block whose gradients are computed."""

    backward: Backward
    rows: slice  # of each draw
    chosen: Chosen  # their indices among all rows
    some: ShiftedRows
    received: Upstream  # ∂L/∂p
    norms: FloatArray  # (2, rules, draws · rows) ‖∂L/∂q‖ and ‖∂L/∂z‖, NaN where not computed; to be filled

    def fill(self, found: LogitGradients, rule: int) -> None:
        """Fill in the norms under a rule; `query_norms` may overwrite the gradients of logits."""
        self.norms[1, rule, self.chosen] = found.norms
        self.norms[0, rule, self.chosen] = self.backward.query_norms(found, rule, self.rows)


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
    edge: slice = slice(None),
) -> None:
    """Add one block.

    `scores` (draws, rows, keys), minus the tally's centre, is overwritten; `hidden` broadcasts to its shape and marks
    masked keys, none outside the `edge`. `offsets` (draws, rows, 1) is still to be added to all scores of a row:
    softmax ignores it, and adding it to the scores would cost precision. `backward`, of the same draws and rows, is
    given with every block or with none.

    `rounded` are the rows' weights in a number format, not computed from the scores, which are the logits of the
    tally's single rule. Infinite scores and NaN rows are left out of all statistics.
    """
    shape, keys = scores.shape[:2], scores.shape[2]
    masked = hidden = None if hidden is None else np.broadcast_to(hidden, scores.shape)
    if rounded is not None:
        hidden, edge = clear_infinite(scores, rounded, hidden), slice(None)
    flat = scores.reshape(-1, keys)
    hidden = None if hidden is None else hidden.reshape(flat.shape)
    first = draws.start * tally.shape.rows + rows.start
    counted = counted_rows(tally.shape.every, first, len(flat)) if tally.counts else None
    unseen = None if hidden is None or counted is None else hidden[counted]
    averaged = counted_rows(tally.shape.every_sorted, first, len(flat)) if "weights" in tally.histograms else None
    of_rows = None if offsets is None else offsets.ravel()
    block = _Block(shape, flat, hidden, of_rows, counted, unseen, averaged, _scratch(tally, flat), edge)
    shifted, largest = _add_scores(tally, draws, block)
    gradients = None if backward is None else _differentiated(tally, backward, rows, block, shifted)
    if rounded is None:
        found, visible = _weights_of_rules(tally, block, shifted, largest, gradients)
    else:
        found, visible = _rounded_weights(tally, draws, block, rounded_rows(rounded, masked), gradients)
    add_sums(tally, draws, sums_of_rows(found, visible))
    _count_rows(tally, found, visible)
    if gradients is not None:
        _keep_norms(tally, draws, rows, gradients.norms.reshape(2, -1, *shape))


def _add_scores(tally: Tally, draws: slice, block: _Block) -> tuple[ShiftedRows, FloatArray]:
    """Add the statistics of scores; return the rows, shifted, and the largest score of each, minus the centre."""
    scores, hidden, counted, edge = block.scores, block.hidden, block.counted, block.edge
    if "logit_within_3sd" in tally.statistics and not math.isnan(tally.band):
        inside = count_inside(tally.band, block.shape[0], scores, hidden, block.offsets, block.scratch[0], edge)
        _accumulate(tally, tally.score_sums, {"inside": inside}, draws)
    if hidden is not None:
        np.copyto(scores[:, edge], 0, where=hidden[:, edge])
    higher = "logit_excess_kurtosis" in tally.statistics
    powers = power_sums(scores, tally.unit, *block.scratch[:2], higher=higher)
    if counted is not None and ("logits", 0) in tally.counts:
        shift = 0.0 if block.offsets is None else block.offsets[counted, np.newaxis]
        tally.counts["logits", 0] += count(scores[counted], tally.axis, 1.0, shift, block.unseen)
    shifted = shift_rows(scores, hidden, edge)
    own = 0.0 if block.offsets is None else block.offsets
    largest, seen = shifted.largest + own, shifted.visible > 0
    if "logit_min" in tally.statistics:
        tally.smallest = min(tally.smallest, float((largest + shifted.smallest).min(where=seen, initial=math.inf)))
    tally.largest = max(tally.largest, float(largest.max(where=seen, initial=-math.inf)))
    offsets = 0.0 if block.offsets is None else block.offsets.reshape(block.shape).astype(np.float64)
    precision = float(np.finfo(scores.dtype).eps)
    moments = row_moments(_visible(block, shifted), powers.reshape(4, *block.shape), offsets, precision)
    _accumulate(tally, tally.score_sums, sums_of_scores(moments), draws)
    return shifted, largest


def _visible(block: _Block, shifted: ShiftedRows) -> FloatArray:
    """Return the number of keys that each row sees (draws, rows); (1, 1) if none is hidden."""
    if block.hidden is None:
        return np.full((1, 1), float(block.scores.shape[1]))
    return shifted.visible.reshape(block.shape).astype(np.float64)


def _weights_of_rules(
    tally: Tally, block: _Block, shifted: ShiftedRows, largest: FloatArray, gradients: _Differentiated | None
) -> tuple[RowStatistics, FloatArray]:
    """Return the statistics (rules, draws, rows) of weights, and how many keys rows see; count weights."""
    logits, scratch, _ = block.scratch
    counted, sums = block.counted, np.empty((5, len(tally.rules), len(largest)))
    average = None if block.sorted is None else _LargestOfRows(tally, shifted, block.sorted)
    for index, (_, multiplier) in enumerate(tally.rules):
        sums[:, index] = row_sums(logits_below(shifted, multiplier, logits), shifted, scratch)
        sink = _above_largest(tally, multiplier, largest)
        if gradients is not None:
            some, chosen, above = gradients.some, gradients.chosen, None if sink is None else sink[gradients.chosen]
            others, out = (scratch[chosen], sums[1, index, chosen]), logits[: len(some.below)]
            found = logit_gradients(some, multiplier, gradients.received, above, others, out)
            gradients.fill(found, index)
        if counted is not None and ("weights", index) in tally.counts:
            others = sums[1, index, counted] + (0.0 if sink is None else sink_power(sink[counted]))
            shift = np.log1p(others)[:, np.newaxis] / -_LN10
            values = block.scores[counted]
            tally.counts["weights", index] += count(values, WEIGHTS, multiplier / _LN10, shift, block.unseen)
        if average is not None:
            others = sums[1, index, average.rows] + (0.0 if sink is None else sink_power(sink[average.rows]))
            tally.largest_weights[index, : average.width] += average.weights(multiplier, others)
    multipliers = np.array([multiplier for _, multiplier in tally.rules])[:, np.newaxis, np.newaxis]
    sink = _above_largest(tally, multipliers, largest.reshape(block.shape))
    visible = _visible(block, shifted)
    return row_statistics(sums.reshape(5, -1, *block.shape), visible, sink), visible


class _LargestOfRows:
    """The largest weights of some rows under several multipliers, whose order is that of their scores."""

    def __init__(self, tally: Tally, shifted: ShiftedRows, rows: npt.NDArray[np.intp]) -> None:
        self.rows, self._visible = rows, shifted.visible[rows, np.newaxis]
        below = shifted.below[rows]
        if shifted.hidden is not None:  # after all others
            np.copyto(below, below.dtype.type(FLOOR[below.dtype]) + shifted.lowest, where=shifted.hidden[rows])
        below.sort(axis=1)
        self._below = below[:, : -LARGEST - 1 : -1]
        self.width = self._below.shape[1]  # less than all keys in a block of those that its rows may see
        tally.averaged += int(np.count_nonzero(self._visible))

    def weights(self, multiplier: float, others: FloatArray) -> FloatArray:
        """Return the sum over rows of the largest weight, the second, …; `others` are sums without the largest."""
        powers: FloatArray = np.exp(
            np.maximum(self._below * self._below.dtype.type(multiplier), FLOOR[self._below.dtype])
        )
        if (self._visible < powers.shape[1]).any():
            powers[np.arange(powers.shape[1]) >= self._visible] = 0
        return (1 / (1 + others)) @ powers


def _rounded_weights(
    tally: Tally, draws: slice, block: _Block, rows: RoundedRows, gradients: _Differentiated | None
) -> tuple[RowStatistics, FloatArray]:
    """Return the same for rounded weights; add what rounding loses."""
    if gradients is not None:
        chosen = gradients.chosen
        found = weight_gradients(rows.weights[chosen], gradients.received, rows.missing[chosen])
        gradients.fill(found, 0)
        gradients.norms[..., rows.failed] = np.nan
    if block.counted is not None and ("weights", 0) in tally.counts:
        with np.errstate(divide="ignore"):
            tally.counts["weights", 0] += count(np.log10(rows.seen_weights(block.counted)), WEIGHTS)
    if block.sorted is not None:
        largest = np.sort(rows.weights[block.sorted], axis=1)[:, : -LARGEST - 1 : -1]
        tally.largest_weights[0, : largest.shape[1]] += largest.sum(axis=0, dtype=np.float64)
        tally.averaged += int(np.count_nonzero(rows.visible[block.sorted]))
    add_sums(tally, draws, rows.sums(block.shape))
    statistics = RowStatistics(*(statistic.reshape(1, *block.shape) for statistic in rows.statistics))
    return statistics, rows.visible.reshape(block.shape)


def _differentiated(
    tally: Tally, backward: Backward, rows: slice, block: _Block, shifted: ShiftedRows
) -> _Differentiated | None:
    """Select the rows of a block whose gradients are computed; `rows` are those of the block within a draw."""
    taken, (draws, length) = tally.shape.differentiated, block.shape
    if (taken.start - rows.start) % taken.step >= length:
        return None
    places_taken = slice((taken.start - rows.start) % taken.step, length, taken.step)
    chosen: Chosen = slice(places_taken.start, None, places_taken.step)
    if draws > 1 and length % taken.step:
        places = np.arange(*places_taken.indices(length), dtype=np.intp)
        chosen = np.add.outer(length * np.arange(draws, dtype=np.intp), places).reshape(-1)
    some, norms = shifted.only(chosen), np.full((2, len(tally.rules), len(block.scores)), np.nan)
    received = upstream(backward.g[:, places_taken], backward.v, some, block.scratch[2][: len(some.below)])
    return _Differentiated(backward, places_taken, chosen, some, received, norms)


def _count_rows(tally: Tally, found: RowStatistics, visible: FloatArray) -> None:
    """Add the rows of a block to the histograms of rows."""
    unseen = None if visible.all() else visible == 0
    for name, index in tally.counts:
        if name == "entropy":
            tally.counts[name, index] += count(found.entropy[index], tally.entropies, hidden=unseen)
        elif name == "jacobian_norm":
            values = np.sqrt(found.jacobian_norm_squared[index])
            tally.counts[name, index] += count(values, JACOBIAN, hidden=unseen)


def _keep_norms(tally: Tally, draws: slice, rows: slice, norms: FloatArray) -> None:
    """Keep the norms (2, rules, draws, rows) of the rows whose gradients are computed."""
    taken, held = tally.shape.differentiated, tally.held
    if tally.gradient_norms is None:
        whole = (2, len(tally.rules), held.stop - held.start, len(range(tally.shape.rows)[taken]))
        tally.gradient_norms = np.full(whole, np.nan, np.float32)
    norms = norms[..., (taken.start - rows.start) % taken.step :: taken.step]
    before = len(range(rows.start)[taken])
    inside = slice(draws.start - held.start, draws.stop - held.start)
    tally.gradient_norms[..., inside, before : before + norms.shape[-1]] = norms


def _above_largest(tally: Tally, multiplier: FloatArray | float, largest: FloatArray) -> FloatArray | None:
    """Return the sink logit minus each row's largest logit; `largest` is a score minus the centre."""
    return None if tally.sink is None else tally.sink - multiplier * (tally.centre + largest)


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
    """Return arrays of a block's shape, reusing memory: allocating costs more than the arithmetic."""
    if not tally.scratch or tally.scratch[0].size < like.size:
        tally.scratch = [np.empty(like.size, like.dtype) for _ in range(3)]
    return [scratch[: like.size].reshape(like.shape) for scratch in tally.scratch]
