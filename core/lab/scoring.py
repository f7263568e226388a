"""Queries, keys and their scores from components: what one-pass and two-pass measurements share."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation
from ..attention.precision import stored_weights
from ..attention.row_gradients import LogitGradients, query_gradient_norms
from ..attention.scores import Weights, draw_weights
from ..attention.visibility import Visibility
from ..parameters import ROUNDED, Parameters, rows_differ, scales_vectors, setting_a
from ..scales import Normalise, RuleSetting, ScaleName, multiplier, row_multiplier, scale_rule
from ..statistics import tally
from ..statistics.catalogue import EVERY
from ..statistics.histogram import BinAxis
from ..statistics.measurement import HISTOGRAMS, HistogramName
from .sampling import CHUNK, LAWS, WEIGHTS, Draws, Side, chunks, components, drawn_from

# The most bytes of components to keep for the next run; larger measurements draw them again, one draw at a time.
KEPT = 256 << 20
# Columns added at a time to the scores of such a measurement.
STRIDE = 8 * CHUNK
# Half the width of the histogram of logits, in standard deviations.
_AXIS = 8
LOSS: tuple[Side, ...] = ("value", "upstream")
_LAST: ContextVar[tuple[object, Draws]] = ContextVar("last")  # of each thread


class RuleColumn(NamedTuple):
    """A column: a scale rule, its multiplier, and the setting that the multiplier depends on."""

    rule: ScaleName
    multiplier: float
    setting: RuleSetting


Preparation: TypeAlias = "tuple[tuple[Normalise, Normalise], float]"


def preparation(c: Computation) -> Preparation:
    """Return what becomes of q and k before they are multiplied; columns with the same share their vectors."""
    return c.norms, c.factor


def columns_of(p: Parameters) -> list[RuleColumn]:
    """Return the columns of A and B, which share their scores; raise ParameterError if a rule has no multiplier."""
    return [_column(column.scale, column.setting) for column in (setting_a(p), p)]


def columns_under(p: Parameters, names: Sequence[ScaleName]) -> list[RuleColumn]:
    """Return a column for each of these rules; raise ParameterError if a rule has no multiplier."""
    return [_column(name, p.setting) for name in names]


def _column(rule: ScaleName, setting: RuleSetting) -> RuleColumn:
    return RuleColumn(rule, multiplier(rule, setting), setting)


def is_one_pass(p: Parameters, names: Sequence[ScaleName]) -> bool:
    """Return whether logits are multiples of one dot product under these rules.

    Its moments are known before anything is drawn.
    """
    return (
        p.mechanism == "dot_product"
        and p.softcap == 0
        and p.precision not in ROUNDED
        and all(scale_rule(name).normalise == "none" and not rows_differ(p, name) for name in names)
    )


def computation(p: Parameters, column: RuleColumn, learned: Weights) -> Computation:
    """Return how the logits of a column are computed, with the mechanism's weights as stored in the format."""
    norm = scale_rule(column.rule).normalise
    return Computation(
        norms=(norm, norm),
        gain=p.norm_gain,
        factor=math.sqrt(column.multiplier) if scales_vectors(p, column.rule) else 1.0,
        mechanism=p.mechanism,
        learned=learned,
        multiplier=factors_of_rows(p, column)[np.newaxis, :, 0],
        softcap=p.softcap or None,
        visibility=visibility(p),
        sink=sink_of(p),
        precision=p.precision,
        arithmetic=p.arithmetic,
    )


def visibility(p: Parameters) -> Visibility | None:
    """Return which keys are visible; None if all are."""
    return None if p.mask == "none" else Visibility(p.n_keys, np.arange(p.n_queries), after=0)


def factors_of_rows(p: Parameters, column: RuleColumn) -> FloatArray:
    """Return the multipliers (queries or 1, 1) of the scores of a column, of prepared q and k."""
    if scales_vectors(p, column.rule):
        return np.ones((1, 1))
    if not rows_differ(p, column.rule):
        return np.array([[column.multiplier]])
    seen = np.minimum(np.arange(p.n_queries) + 1, p.n_keys)
    factors = {n: row_multiplier(column.rule, column.setting._replace(n_keys=n)) for n in sorted({*seen.tolist()})}
    return np.array([[factors[n]] for n in seen.tolist()])


def range_of_rows(p: Parameters, column: RuleColumn) -> tuple[float, float] | None:
    """Return the smallest and the largest multiplier of a row that sees two keys; None if all have the same."""
    if not rows_differ(p, column.rule):
        return None
    factors = factors_of_rows(p, column)[1:]  # only the first query sees a single key
    if not len(factors) or factors.min() == factors.max():
        return None
    return float(factors.min()), float(factors.max())


def empty_tally(
    p: Parameters,
    columns: Sequence[RuleColumn],
    draws: slice | None = None,
    statistics: Collection[str] = EVERY,
    histograms: Collection[HistogramName] = HISTOGRAMS,
) -> tally.Tally:
    """Return an empty tally for a one-pass measurement of these columns; `draws` are those added, by default all."""
    reach = _AXIS * score_reach(p) or 1.0
    rules = [(column.rule, column.multiplier) for column in columns]
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    axis, held, sink = BinAxis(-reach, reach, 1024), draws or slice(0, p.batch), sink_of(p)
    return tally.Tally(shape, rules, score_mean(p), 3 * score_std(p), axis, sink, held, statistics, histograms)


def sink_of(p: Parameters) -> float | None:
    """Return the logit of the sink, if there is one."""
    return p.sink_logit if p.sink == "logit" else None


def score_mean(p: Parameters) -> float:
    """Return the mean of a score q·k."""
    return p.d_k * (p.mean_q * p.mean_k + p.correlation * p.std_q * p.std_k)


def score_std(p: Parameters) -> float:
    """Return the standard deviation of a score q·k; NaN if it does not exist.

    Per component, with the shared part √|ρ| of both: σ_q²σ_k²(1 + ρ²(m₄ − 2)) + μ_q²σ_k² + μ_k²σ_q² + 2ρσ_qσ_kμ_qμ_k.
    """
    rho, spread = p.correlation, p.std_q * p.std_k
    shared = rho**2 * (LAWS[p.components].fourth_moment(p.degrees_of_freedom) - 2) if rho and spread else 0.0
    if math.isinf(shared):
        return math.nan
    variance = spread**2 * (1 + shared) + (p.mean_q * p.std_k) ** 2 + (p.mean_k * p.std_q) ** 2
    return math.sqrt(p.d_k * max(variance + 2 * rho * spread * p.mean_q * p.mean_k, 0.0))


def score_reach(p: Parameters) -> float:
    """Return the typical size of a centred score: its standard deviation, or that of normal components if NaN."""
    std = score_std(p)
    return score_std(p.with_value("components", "normal")) if math.isnan(std) else std


def weights_of(p: Parameters) -> Weights:
    """Draw the mechanism's learned weights, if it has some; they are the same for all draws of queries and keys."""
    if p.mechanism not in ("additive", "bilinear"):
        return None
    rng = np.random.default_rng(np.random.SeedSequence(p.seed, spawn_key=(WEIGHTS,)))
    return draw_weights(p.mechanism, p.d_k, rng, p.gain, dtype=dtype_of(p))


def learned_weights(p: Parameters) -> Weights:
    """Return the weights of `weights_of` as they are stored in the number format."""
    weights = weights_of(p)
    return stored_weights(weights, p.precision) if p.precision in ROUNDED else weights


def dtype_of(p: Parameters) -> npt.DTypeLike:
    """Return the dtype of scores; components are always drawn in float32."""
    return np.float64 if p.precision == "float64" else np.float32


def sides(p: Parameters) -> tuple[Side, ...]:
    """Return the sides whose components make up the scores."""
    return ("query", "key", "shared") if p.correlation else ("query", "key")


def last_draws(p: Parameters) -> Draws:
    """Return the queries and keys that this thread drew last, if these parameters share them, or else none.

    Work in progress on other parameters keeps its own.
    """
    source, known = drawn_from(p, sides(p)), _LAST.get(None)
    if known is None or known[0] != source:
        known = source, Draws()
        _LAST.set(known)
    return known[1]


def loss_of(p: Parameters) -> Parameters:
    """Return the parameters for drawing values and upstream gradients: their width is d_v."""
    return replace(p, d_k=p.d_v)


def fits(p: Parameters) -> bool:
    """Return whether all components, including those of the loss, are small enough to keep."""
    return 4 * p.batch * (chunks(p.d_k) + chunks(p.d_v)) * CHUNK * (p.n_queries + p.n_keys) <= KEPT


def grow(p: Parameters, draws: Draws, gradients: bool) -> Iterator[float]:
    """Draw all missing components, including those of the loss, and yield the finished fraction."""
    most = 0.9 if gradients else 1.0
    for fraction in draws.grow(p, sides(p)):
        yield most * fraction
    for fraction in draws.loss.grow(loss_of(p), LOSS) if gradients else ():
        yield most + (1 - most) * fraction


def one_draw(p: Parameters, which: tuple[Side, ...], draw: int) -> list[FloatArray]:
    """Draw the components of one draw without keeping them; (1, d_k, vectors) for each side."""
    made = [np.concatenate([components(p, side, draw, chunk) for chunk in range(chunks(p.d_k))]) for side in which]
    return [vectors[np.newaxis, : p.d_k].astype(dtype_of(p), copy=False) for vectors in made]


def kept_draws(p: Parameters, which: tuple[Side, ...], draws: Draws, group: slice) -> list[FloatArray]:
    """Return the kept components of some draws; (draws, d_k, vectors) for each side."""
    return [draws.of(side, group, p.d_k).astype(dtype_of(p), copy=False) for side in which]


class MatrixFactors(NamedTuple):
    """The factors of centred scores: s − E s = qᵀk + of_query + of_key.

    `of_query` is constant over a row, so softmax ignores it; it is never added to the scores.
    """

    q: FloatArray  # (draws, d, queries)
    k: FloatArray  # (draws, d, keys)
    of_query: FloatArray | None  # (draws, queries, 1)
    of_key: FloatArray | None  # (draws, 1, keys)


def factors_of(p: Parameters, raw: list[FloatArray]) -> MatrixFactors:
    """Return the factors of components (draws, d, vectors): queries, keys and, with a correlation, the shared part.

    The products with the means, q = μ_q + σ_q z and likewise k, are kept apart: a large mean would cost the scores
    precision.
    """
    q, k = _correlated(p, raw)
    spread, d = p.std_q * p.std_k, q.shape[1]
    of_query = of_key = None
    if p.mean_k:
        of_query = (p.mean_k * p.std_q * q.sum(axis=1, dtype=np.float64))[:, :, np.newaxis]
    if p.mean_q or p.correlation:
        sums = p.mean_q * p.std_k * k.sum(axis=1, keepdims=True, dtype=np.float64) - d * p.correlation * spread
        of_key = sums.astype(k.dtype)
    return MatrixFactors(q if spread == 1 else q * q.dtype.type(spread), k, of_query, of_key)


def vectors_of(p: Parameters, raw: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return queries (draws, m, d) and keys (draws, n, d) from the same components as `factors_of`."""
    q, k = _correlated(p, raw)
    q, k = _placed(q, p.mean_q, p.std_q), _placed(k, p.mean_k, p.std_k)
    return q.mT, k.mT


def _placed(side: FloatArray, mean: float, std: float) -> FloatArray:
    """Give standardised components a mean and a standard deviation."""
    number = side.dtype.type
    return side if (mean, std) == (0, 1) else number(mean) + number(std) * side


def _correlated(p: Parameters, raw: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return standardised queries and keys (draws, d, vectors), including the shared direction if there is one."""
    q, k = raw[0], raw[1]
    if not p.correlation:
        return q, k
    number = q.dtype.type
    own, common = number((1 - abs(p.correlation)) ** 0.5), number(abs(p.correlation) ** 0.5) * raw[2]
    return own * q + common, own * k + (common if p.correlation > 0 else -common)


def hidden(p: Parameters, rows: slice) -> BoolArray | None:
    """Return which keys are hidden from some rows: (rows, keys), or None if no key is."""
    visible = visibility(p)
    return None if visible is None else visible.hidden(slice(0, 1), rows)[0]


def sampled_rows(p: Parameters, entries: int) -> tuple[npt.NDArray[np.intp], BoolArray | None]:
    """Return queries spread evenly over a draw, at least one and at most `entries` scores, and their hidden keys.

    The hidden keys are (rows, keys), or None if no key is hidden.
    """
    rows = max(min(entries // p.n_keys, p.n_queries), 1)
    chosen = np.linspace(0, p.n_queries - 1, rows).round().astype(np.intp)
    unseen = hidden(p, slice(0, p.n_queries))
    return chosen, None if unseen is None else unseen[chosen]


def gradient_norms(gradients: LogitGradients, c: float, keys: FloatArray) -> FloatArray:
    """Return ‖∂L/∂q‖ (rows,) for scores c·q·k with keys (draws, n, d); many rows take a few columns at a time."""
    step = max(tally.BLOCK // len(gradients.factor), 1)
    if step >= keys.shape[-1]:
        return query_gradient_norms(gradients, c, keys)
    strides = range(0, keys.shape[-1], step)
    parts = [query_gradient_norms(gradients, c, keys[..., first : first + step]) for first in strides]
    return np.sqrt(np.square(parts).sum(axis=0))
