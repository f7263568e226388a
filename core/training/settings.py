"""What is raced, and how a rule did: plain values; this module does not need NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from ..errors import InputError, ParameterError
from ..field import Field
from ..formula import split_outside_parentheses
from ..parameters import Value
from ..scales import SCALE_RULES, RuleSetting, ScaleName, ScaleRule, is_formula, multiplier, scale_rule

Optimiser: TypeAlias = Literal["sgd", "adam"]
OPTIMISERS: tuple[Optimiser, ...] = get_args(Optimiser)
RATES: dict[Optimiser, float] = {"sgd": 4.0, "adam": 0.01}  # learning rates by default
LEARNED = 0.9  # the share of recalled labels from which a run has learned
_DECIMALS = 5  # of a loss, at most
ACCEPTED = "names of scale rules, numbers such as 0.05, and formulas such as 'log(n)/sqrt(d)', separated by commas"


@dataclass(frozen=True)
class RecallTask:
    """The sizes of the task."""

    width: int = 32  # components of a key before it is projected
    pairs: int = 16
    labels: int = 8
    batch: int = 8  # sets of pairs in a step


@dataclass(frozen=True)
class Race:
    """What is raced."""

    d_k: int = 64
    rules: tuple[ScaleName, ...] = ("none", "sqrt_d_k")
    rate: float = 0.5  # the learning rate
    steps: int = 200
    seeds: int = 10
    optimiser: Optimiser = "sgd"
    warm_up: int = 0  # steps over which the learning rate grows from 0
    seed: int = 0  # the first one
    task: RecallTask = field(default_factory=RecallTask)

    @property
    def setting(self) -> RuleSetting:
        """What the multipliers of the rules depend on."""
        return RuleSetting(d_k=self.d_k, n_keys=self.task.pairs)


@dataclass(frozen=True)
class RaceResult:
    """How the runs under one rule ended."""

    rule: ScaleName
    multiplier: float
    loss: float  # the mean over runs that did not diverge, of the last steps
    loss_error: float | None  # its standard error over seeds
    recalled: float
    steps_to_learn: float | None  # the median over seeds; None unless more than half of them learned
    diverged: float  # the share of runs
    entropy_before: float
    entropy_after: float
    gradient_before: float  # the median over seeds

    @property
    def loss_text(self) -> str:
        """The loss with its standard error, as many decimals as the first digit of the error has: `0.062 ±0.003`."""
        error = self.loss_error
        if error is None:
            return f"{self.loss:.3f}"
        decimals = min(max(-math.floor(math.log10(error)), 2), _DECIMALS) if error else _DECIMALS
        least = 10**-_DECIMALS
        return f"{self.loss:.{decimals}f} ±" + (f"<{least:g}" if error < least else f"{error:.{decimals}f}")


RACE_FIELDS: tuple[Field, ...] = (
    Field(
        "d_k", "d_k", "d_k", "Width of a query and of a key. Unscaled scores spread by √d_k.",
        "integer", 1, 1024, step="double", group="training",
    ),
    Field(
        "optimiser", "optimizer", "optimizer",
        "Plain stochastic gradient descent, or Adam, whose steps do not depend on the size of gradients.",
        "choice", choices=OPTIMISERS, group="training", called="--optimizer",
    ),
    Field(
        "rate", "learning rate", "lr", "The learning rate.",
        "real", 1e-6, 1e4, step="double", group="training", called="--lr",
    ),
    Field(
        "warm_up", "warm-up", "warm-up", "Steps over which the learning rate grows from 0.",
        "integer", 0, 100_000, step=10, group="training",
    ),
    Field(
        "steps", "steps", "steps", "Steps of each run.",
        "integer", 1, 100_000, step=100, group="training",
    ),
    Field(
        "seeds", "seeds", "seeds",
        "Runs under each rule. Every rule gets the same seeds, examples and initial weights.",
        "integer", 1, 1000, step="double", group="training",
    ),
    Field("seed", "first seed", "seed", "The first seed.", "integer", 0, 2**32 - 1, group="training"),
)  # fmt: skip
RACE_FIELD: dict[str, Field] = {each.name: each for each in RACE_FIELDS}


def raced_rule(name: ScaleName) -> ScaleRule:
    """Return a rule; raise InputError if it cannot be raced."""
    if name == "custom":
        raise InputError("rules: 'custom' has no multiplier here; give the number itself")
    return scale_rule(name)


def parse_rules(text: str) -> tuple[ScaleName, ...]:
    """Return the rules of a text such as `none,0.05,log(n)/sqrt(d)`, each once.

    Raise InputError if one is not a rule, and ParameterError if a formula is faulty.
    """
    names: dict[ScaleName, None] = {}
    for part in split_outside_parentheses(text):
        word = part.strip().removeprefix("×").removeprefix("x ").strip()
        name = word.replace("-", "_")
        if name in SCALE_RULES:
            raced_rule(name)
            names[name] = None
        elif word and is_formula(word):
            names[word] = None
        else:
            raise InputError("{word!r} is not a scale rule", word=word)
    return tuple(names)


def fault_of(race: Race) -> str:
    """Return why a rule has no multiplier at this d_k; empty if all have one."""
    for name in race.rules:
        try:
            multiplier(name, race.setting)
        except ParameterError as error:
            return str(error)
    return ""


def changed(race: Race, name: str, value: Value) -> Race:
    """Return the race with another value of a field; another optimiser has its own learning rate."""
    new: dict[str, object] = {name: value}
    if name == "optimiser" and value != race.optimiser:
        new["rate"] = RATES["adam" if value == "adam" else "sgd"]
    return replace(race, **new)  # pyright: ignore[reportArgumentType]
