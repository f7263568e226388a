"""A race: the same task, seeds and initial weights under several scale rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..scales import Normalise, multiplier
from .model import Examples, Weights, draw, initial, optimiser, pass_over
from .settings import Race, Result, raced_rule

LEARNED = 0.9  # the share of recalled labels from which a run has learned
_LOST = 2.0  # a run diverged if its last loss is this many times ln(labels), or no number
_WINDOW = 10  # steps whose mean counts, as single steps are noisy
_PART = 2**14  # of rules × seeds × d_k: more are stepped in parts, so that other work can come between
_NARROW = 256  # narrower heads take as long
_STREAM = 71  # of random numbers, so that seeds here draw other numbers than the Lab's


@dataclass(frozen=True, eq=False)
class Curves:
    """The course of all runs so far."""

    race: Race
    loss: FloatArray  # (rules, seeds, steps), nats
    recalled: FloatArray  # (rules, seeds, steps)
    entropy: FloatArray  # (rules, seeds, steps), over ln(pairs)
    gradient: FloatArray  # (rules, seeds, steps): the norm of ∂loss/∂(W_q, W_k)
    done: int  # steps that are computed
    used: FloatArray | None = None  # (trained with, used with, seeds): the share recalled of new examples, at the end


def run(race: Race) -> Iterator[Curves]:
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
                yield Curves(race, *curves, done=step)
            if step == 0:
                parts.append(_Part(race, seeds))
            parts[number].step(rate, [curve[:, seeds.start : seeds.stop, step] for curve in curves])
        if step + 1 < race.steps:
            yield Curves(race, *curves, done=step + 1)
    for seeds, part in zip(places, parts, strict=True):
        yield Curves(race, *curves, done=race.steps - 1)
        part.use(used[:, :, seeds.start : seeds.stop])
    yield Curves(race, *curves, done=race.steps, used=used)


class _Part:
    """The runs of some seeds."""

    def __init__(self, race: Race, seeds: range) -> None:
        self.task = race.task
        self.generators = [np.random.default_rng((race.seed + number, _STREAM)) for number in seeds]
        first = [initial(race.task, race.d_k, rng) for rng in self.generators]
        order = sorted(range(len(race.rules)), key=lambda rule: raced_rule(race.rules[rule]).normalise)
        groups = groupby(order, key=lambda rule: raced_rule(race.rules[rule]).normalise)
        self.groups = [_Group(race, list(same), first) for _, same in groups]

    def step(self, rate: float, found: Sequence[FloatArray]) -> None:
        """Take one step with all runs; write their numbers into `found`, (rules, seeds) each."""
        examples = self._drawn()
        for group in self.groups:
            group.step(examples, rate, found)

    def use(self, found: FloatArray) -> None:
        """Write into `found` what weights trained under one rule recall under another: (trained, used, seeds)."""
        examples = self._drawn()
        for group in self.groups:
            for place, trained in enumerate(group.rules):
                weights = Weights(*(part[group.runs(place)] for part in group.weights))
                for other in self.groups:
                    for at, rule in enumerate(other.rules):
                        c = other.multipliers[other.runs(at)]
                        with np.errstate(over="ignore", invalid="ignore"):
                            found[trained, rule] = pass_over(weights, examples, c, other.how).recalled

    def _drawn(self) -> Examples:
        """Draw examples, with a first axis of seeds."""
        drawn = [draw(self.task, rng) for rng in self.generators]
        return Examples(np.stack([each.keys for each in drawn]), np.stack([each.labels for each in drawn]))


class _Group:
    """Runs under rules that normalise alike: all seeds under the first, under the second, …"""

    def __init__(self, race: Race, rules: list[int], first: Sequence[Weights]) -> None:
        self.rules, self.seeds = rules, len(first)
        self.how: Normalise = raced_rule(race.rules[rules[0]]).normalise
        each = [multiplier(race.rules[rule], race.setting) for rule in rules]
        self.multipliers = np.repeat(np.array(each), self.seeds)
        self.weights = Weights(*(np.concatenate(part * len(rules)) for part in map(list, zip(*first, strict=True))))
        self.optimiser = optimiser(race.optimiser, self.weights)

    def runs(self, place: int) -> slice:
        """Return the places of the runs under one of its rules."""
        return slice(place * self.seeds, (place + 1) * self.seeds)

    def step(self, examples: Examples, rate: float, found: Sequence[FloatArray]) -> None:
        """Take one step with all runs; write their numbers into `found`, (rules, seeds) each."""
        count = len(self.rules)
        repeated = Examples(np.concatenate([examples.keys] * count), np.concatenate([examples.labels] * count))
        with np.errstate(over="ignore", invalid="ignore"):
            seen = pass_over(self.weights, repeated, self.multipliers, self.how)
            flat = [part.reshape(len(part), -1) for part in seen.gradients[:2]]
            norm = np.sqrt(sum(np.vecdot(part, part).astype(np.float64) for part in flat))
            self.optimiser.step(self.weights, seen.gradients, rate)
        for into, values in zip(found, (seen.loss, seen.recalled, seen.entropy, norm), strict=True):
            into[self.rules] = values.reshape(count, self.seeds)


def results(curves: Curves) -> list[Result]:
    """Return how each rule did, over the steps that are done."""
    race, done = curves.race, curves.done
    last = slice(max(done - _WINDOW, 0), done)
    setting, recalled = race.setting, recalled_at_end(curves)
    found: list[Result] = []
    for number, rule in enumerate(race.rules):
        loss = curves.loss[number, :, last].mean(axis=1)
        whole = np.isfinite(loss) & (loss < _LOST * math.log(race.task.labels))
        kept = loss[whole]
        error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else None
        steps = _steps_to_learn(curves.recalled[number, :, :done])
        learned = np.isfinite(steps)
        found.append(
            Result(
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
    return found


def recalled_at_end(curves: Curves) -> FloatArray:
    """Return the share that each run recalls in the last steps: (rules, seeds)."""
    return curves.recalled[:, :, max(curves.done - _WINDOW, 0) : curves.done].mean(axis=2)


def _steps_to_learn(recalled: FloatArray) -> FloatArray:
    """Return for each run (runs, steps) after how many steps a mean over _WINDOW is LEARNED; infinite if never."""
    if recalled.shape[1] < _WINDOW:
        return np.full(len(recalled), math.inf)
    means = np.lib.stride_tricks.sliding_window_view(recalled, _WINDOW, axis=1).mean(axis=-1)
    there: npt.NDArray[np.bool_] = means >= LEARNED
    return np.where(there.any(axis=1), there.argmax(axis=1) + _WINDOW, math.inf)
