"""What the heads of the sample do, a real model: all-MiniLM-L6-v2."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import softmax
from ..captures.capture import Layer, sample_path
from ..captures.head import CaptureFile, read_head
from ..captures.heads import Rule, file_rule, measure_head, named_rule
from ..captures.reader import open_capture
from ..claims.claim import Reading
from ..diagnosis.heads.reasons import Traits
from ..diagnosis.heads.rows import logits, some_rows
from ..diagnosis.heads.traits import traits
from ..statistics.catalogue import SINK
from .trials import measured_once

_ROWS = 64  # of a head's that are compared with those of other heads


def all_heads() -> Mapping[str, Reading]:
    """Measure every head of the sample, unscaled and at its own scale.

    `least`, `median` and `most` are of the variance of unscaled scores within rows over d_k. `sinks` and `saturated`
    count heads, `looking` the saturated ones without a sink. `alignment` and `dimensions` are medians over heads of
    these traits.
    """
    capture = open_capture(sample_path())
    ratios: list[float] = []
    firsts: list[float] = []
    saturations: list[float] = []
    found: list[Traits] = []
    for layer in capture.layers:
        for head in range(layer.heads):
            raw, own = measure_head(capture, layer, head, [named_rule("none", layer), file_rule(layer)]).columns
            ratios.append((raw.measured["logit_variance_within_row"].value or 0.0) / layer.d_k)
            firsts.append(own.measured["first_key_weight"].value or 0.0)
            saturations.append(own.measured["saturation"].value or 0.0)
            of_head = traits(capture, layer, head)
            found += [] if of_head is None else [of_head]
    values = {
        "heads": float(len(ratios)),
        "least": min(ratios),
        "median": float(np.median(ratios)),
        "most": max(ratios),
        "sinks": float(sum(first > SINK for first in firsts)),
        "saturated": float(sum(ratio >= 1 for ratio in saturations)),
        "looking": float(sum(ratio >= 1 and first <= SINK for ratio, first in zip(saturations, firsts, strict=True))),
        "alignment": float(np.median([each.alignment for each in found])),
        "dimensions": float(np.median([each.dimensions for each in found])),
    }
    return {name: measured_once(value) for name, value in values.items()}


def heads_apart(layer: int) -> Reading:
    """Measure how different the weights of two heads of a layer are: ½ Σ|p − p′|, the mean over rows and pairs."""
    capture = open_capture(sample_path())
    of = capture.layers[layer]
    weights = [_weights(capture, of, head, file_rule(of)) for head in range(of.heads)]
    return measured_once(float(np.mean([np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in combinations(weights, 2)])))


def heads_at_once() -> Mapping[str, Reading]:
    """Measure where the heads of a layer look at the same time, and the rank of their scores.

    `keys` is how many different keys have the largest weight in one of the heads of a layer, the mean over queries
    and layers. `near` and `far` are the mean distance between query and key, in tokens, weighted by attention, of the
    heads of the model where it is least and most. `rank` is that of a head's scores, and `full` that of the scores of
    one head with the dimensions of all, in the first layer.
    """
    capture = open_capture(sample_path())
    keys: list[float] = []
    distances: list[float] = []
    for layer in capture.layers:
        weights = np.array(
            [_weights(capture, layer, head, file_rule(layer), layer.queries) for head in range(layer.heads)]
        )
        query, key = np.indices(weights.shape[1:])
        keys.append(float(np.mean([len(set(each)) for each in weights.argmax(axis=2).T.tolist()])))
        distances += (weights * np.abs(query - key)).sum(axis=2).mean(axis=1).tolist()
    first = capture.layers[0]
    heads = [read_head(capture, first, head) for head in range(first.heads)]
    scores = [each.q[0].astype(np.float64) @ each.k[0].astype(np.float64).T for each in heads]
    ranks = [np.linalg.matrix_rank(each) for each in (scores[0], np.sum(scores, axis=0))]
    found = {"keys": float(np.mean(keys)), "near": min(distances), "far": max(distances)}
    found |= {"rank": float(ranks[0]), "full": float(ranks[1])}
    return {name: measured_once(value) for name, value in found.items()}


def scale_dropped() -> Mapping[str, Reading]:
    """Measure what multiplier 1 instead of the file's does to the heads of the sample, the means over heads.

    `moved` is the weight that goes to other keys, ½ Σ|p − p′|; `before` and `after` are the entropy over ln n.
    """
    capture = open_capture(sample_path())
    moved: list[float] = []
    entropies: list[tuple[float, float]] = []
    for layer in capture.layers:
        rules = file_rule(layer), named_rule("none", layer)
        for head in range(layer.heads):
            one, other = (_weights(capture, layer, head, rule) for rule in rules)
            moved.append(float(np.abs(one - other).sum(axis=-1).mean()) / 2)
            columns = measure_head(capture, layer, head, rules).columns
            before, after = (column.measured["entropy_fraction"].value or 0.0 for column in columns)
            entropies.append((before, after))
    before, after = np.mean(entropies, axis=0).tolist()
    found = {"moved": float(np.mean(moved)), "before": before, "after": after}
    return {name: measured_once(value) for name, value in found.items()}


def _weights(capture: CaptureFile, layer: Layer, head: int, rule: Rule, rows: int = _ROWS) -> FloatArray:
    """Return at most `rows` rows of a head's weights under a rule, [rows, keys]."""
    part = some_rows(read_head(capture, layer, head), layer, rows)
    hidden = None if part.seen is None else ~np.broadcast_to(part.visible, (*part.used.shape, layer.keys))
    return softmax(logits(part, rule), hidden, None)[part.used].astype(np.float64)
