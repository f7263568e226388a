"""A race: the same task, seeds and initial weights under several scale rules, and the model with its gradients.

One layer of attention recalls labels.
For pairs (x_j, y_j) and a query x_i, with q = W_q x, k = W_k x, both normalised if the rule does so:
s_ij = q_i·k_j · z = c s · p = softmax over j · o_i = Σ_j p_ij W_v e(y_j) · loss −ln softmax(o_i)[y_i], its mean.
Backwards: ∂o = (softmax(o) − e(y))/N · ∂p_ij = ∂o_i·v_j · ∂z = p∘(∂p − Σ_j p ∂p) · ∂q = c ∂z k · ∂k = c ∂zᵀ q.
Without a norm q and k are never computed: with M = W_qᵀ W_k, s_ij = x_iᵀ M x_j, ∂W_q = W_k ∂Mᵀ and ∂W_k = W_q ∂M.
Everything is computed for many runs at once: weights have a first axis of runs, examples one of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.normalise import normalised, normalised_backward
from ..attention.softmax import FLOOR, softmax_of
from ..scales import Normalise, multiplier
from .settings import LEARNED, Optimiser, Race, RaceResult, RecallTask, raced_rule


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one step: every key of a set is asked once."""

    keys: FloatArray  # (batch, pairs, width), standard normal
    labels: npt.NDArray[np.intp]  # (batch, pairs)


def draw(task: RecallTask, rng: np.random.Generator) -> Examples:
    """Draw the examples of one step, in float32."""
    shape = task.batch, task.pairs
    keys = rng.standard_normal((*shape, task.width), dtype=np.float32)
    return Examples(keys, rng.integers(0, task.labels, shape))


class RaceWeights(NamedTuple):
    """The weights of several runs, or the gradients of their losses."""

    query: FloatArray  # (runs, d_k, width)
    key: FloatArray  # (runs, d_k, width)
    value: FloatArray  # (runs, labels, labels)


@dataclass(frozen=True, eq=False)
class RacePass:
    """What one pass over the examples found; one number a run."""

    loss: FloatArray  # nats
    recalled: FloatArray  # the share of queries whose likeliest label is theirs
    entropy: FloatArray  # of the attention, over ln(pairs)
    gradients: RaceWeights


def initial(task: RecallTask, d_k: int, rng: np.random.Generator) -> RaceWeights:
    """Return the weights of one run: q and k have components of variance 1, as study notes assume."""
    std = task.width**-0.5
    query, key = (rng.standard_normal((1, d_k, task.width), dtype=np.float32) * np.float32(std) for _ in range(2))
    value = rng.standard_normal((1, task.labels, task.labels), dtype=np.float32)
    return RaceWeights(query, key, value * np.float32(task.labels**-0.5))


def pass_over(weights: RaceWeights, examples: Examples, multipliers: FloatArray, how: Normalise) -> RacePass:
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
    return RacePass(loss, recalled, entropy, RaceWeights(*backward(d_p), d_value))


# Return the gradients of W_q and W_k from those of the scores.
_Backward: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def _bilinear(weights: RaceWeights, x: FloatArray, _: Normalise) -> tuple[FloatArray, _Backward]:
    """Return the scores x W_qᵀ W_k xᵀ, whose matrix in the middle is small however wide the head is."""
    runs, (many, batch, pairs, width) = len(weights.query), x.shape
    flat = x.reshape(many, batch * pairs, width)
    middle = weights.query.mT @ weights.key
    scores = (flat @ middle).reshape(runs, batch, pairs, width) @ x.mT

    def backward(d_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        d_middle = flat.mT @ (d_scores @ x).reshape(runs, batch * pairs, width)
        return weights.key @ d_middle.mT, weights.query @ d_middle

    return scores, backward


def _normalised(weights: RaceWeights, x: FloatArray, how: Normalise) -> tuple[FloatArray, _Backward]:
    """Return the scores of normalised queries and keys."""
    runs, (many, batch, pairs, width) = len(weights.query), x.shape
    flat = x.reshape(many, batch * pairs, width)
    raw = [flat @ w.mT for w in (weights.query, weights.key)]
    q, k = (normalised(x, how).reshape(runs, batch, pairs, -1) for x in raw)

    def backward(d_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        d_q, d_k = (d_scores @ k).reshape(raw[0].shape), (d_scores.mT @ q).reshape(raw[1].shape)
        d_q, d_k = (normalised_backward(d, one, how) for d, one in zip((d_q, d_k), raw, strict=True))
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

    def __init__(self, weights: RaceWeights) -> None:
        self._first: list[FloatArray] = [np.zeros_like(weight) for weight in weights]
        self._second: list[FloatArray] = [np.zeros_like(weight) for weight in weights]
        self._steps = 0

    def step(self, weights: RaceWeights, gradients: RaceWeights, rate: float) -> None:
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

    def step(self, weights: RaceWeights, gradients: RaceWeights, rate: float) -> None:
        """Change the weights in place."""
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= np.asarray(rate, weight.dtype) * gradient


def optimiser(name: Optimiser, weights: RaceWeights) -> Adam | Descent:
    """Return an optimiser of these weights."""
    return Adam(weights) if name == "adam" else Descent()


_LOST = 2.0  # a run diverged if its last loss is this many times ln(labels), or no number
_WINDOW = 10  # steps whose mean counts, as single steps are noisy
_PART = 2**14  # of rules × seeds × d_k: more are stepped in parts, so that other work can come between
_NARROW = 256  # narrower heads take as long
_STREAM = 71  # of random numbers, so that seeds here draw other numbers than the Lab's


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """The course of all runs so far."""

    race: Race
    loss: FloatArray  # (rules, seeds, steps), nats
    recalled: FloatArray  # (rules, seeds, steps)
    entropy: FloatArray  # (rules, seeds, steps), over ln(pairs)
    gradient: FloatArray  # (rules, seeds, steps): the norm of ∂loss/∂(W_q, W_k)
    done: int  # steps that are computed
    used: FloatArray | None = None  # (trained with, used with, seeds): the share recalled of new examples, at the end


def run(race: Race) -> Iterator[LearningCurves]:
    """Yield the curves after each step, and between parts of a long one; the arrays are the same, filled further.

    Raise InputError if a rule cannot be raced.
    """
    shape = len(race.rules), race.seeds, race.steps
    curves = [np.full(shape, math.nan) for _ in range(4)]
    used = np.empty((len(race.rules), len(race.rules), race.seeds))
    size = max(_PART // (len(race.rules) * max(race.d_k, _NARROW)), 1)
    places = [range(start, min(start + size, race.seeds)) for start in range(0, race.seeds, size)]
    parts: list[_Part] = []
    for step in range(race.steps):
        rate = race.rate * min((step + 1) / race.warm_up, 1.0) if race.warm_up else race.rate
        for number, seeds in enumerate(places):
            if number:
                yield LearningCurves(race, *curves, done=step)
            if step == 0:
                parts.append(_Part(race, seeds))
            parts[number].step(rate, [curve[:, seeds.start : seeds.stop, step] for curve in curves])
        if step + 1 < race.steps:
            yield LearningCurves(race, *curves, done=step + 1)
    for seeds, part in zip(places, parts, strict=True):
        yield LearningCurves(race, *curves, done=race.steps - 1)
        part.use(used[:, :, seeds.start : seeds.stop])
    yield LearningCurves(race, *curves, done=race.steps, used=used)


class _Part:
    """The runs of some seeds."""

    def __init__(self, race: Race, seeds: range) -> None:
        self.task = race.task
        self.generators = [np.random.default_rng((race.seed + number, _STREAM)) for number in seeds]
        first = [initial(race.task, race.d_k, rng) for rng in self.generators]
        order = sorted(range(len(race.rules)), key=lambda rule: raced_rule(race.rules[rule]).normalise)
        groups = groupby(order, key=lambda rule: raced_rule(race.rules[rule]).normalise)
        self.groups = [_Group(race, list(same), first) for _, same in groups]

    def step(self, rate: float, gradients: Sequence[FloatArray]) -> None:
        """Take one step with all runs; write their numbers into `found`, (rules, seeds) each."""
        examples = self._drawn()
        for group in self.groups:
            group.step(examples, rate, gradients)

    def use(self, found: FloatArray) -> None:
        """Write into `found` what weights trained under one rule recall under another: (trained, used, seeds)."""
        examples = self._drawn()
        for group in self.groups:
            for place, trained in enumerate(group.rules):
                weights = RaceWeights(*(part[group.runs(place)] for part in group.weights))
                for other in self.groups:
                    for at, rule in enumerate(other.rules):
                        c = other.multipliers[other.runs(at)]
                        with np.errstate(over="ignore", invalid="ignore"):
                            found[trained, rule] = pass_over(weights, examples, c, other.how).recalled

    def _drawn(self) -> Examples:
        """Draw examples, with a first axis of seeds."""
        drawn = [draw(self.task, rng) for rng in self.generators]
        return Examples(
            np.stack([example.keys for example in drawn]), np.stack([example.labels for example in drawn])
        )


class _Group:
    """Runs under rules that normalise alike: all seeds under the first, under the second, …"""

    def __init__(self, race: Race, rules: list[int], first: Sequence[RaceWeights]) -> None:
        self.rules, self.seeds = rules, len(first)
        self.how: Normalise = raced_rule(race.rules[rules[0]]).normalise
        each = [multiplier(race.rules[rule], race.setting) for rule in rules]
        self.multipliers = np.repeat(np.array(each), self.seeds)
        self.weights = RaceWeights(
            *(np.concatenate(part * len(rules)) for part in map(list, zip(*first, strict=True)))
        )
        self.optimiser = optimiser(race.optimiser, self.weights)

    def runs(self, place: int) -> slice:
        """Return the places of the runs under one of its rules."""
        return slice(place * self.seeds, (place + 1) * self.seeds)

    def step(self, examples: Examples, rate: float, gradients: Sequence[FloatArray]) -> None:
        """Take one step with all runs; write their numbers into `found`, (rules, seeds) each."""
        count = len(self.rules)
        repeated = Examples(np.concatenate([examples.keys] * count), np.concatenate([examples.labels] * count))
        with np.errstate(over="ignore", invalid="ignore"):
            seen = pass_over(self.weights, repeated, self.multipliers, self.how)
            flat = [part.reshape(len(part), -1) for part in seen.gradients[:2]]
            norm = np.sqrt(sum(np.vecdot(part, part).astype(np.float64) for part in flat))
            self.optimiser.step(self.weights, seen.gradients, rate)
        for into, values in zip(gradients, (seen.loss, seen.recalled, seen.entropy, norm), strict=True):
            into[self.rules] = values.reshape(count, self.seeds)


def results(curves: LearningCurves) -> list[RaceResult]:
    """Return how each rule did, over the steps that are done."""
    race, done = curves.race, curves.done
    last = slice(max(done - _WINDOW, 0), done)
    setting, recalled = race.setting, recalled_at_end(curves)
    results: list[RaceResult] = []
    for number, rule in enumerate(race.rules):
        loss = curves.loss[number, :, last].mean(axis=1)
        whole = np.isfinite(loss) & (loss < _LOST * math.log(race.task.labels))
        kept = loss[whole]
        error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else None
        steps = _steps_to_learn(curves.recalled[number, :, :done])
        learned = np.isfinite(steps)
        results.append(
            RaceResult(
                rule=rule,
                multiplier=multiplier(rule, setting),
                loss=float(kept.mean()) if len(kept) else math.nan,
                loss_error=error,
                recalled=float(recalled[number].mean()),
                steps_to_learn=float(np.median(steps)) if learned.sum() * 2 > len(steps) else None,
                diverged=float(1 - whole.mean()),
                entropy_before=float(curves.entropy[number, :, 0].mean()),
                entropy_after=float(curves.entropy[number, :, last].mean()),
                gradient_before=float(np.median(curves.gradient[number, :, 0])),
            )
        )
    return results


def recalled_at_end(curves: LearningCurves) -> FloatArray:
    """Return the share that each run recalls in the last steps: (rules, seeds)."""
    return curves.recalled[:, :, max(curves.done - _WINDOW, 0) : curves.done].mean(axis=2)


def _steps_to_learn(recalled: FloatArray) -> FloatArray:
    """Return for each run (runs, steps) after how many steps a mean over _WINDOW is LEARNED; infinite if never."""
    if recalled.shape[1] < _WINDOW:
        return np.full(len(recalled), math.inf)
    means = np.lib.stride_tricks.sliding_window_view(recalled, _WINDOW, axis=1).mean(axis=-1)
    there: npt.NDArray[np.bool_] = means >= LEARNED
    return np.where(there.any(axis=1), there.argmax(axis=1) + _WINDOW, math.inf)
