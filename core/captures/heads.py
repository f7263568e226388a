"""One head of a capture measured, and every head of it in turn for a map.

The statistics are the lab's; only where the scores come from differs. Scores are made twice, a block at a time:
first for their mean, spread and extremes, which no formula tells beforehand, then for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.normalise import normalised
from ..attention.scales import SCALE_RULES, Normalise, Setting, multiplier
from ..statistics import tally
from ..statistics.histogram import Axis
from ..statistics.measurement import Column, Measurement
from .reader import Capture, Head, Layer, read_head

Rule: TypeAlias = tuple[str, float]  # a name of SCALE_RULES, or "file", and its multiplier
Logits: TypeAlias = Callable[[FloatArray], FloatArray]  # what happens to scores before the tally's multipliers


@dataclass(frozen=True)
class HeadSubject:
    """Which head a measurement is of."""

    layer: Layer
    head: int


def file_rule(layer: Layer) -> Rule:
    """The scale that the file says was used; 1/√d_k where it does not say."""
    if layer.scale is None:
        return named_rule("sqrt_d_k", layer)
    return "file", layer.scale


def named_rule(name: str, layer: Layer, custom: float = 1.0) -> Rule:
    """A rule of SCALE_RULES for the last query of this layer, or the file's own under the name "file"; raises
    ParameterError where the rule has no multiplier."""
    if name == "file":
        return file_rule(layer)
    setting = Setting(layer.d_k, layer.keys, custom, layer=layer.index, position=layer.keys - 1)
    return name, multiplier(name, setting)


def measure_head(capture: Capture, layer: Layer, head: int, rules: Sequence[Rule]) -> Measurement[HeadSubject]:
    """The head under each rule, in this order; raises CaptureError for what the reader refuses."""
    *_, (_, result) = stream_head(capture, layer, head, rules)
    assert result is not None, "a stream ends with its result"
    return result


def stream_head(
    capture: Capture, layer: Layer, head: int, rules: Sequence[Rule]
) -> Iterator[tuple[float, Measurement[HeadSubject] | None]]:
    """Pairs of the part done, 0 to 1, and the result, which comes with the last one.

    Statistics describe these texts: no bias is removed from them. Their standard errors, over the texts of a
    batch, exist from two texts on. Rows of padding tokens are left out.
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
    """What is done to q and k, what to their scores, and the rules that then only multiply.

    Rules share a pass if they normalise alike; but a soft-cap bends the logits of each differently.
    """
    if softcap is not None:
        return [(_normalise((name, c)), _capped(c, softcap), [(name, 1.0)]) for name, c in rules]
    return [(how, _plain, [*alike]) for how, alike in groupby(rules, _normalise)]


def _normalise(rule: Rule) -> Normalise:
    """What a rule does to q and k; those of a file have had their model's own norm."""
    name, _ = rule
    return "none" if name == "file" else SCALE_RULES[name].normalise


def _pass(
    q: FloatArray, k: FloatArray, hidden: BoolArray | None, logits: Logits, rules: Sequence[Rule]
) -> Iterator[tuple[float, tuple[Column, ...]]]:
    """Both rounds over the scores of one head; the columns come with the last pair."""
    shape = tally.Shape(q.shape[0], q.shape[1], k.shape[1])
    blocks = [*tally.blocks(shape)]
    count, total, squares, low, high = 0, 0.0, 0.0, math.inf, -math.inf
    pilot = None
    for done, (draws, rows) in enumerate(blocks, start=1):
        scores = logits(q[draws, rows] @ k[draws].mT)
        seen = scores if hidden is None else scores[~hidden[draws, rows]]
        if seen.size:
            # Squares are taken about the first block's mean, so that a large common part costs no digits.
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
    kept = tally.Tally(shape, rules, centre, 3 * std if count else math.nan, Axis(-reach, reach, 1024))
    for done, (draws, rows) in enumerate(blocks, start=1):
        scores = logits(q[draws, rows] @ k[draws].mT) - centre
        tally.add(kept, draws, rows, scores, None if hidden is None else hidden[draws, rows])
        last = done == len(blocks)
        yield (1 + done / len(blocks)) / 2, tally.columns(kept, shape.draws, unbiased=False) if last else ()


def _plain(scores: FloatArray) -> FloatArray:
    return scores


def _capped(c: float, softcap: float) -> Logits:
    """cap·tanh(c·s/cap), as Gemma 2 does after the scale and before the mask."""
    return lambda scores: softcap * np.tanh(scores * (c / softcap))


def _hidden(data: Head) -> BoolArray | None:
    """Keys that a query may not see, and all keys of a query that is padding; (batch, queries, keys) or None.

    In self-attention a token that no query may attend to is padding, and what it attends to means nothing.
    """
    if data.visible is None:
        return None
    visible = np.broadcast_to(data.visible, (len(data.q), data.q.shape[1], data.k.shape[1]))
    if visible.shape[1] == visible.shape[2]:
        tokens: BoolArray = np.any(visible, axis=1, keepdims=True)
        visible = visible & tokens.mT
    return np.logical_not(visible)
