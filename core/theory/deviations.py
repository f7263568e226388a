"""Compare a measurement with theory, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..against import settings
from ..parameters import ROUNDED, Parameters
from ..statistics.measurement import Column, Measurement
from .predict import predict, score_curves
from .prediction import PredictedColumn, Prediction, Theory


def theory_of(measurement: Measurement[Parameters]) -> Theory:
    """Return the theory for a measurement's parameters, and the measurement's deviations from it."""
    prediction = predict(measurement.subject)
    return Theory(prediction, deviations(measurement, prediction), score_curves(measurement.subject))


def deviations(
    measurement: Measurement[Parameters], prediction: Prediction
) -> tuple[Mapping[str, float | None], ...]:
    """Return, for each column, the deviation of each statistic from its exact value, in standard errors.

    The standard error of few draws varies too, so the ratio follows Student's t; it is converted to the normal
    deviate of the same probability. None means that no comparison is possible. In formats below 32 bits that applies
    to all statistics: theory assumes exact arithmetic.
    """
    subject = measurement.subject
    return tuple(
        {name: _deviation(name, measured, predicted, p, measurement.draws) for name in measured.measured}
        for measured, predicted, p in zip(measurement.columns, prediction.columns, settings(subject), strict=True)
    )


def _deviation(name: str, measured: Column, predicted: PredictedColumn, p: Parameters, draws: int) -> float | None:
    estimate, exact = measured.measured[name], predicted.values[name]
    if estimate.value is None or estimate.stderr is None or estimate.is_rough or exact is None:
        return None
    if not _comparable(name, predicted, p):
        return None
    difference = estimate.value - exact
    stderr = max(estimate.stderr, _smallest_stderr(name, exact, p))
    if abs(difference) <= 1e-5 * max(abs(exact), abs(estimate.value)):
        return 0.0  # within the precision of the measurement
    return normal_equivalent(difference / stderr, draws - 1) if stderr else math.copysign(math.inf, difference)


def normal_equivalent(t: float, degrees: int) -> float:
    """Return the normal deviate as improbable as a value of Student's t, to 1 % from 4 degrees of freedom on.

    Wallace 1959, Bounds on normal approximations to Student's and the chi-square distributions.
    """
    size = (8 * degrees + 1) / (8 * degrees + 3) * math.sqrt(degrees * math.log1p(t * t / degrees))
    return math.copysign(size, t)


def _comparable(name: str, predicted: PredictedColumn, p: Parameters) -> bool:
    """Return whether theory applies to the number format, and a few dozen draws give a reliable standard error.

    They do not if the statistic depends on rare events: far tails, which most draws lack; a shared direction, drawn
    once per draw; the weight of one key in rows that are nearly one-hot.
    """
    if p.precision in ROUNDED:
        return False
    if name in ("first_key_weight", "first_key_over_uniform") or (name in _OF_SPREAD and p.correlation):
        return False
    tails = predicted.values["logit_excess_kurtosis"]
    if name in ("logit_excess_kurtosis", "row_mean_share"):
        light = p.components != "student_t" or p.degrees_of_freedom > 8
        return light and tails is not None and tails < 6
    return name not in _VARIANCES or (tails is not None and tails < 12)


_VARIANCES = frozenset({"logit_variance", "logit_std", "logit_variance_within_row"})
_OF_SPREAD = _VARIANCES | {"saturation", "logit_excess_kurtosis", "row_mean_share", "logit_within_3sd"}


def _smallest_stderr(name: str, exact: float, p: Parameters) -> float:
    """Return the binomial standard error of a share of rows or of scores; 0 for other statistics.

    If none of a thousand rows is one-hot, all draws agree on 0, although the true share may be above 0.
    """
    rows = p.batch * p.n_queries
    several = rows - p.batch if p.mask == "causal" else rows  # rows that see at least two keys
    count = {"one_hot_rows": several, "logit_within_3sd": rows * p.n_keys}.get(name)
    return math.sqrt(max(exact * (1 - exact), 0) / count) if count else 0.0
