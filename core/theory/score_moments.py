"""Moments of a score q·k for every component law, mean, standard deviation and correlation.

A component of a query is μ_q + σ_q(√|ρ| g + √(1−|ρ|) a) and of a key μ_k + σ_k(±√|ρ| g + √(1−|ρ|) b), with the sign
of ρ; g (shared by all vectors of a draw), a and b are independent draws from the same symmetric law with mean 0 and
variance 1. A score sums d_k independent products, so it has d_k times the cumulants of one product, and those are
polynomials in moments of the law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ..parameters import ComponentLaw, Parameters, ScaleName, rows_differ
from ..scales import scale_rule

Polynomial: TypeAlias = Mapping[tuple[int, int, int], float]  # powers of g, a and b -> coefficient


@dataclass(frozen=True)
class ScoreMoments:
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
    shared, own = math.sqrt(abs(rho)), math.sqrt(1 - abs(rho))
    q = {(1, 0, 0): std_q * shared, (0, 1, 0): std_q * own}
    k = {(1, 0, 0): std_k * math.copysign(shared, rho), (0, 0, 1): std_k * own}
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
