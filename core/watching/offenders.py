"""Which heads grow, how fast, where noise does not explain it, and when they pass the limit of logits.

A slope is that of generalised least squares, errors being autocorrelated, AR(1) (Prais & Winsten 1954). Their
coefficient is an upper bound: its estimate from few steps is biased towards 0 (Kendall 1954) and uncertain, and if it
is too small, random walks seem to grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from .limits import LIMIT, RECENT, HeadTrend
from .peaks import heads_of, peaks_of
from .step import Heads, Peaks, WatchStep, logits

_WINDOWS = (32, 16, 8)  # numbers that a slope is fitted to: growth may have begun only now
_LEVEL = 1e-5  # probability that noise gives any of the series a slope in a window
_LEAST = 5e-4  # change over the window: less shows as × 1.000, and foretells nothing
_BOUND = 2.0  # standard errors of the autocorrelation
_ANGLES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def slopes(steps: FloatArray, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slope per step of each series, and the steps of the window that it was fitted to.

    `numbers` is [step, series]; those that are not finite are skipped. Of several windows that end with the last
    number of a series, the one counts that noise explains least. The slope is NaN for fewer than 8 numbers, or if
    noise of one in this many series could make it.
    """
    finite = np.isfinite(numbers)
    order = np.argsort(finite, axis=0, kind="stable")  # the finite ones last, in their order
    known = np.take_along_axis(finite, order, axis=0)
    x, y = steps[order], np.where(known, np.take_along_axis(numbers, order, axis=0), 0.0)
    level = _LEVEL / max(known.shape[1], 1)
    best, span, least = (np.full(known.shape[1], each) for each in (math.nan, 0.0, level))
    for size in _WINDOWS:
        some = known[-size:]
        window = np.where(some, x[-size:] - x[-1:], 0.0)
        length = -window.min(axis=0, initial=0.0)
        slope, chance = _fit(some, window, y[-size:])
        surer = (chance < least) & (abs(slope) * length > _LEAST) & (some.sum(axis=0) >= _WINDOWS[-1])
        best, span, least = (
            np.where(surer, new, old) for new, old in ((slope, best), (length, span), (chance, least))
        )
    return best, span


def _fit(known: npt.NDArray[np.bool_], x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes, and the probability of such a slope without growth."""
    count = known.sum(axis=0)
    one = known.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = _least_squares(one, x, y)[1]
        likeness = np.nan_to_num((residuals[1:] * residuals[:-1]).sum(axis=0) / (residuals**2).sum(axis=0))
        likeness = np.clip(likeness + (2 + 8 * likeness) / count, 0.0, 1.0)  # less biased, also near 1
        bound = likeness + _BOUND * np.sqrt((1 - likeness**2) / count)
        likeness = np.minimum(np.maximum(bound, np.median(likeness)), 1.0)
        first = known & ~np.roll(known, 1, axis=0)
        first[0] = known[0]
        scale = np.where(first, np.sqrt(1 - likeness**2), 1.0)
        one, x, y = (scale * (v - likeness * np.concatenate([0 * v[:1], v[:-1]])) for v in (one, x, y))
        slope, residuals, spread = _least_squares(one, x, y)
        error = np.sqrt((residuals**2).sum(axis=0) / (count - 2) / spread)
        return slope, two_sided(slope, error, np.maximum(count - 2, 1))


def _least_squares(one: FloatArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slope and the residuals of y = a·one + slope·x, and the squared length of x without `one`."""
    length = np.maximum((one**2).sum(axis=0), 1e-300)  # 0 for a random walk, whose level is free
    x, y = (v - one * ((one * v).sum(axis=0) / length) for v in (x, y))
    spread = (x**2).sum(axis=0)
    slope = (x * y).sum(axis=0) / spread
    return slope, y - slope * x, spread


def two_sided(value: FloatArray, error: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the probability that Student's t with these degrees of freedom is farther from 0 than value/error."""
    angle = np.arctan2(np.sqrt(freedom) * error, abs(value))

    def integral(end: FloatArray) -> FloatArray:  # of sin^(freedom − 1), from 0
        points = np.sin(np.multiply.outer((_ANGLES + 1) / 2, end))
        return end * np.tensordot(_WEIGHTS, points ** (freedom - 1), 1)

    return integral(angle) / integral(np.full_like(angle, math.pi / 2))


_FORESIGHT = 10  # times the steps that growth was seen over; beyond, nothing is foretold


def offenders(
    history: Sequence[WatchStep], limit: float = LIMIT, peaks: Mapping[Heads, Peaks] | None = None
) -> list[HeadTrend]:
    """Return the heads of the last step that had a number at any step, worst first.

    First come heads over the limit, then those that pass it soon, those that were over it, and the rest by size. A
    growth rate is the slope of ln(largest |logit|) over the last RECENT steps that have these heads. `peaks` are
    those of the history and the limit, if they are known.
    """
    if not history:
        return []
    last = history[-1]
    past = (peaks_of(history, limit) if peaks is None else peaks).get(heads_of(last))
    if past is None:
        return []
    table = logits(last)
    now = np.full(past.largest.shape, math.nan) if table is None else table
    recent = [*islice(_tables(reversed(history), last.heads), RECENT)][::-1]
    growth, span = np.full(now.shape, math.nan), np.zeros(now.shape)
    if recent:
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 and negative numbers have no logarithm
            flat = np.log([table.ravel() for _, table in recent])
        found_slopes = slopes(np.array([step for step, _ in recent], float), flat)
        growth, span = (array.reshape(now.shape) for array in found_slopes)
    trends: list[HeadTrend] = []
    for layer, count in enumerate(last.heads):
        for head in range(count):
            value, rate = float(now[layer, head]), float(growth[layer, head])
            peak, first = float(past.largest[layer, head]), float(past.first_over[layer, head])
            if not math.isnan(peak):
                passes = _steps_until(value, rate, limit, _FORESIGHT * float(span[layer, head]))
                trends.append(
                    HeadTrend(
                        layer, head, value, None if math.isnan(rate) else rate, passes, limit,
                        peak, int(past.largest_step[layer, head]), None if math.isinf(first) else int(first),
                    )
                )  # fmt: skip
    return sorted(trends, key=_badness)


def _tables(steps: Iterable[WatchStep], heads: tuple[int, ...]) -> Iterator[tuple[int, FloatArray]]:
    for step in steps:
        table = logits(step) if step.heads == heads else None
        if table is not None:
            yield step.step, table


def _steps_until(value: float, rate: float, limit: float, most: float) -> float | None:
    """Return the steps until a head passes the limit at its rate; None if it does not within `most` steps."""
    if value > limit:
        return 0.0
    if not (rate > 0 and value > 0):
        return None
    steps = math.log(limit / value) / rate
    return steps if steps <= most else None


def _badness(trend: HeadTrend) -> tuple[int, float]:
    if trend.over:
        return 0, -trend.value
    if trend.passes_in is not None:
        return 1, trend.passes_in
    if trend.came_back:
        return 2, -trend.peak
    return (4, 0.0) if math.isnan(trend.value) else (3, -trend.value)
