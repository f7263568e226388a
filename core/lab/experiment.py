"""run(Parameters) -> Measurement: draw queries and keys, score them, and keep the statistics.

`stream` does the work in steps, so that whoever asked can show progress, look at an early result, or drop the
rest: to stop a run is to stop asking for its next step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.scales import Setting, multiplier
from ..parameters import Parameters
from ..statistics import tally
from ..statistics.histogram import Axis
from ..statistics.measurement import Measurement
from .components import score_mean, score_reach, score_std
from .sampling import CHUNK, Draws, Side, chunks, components

# Bytes of components that are kept for the next key; a larger question makes them anew, draw by draw.
KEPT = 256 << 20
# Standard deviations that the histogram of logits reaches to either side.
_AXIS = 8
# Columns by which the scores of such a question grow at a time.
STRIDE = 8 * CHUNK


@dataclass(frozen=True, eq=False)
class Step:
    """How far a run is, and what it knows so far."""

    fraction: float  # of the work done, 0 to 1
    parameters: Parameters
    tally: tally.Tally
    draws: float  # how many are done, the last one perhaps in part

    def measurement(self) -> Measurement[Parameters] | None:
        """The result so far; None in the midst of a draw, and before the second, since one has no standard error."""
        draws = int(self.draws)
        if draws < 2 or draws != self.draws:
            return None
        columns = tally.columns(self.tally, draws, unbiased=True)
        return Measurement(self.parameters, draws, self.parameters.batch, columns)


def run(parameters: Parameters, draws: Draws | None = None, precision: str = "float32") -> Measurement[Parameters]:
    """The complete measurement; raises ParameterError where the scale rule has no multiplier at this d_k."""
    for step in stream(parameters, draws, precision):
        if step.fraction == 1:
            result = step.measurement()
            assert result is not None, "a batch has at least two draws"
            return result
    raise AssertionError("a run ends with a complete step")


def stream(parameters: Parameters, draws: Draws | None = None, precision: str = "float32") -> Iterator[Step]:
    """The steps of a run, none of them long; the last has fraction 1.

    draws keeps components from one run to the next; precision is the dtype of scores and statistics.
    """
    p = parameters
    kept = empty_tally(p)
    in_cache = 4 * p.batch * chunks(p.d_k) * CHUNK * (p.n_queries + p.n_keys) <= KEPT
    work = _from_cache(p, draws or Draws(), precision, kept) if in_cache else _draw_by_draw(p, precision, kept)
    for fraction, done in work:
        yield Step(fraction, p, kept, done)


def empty_tally(p: Parameters) -> tally.Tally:
    """What the scores of a question are added to; ParameterError where the scale rule has no multiplier."""
    rules = [("none", 1.0), (p.scale, multiplier(p.scale, Setting.of(p)))]
    reach = _AXIS * score_reach(p) or 1.0
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    return tally.Tally(shape, rules, score_mean(p), 3 * score_std(p), Axis(-reach, reach, 1024))


def _from_cache(p: Parameters, draws: Draws, precision: str, kept: tally.Tally) -> Iterator[tuple[float, float]]:
    """Blocks of scores from kept components; yields the part of the work and the draws that are done."""
    sides: tuple[Side, ...] = ("query", "key", "shared") if p.correlation else ("query", "key")
    for fraction in draws.grow(p, sides):
        yield fraction / 2, 0
    done, total = 0, p.batch * p.n_queries
    group, factors = slice(0, 0), None
    scratch = np.empty(0, dtype=precision)
    for which, rows in tally.blocks(kept.shape):
        if factors is None or which != group:
            raw = [draws.of(side, which, p.d_k).astype(precision, copy=False) for side in sides]
            group, factors = which, factors_of(p, raw)
        shape = (which.stop - which.start, rows.stop - rows.start, p.n_keys)
        if scratch.size < math.prod(shape):
            scratch = np.empty(math.prod(shape), dtype=precision)
        scores = _scores(factors, rows, scratch[: math.prod(shape)].reshape(shape))
        offsets = None if factors.of_query is None else factors.of_query[:, rows]
        tally.add(kept, which, rows, scores, hidden(p, rows), offsets)
        done += shape[0] * shape[1]
        yield 0.5 + done / total / 2, done / p.n_queries


def _draw_by_draw(p: Parameters, precision: str, kept: tally.Tally) -> Iterator[tuple[float, float]]:
    """Scores of one draw at a time, grown over the columns from components that are made and forgotten."""
    sides: tuple[Side, ...] = ("query", "key", "shared") if p.correlation else ("query", "key")
    one_draw = tally.Shape(1, p.n_queries, p.n_keys)
    strides, parts = range(0, p.d_k, STRIDE), sum(1 for _ in tally.blocks(one_draw))
    steps, step = p.batch * (len(strides) * (len(sides) + parts) + parts), 0
    for draw in range(p.batch):
        scores = np.zeros((1, p.n_queries, p.n_keys), dtype=precision)
        offsets = None
        for first in strides:
            last = min(first + STRIDE, p.d_k)
            raw: list[FloatArray] = []
            for side in sides:
                made = [components(p, side, draw, c) for c in range(first // CHUNK, chunks(last))]
                raw.append(np.concatenate(made)[np.newaxis, : last - first].astype(precision, copy=False))
                step += 1
                yield step / steps, draw
            factors = factors_of(p, raw)
            for _, rows in tally.blocks(one_draw):
                scores[:, rows] += _scores(factors, rows, np.empty_like(scores[:, rows]))
                step += 1
                yield step / steps, draw
            if factors.of_query is not None:
                offsets = factors.of_query if offsets is None else offsets + factors.of_query
        for _, rows in tally.blocks(one_draw):
            own = None if offsets is None else offsets[:, rows]
            tally.add(kept, slice(draw, draw + 1), rows, scores[:, rows], hidden(p, rows), own)
            step += 1
            yield step / steps, draw + rows.stop / p.n_queries


@dataclass(frozen=True, eq=False)
class Factors:
    """What scores are made of, so that they come out less their mean: s − E s = qᵀk + of_query + of_key.

    of_query is the same for a whole row, so that softmax does not see it; it is never added to the scores.
    """

    q: FloatArray  # (draws, d, queries)
    k: FloatArray  # (draws, d, keys)
    of_query: FloatArray | None  # (draws, queries, 1)
    of_key: FloatArray | None  # (draws, 1, keys)


def factors_of(p: Parameters, raw: list[FloatArray]) -> Factors:
    """From standardised components (draws, d, vectors) of queries, keys and, with a correlation, the shared part.

    Means are multiplied out, q = μ_q + σ_q z and k alike, because a large mean would cost the scores their digits.
    """
    q, k = raw[0], raw[1]
    if p.correlation:
        own, common = (1 - abs(p.correlation)) ** 0.5, abs(p.correlation) ** 0.5 * raw[2]
        q = own * q + common
        k = own * k + (common if p.correlation > 0 else -common)
    spread, d = p.std_q * p.std_k, q.shape[1]
    of_query = of_key = None
    if p.mean_k:
        of_query = (p.mean_k * p.std_q * q.sum(axis=1, dtype=np.float64))[:, :, np.newaxis]
    if p.mean_q or p.correlation:
        sums = p.mean_q * p.std_k * k.sum(axis=1, keepdims=True, dtype=np.float64) - d * p.correlation * spread
        of_key = sums.astype(k.dtype)
    return Factors(q if spread == 1 else q * q.dtype.type(spread), k, of_query, of_key)


def _scores(factors: Factors, rows: slice, out: FloatArray) -> FloatArray:
    """The scores of some queries less their mean and their part of `of_query`; (draws, rows, keys)."""
    np.matmul(factors.q[:, :, rows].mT, factors.k, out=out)
    if factors.of_key is not None:
        out += factors.of_key
    return out


def hidden(p: Parameters, rows: slice) -> BoolArray | None:
    """The keys that some rows may not see; (rows, keys), or None if they see all."""
    if p.mask == "none":
        return None
    first, last = int(rows.start), int(rows.stop)
    return np.arange(p.n_keys) > np.arange(first, last)[:, np.newaxis]
