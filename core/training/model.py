"""One layer of attention that recalls labels, and its gradients, written out.

For pairs (x_j, y_j) and a query x_i, with q = W_q x, k = W_k x, both normalised if the rule does so:
s_ij = q_i·k_j · z = c s · p = softmax over j · o_i = Σ_j p_ij W_v e(y_j) · loss −ln softmax(o_i)[y_i], its mean.
Backwards: ∂o = (softmax(o) − e(y))/N · ∂p_ij = ∂o_i·v_j · ∂z = p∘(∂p − Σ_j p ∂p) · ∂q = c ∂z k · ∂k = c ∂zᵀ q.
Everything is computed for many runs at once: weights have a first axis of runs, examples one of seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..attention.normalise import normalised, normalised_backward
from ..attention.softmax import FLOOR
from ..scales import Normalise
from .settings import Task
from .task import Examples


class Weights(NamedTuple):
    """The weights of several runs, or the gradients of their losses."""

    query: FloatArray  # (runs, d_k, width)
    key: FloatArray  # (runs, d_k, width)
    value: FloatArray  # (runs, labels, labels)


@dataclass(frozen=True, eq=False)
class Step:
    """What one pass over the examples found; one number a run."""

    loss: FloatArray  # nats
    recalled: FloatArray  # the share of queries whose likeliest label is theirs
    entropy: FloatArray  # of the attention, over ln(pairs)
    gradients: Weights


def initial(task: Task, d_k: int, rng: np.random.Generator) -> Weights:
    """Return the weights of one run: q and k have components of variance 1, as study notes assume."""
    std = task.width**-0.5
    query, key = (rng.standard_normal((1, d_k, task.width), dtype=np.float32) * np.float32(std) for _ in range(2))
    value = rng.standard_normal((1, task.labels, task.labels), dtype=np.float32)
    return Weights(query, key, value * np.float32(task.labels**-0.5))


def pass_over(weights: Weights, examples: Examples, multipliers: FloatArray, how: Normalise) -> Step:
    """Compute the losses of all runs and their gradients.

    `examples` have a first axis of runs, or of one for all; `multipliers` (runs,) are those of the scores.
    """
    x, labels = examples.keys, examples.labels
    runs, (_, batch, pairs, width) = len(weights.query), x.shape
    flat = x.reshape(len(x), batch * pairs, width)
    q_raw, k_raw = (flat @ w.mT for w in (weights.query, weights.key))
    q, k = (normalised(raw, how).reshape(runs, batch, pairs, -1) for raw in (q_raw, k_raw))
    c = multipliers[:, np.newaxis, np.newaxis, np.newaxis].astype(x.dtype)
    z = q @ k.mT
    z *= c
    p = _softmax(z)
    hot = np.eye(weights.value.shape[-1], dtype=x.dtype)[labels]  # (runs or 1, batch, pairs, labels)
    v = hot @ weights.value.mT[:, np.newaxis]
    o = p @ v
    guess = _softmax(o)
    chosen = np.take_along_axis(guess, np.broadcast_to(labels, (runs, batch, pairs))[..., np.newaxis], -1)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = -np.log(chosen).mean(axis=(1, 2))
        entropy = -np.where(p > 0, p * np.log(p), 0).sum(axis=-1).mean(axis=(1, 2)) / np.log(pairs)
    d_o = (guess - hot) / np.asarray(batch * pairs, x.dtype)
    d_p = d_o @ v.mT
    d_z = p * (d_p - np.vecdot(p, d_p)[..., np.newaxis]) * c
    d_q = normalised_backward((d_z @ k).reshape(q_raw.shape), q_raw, how)
    d_k = normalised_backward((d_z.mT @ q).reshape(k_raw.shape), k_raw, how)
    d_v = (p.mT @ d_o).reshape(runs, batch * pairs, -1)
    gradients = Weights(d_q.mT @ flat, d_k.mT @ flat, d_v.mT @ hot.reshape(len(hot), batch * pairs, -1))
    recalled = (guess.argmax(axis=-1) == labels).mean(axis=(1, 2))
    return Step(loss, recalled, entropy, gradients)


def _softmax(logits: FloatArray) -> FloatArray:
    found = logits - logits.max(axis=-1, keepdims=True)
    found[found < FLOOR[found.dtype]] = -np.inf  # such weights change no sum, and their products are denormal
    np.exp(found, out=found)
    found /= found.sum(axis=-1, keepdims=True)
    return found
