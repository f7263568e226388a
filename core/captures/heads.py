"""Measure one head of a capture.

The statistics are the Lab's; only the source of the scores differs. Scores are computed twice, block by block: first
for their mean, spread and extremes, which no formula gives in advance, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.normalise import normalised
from ..attention.softmax import softcap
from ..scales import Normalise
from ..statistics import tally
from ..statistics.histogram import Axis
from ..statistics.measurement import Column, Measurement
from .capture import HeadSubject, Layer
from .files import CaptureError, plain
from .head import CaptureFile, Head, read_head
from .rules import OfRows, Rule, file_rule, multipliers, named_rule, shown_multiplier

__all__ = ["LARGEST", "SMALLEST", "Rule", "file_rule", "measure_head", "named_rule", "stream_head"]

# Scores, scales and logits of these sizes have statistics in float64: fourth powers of scores are the most extreme.
# They include every number of float32 that is not 0.
SMALLEST, LARGEST = 1e-50, 1e50

# Return the logits of a block from its scores, draws, rows and hidden keys.
Logits: TypeAlias = Callable[[FloatArray, slice, slice, BoolArray | None], FloatArray]


def measure_head(capture: CaptureFile, layer: Layer, head: int, rules: Sequence[Rule]) -> Measurement[HeadSubject]:
    """Measure the head under each rule, in this order; raise CaptureError if it cannot be read."""
    *_, (_, result) = stream_head(capture, layer, head, rules)
    assert result is not None, "a stream ends with its result"
    return result


def stream_head(
    capture: CaptureFile, layer: Layer, head: int, rules: Sequence[Rule]
) -> Iterator[tuple[float, Measurement[HeadSubject] | None]]:
    """Yield pairs of the finished fraction, 0 to 1, and the result, which comes with the last one.

    Statistics describe these texts, so no bias is removed. Their standard errors, over the texts of a batch, need at
    least two texts. Rows of padding tokens are left out. Raise CaptureError if the head cannot be read or statistics
    of its logits overflow or underflow.
    """
    data = read_head(capture, layer, head)
    where = f"{plain(capture.path)}: {layer.place}, head {head}"
    for rule in rules:
        _require_size(rule.multiplier, "scale", where)
    _require_size(layer.softcap or 0.0, "soft-cap", where)
    columns: list[Column] = []
    passes = _passes(rules, layer, data)
    for number, each in enumerate(passes):
        for fraction, found in _pass(data, each, where):
            columns += found
            yield (number + fraction) / len(passes), None
    shown = [
        replace(column, multiplier=shown_multiplier(rule, layer, data), multipliers=_range_of_rows(rule, layer, data))
        for column, rule in zip(columns, rules, strict=True)
    ]
    yield 1.0, Measurement(HeadSubject(layer, head), layer.batch, layer.batch, tuple(shown))


def _range_of_rows(rule: Rule, layer: Layer, data: Head) -> tuple[float, float] | None:
    """Return the smallest and the largest multiplier of q·k in rows that see two keys; None if all have the same."""
    by = multipliers(rule, layer, data)
    if not callable(by):
        return None
    least, most = math.inf, -math.inf
    for draws, rows in tally.blocks(tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])):
        shape = data.q[draws, rows].shape[:2]
        seen: npt.NDArray[np.intp] = np.full(shape, data.k.shape[1], np.intp)
        if data.visibility is not None:
            shown = ~data.visibility.hidden(draws, rows)
            seen = np.broadcast_to(np.asarray(np.count_nonzero(shown, axis=-1), np.intp), shape)
        found = np.broadcast_to(by(seen, draws, rows), shape)[seen > 1]
        if found.size:
            least, most = min(least, float(found.min())), max(most, float(found.max()))
    factor = layer.own_factor if rule.normalise == "none" else 1.0
    return (least * factor, most * factor) if least < most else None


def _require_size(size: float, what: str, where: str) -> None:
    """Raise CaptureError if statistics of logits overflow or underflow with a scale, score or logit of this size."""
    if size != 0 and not SMALLEST <= size <= LARGEST:
        fault = "underflow" if size < SMALLEST else "overflow"
        raise CaptureError(
            f"{where}: logits {fault} float64: the {what} must be from {SMALLEST:g} to {LARGEST:g}, not {size:g}"
        )


@dataclass(frozen=True, eq=False)
class _Pass:
    """How the logits of some columns are computed: from normalised q and k, by a function, then multiplied."""

    normalise: Normalise
    logits: Logits | None  # None: the scores
    multipliers: list[tuple[str, float]]  # by rule


def _passes(rules: Sequence[Rule], layer: Layer, data: Head) -> list[_Pass]:
    """Group rules into passes.

    Rules that only multiply scores share a pass if they normalise alike. A soft-cap, a bias, or a multiplier that
    differs between rows transforms the logits of each rule differently.
    """
    found = [(rule, multipliers(rule, layer, data)) for rule in rules]
    if layer.softcap is None and not data.biases:
        numbers = [(rule, c) for rule, c in found if not callable(c)]
        if len(numbers) == len(rules):
            alike = groupby(numbers, key=_normalise)
            return [_Pass(how, None, [(rule.name, c) for rule, c in same]) for how, same in alike]
    return [_Pass(rule.normalise, partial(_logits, data, layer.softcap, c), [(rule.name, 1.0)]) for rule, c in found]


def _normalise(each: tuple[Rule, float]) -> Normalise:
    return each[0].normalise


def _logits(
    data: Head,
    cap: float | None,
    multiplier: float | OfRows,
    scores: FloatArray,
    draws: slice,
    rows: slice,
    hidden: BoolArray | None,
) -> FloatArray:
    """Return the logits of a block: multiplied, soft-capped as in Gemma 2, and with biases added."""
    if callable(multiplier):
        shown = np.ones_like(scores, np.bool_) if hidden is None else ~hidden
        logits = scores * multiplier(np.count_nonzero(shown, axis=-1), draws, rows)[..., np.newaxis]
    else:
        logits = scores * multiplier
    if cap is not None:
        logits = softcap(logits, cap, out=logits)
    for bias in data.biases:
        logits += bias.of(draws, rows)
    if hidden is not None:
        np.copyto(logits, 0, where=hidden)
    return logits


def _pass(data: Head, each: _Pass, where: str) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of one head twice; the columns come with the last pair."""
    how, logits = each.normalise, each.logits
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    parts = sum(1 for _ in tally.blocks(shape))
    count, total, squares, low, high = 0, 0.0, 0.0, math.inf, -math.inf
    pilot, largest_score = None, 0.0
    for done, (draws, rows, scores, hidden) in enumerate(_scores(data, how, tally.blocks(shape)), start=1):
        visible = ... if hidden is None else ~hidden
        seen = scores[visible]
        if seen.size:
            largest = float(np.abs([seen.min(), seen.max()]).max())
            if not largest <= LARGEST:
                _require_size(math.inf if math.isnan(largest) else largest, "largest score", where)
            largest_score = max(largest_score, largest)
            if logits is not None:
                seen = logits(scores, draws, rows, hidden)[visible]
            # Squares are taken about the first block's mean, so that a large mean costs no digits.
            pilot = float(seen.mean()) if pilot is None else pilot
            away = seen - pilot
            count += away.size
            total += float(away.sum())
            squares += float(np.vdot(away, away))
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
        yield done / parts / 2, ()
    _require_size(largest_score, "largest score", where)
    centre, std, reach = 0.0, 0.0, 1.0
    if count and pilot is not None:
        centre = pilot + total / count
        std = math.sqrt(max(squares / count - (total / count) ** 2, 0.0))
        reach = max(high - centre, centre - low) * (1 + 1e-9) or 1.0
        largest = max(-low, high)
        _require_size(largest, "largest score" if logits is None else "largest logit", where)
        for _, c in each.multipliers:
            _require_size(c * largest, "largest logit", where)
    band = 3 * std if count else math.nan
    result = tally.Tally(shape, each.multipliers, centre, band, Axis(-reach, reach, 1024), data.sink)
    for done, (draws, rows, scores, hidden) in enumerate(_scores(data, how, tally.blocks(shape)), start=1):
        found = scores if logits is None else logits(scores, draws, rows, hidden)
        tally.add(result, draws, rows, found - centre, hidden)
        yield (1 + done / parts) / 2, tally.columns(result, shape.draws, unbiased=False) if done == parts else ()


def _scores(
    data: Head, how: Normalise, blocks: Iterable[tuple[slice, slice]]
) -> Iterator[tuple[slice, slice, FloatArray, BoolArray | None]]:
    """Yield each block's draws, rows, scores and hidden keys, both (draws, rows, keys).

    Scores that overflow are infinite or NaN; hidden ones are 0.
    """
    of, k = None, data.k
    for draws, rows in blocks:
        if of != draws:
            of, k = draws, _vectors(data.k[draws], how)
        q = _vectors(data.q[draws, rows], how)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = q @ k.mT
        hidden = None
        if data.visibility is not None:
            hidden = np.broadcast_to(data.visibility.hidden(draws, rows), scores.shape)
            np.copyto(scores, 0, where=hidden)
        yield draws, rows, scores, hidden


def _vectors(vectors: FloatArray, how: Normalise) -> FloatArray:
    """Return queries or keys in float64, normalised."""
    vectors = vectors.astype(np.float64, copy=False)
    if how == "none":
        return vectors
    # A power of two changes no digit, and keeps the squares of extreme vectors in range.
    _, exponents = np.frexp(np.abs(vectors).max(axis=-1, keepdims=True))
    return normalised(np.ldexp(vectors, -exponents), how)
