"""Measurements for the tour and the questions that the Lab does not make, of random inputs and of the sample.

As everywhere, ± is a standard error over independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import softmax
from ...captures.capture import Layer, sample_path
from ...captures.head import CaptureFile, read_head
from ...captures.heads import Rule, file_rule, measure_head, named_rule
from ...captures.reader import open_capture
from ...diagnosis.heads.ranking import traits
from ...diagnosis.heads.reasons import Traits
from ...diagnosis.heads.rows import logits, some_rows
from ...statistics.catalogue import SINK
from ...statistics.measurement import Estimate
from ...theory.quadrature import normal_cdf
from ...theory.score_moments import norm_nodes
from ..sources import Reading
from ..trials import mean_over_draws

_STREAM = 22  # of random numbers, so that draws here are not the Lab's
LARGEST_FLOAT16 = 65504.0


def weights_above(d_k: int, n_keys: int, threshold: float, multiplier: float) -> Reading:
    """Count the weights of a row above a threshold; no exact value is known."""
    rng = _rng(1, d_k, n_keys)
    counts = np.empty(48)
    for draw in range(len(counts)):
        q, k = rng.standard_normal((64, d_k)), rng.standard_normal((n_keys, d_k))
        counts[draw] = np.count_nonzero(softmax(multiplier * (q @ k.T), None, None) > threshold) / len(q)
    return Reading(mean_over_draws(counts))


def projected(
    d_model: int, d_k: int, variance_q: float, variance_k: float, multiplier: float
) -> Mapping[str, Reading]:
    """Measure q = x W_Q and k = x W_K of inputs after LayerNorm, x of mean 0 and variance 1, for random weights.

    `variance_q` and `variance_k` are those of the weights' entries. Return the variance of a component of q, and of
    the logits: exactly d_model·variance_q, and multiplier²·d_k·d_model²·variance_q·variance_k, as |x|² = d_model.
    """
    rng, draws, tokens = _rng(2, d_model, d_k), 32, 48
    components, logits = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        x = rng.standard_normal((tokens, d_model))
        x -= x.mean(axis=1, keepdims=True)
        x /= x.std(axis=1, keepdims=True)
        q = x @ rng.normal(0, math.sqrt(variance_q), (d_model, d_k))
        k = x @ rng.normal(0, math.sqrt(variance_k), (d_model, d_k))
        components[draw] = np.square(q).mean()
        logits[draw] = multiplier**2 * np.square(q @ k.T).mean()
    variance = d_model * variance_q
    return {
        "component": Reading(mean_over_draws(components), variance),
        "logits": Reading(mean_over_draws(logits), multiplier**2 * d_k * variance * d_model * variance_k),
    }


def rotary(d_k: int, distance: int, base: float) -> Mapping[str, Reading]:
    """Measure scores after rotary embedding between a query and a key at a distance.

    `same` is the score of a key that equals the query, over d_k: exactly the mean of cos(distance·θ_i) over the
    frequencies θ_i = base^(−2i/d_k). `variance` is that of the scores of an independent key: d_k.
    """
    frequencies = base ** (-2 * np.arange(d_k // 2) / d_k)
    cos, sin = np.cos(distance * frequencies), np.sin(distance * frequencies)
    rng, draws, rows = _rng(3, d_k, distance), 64, 256
    same, squares = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        q, other = rng.standard_normal((2, rows, d_k))

        def turned_score(k: FloatArray, q: FloatArray = q) -> FloatArray:
            a, b = k[:, 0::2], k[:, 1::2]
            return (q[:, 0::2] * (a * cos - b * sin) + q[:, 1::2] * (b * cos + a * sin)).sum(axis=1)

        same[draw] = turned_score(q).mean() / d_k
        squares[draw] = np.square(turned_score(other)).mean()
    return {
        "same": Reading(mean_over_draws(same), float(cos.mean())),
        "variance": Reading(mean_over_draws(squares), float(d_k)),
    }


def summed_terms(d_k: int, terms: int) -> Reading:
    """Measure the variance of scores that are a sum of `terms` independent products, after 1/√d_k."""
    rng, draws, rows = _rng(4, d_k, terms), 64, 512
    q, k = rng.standard_normal((2, draws, rows, terms * d_k), dtype=np.float32)
    scores = np.einsum("...i,...i->...", q, k).astype(np.float64) / math.sqrt(d_k)
    return Reading(mean_over_draws(np.square(scores).mean(axis=1)), float(terms))


def score_overflow(d_k: int, std: float, multiplier: float) -> Reading:
    """Measure the share of scores beyond float16's largest number, for components of standard deviation `std`.

    The queries are multiplied by `multiplier` first.
    """
    rng, draws, rows = _rng(5, d_k), 64, 512
    q, k = rng.standard_normal((2, draws, rows, d_k), dtype=np.float32)
    bound = LARGEST_FLOAT16 / (std * std * multiplier)
    beyond = np.abs(np.einsum("...i,...i->...", q, k)) > bound
    r, weights = norm_nodes(d_k, 0.0)
    return Reading(mean_over_draws(beyond.mean(axis=1)), float(2 * (weights @ normal_cdf(-bound / r))))


def measured_once(value: float) -> Reading:
    """Return a quantity of one text, which has no standard error and no exact value."""
    return Reading(Estimate(value, None))


def _rng(*trial: int) -> np.random.Generator:
    return np.random.default_rng((_STREAM, *trial))


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
            raw, scaled = measure_head(capture, layer, head, [named_rule("none", layer), file_rule(layer)]).columns
            ratios.append((raw.measured["logit_variance_within_row"].value or 0.0) / layer.d_k)
            firsts.append(scaled.measured["first_key_weight"].value or 0.0)
            saturations.append(scaled.measured["saturation"].value or 0.0)
            of_head = traits(capture, layer, head, layer.queries)
            found += [] if of_head is None else [of_head]
    values = {
        "heads": float(len(ratios)),
        "least": min(ratios),
        "median": float(np.median(ratios)),
        "most": max(ratios),
        "sinks": float(sum(first > SINK for first in firsts)),
        "saturated": float(sum(ratio >= 1 for ratio in saturations)),
        "looking": float(sum(ratio >= 1 and first <= SINK for ratio, first in zip(saturations, firsts, strict=True))),
        "alignment": float(np.median([head.alignment for head in found])),
        "dimensions": float(np.median([head.dimensions for head in found])),
    }
    return {name: measured_once(value) for name, value in values.items()}


def heads_apart() -> Mapping[str, Reading]:
    """Measure how different the weights of two heads of a layer are: ½ Σ|p − p′|, the mean over rows and pairs.

    Return it for the layers where it is `least` and `most`.
    """
    capture = open_capture(sample_path())
    of_layers: list[float] = []
    for layer in capture.layers:
        weights = [_weights(capture, layer, head, file_rule(layer)) for head in range(layer.heads)]
        apart = [np.abs(a - b).sum(axis=-1).mean() / 2 for a, b in combinations(weights, 2)]
        of_layers.append(float(np.mean(apart)))
    return {"least": measured_once(min(of_layers)), "most": measured_once(max(of_layers))}


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
        weights = np.array([_weights(capture, layer, head, file_rule(layer)) for head in range(layer.heads)])
        query, key = np.indices(weights.shape[1:])
        keys.append(float(np.mean([len(set(keys_of)) for keys_of in weights.argmax(axis=2).T.tolist()])))
        distances += (weights * np.abs(query - key)).sum(axis=2).mean(axis=1).tolist()
    first = capture.layers[0]
    heads = [read_head(capture, first, head) for head in range(first.heads)]
    scores = [head.q[0].astype(np.float64) @ head.k[0].astype(np.float64).T for head in heads]
    ranks = [np.linalg.matrix_rank(matrix) for matrix in (scores[0], np.sum(scores, axis=0))]
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


def _weights(capture: CaptureFile, layer: Layer, head: int, rule: Rule) -> FloatArray:
    """Return a head's weights under a rule, [queries, keys]."""
    part = some_rows(read_head(capture, layer, head), layer, layer.queries)
    hidden = None if part.seen is None else ~np.broadcast_to(part.visible, (*part.used.shape, layer.keys))
    return softmax(logits(part, rule), hidden, None)[part.used].astype(np.float64)
