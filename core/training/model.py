"""One layer of attention that recalls labels, and its gradients, written out.

For pairs (x_j, y_j) and a query x_i, with q = W_q x, k = W_k x, both normalised if the rule does so:
s_ij = q_i·k_j · z = c s · p = softmax over j · o_i = Σ_j p_ij W_v e(y_j) · loss −ln softmax(o_i)[y_i], its mean.
Backwards: ∂o = (softmax(o) − e(y))/N · ∂p_ij = ∂o_i·v_j · ∂z = p∘(∂p − Σ_j p ∂p) · ∂q = c ∂z k · ∂k = c ∂zᵀ q.
Without a norm q and k are never computed: with M = W_qᵀ W_k, s_ij = x_iᵀ M x_j, ∂W_q = W_k ∂Mᵀ and ∂W_k = W_q ∂M.
Everything is computed for many runs at once: weights have a first axis of runs, examples one of seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.normalise import normalised, normalised_backward
from ..attention.softmax import FLOOR, softmax_of
from ..scales import Normalise
from .settings import Optimiser, Task


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one step: every key of a set is asked once."""

    keys: FloatArray  # (batch, pairs, width), standard normal
    labels: npt.NDArray[np.intp]  # (batch, pairs)


def draw(task: Task, rng: np.random.Generator) -> Examples:
    """Draw the examples of one step, in float32."""
    shape = task.batch, task.pairs
    keys = rng.standard_normal((*shape, task.width), dtype=np.float32)
    return Examples(keys, rng.integers(0, task.labels, shape))


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
    runs, (_, batch, pairs, _) = len(weights.query), x.shape
    c = multipliers[:, np.newaxis, np.newaxis, np.newaxis].astype(x.dtype)
    z, backward = (_bilinear if how == "none" else _normalised)(weights, x, how)
    z *= c
    p, entropy, _ = _softmax(z)
    hot = np.eye(weights.value.shape[-1], dtype=x.dtype)[labels]  # (runs or 1, batch, pairs, labels)
    v = hot @ weights.value.mT[:, np.newaxis]
    guess, _, logs = _softmax(p @ v)
    loss = -np.vecdot(logs, hot).mean(axis=(1, 2))
    d_o = (guess - hot) / np.asarray(batch * pairs, x.dtype)
    d_p = d_o @ v.mT
    d_p -= np.vecdot(p, d_p)[..., np.newaxis]
    d_p *= p
    d_p *= c  # now of the scores
    d_v = (p.mT @ d_o).reshape(runs, batch * pairs, -1)
    d_value = d_v.mT @ hot.reshape(len(hot), batch * pairs, -1)
    recalled = (guess.argmax(axis=-1) == labels).mean(axis=(1, 2))
    entropy = entropy.mean(axis=(1, 2)) / np.log(pairs)
    return Step(loss, recalled, entropy, Weights(*backward(d_p), d_value))


# Return the gradients of W_q and W_k from those of the scores.
_Backward: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def _bilinear(weights: Weights, x: FloatArray, _: Normalise) -> tuple[FloatArray, _Backward]:
    """Return the scores x W_qᵀ W_k xᵀ, whose matrix in the middle is small however wide the head is."""
    runs, (many, batch, pairs, width) = len(weights.query), x.shape
    flat = x.reshape(many, batch * pairs, width)
    middle = weights.query.mT @ weights.key
    scores = (flat @ middle).reshape(runs, batch, pairs, width) @ x.mT

    def backward(d_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        d_middle = flat.mT @ (d_scores @ x).reshape(runs, batch * pairs, width)
        return weights.key @ d_middle.mT, weights.query @ d_middle

    return scores, backward


def _normalised(weights: Weights, x: FloatArray, how: Normalise) -> tuple[FloatArray, _Backward]:
    """Return the scores of normalised queries and keys."""
    runs, (many, batch, pairs, width) = len(weights.query), x.shape
    flat = x.reshape(many, batch * pairs, width)
    raw = [flat @ each.mT for each in (weights.query, weights.key)]
    q, k = (normalised(each, how).reshape(runs, batch, pairs, -1) for each in raw)

    def backward(d_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        d_q, d_k = (d_scores @ k).reshape(raw[0].shape), (d_scores.mT @ q).reshape(raw[1].shape)
        d_q, d_k = (normalised_backward(each, one, how) for each, one in zip((d_q, d_k), raw, strict=True))
        return d_q.mT @ flat, d_k.mT @ flat

    return q @ k.mT, backward


def _softmax(logits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the softmax of logits, which are overwritten; the entropy of each row; and the logarithms."""
    logits -= logits.max(axis=-1, keepdims=True)
    below = np.maximum(logits, FLOOR[logits.dtype])  # such weights change no sum, and smaller ones are denormal
    found, _, lse = softmax_of(below)
    logits -= lse[..., np.newaxis]
    return found, lse - np.vecdot(found, below), logits


_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba, arXiv:1412.6980


class Adam:
    """The moments of Adam, and its steps."""

    def __init__(self, weights: Weights) -> None:
        self._first: list[FloatArray] = [np.zeros_like(each) for each in weights]
        self._second: list[FloatArray] = [np.zeros_like(each) for each in weights]
        self._steps = 0

    def step(self, weights: Weights, gradients: Weights, rate: float) -> None:
        """Change the weights in place."""
        self._steps += 1
        rate /= 1 - _BETA_1**self._steps
        unbias = 1 - _BETA_2**self._steps
        for weight, gradient, first, second in zip(weights, gradients, self._first, self._second, strict=True):
            first += (1 - _BETA_1) * (gradient - first)
            second += (1 - _BETA_2) * (gradient * gradient - second)
            weight -= rate * first / (np.sqrt(second / unbias) + _EPSILON)


class Descent:
    """Plain stochastic gradient descent."""

    def step(self, weights: Weights, gradients: Weights, rate: float) -> None:
        """Change the weights in place."""
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= np.asarray(rate, weight.dtype) * gradient


def optimiser(name: Optimiser, weights: Weights) -> Adam | Descent:
    """Return an optimiser of these weights."""
    return Adam(weights) if name == "adam" else Descent()
