"""How far a measurement is from the theory, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..parameters import Parameters
from ..statistics.measurement import Column, Measurement
from .prediction import PredictedColumn, Prediction, Theory
from .theory import predict, score_curve


def theory_of(question: Parameters) -> Callable[[Measurement[Parameters]], Theory]:
    """What makes the theory of a question's measurement; all that needs no measurement is done now."""
    prediction, curve = predict(question), score_curve(question)
    return lambda measurement: Theory(prediction, deviations(measurement, prediction), curve)


def deviations(
    measurement: Measurement[Parameters], prediction: Prediction
) -> tuple[Mapping[str, float | None], ...]:
    """For each column, how many standard errors each statistic lies from its exact value; None where none can say.

    Standard errors of few draws vary themselves, so that the ratio follows Student's t; it is given as the normal
    deviate of the same probability. Theory is of numbers that are not rounded: what a format of few bits makes of
    them is no error, and nothing can say how far it should be.
    """
    p = measurement.subject
    return tuple(
        {name: _deviation(name, measured, predicted, p, measurement.draws) for name in measured.measured}
        for measured, predicted in zip(measurement.columns, prediction.columns, strict=True)
    )


def _deviation(name: str, measured: Column, predicted: PredictedColumn, p: Parameters, draws: int) -> float | None:
    estimate, exact = measured.measured[name], predicted.values[name]
    if estimate.value is None or estimate.stderr is None or exact is None or not _honest(name, predicted, p):
        return None
    difference = estimate.value - exact
    stderr = max(estimate.stderr, _least(name, exact, p))
    if abs(difference) <= 1e-5 * max(abs(exact), abs(estimate.value)):
        return 0.0  # within the precision of the measurement
    return normal_equivalent(difference / stderr, draws - 1) if stderr else math.copysign(math.inf, difference)


def normal_equivalent(t: float, degrees: int) -> float:
    """The normal deviate as improbable as a value of Student's t, to 1 % from 4 degrees of freedom on.

    Wallace 1959, Bounds on normal approximations to Student's and the chi-square distributions.
    """
    size = (8 * degrees + 1) / (8 * degrees + 3) * math.sqrt(degrees * math.log1p(t * t / degrees))
    return math.copysign(size, t)


def _honest(name: str, predicted: PredictedColumn, p: Parameters) -> bool:
    """Whether the exact value is that of what was measured, and a few dozen draws show the spread of it.

    They do not where it rests on rare events: far tails, of which most draws have none; a shared direction, drawn
    once for each draw; the weight of one key in rows that are nearly one-hot.
    """
    if p.precision not in ("float32", "float64"):
        return False
    if name == "first_key_weight" or (name in _OF_SPREAD and p.correlation):
        return False
    tails = predicted.values["logit_excess_kurtosis"]
    if name in ("logit_excess_kurtosis", "row_mean_share"):
        light = p.components != "student_t" or p.degrees_of_freedom > 8
        return light and tails is not None and tails < 6
    return name not in _VARIANCES or (tails is not None and tails < 12)


_VARIANCES = frozenset({"logit_variance", "logit_std", "logit_variance_within_row"})
_OF_SPREAD = _VARIANCES | {"logit_excess_kurtosis", "row_mean_share", "logit_within_3sd"}


def _least(name: str, exact: float, p: Parameters) -> float:
    """The standard error below which a share of rows or of scores cannot be known from so few of them.

    Where none of a thousand rows is one-hot, the draws agree on 0 although the true share need not be 0.
    """
    rows = p.batch * p.n_queries
    count = {"one_hot_rows": rows, "logit_within_3sd": rows * p.n_keys}.get(name)
    return math.sqrt(max(exact * (1 - exact), 0) / count) if count else 0.0
