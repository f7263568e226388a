"""A handful of scores on their way through softmax: what is asked. What becomes of them is worked out in `steps`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ..parameters import Field, ParameterError, Parameters
from .scales import SCALE_RULES, Setting, multiplier

START = (-24.0, -10.0, 0.0, 10.0, 24.0)  # ± three standard deviations of a score at d_k 64, as study notes have them
FEWEST, MOST = 2, 8
FINE = 0.1  # the small step of a score

HANDFUL_FIELDS: tuple[Field, ...] = (
    Field(
        "scores", "score", "s",
        "What a query and a key make of each other, before the scale. The logit that enters softmax is "
        "scale·score/T, with the shift added.",
        "real", -1_000, 1_000,
    ),
    Field(
        "temperature", "temperature", "T",
        "What every logit is divided by before softmax: above 1 the weights come closer to each other, below 1 the "
        "largest takes more. Dividing by √d_k is a temperature of √d_k.",
        "real", 0.01, 100, step="double",
    ),
    Field(
        "shift", "shift", "c",
        "What is added to every logit. Softmax does not see it, since e^c divides out; an exponential with nothing "
        "subtracted does.",
        "real", -1_000, 1_000, step=10,
    ),
)  # fmt: skip

HANDFUL_FIELD: dict[str, Field] = {field.name: field for field in HANDFUL_FIELDS}

# The parameters of the lab that it may depend on, through the multiplier and the number format.
ALSO = ("d_k", "n_keys", "scale", "multiplier", "layer", "position", "context_factor", "precision")


@dataclass(frozen=True)
class Handful:
    """Scores of one query with a few keys, and what is done to their logits. Every value has been checked."""

    scores: tuple[float, ...] = START
    temperature: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not FEWEST <= len(self.scores) <= MOST:
            raise ParameterError(f"scores: {len(self.scores)} of them are not accepted; it takes {FEWEST} to {MOST}")
        for score in self.scores:
            HANDFUL_FIELD["scores"].check(score)
        for name in ("temperature", "shift"):
            HANDFUL_FIELD[name].check(getattr(self, name))

    def with_score(self, at: int, score: float) -> Handful:
        """These scores with one replaced; raises ParameterError if it is not accepted."""
        return replace(self, scores=(*self.scores[:at], score, *self.scores[at + 1 :]))

    def with_one_more(self, at: int, score: float = 0.0) -> Handful:
        """These scores with another before place `at`; raises ParameterError where there are enough."""
        if len(self.scores) == MOST:
            raise ParameterError(f"{MOST} scores are the most")
        return replace(self, scores=(*self.scores[:at], score, *self.scores[at:]))

    def without(self, at: int) -> Handful:
        """These scores without one; raises ParameterError where too few would be left."""
        if len(self.scores) == FEWEST:
            raise ParameterError(f"{FEWEST} scores are the fewest that softmax can weigh against each other")
        return replace(self, scores=(*self.scores[:at], *self.scores[at + 1 :]))

    def stepped(self, name: str, direction: Literal[-1, 1], step: float | None = None) -> Handful:
        """The next temperature or shift, in steps of this size, or as its field says."""
        field = HANDFUL_FIELD[name]
        field = field if step is None else replace(field, step=step)
        changed: dict[str, Any] = {name: field.stepped(getattr(self, name), direction)}
        return replace(self, **changed)


def step_score(score: float, direction: Literal[-1, 1], fine: bool = False) -> float:
    """The next whole score up or down, or the next tenth; at a bound, the score itself."""
    field = HANDFUL_FIELD["scores"]
    return float((replace(field, step=FINE) if fine else field).stepped(score, direction))


def parse_scores(text: str) -> tuple[float, ...]:
    """`-24,-10,0` as scores; raises ParameterError with one line that says what is accepted."""
    field = HANDFUL_FIELD["scores"]
    scores = tuple(float(field.parse(word)) for word in text.split(","))
    return Handful(scores).scores


def scores_text(scores: tuple[float, ...]) -> str:
    """Scores as a person would type them; `parse_scores` reads them back unchanged."""
    return ",".join(HANDFUL_FIELD["scores"].format(score) for score in scores)


def relevant(parameters: Parameters) -> Parameters:
    """These parameters, with everything as usual that a handful of scores does not depend on."""
    names = ("scale", "precision", *SCALE_RULES[parameters.scale].needs)
    values: dict[str, Any] = {name: getattr(parameters, name) for name in names}
    return Parameters(**values)


def multiplier_of(parameters: Parameters) -> float:
    """What the scale rule multiplies scores by; raises ParameterError for a rule that has no multiplier for them."""
    rule = SCALE_RULES[parameters.scale]
    if rule.normalise != "none":
        raise ParameterError(
            f"scale {rule.formula} normalises queries and keys before it multiplies, and of a handful of scores they "
            "are not known; choose another"
        )
    return multiplier(rule.name, Setting.of(parameters))
