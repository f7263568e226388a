"""Moments of a score q·k for every law of the components, of lengths |q|, of cosines, and under a soft-cap.

A component of a query is μ_q + σ_q(√|ρ| g + √(1−|ρ|) a) and of a key μ_k + σ_k(±√|ρ| g + √(1−|ρ|) b), with the sign
of ρ; g (shared by all vectors of a draw), a and b are independent draws from the same symmetric law with mean 0 and
variance 1. A score sums d_k independent products, so it has d_k times the cumulants of one product, and those are
polynomials in moments of the law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..parameters import ComponentLaw, Parameters, ScaleName, rows_differ
from ..scales import scale_rule

Polynomial: TypeAlias = Mapping[tuple[int, int, int], float]  # powers of g, a and b -> coefficient


class ScoreMoments(NamedTuple):
    """Moments of the unscaled score; None if one does not exist."""

    mean: float
    variance: float | None
    excess_kurtosis: float | None  # also None if the variance is 0
    variance_within_row: float  # of a row's scores, given its query (and g), averaged over those


def is_plain(p: Parameters, rule: ScaleName) -> bool:
    """Return whether logits under a rule are multiples of scores with these moments."""
    if rows_differ(p, rule):
        return False
    return p.mechanism == "dot_product" and p.softcap == 0 and scale_rule(rule).normalise == "none"


def score_moments(p: Parameters) -> ScoreMoments:
    """Return the moments of a score; mask, scale and counts are ignored."""
    return _score_moments(
        p.d_k, p.components, p.degrees_of_freedom, p.mean_q, p.std_q, p.mean_k, p.std_k, p.correlation
    )


@lru_cache(maxsize=64)
def _score_moments(
    d: int, law: ComponentLaw, degrees: int, mean_q: float, std_q: float, mean_k: float, std_k: float, rho: float
) -> ScoreMoments:
    """Return `score_moments` of the values it depends on."""
    mean = mean_q * mean_k + rho * std_q * std_k
    shared, apart = math.sqrt(abs(rho)), math.sqrt(1 - abs(rho))
    q = {(1, 0, 0): std_q * shared, (0, 1, 0): std_q * apart}
    k = {(1, 0, 0): std_k * math.copysign(shared, rho), (0, 0, 1): std_k * apart}
    product = _sum(_scaled(k, mean_q), _scaled(q, mean_k), _times(q, k), {(0, 0, 0): -rho * std_q * std_k})
    square = _times(product, product)
    second = _expectation(square, law, degrees)
    if second is not None and second <= 1e-14 * sum(map(abs, square.values())):
        second = 0.0  # terms that cancel exactly, as with ±1 and ρ = 1, leave only rounding errors
    fourth = _expectation(_times(square, square), law, degrees) if second else None
    return ScoreMoments(
        mean=d * mean,
        variance=None if second is None else d * second,
        excess_kurtosis=(fourth / second**2 - 3) / d if fourth is not None and second else None,
        variance_within_row=d * (std_q**2 + mean_q**2) * std_k**2 * (1 - abs(rho)),
    )


def moment(law: ComponentLaw, order: int, degrees: int) -> float | None:
    """Return a moment of a component standardised to mean 0 and variance 1; None if it does not exist."""
    if law == "student_t" and order >= degrees:
        return None
    if order % 2:
        return 0.0
    half = order // 2
    odd = math.prod(range(1, order, 2))  # (order − 1)!!
    match law:
        case "normal":
            return float(odd)
        case "uniform":
            return 3.0**half / (order + 1)
        case "laplace":
            return math.factorial(order) / 2.0**half
        case "rademacher":
            return 1.0
        case "student_t":
            return odd * math.prod((degrees - 2) / (degrees - 2 * i) for i in range(1, half + 1))


def _expectation(polynomial: Polynomial, law: ComponentLaw, degrees: int) -> float | None:
    """Return the mean of a polynomial in g, a and b; None if it does not exist."""
    terms: list[float] = []
    for powers, coefficient in polynomial.items():
        moments = [moment(law, power, degrees) for power in powers]
        if coefficient and None in moments:
            return None
        terms.append(coefficient * math.prod(m for m in moments if m is not None))
    return math.fsum(terms)


def _sum(*polynomials: Polynomial) -> Polynomial:
    """Return the sum of polynomials."""
    total: dict[tuple[int, int, int], float] = {}
    for polynomial in polynomials:
        for powers, coefficient in polynomial.items():
            total[powers] = total.get(powers, 0.0) + coefficient
    return total


def _scaled(polynomial: Polynomial, factor: float) -> Polynomial:
    """Return a polynomial times a number."""
    return {powers: factor * coefficient for powers, coefficient in polynomial.items()}


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    """Return the product of two polynomials, without terms that are zero."""
    total: dict[tuple[int, int, int], float] = {}
    for (g, a, b), x in one.items():
        for (h, c, e), y in other.items():
            if x and y:
                powers = (g + h, a + c, b + e)
                total[powers] = total.get(powers, 0.0) + x * y
    return total


@lru_cache(maxsize=64)
def norm_nodes(d: int, offset: float) -> tuple[FloatArray, FloatArray]:
    """Return lengths of a vector of d independent N(offset, 1) components, and their probabilities, which sum to 1.

    The length has a noncentral chi law: its density is ∝ r^(d−1) e^(−(r² + m²)/2) times the mean of e^(r m cos θ)
    over directions, where m = √d·|offset| is the length of the mean vector.
    """
    mean = math.sqrt(d) * abs(offset)
    typical = math.hypot(math.sqrt(d), mean)
    # P(|r − typical| > 9) < 1e-17; and P(r < ε) < e^(−33) where ε^d is that small.
    low = max(math.log(max(typical - 9, 1e-300)), 0.5 * math.log(d) - 1 - 33 / d)
    high = math.log(typical + 9)
    step = min(0.12, 0.35 / typical)
    w = low + step * np.arange(math.ceil((high - low) / step) + 1)
    r = np.exp(w)
    log_density = d * w - (r - mean) ** 2 / 2
    if mean > 0:
        log_density += _log_mean_over_directions(d, r * mean)
    weights = np.exp(log_density - log_density.max())
    near = weights > 1e-20  # two thirds, as a length spreads by 0.7 if means are 0
    r, weights = r[near], weights[near]
    return r, weights / weights.sum()


def _log_mean_over_directions(d: int, x: FloatArray) -> FloatArray:
    """Return ln E e^(x (cos θ − 1)) over directions in d dimensions, up to a constant; x > 0 of shape (points,).

    With cos θ = tanh τ the density of directions is sech^(d−1) τ dτ.
    """
    if d == 1:
        return np.log1p(np.exp(-2 * x))
    # The integrand's peak, where x sech²τ = (d − 1) tanh τ; its width is between 1/√(2(d − 1)) and 1/√(d − 1), and
    # far from it the integrand decays at least like e^(−(d − 1)|τ|).
    cosine = 2 * x / (d - 1 + np.sqrt((d - 1.0) ** 2 + 4 * x * x))
    peak = 0.5 * np.log((1 + cosine) ** 2 * x / ((d - 1) * cosine))
    root = math.sqrt(d - 1)
    reach, step = 9 / root + 38 / root**2, min(0.2, 0.3 / root)
    tau = peak[:, None] + step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    log_cosh = np.abs(tau) + np.log1p(np.exp(-2 * np.abs(tau)))
    exponent = -2 * x[:, None] / (np.exp(2 * tau) + 1) - (d - 1) * log_cosh
    top = exponent.max(axis=1)
    return top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))


class NormalisedLaw(NamedTuple):
    """The law of a score before the scale; its direction is that of the cosine."""

    moments: ScoreMoments
    within: float | None  # the share within three standard deviations; None if it is not known


def normalised_law(p: Parameters, rule: ScaleName) -> NormalisedLaw | None:
    """Return the law of a score under a rule that normalises q and k; None under others, and if it is not known."""
    if not is_normalised(p, rule):
        return None
    dimensions = _dimensions(p.d_k, rule)
    variance = score_variance(p.d_k, p.norm_gain, rule)
    uniform = p.components == "normal"
    return NormalisedLaw(
        ScoreMoments(0.0, variance, -6 / (dimensions + 2) if uniform and variance else None, variance),
        share_of_cosine(dimensions, 3 / math.sqrt(dimensions)) if uniform and variance else None,
    )


def is_normalised(p: Parameters, rule: ScaleName) -> bool:
    """Return whether a score under this rule is a multiple of a cosine whose variance is known."""
    how = scale_rule(rule).normalise
    if how == "none" or p.mechanism != "dot_product" or p.softcap or p.correlation or not p.std_k:
        return False
    if how == "layer_norm":  # which removes means; random signs may be all equal, and leave nothing
        return p.std_q > 0 and p.components != "rademacher"
    return p.mean_k == 0 and (p.std_q > 0 or p.mean_q != 0)


def score_variance(d_k: int, gain: float, rule: ScaleName) -> float:
    """Return the variance of a score before the scale, with the gain of the norm on both sides."""
    dimensions = _dimensions(d_k, rule)
    length = 1 if scale_rule(rule).normalise == "l2" else d_k
    return (gain * gain * length) ** 2 / dimensions if dimensions else 0.0


def _dimensions(d_k: int, rule: ScaleName) -> int:
    return d_k - 1 if scale_rule(rule).normalise == "layer_norm" else d_k


@lru_cache(maxsize=256)
def share_of_cosine(dimensions: int, most: float) -> float:
    """Return P(|T| <= most) of the cosine with a uniform direction; T is ±1 in one dimension.

    With T = sin φ the density is ∝ cos^(D − 2) φ.
    """
    if most >= 1:
        return 1.0
    if dimensions == 1:
        return 0.0
    nodes, weights = np.polynomial.legendre.leggauss(128)
    # In two dimensions φ is uniform; beyond, the integrand is a bump of width 1/√D, and `most` is a few of these.
    half = math.asin(most) / 2
    angles = half * (1 + nodes)
    power = dimensions - 2
    integral = half * float(weights @ np.exp(power * np.log(np.cos(angles))))
    whole = math.sqrt(math.pi) / 2 * math.exp(math.lgamma((power + 1) / 2) - math.lgamma(power / 2 + 1))
    return integral / whole


_STEP = 0.25  # of the trapezoidal rule: the poles of tanh² and sech² leave an error of e^(−39)
_LEAST, _MOST, _POINTS = math.log(1e-4), math.log(1e4), 1 << 13  # of ln s in the table


def is_capped_normal(p: Parameters) -> bool:
    """Return whether logits are soft-capped scores of this law; their rule must not normalise q and k."""
    return (
        p.softcap > 0
        and p.mechanism == "dot_product"
        and p.components == "normal"
        and p.mean_k == 0
        and p.correlation == 0
    )


def capped_deviation(p: Parameters, d_k: int, multiplier: float) -> float:
    """Return the root of the mean variance within a row of soft-capped logits; the d_k of `p` is ignored."""
    if p.std_q == 0:
        norms, weights = np.array([math.sqrt(d_k) * abs(p.mean_q)]), np.ones(1)
    else:
        norms, weights = _nodes(d_k, p.mean_q / p.std_q)
        norms = p.std_q * norms
    spread = multiplier * p.std_k * norms / p.softcap
    return p.softcap * math.sqrt(float(weights @ _mean_square_of_tanh(spread)))


def _mean_square_of_tanh(spread: FloatArray) -> FloatArray:
    """Return E tanh²(s z), by interpolation of its logarithm over ln s; the error is below 1e-6 of it."""
    with np.errstate(divide="ignore"):
        at = np.log(spread)
    found = np.exp(np.interp(at, *_table()))
    small, large = at < _LEAST, at > _MOST
    found[small] = spread[small] ** 2
    found[large] = 1 - math.sqrt(2 / math.pi) / spread[large]
    return found


@lru_cache(maxsize=256)  # the widths that are looked at are the same for every rule
def _nodes(d_k: int, offset: float) -> tuple[FloatArray, FloatArray]:
    return norm_nodes.__wrapped__(d_k, offset)


@lru_cache(maxsize=1)
def _table() -> tuple[FloatArray, FloatArray]:
    """Return even steps of ln s, and ln E tanh²(s z) there.

    Up to s = 1 by the trapezoidal rule in z, beyond as 1 − E sech²(y) in y = s z.
    """
    steps = np.linspace(_LEAST, _MOST, _POINTS)
    s = np.exp(steps)[:, np.newaxis]
    z = np.arange(-9, 9 + _STEP, _STEP)
    y = np.arange(-20, 20 + _STEP, _STEP)
    small, large = s[s[:, 0] <= 1], s[s[:, 0] > 1]
    near = np.tanh(small * z) ** 2 @ np.exp(-z * z / 2)
    far = large[:, 0] * math.sqrt(2 * math.pi) - _STEP * (np.exp(-((y / large) ** 2) / 2) @ np.cosh(y) ** -2)
    scale = np.concatenate([np.full(len(small), _STEP), 1 / large[:, 0]])
    return steps, np.log(np.concatenate([near, far]) * scale / math.sqrt(2 * math.pi))
