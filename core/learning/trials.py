"""Measurements for the tour that the Lab does not make, each with its own reproducible random numbers.

As everywhere, ± is a standard error over independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import softmax
from ..claims.claim import Reading
from ..claims.trials import mean_over_draws
from ..statistics.measurement import Estimate
from ..theory.quadrature import normal_cdf
from ..theory.query_norm import norm_nodes

_STREAM = 22  # of random numbers, so that draws here are not the Lab's
LARGEST_FLOAT16 = 65504.0


def only_exact(value: float) -> Reading:
    """Return a quantity that is known without a measurement."""
    return Reading(None, value)


def weights_above(d_k: int, n_keys: int, threshold: float, multiplier: float) -> Reading:
    """Count the weights of a row above a threshold; no exact value is known."""
    rng = _rng(1, d_k, n_keys)
    counts = np.empty(48)
    for draw in range(len(counts)):
        q, k = rng.standard_normal((64, d_k)), rng.standard_normal((n_keys, d_k))
        counts[draw] = np.count_nonzero(softmax(multiplier * (q @ k.T), None, None) > threshold) / len(q)
    return Reading(mean_over_draws(counts))


def saturation_threshold(n_keys: int) -> Reading:
    """Return √(2 ln n), the standard deviation of logits at which softmax over n keys saturates (Derrida 1981)."""
    return only_exact(math.sqrt(2 * math.log(n_keys)))


def saturation_width(n_keys: int) -> Reading:
    """Return the d_k from which unscaled logits of standard deviation √d_k saturate softmax: 2 ln n, rounded up."""
    return only_exact(math.ceil(2 * math.log(n_keys)))


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
    own = d_model * variance_q
    return {
        "component": Reading(mean_over_draws(components), own),
        "logits": Reading(mean_over_draws(logits), multiplier**2 * d_k * own * d_model * variance_k),
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
