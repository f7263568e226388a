"""Measure one head of a capture.

The statistics are the Lab's; only the source of the scores differs. Scores are computed twice, block by block: first
for their mean, spread and extremes, which no formula gives in advance, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.normalise import normalised
from ..scales import SCALE_RULES, Normalise, Setting, multiplier
from ..statistics import tally
from ..statistics.histogram import Axis
from ..statistics.measurement import Column, Measurement
from .capture import HeadSubject, Layer
from .files import CaptureError, plain
from .reader import CaptureFile, Head, read_head

# Scores, scales and logits of these sizes have statistics in float64: fourth powers of scores are the most extreme.
# They include every number of float32 that is not 0.
SMALLEST, LARGEST = 1e-50, 1e50

Rule: TypeAlias = tuple[str, float]  # a name of SCALE_RULES, or "file", and its multiplier
Logits: TypeAlias = Callable[[FloatArray], FloatArray]  # applied to scores before the tally's multipliers


def file_rule(layer: Layer) -> Rule:
    """Return the scale in the file's metadata; 1/√d_k if it has none."""
    if layer.scale is None:
        return named_rule("sqrt_d_k", layer)
    return "file", layer.scale


def named_rule(name: str, layer: Layer, custom: float = 1.0) -> Rule:
    """Return a rule of SCALE_RULES for the last query of this layer, or the file's own if `name` is "file".

    Raise ParameterError if the rule has no multiplier.
    """
    if name == "file":
        return file_rule(layer)
    setting = Setting(layer.d_k, layer.keys, custom, layer=layer.index, position=layer.keys - 1)
    return name, multiplier(name, setting)


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
    where = f"{plain(capture.path)}: layer {layer.index}, head {head}"
    for _, c in rules:
        _require_size(c, "scale", where)
    _require_size(layer.softcap or 0.0, "soft-cap", where)
    columns: list[Column] = []
    passes = _passes(rules, layer.softcap)
    for number, (how, logits, inner) in enumerate(passes):
        for fraction, found in _pass(data, how, logits, inner, where):
            columns += found
            yield (number + fraction) / len(passes), None
    if layer.softcap is not None:
        columns = [replace(column, multiplier=c) for column, (_, c) in zip(columns, rules, strict=True)]
    yield 1.0, Measurement(HeadSubject(layer, head), layer.batch, layer.batch, tuple(columns))


def _require_size(size: float, what: str, where: str) -> None:
    """Raise CaptureError if statistics of logits overflow or underflow with a scale, score or logit of this size."""
    if size != 0 and not SMALLEST <= size <= LARGEST:
        fault = "underflow" if size < SMALLEST else "overflow"
        raise CaptureError(
            f"{where}: logits {fault} float64: the {what} must be from {SMALLEST:g} to {LARGEST:g}, not {size:g}"
        )


def _passes(rules: Sequence[Rule], softcap: float | None) -> list[tuple[Normalise, Logits, list[Rule]]]:
    """Group rules into passes: how q and k are normalised, a function of scores, and the rules that scale its result.

    Rules with the same normalisation share a pass, but a soft-cap transforms the logits of each rule differently.
    """
    if softcap is not None:
        return [(_normalise((name, c)), _capped(c, softcap), [(name, 1.0)]) for name, c in rules]
    return [(how, _unchanged, [*alike]) for how, alike in groupby(rules, _normalise)]


def _normalise(rule: Rule) -> Normalise:
    """Return the normalisation of a rule; q and k in a file have already had the model's own norm."""
    name, _ = rule
    return "none" if name == "file" else SCALE_RULES[name].normalise


def _pass(
    data: Head, how: Normalise, logits: Logits, rules: Sequence[Rule], where: str
) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of one head twice; the columns come with the last pair."""
    shape = tally.Shape(data.q.shape[0], data.q.shape[1], data.k.shape[1])
    parts = sum(1 for _ in tally.blocks(shape))
    count, total, squares, low, high = 0, 0.0, 0.0, math.inf, -math.inf
    pilot = None
    for done, (_, _, scores, hidden) in enumerate(_scores(data, how, tally.blocks(shape)), start=1):
        visible = ... if hidden is None else ~hidden
        seen = scores[visible]
        if seen.size:
            largest = float(np.abs([seen.min(), seen.max()]).max())
            if not largest <= LARGEST:
                _require_size(math.inf if math.isnan(largest) else largest, "largest score", where)
            if logits is not _unchanged:
                seen = logits(scores)[visible]
            # Squares are taken about the first block's mean, so that a large mean costs no digits.
            pilot = float(seen.mean()) if pilot is None else pilot
            away = seen - pilot
            count += away.size
            total += float(away.sum())
            squares += float(np.vdot(away, away))
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
        yield done / parts / 2, ()
    centre, std, reach = 0.0, 0.0, 1.0
    if count and pilot is not None:
        centre = pilot + total / count
        std = math.sqrt(max(squares / count - (total / count) ** 2, 0.0))
        reach = max(high - centre, centre - low) * (1 + 1e-9) or 1.0
        largest = max(-low, high)
        _require_size(largest, "largest score" if logits is _unchanged else "largest logit", where)
        for _, c in rules:
            _require_size(c * largest, "largest logit", where)
    result = tally.Tally(shape, rules, centre, 3 * std if count else math.nan, Axis(-reach, reach, 1024))
    for done, (draws, rows, scores, hidden) in enumerate(_scores(data, how, tally.blocks(shape)), start=1):
        tally.add(result, draws, rows, logits(scores) - centre, hidden)
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


def _unchanged(scores: FloatArray) -> FloatArray:
    return scores


def _capped(c: float, softcap: float) -> Logits:
    """Return the function cap·tanh(c·s/cap), applied after the scale and before the mask as in Gemma 2."""
    return lambda scores: softcap * np.tanh(scores * (c / softcap))
