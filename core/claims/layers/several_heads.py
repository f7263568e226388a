"""What several heads compute at once: the shapes of their scores and outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...attention.softmax import softmax
from ..claim import Reading

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
