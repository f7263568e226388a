"""predict(Parameters) -> Prediction: the exact expectation of every statistic that has one.

A statistic without a known exact value is None rather than approximate: softmax over components that are not normal,
quantities that are not polynomial in the weights (e^H, ‖J‖_F), extremes. Theory shares no code with the experiment,
so each tests the other.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..against import settings, share_scores
from ..arrays import FloatArray
from ..parameters import ROUNDED, MaskName, Parameters
from ..scales import multiplier
from ..statistics.catalogue import DEAD, STATISTIC
from ..statistics.histogram import BinAxis, Histogram
from ..statistics.measurement import Column, Measurement
from .curves import ONE_HOT_NOISE, Curves, causal_lengths, curves
from .prediction import PredictedColumn, Prediction, Theory
from .saturation import saturation
from .score_law import score_density, share_within
from .score_moments import ScoreMoments, is_plain, norm_nodes, normalised_law, score_moments


def predict(parameters: Parameters) -> Prediction:
    """Return the prediction; raise ParameterError if the scale rule has no multiplier at this d_k.

    The prediction assumes exact arithmetic, whatever number format is measured. It takes a millisecond; the first one
    for a number of keys outside KEPT_CURVES takes a tenth of a second.
    """
    a, b = settings(parameters)
    laws = _Laws.of(b)
    of_a = laws if share_scores(parameters) else _Laws.of(a)
    return Prediction(parameters, (_column(a, of_a), _column(b, laws)))


class _Laws(NamedTuple):
    """What is known of scores, whatever their scale rule."""

    moments: ScoreMoments
    within: float | None  # the share within three standard deviations
    rows: _Rows

    @classmethod
    def of(cls, p: Parameters) -> _Laws:
        """Return the laws of the scores with these parameters."""
        return cls(score_moments(p), share_within(p, 3), _rows(p))


def _column(p: Parameters, laws: _Laws) -> PredictedColumn:
    """Return the column of one setting; raise ParameterError as `predict` does."""
    c = multiplier(p.scale, p.setting)
    if is_plain(p, p.scale):
        values = _values(c, p, laws.moments, laws.within, laws.rows)
    else:
        values = _of_others(c, p, laws.rows)
    return PredictedColumn(values, saturation(p, p.scale))


def score_curves(parameters: Parameters) -> tuple[Histogram | None, ...]:
    """Return the law of an unscaled score in each column; None where it is not known."""
    a, b = settings(parameters)
    curve = score_curve(b)
    if share_scores(parameters) and is_plain(a, a.scale) == is_plain(b, b.scale):
        return curve, curve
    return score_curve(a), curve


def score_curve(parameters: Parameters) -> Histogram | None:
    """Return the law of a score over eight standard deviations to either side; None if it is not known."""
    moments = score_moments(parameters)
    if not moments.variance or not is_plain(parameters, parameters.scale):
        return None
    p = parameters
    symmetric = not (p.correlation or (p.mean_q and p.mean_k))
    # An even number of points avoids the middle, where a density may be infinite.
    reach = 8 * math.sqrt(moments.variance)
    away = np.linspace(-reach, reach, 256)
    density = score_density(p, moments.mean + (away[128:] if symmetric else away))
    if density is None:
        return None
    if symmetric:
        density = np.concatenate((density[::-1], density))
    below = np.concatenate(([0.0], density[1:] + density[:-1], [0.0])).cumsum()  # by trapezia
    axis = BinAxis(moments.mean - reach, moments.mean + reach, len(away) - 1)
    return Histogram(axis, array("d", (below / below[-1]).tobytes()))


class _Rows(NamedTuple):
    """The keys that rows see, and the law of the standard deviation of their scores."""

    seen: _Seen
    equal: bool = False  # whether the scores of every row are all equal
    curves: Curves | None = None  # over the deviation; None if not needed, or if scores are not normal
    deviations: FloatArray = np.zeros(1)  # of the scores within a row
    weights: FloatArray = np.ones(1)  # of these deviations; they sum to 1


def _rows(p: Parameters) -> _Rows:
    """Return the rows of a draw with these parameters."""
    seen = _seen(p.n_keys, p.n_queries, p.mask)
    std = p.std_k * math.sqrt(1 - abs(p.correlation))
    if std == 0 or seen.lengths[-1] == 1 or (p.std_q == 0 and p.mean_q == 0):
        return _Rows(seen, equal=True)
    if p.components != "normal":
        return _Rows(seen)
    if p.std_q == 0:
        norms, weights = np.array([math.sqrt(p.d_k) * abs(p.mean_q)]), np.ones(1)
    else:
        norms, weights = norm_nodes(p.d_k, p.mean_q / p.std_q)
        norms = p.std_q * norms
    return _Rows(seen, False, curves(p.n_keys, p.n_queries, p.mask), std * norms, weights)


class _Seen(NamedTuple):
    """How many keys rows see."""

    lengths: FloatArray  # ascending
    shares: FloatArray  # of the rows that see each number
    weight: float  # the mean over rows of 1/L
    others: float  # that of (L − 1)/L: the variance of L numbers about their own mean, over that of their law
    of_pairs: float  # the same over pairs


@lru_cache(maxsize=64)
def _seen(n_keys: int, n_queries: int, mask: MaskName) -> _Seen:
    seen = causal_lengths(n_keys, n_queries) if mask == "causal" else np.array([float(n_keys)])
    lengths, counts = np.unique(seen, return_counts=True)
    shares = counts / counts.sum()
    pairs = float(shares @ (lengths - 1) / (shares @ lengths))
    return _Seen(lengths, shares, float(shares @ (1 / lengths)), float(shares @ ((lengths - 1) / lengths)), pairs)


def _values(
    c: float, p: Parameters, moments: ScoreMoments, within: float | None, rows: _Rows
) -> Mapping[str, float | None]:
    """Return the expectation of each statistic at multiplier c."""
    values = _logit_values(c, p, moments, within, rows)
    if p.sink == "none":
        means = _attention_values(c, rows)
        values |= _of_equals(p, rows) | means | _gradient_values(c, p, rows, means)
    return _complete(values)


def _of_others(c: float, p: Parameters, rows: _Rows) -> Mapping[str, float | None]:
    """Return the statistics known under a rule whose logits are no multiples of scores as drawn."""
    law = normalised_law(p, p.scale)
    found: dict[str, float | None] = {}
    if law is not None:
        found = _logit_values(c, p, law.moments, law.within, _Rows(rows.seen))
    return _complete(found | _of_equals(p, rows))


def _complete(values: Mapping[str, float | None]) -> Mapping[str, float | None]:
    return {name: values.get(name) for name in STATISTIC}


def _of_equals(p: Parameters, rows: _Rows) -> dict[str, float | None]:
    """Return the statistics of the first key's weight, which is every key's: keys are exchangeable under any law."""
    if p.sink != "none":
        return {}
    return {"first_key_weight": rows.seen.weight, "first_key_over_uniform": 1.0}


def _logit_values(
    c: float, p: Parameters, moments: ScoreMoments, within: float | None, rows: _Rows
) -> dict[str, float | None]:
    """Return the statistics of logits: moments of their law, except for the variance within a row."""
    variance = moments.variance
    values: dict[str, float | None] = {
        "logit_mean": c * moments.mean,
        "logit_excess_kurtosis": moments.excess_kurtosis,
        "logit_within_3sd": within,
        "logit_variance_within_row": c * c * (rows.seen.others * moments.variance_within_row),
    }
    if variance is not None:
        values |= {"logit_variance": c * c * variance, "logit_std": c * math.sqrt(variance)}
        within_rows = rows.seen.of_pairs * moments.variance_within_row
        values["row_mean_share"] = 1 - within_rows / variance if variance else None
        if variance == 0:
            values |= {"logit_min": c * moments.mean, "logit_max": c * moments.mean}
    if rows.seen.lengths[-1] > 1 and (rows.equal or rows.curves):
        mean = 0.0 if rows.equal else float(rows.weights @ rows.deviations)
        values["saturation"] = c * mean * _ratio_of_standard_normals(p.n_keys, p.n_queries, p.mask)
    return values


@lru_cache(maxsize=64)
def _ratio_of_standard_normals(n_keys: int, n_queries: int, mask: MaskName) -> float:
    """Return the expectation of `saturation` for standard normal logits.

    That of the standard deviation of L of them about their own mean is √(2/L) Γ(L/2)/Γ((L − 1)/2).
    """
    lengths, shares = _seen(n_keys, n_queries, mask)[:2]
    several = lengths > 1
    ratios = [
        math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2)) / math.sqrt(n * math.log(n))
        for n in lengths[several].tolist()
    ]
    return float(np.average(ratios, weights=shares[several]))


def _attention_values(c: float, rows: _Rows) -> dict[str, float]:
    """Return the means over rows of the statistics of weights, from the curves at their deviations."""
    if rows.equal:
        return _equal_weights(rows.seen.lengths, rows.seen.shares)
    found = rows.curves.mean(c * rows.deviations, rows.weights) if rows.curves else {}
    if found.get("one_hot_rows", 1) < ONE_HOT_NOISE:
        found["one_hot_rows"] = 0.0
    return found


def _gradient_values(c: float, p: Parameters, rows: _Rows, means: Mapping[str, float]) -> dict[str, float]:
    """Return the roots of E‖∂L/∂z‖² = d_v E‖J‖_F² and of E‖∂L/∂q‖² = (c σ)² d_v ((d_k − 1) E‖J‖_F² + E|Jz|²).

    σ is the standard deviation of a key's component without the shared direction, and z a row's scores over their
    standard deviation. Of d_k directions one is the query's, along which keys are not independent of the logits.
    """
    std = p.std_k * math.sqrt(1 - abs(p.correlation))
    if rows.equal:  # ‖J‖_F² and |Jz|² are the same
        square = p.d_k * float(rows.seen.shares @ ((rows.seen.lengths - 1) / rows.seen.lengths**2))
    elif means:
        square = (p.d_k - 1) * means["jacobian_norm_squared"] + means["jacobian_along_logits"]
    else:
        return {}
    return {
        "grad_q_rms": c * std * math.sqrt(p.d_v * square),
        "grad_logits_rms": math.sqrt(p.d_v * means["jacobian_norm_squared"]),
    }


def _equal_weights(lengths: FloatArray, shares: FloatArray) -> dict[str, float]:
    """Return the statistics of rows whose weights are all 1/L."""
    weight, several = 1 / lengths, lengths > 1
    squared_norm = weight * (1 - weight)
    means = {
        "entropy": np.log(lengths),
        "effective_keys": lengths,
        "max_weight": weight,
        "sum_squared_weights": weight,
        "first_key_weight": weight,
        "first_key_over_uniform": np.ones(len(lengths)),
        "jacobian_norm": np.sqrt(squared_norm),
        "jacobian_norm_squared": squared_norm,
        "weight_times_complement": squared_norm,
    }
    values = {name: float(shares @ each) for name, each in means.items()}
    if several.any():
        values |= {"entropy_fraction": 1.0, "one_hot_rows": 0.0}
    if (several & (squared_norm >= DEAD**2)).any():
        values["dead_rows"] = 0.0
    return values


def theory_of(measurement: Measurement[Parameters]) -> Theory:
    """Return the theory for a measurement's parameters, and the measurement's deviations from it."""
    prediction = predict(measurement.subject)
    return Theory(prediction, deviations(measurement, prediction), score_curves(measurement.subject))


def deviations(
    measurement: Measurement[Parameters], prediction: Prediction
) -> tuple[Mapping[str, float | None], ...]:
    """Return, for each column, the deviation of each statistic from its exact value, in standard errors.

    The standard error of few draws varies too, so the ratio follows Student's t; it is converted to the normal
    deviate of the same probability. None means that no comparison is possible, as without an error. In formats below
    32 bits that applies to all statistics: theory assumes exact arithmetic.
    """
    both = zip(measurement.columns, prediction.columns, settings(measurement.subject), strict=True)
    return tuple(_deviations(*each, measurement.draws) for each in both)


def _deviations(
    measured: Column, predicted: PredictedColumn, p: Parameters, draws: int
) -> Mapping[str, float | None]:
    values: dict[str, float | None] = dict.fromkeys(measured.measured)
    unlike, rows = _not_comparable(predicted, p), p.batch * p.n_queries
    # If none of a thousand rows is one-hot, all draws agree on 0, although the true share may be above 0.
    of_shares = {
        "one_hot_rows": rows - p.batch if p.mask == "causal" else rows,  # that see at least two keys
        "logit_within_3sd": rows * p.n_keys,
    }
    for name, exact in predicted.values.items():
        if exact is None or name in unlike or name not in values:
            continue
        estimate = measured.measured[name]
        value, stderr = estimate
        if value is None or stderr is None or estimate.is_rough:
            continue
        difference = value - exact
        if (count := of_shares.get(name, 0)) > 0:  # at least the binomial standard error
            stderr = max(stderr, math.sqrt(max(exact * (1 - exact), 0) / count))
        # A gradient is a sum of keys, which may cancel up to its rounding.
        rounding = 1e-6 * abs(measured.multiplier) * p.std_k * math.sqrt(p.d_k) if name in _SUMS_OF_KEYS else 0.0
        if abs(difference) <= max(1e-5 * max(abs(exact), abs(value)), rounding):
            values[name] = 0.0  # within the precision of the measurement
        elif stderr:
            values[name] = normal_equivalent(difference / stderr, draws - 1)
    return values


def normal_equivalent(t: float, degrees: int) -> float:
    """Return the normal deviate as improbable as a value of Student's t, to 1 % from 4 degrees of freedom on.

    Wallace 1959, Bounds on normal approximations to Student's and the chi-square distributions.
    """
    size = (8 * degrees + 1) / (8 * degrees + 3) * math.sqrt(degrees * math.log1p(t * t / degrees))
    return math.copysign(size, t)


def _not_comparable(predicted: PredictedColumn, p: Parameters) -> Collection[str]:
    """Return the statistics to which theory does not apply, or whose standard error a few dozen draws do not give.

    They do not if the statistic depends on rare events: far tails, which most draws lack; a shared direction, drawn
    once per draw; the weight of one key in rows that are nearly one-hot.
    """
    if p.precision in ROUNDED:
        return predicted.values
    names = {"first_key_weight", "first_key_over_uniform"}
    tails = predicted.values["logit_excess_kurtosis"]
    if p.correlation:
        names |= _OF_SPREAD
    if tails is None or tails >= 6 or (p.components == "student_t" and p.degrees_of_freedom <= 8):
        names |= {"logit_excess_kurtosis", "row_mean_share"}
    if tails is None or tails >= 12:
        names |= _VARIANCES
    return names


_SUMS_OF_KEYS = frozenset({"grad_q_median", "grad_q_mean", "grad_q_rms"})
_VARIANCES = frozenset({"logit_variance", "logit_std", "logit_variance_within_row"})
_OF_SPREAD = _VARIANCES | {"saturation", "logit_excess_kurtosis", "row_mean_share", "logit_within_3sd"}
