"""What several heads compute at once: the shapes of their scores and outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import softmax
from ..statistics.measurement import Estimate
from .claim import Reading
from .trials import mean_over_draws

_DIGITS = 12  # after the point: beyond them, sums differ by the order of their terms


def shapes(batch: int, heads: int, tokens: int, d_k: int) -> Mapping[str, Reading]:
    """Compute attention of Q, K and V of shape (batch, heads, tokens, d_k) at once, and head by head.

    Return how many numbers the `scores` and the `output` have, the `sum` of the row furthest from 1, and how far
    `apart` the two outputs are at most.
    """
    rng = np.random.default_rng((23, 2, batch, heads, tokens, d_k))
    q, k, v = rng.standard_normal((3, batch, heads, tokens, d_k))
    scores = q @ k.mT / d_k**0.5
    weights = softmax(scores, None, None)
    output, sums = weights @ v, weights.sum(axis=-1).ravel()
    each = [softmax(q[b, h] @ k[b, h].T / d_k**0.5, None, None) @ v[b, h] for b in range(batch) for h in range(heads)]
    return {
        "scores": Reading(None, float(scores.size)),
        "output": Reading(None, float(output.size)),
        "sum": Reading(None, round(float(sums[np.abs(sums - 1).argmax()]), _DIGITS)),
        "apart": Reading(None, round(float(np.abs(np.array(each).reshape(output.shape) - output).max()), _DIGITS)),
    }


_DRAWS = 16


def through_layers(depth: int, d: int, tokens: int) -> Mapping[str, Reading]:
    """Measure a stack of layers x + attention(LayerNorm(x)), one head each, d_k = d, without a scale and with 1/√d.

    Inputs are standard normal, weights have variance 1/d, and the loss is L = Σ G∘LayerNorm(x), G standard normal.
    `unscaled` and `scaled` are the root mean square of ∂L/∂input, the geometric mean over draws; `ratio` is the one
    over the other, and `over one layer` that ratio over the ratio of a single layer. `alike unscaled` and
    `alike scaled` are the mean cosine of two tokens after the last layer.
    """
    multipliers = {"unscaled": 1.0, "scaled": d**-0.5}
    sizes = {(name, layers): np.empty(_DRAWS) for name in multipliers for layers in (1, depth)}  # logarithms
    alike = {name: np.empty(_DRAWS) for name in multipliers}
    for draw in range(_DRAWS):
        rng = np.random.default_rng((23, 1, depth, d, tokens, draw))
        x, grad = rng.standard_normal((2, tokens, d))
        weights = rng.standard_normal((depth, 3, d, d)) / math.sqrt(d)
        for name, multiplier in multipliers.items():
            for layers in (1, depth):
                gradient, end = input_gradient(x, weights[:layers], multiplier, grad)
                sizes[name, layers][draw] = math.log(np.square(gradient).mean()) / 2
            alike[name][draw] = mean_cosine(end)
    ratio, of_one = (sizes["unscaled", layers] - sizes["scaled", layers] for layers in (depth, 1))
    return {
        "unscaled": _of_logarithms(sizes["unscaled", depth]),
        "scaled": _of_logarithms(sizes["scaled", depth]),
        "ratio": _of_logarithms(ratio),
        "over_one": _of_logarithms(ratio - of_one),
        "alike_unscaled": Reading(mean_over_draws(alike["unscaled"])),
        "alike_scaled": Reading(mean_over_draws(alike["scaled"])),
    }


def input_gradient(
    x: FloatArray, weights: FloatArray, multiplier: float, grad: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ∂L/∂x of L = Σ grad∘LayerNorm(output), and LayerNorm(output); `weights` are (layers, 3, d, d)."""
    passed: list[tuple[FloatArray, ...]] = []
    for w_q, w_k, w_v in weights:
        h = normalised(x)
        q, k, v = h @ w_q, h @ w_k, h @ w_v
        p = softmax(multiplier * (q @ k.T), None, None)
        passed.append((x, q, k, v, p))
        x = x + p @ v
    back = _before_norm(x, grad)
    for (inside, q, k, v, p), (w_q, w_k, w_v) in zip(reversed(passed), weights[::-1], strict=True):
        of_p = back @ v.T
        of_scores = multiplier * p * (of_p - (p * of_p).sum(axis=1, keepdims=True))
        of_h = of_scores @ k @ w_q.T + of_scores.T @ q @ w_k.T + p.T @ back @ w_v.T
        back = back + _before_norm(inside, of_h)
    return back, normalised(x)


def normalised(x: FloatArray) -> FloatArray:
    """Return LayerNorm of each row, without gain and bias."""
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)


def mean_cosine(x: FloatArray) -> float:
    """Return the mean cosine of two different rows."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    rows = len(x)
    return float((np.square(unit.sum(axis=0)).sum() - rows) / (rows * (rows - 1)))


def _before_norm(x: FloatArray, grad: FloatArray) -> FloatArray:
    """Return the gradient of the input of LayerNorm, given that of its output."""
    y = normalised(x)
    mean = (grad * y).mean(axis=1, keepdims=True)
    return (grad - grad.mean(axis=1, keepdims=True) - y * mean) / x.std(axis=1, keepdims=True)


def _of_logarithms(each: FloatArray) -> Reading:
    """Return the geometric mean over draws of what these are the logarithms of, with its standard error."""
    mean, stderr = mean_over_draws(each)
    factor = math.exp(mean or 0.0)
    return Reading(Estimate(factor, factor * (stderr or 0.0)))
