"""Softmax of a few scores, worked out step by step with every intermediate number.

With x = c·s/T + shift: e_i = exp(x_i − max x), p_i = e_i/Σe, and the Jacobian J_ij = ∂p_i/∂x_j = p_i(δ_ij − p_j).
Results are plain numbers; only functions that compute them need NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ParameterError
from ..field import Field
from ..parameters import FIELD, FIELDS, Parameters, changes, setting_a
from ..scales import multiplier, scale_rule
from ..setting_text import text_of

if TYPE_CHECKING:
    from ..arrays import FloatArray

Vector = tuple[float, ...]

_START = (-3.0, -1.25, 0.0, 1.25, 3.0)  # standard deviations of a score; at d_k 64, the scores of study notes
FEWEST, MOST = 2, 8
FINE = 0.1  # the fine step of a score

EXAMPLE_FIELDS: tuple[Field, ...] = (
    Field(
        "scores", "score", "s",
        "The score of a query–key pair, before scaling. The logit that enters softmax is "
        "scale·score/T, with the shift added.",
        "real", -1_000, 1_000,
    ),
    Field(
        "temperature", "temperature", "T",
        "Divides every logit before softmax: above 1 it evens out the weights, below 1 it sharpens them. Dividing by "
        "√d_k is a temperature of √d_k.",
        "real", 0.01, 100, step="double",
    ),
    Field(
        "shift", "shift", "c",
        "Added to every logit. It does not change softmax, since e^c cancels, but it can make an exponential "
        "overflow if nothing is subtracted.",
        "real", -1_000, 1_000, step=10,
    ),
)  # fmt: skip

EXAMPLE_FIELD: dict[str, Field] = {field.name: field for field in EXAMPLE_FIELDS}

# The Lab's parameters that an example depends on, through the multiplier and the number format.
EXAMPLE_PARAMETERS = (
    "d_k", "n_keys", "against", "scale", "multiplier", "layer", "position", "context_factor", "precision",
)  # fmt: skip


def start_scores(d_k: int) -> tuple[float, ...]:
    """Return the scores to start with: multiples of √d_k, the standard deviation of a score, to four digits."""
    return tuple(float(f"{score * math.sqrt(d_k):.4g}") for score in _START)


@dataclass(frozen=True)
class Example:
    """Scores of one query with a few keys, and a temperature and shift for their logits; validated."""

    scores: tuple[float, ...] = start_scores(Parameters.d_k)
    temperature: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not FEWEST <= len(self.scores) <= MOST:
            raise ParameterError(
                "scores: must be {fewest} to {most} numbers, not {count}",
                fewest=FEWEST,
                most=MOST,
                count=len(self.scores),
            )
        for score in self.scores:
            EXAMPLE_FIELD["scores"].check(score)
        for name in ("temperature", "shift"):
            EXAMPLE_FIELD[name].check(getattr(self, name))

    def with_score(self, at: int, score: float) -> Example:
        """Return the example with one score replaced; raise ParameterError if it is not accepted."""
        return replace(self, scores=(*self.scores[:at], score, *self.scores[at + 1 :]))

    def with_one_more(self, at: int, score: float = 0.0) -> Example:
        """Return the example with a score inserted at index `at`; raise ParameterError if there are MOST already."""
        return replace(self, scores=(*self.scores[:at], score, *self.scores[at:]))

    def without(self, at: int) -> Example:
        """Return the example without one score; raise ParameterError if fewer than FEWEST would remain."""
        return replace(self, scores=(*self.scores[:at], *self.scores[at + 1 :]))

    def stepped(self, name: str, direction: Literal[-1, 1], step: float | None = None) -> Example:
        """Return the example with the next temperature or shift, by `step` or the field's own step."""
        field = EXAMPLE_FIELD[name]
        field = field if step is None else replace(field, step=step)
        changed: dict[str, Any] = {name: field.stepped(getattr(self, name), direction)}
        return replace(self, **changed)


def step_score(score: float, direction: Literal[-1, 1], fine: bool = False) -> float:
    """Return the next whole score, or tenth with `fine`, up or down; at a bound, the score itself."""
    field = EXAMPLE_FIELD["scores"]
    return float((replace(field, step=FINE) if fine else field).stepped(score, direction))


def parse_scores(text: str) -> tuple[float, ...]:
    """Parse scores such as `-24,-10,0`; raise ParameterError if they are not accepted."""
    field = EXAMPLE_FIELD["scores"]
    scores = tuple(float(field.parse(word)) for word in text.split(","))
    return Example(scores).scores


def scores_text(scores: tuple[float, ...]) -> str:
    """Return the text to type for scores; `parse_scores` reads it back unchanged."""
    return ",".join(EXAMPLE_FIELD["scores"].format(score) for score in scores)


def relevant(parameters: Parameters) -> Parameters:
    """Return the parameters with defaults for all that a worked example does not depend on."""
    found = {name: value for name, value in changes(parameters.against).items() if name in EXAMPLE_PARAMETERS}
    p = replace(parameters, against=text_of(found, FIELDS) if found else parameters.scale)
    needs = [name for column in (p, setting_a(p)) for name in scale_rule(column.scale).needs]
    values: dict[str, Any] = {name: getattr(p, name) for name in ("against", "scale", "precision", *needs)}
    return Parameters(**values)


def irrelevant(parameters: Parameters) -> list[str]:
    """Return the names of parameters that make A differ from B elsewhere, but not in a worked example."""
    named, a = changes(parameters.against), setting_a(parameters)
    return [name for name in named if name not in EXAMPLE_PARAMETERS and FIELD[name].applies(a)]


def work_out_sides(example: Example, parameters: Parameters) -> tuple[WorkedExample, WorkedExample]:
    """Compute every step under A and B; raise ParameterError as `multiplier_of` does."""
    p = relevant(parameters)
    a, b = (work_out(example, multiplier_of(column), column.precision) for column in (setting_a(p), p))
    return a, b


def multiplier_of(parameters: Parameters) -> float:
    """Return the scale rule's multiplier; raise ParameterError if the rule cannot be applied to scores alone."""
    rule = scale_rule(parameters.scale)
    if rule.normalise != "none":
        raise ParameterError(
            "scale {formula} normalises queries and keys, which are unknown for given scores; choose another",
            formula=rule.formula,
        )
    return multiplier(rule.name, parameters.setting)


@dataclass(frozen=True)
class NaiveSoftmax:
    """Softmax with nothing subtracted: exponentials in a number format, summed in its accumulator."""

    powers: Vector  # (n,) exp x in the format; may be ∞ or 0
    total: float  # Σ exp x
    overflow: int  # the number of powers that overflow
    weights: Vector | None  # (n,) None if the sum is 0 or ∞
    error: float | None  # ½ Σ|p − p̂|; None if there are no weights


@dataclass(frozen=True)
class WorkedExample:
    """All steps of the softmax of n scores under one multiplier."""

    multiplier: float
    logits: Vector  # (n,)
    powers: Vector  # (n,) exp of the logit minus the largest one: at most 1
    weights: Vector  # (n,)
    complement: Vector  # (n,) p(1 − p), the diagonal of the Jacobian
    jacobian: tuple[Vector, ...]  # (n, n)
    entropy: float  # nats
    max_weight: float
    sum_squared_weights: float
    jacobian_norm: float
    moved: float  # the largest change of a weight due to the shift, which is rounding
    naive: NaiveSoftmax

    @property
    def entropy_fraction(self) -> float:
        """The entropy as a share of ln n."""
        return self.entropy / math.log(len(self.weights))

    @property
    def effective_keys(self) -> float:
        """The number of equal weights with this entropy."""
        return math.exp(self.entropy)


def work_out(example: Example, multiplier: float, number_format: str) -> WorkedExample:
    """Compute every step from scores to weights and their Jacobian under one multiplier.

    Everything is float64 except `naive`, which is in the number format. No 1 − p is computed as a difference, so the
    entropy and the Jacobian of a one-hot row keep their precision.
    """
    import numpy as np

    from .softmax import exponentials, softmax

    before = np.array(example.scores) * multiplier / example.temperature
    logits = before + example.shift
    weights = softmax(logits)
    others = (1 - np.eye(len(weights))) @ weights  # 1 − p
    jacobian = -np.outer(weights, weights)
    np.fill_diagonal(jacobian, weights * others)
    below = logits - logits.max()
    powers, _ = exponentials(logits)
    rest = np.delete(powers, powers.argmax()).sum()  # ln Σe = ln(1 + rest)
    return WorkedExample(
        multiplier=multiplier,
        logits=tuple(logits.tolist()),
        powers=tuple(powers.tolist()),
        weights=tuple(weights.tolist()),
        complement=tuple((weights * others).tolist()),
        jacobian=tuple(tuple(row) for row in jacobian.tolist()),
        entropy=float(np.log1p(rest) - weights @ below),
        max_weight=float(weights.max()),
        sum_squared_weights=float(weights @ weights),
        jacobian_norm=math.hypot(*jacobian.ravel()),  # squares of tiny entries would be 0
        moved=float(np.abs(weights - softmax(before)).max()),
        naive=_naive(logits, weights, number_format),
    )


@dataclass(frozen=True)
class MultiplierCurves:
    """The softmax of n scores as a function of the multiplier."""

    multipliers: Vector  # (m,) evenly spaced on a logarithmic axis, between powers of two
    weights: tuple[Vector, ...]  # (n, m)
    entropy_fraction: Vector  # (m,) entropy / ln n
    jacobian_norm: Vector  # (m,)


_BELOW, _ABOVE = 3, 2  # octaves below and above the multipliers of A and B
_POINTS = 256


def multiplier_curves(example: Example, multipliers: Sequence[float]) -> MultiplierCurves:
    """Compute weights for multipliers around the given positive ones; a shift does not matter.

    The range only changes by powers of two, so it stays the same while a multiplier is changed a little.
    """
    import numpy as np

    from .softmax import softmax, weight_statistics

    low = math.floor(math.log2(min(multipliers))) - _BELOW
    high = math.ceil(math.log2(max(multipliers))) + _ABOVE
    over = np.exp2(np.linspace(low, high, _POINTS))
    weights = softmax(np.outer(over, example.scores) / example.temperature)
    rows = weight_statistics(weights, np.full(_POINTS, weights.shape[1]))
    # Entry by entry: the norm of the Jacobian of a nearly one-hot row is lost in sums of powers of its weights.
    jacobians = weights[:, :, None] * (np.eye(weights.shape[1]) - weights[:, None, :])
    return MultiplierCurves(
        multipliers=tuple(over.tolist()),
        weights=tuple(tuple(row) for row in weights.T.tolist()),
        entropy_fraction=tuple((rows.entropy / math.log(weights.shape[1])).tolist()),
        jacobian_norm=tuple(np.linalg.norm(jacobians, axis=(1, 2)).tolist()),
    )


def _naive(logits: FloatArray, weights: FloatArray, number_format: str) -> NaiveSoftmax:
    """Compute the same weights from exponentials with nothing subtracted."""
    import numpy as np

    from .precision import round_to

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        powers, overflow = round_to(np.exp(logits), number_format)
        total = powers.sum(dtype=powers.dtype)
    overflowing, plain = int(np.count_nonzero(overflow)), tuple(map(float, powers))
    if not 0 < total < np.inf:
        return NaiveSoftmax(plain, float(total), overflowing, None, None)
    found = powers / total
    error = float(np.abs(found - weights).sum() / 2)
    return NaiveSoftmax(plain, float(total), overflowing, tuple(map(float, found)), error)
