"""Measure one head of a capture.

The statistics are the Lab's; only the source of the scores differs. Scores are computed twice, block by block: first
for their mean, spread and extremes, which no formula gives in advance, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
from .reader import CaptureFile, Head, read_head

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
    least two texts. Rows of padding tokens are left out.
    """
    data = read_head(capture, layer, head)
    hidden = _hidden(data)
    columns: list[Column] = []
    passes = _passes(rules, layer.softcap)
    for number, (how, logits, inner) in enumerate(passes):
        q, k = (normalised(side.astype(np.float64), how) for side in (data.q, data.k))
        for fraction, found in _pass(q, k, hidden, logits, inner):
            columns += found
            yield (number + fraction) / len(passes), None
    if layer.softcap is not None:
        columns = [replace(column, multiplier=c) for column, (_, c) in zip(columns, rules, strict=True)]
    yield 1.0, Measurement(HeadSubject(layer, head), layer.batch, layer.batch, tuple(columns))


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
    q: FloatArray, k: FloatArray, hidden: BoolArray | None, logits: Logits, rules: Sequence[Rule]
) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Process the scores of one head twice; the columns come with the last pair."""
    shape = tally.Shape(q.shape[0], q.shape[1], k.shape[1])
    blocks = [*tally.blocks(shape)]
    count, total, squares, low, high = 0, 0.0, 0.0, math.inf, -math.inf
    pilot = None
    for done, (draws, rows) in enumerate(blocks, start=1):
        scores = logits(q[draws, rows] @ k[draws].mT)
        seen = scores if hidden is None else scores[~hidden[draws, rows]]
        if seen.size:
            # Squares are taken about the first block's mean, so that a large mean costs no digits.
            pilot = float(seen.mean()) if pilot is None else pilot
            away = seen - pilot
            count += away.size
            total += float(away.sum())
            squares += float(np.vdot(away, away))
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
        yield done / len(blocks) / 2, ()
    centre, std, reach = 0.0, 0.0, 1.0
    if count and pilot is not None:
        centre = pilot + total / count
        std = math.sqrt(max(squares / count - (total / count) ** 2, 0.0))
        reach = max(high - centre, centre - low) * (1 + 1e-9) or 1.0
    result = tally.Tally(shape, rules, centre, 3 * std if count else math.nan, Axis(-reach, reach, 1024))
    for done, (draws, rows) in enumerate(blocks, start=1):
        scores = logits(q[draws, rows] @ k[draws].mT) - centre
        tally.add(result, draws, rows, scores, None if hidden is None else hidden[draws, rows])
        last = done == len(blocks)
        yield (1 + done / len(blocks)) / 2, tally.columns(result, shape.draws, unbiased=False) if last else ()


def _unchanged(scores: FloatArray) -> FloatArray:
    return scores


def _capped(c: float, softcap: float) -> Logits:
    """Return the function cap·tanh(c·s/cap), applied after the scale and before the mask as in Gemma 2."""
    return lambda scores: softcap * np.tanh(scores * (c / softcap))


def _hidden(data: Head) -> BoolArray | None:
    """Return which keys are hidden, and all keys of a padding query: (batch, queries, keys), or None.

    In self-attention a token that no query may attend to is padding, and its own attention is meaningless.
    """
    if data.visible is None:
        return None
    visible = np.broadcast_to(data.visible, (len(data.q), data.q.shape[1], data.k.shape[1]))
    if visible.shape[1] == visible.shape[2]:
        tokens: BoolArray = np.any(visible, axis=1, keepdims=True)
        visible = visible & tokens.mT
    return np.logical_not(visible)
