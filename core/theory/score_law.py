"""The law of a score q·k: its density, and its share within three standard deviations.

If components are normal, the score is often normal given one vector's length, so its law is a mixture of normal laws
over that length (the variance-gamma law if all means are 0). Other laws are computed from characteristic functions by
the trapezoidal rule: a score's is that of one product to the power d_k. The rule needs that power to vanish, which it
does not at small d_k. If neither method applies, there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from .quadrature import ComplexArray, normal_cdf, normal_pdf
from .score_moments import norm_nodes, score_moments

_MOST_POINTS = 2048  # of a characteristic function; if it decays too slowly for these, there is no value
_NEGLIGIBLE = 26  # −ln of its modulus at the end of the sum


def score_density(parameters: Parameters, x: FloatArray) -> FloatArray | None:
    """Return the exact density of the unscaled score at x, shape (points,); None if there is none or it is unknown.

    At d_k = 1 it is infinite at 0. The density of c times the score is density(x/c)/c.
    """
    law = _law(parameters)
    return None if law is None else law.density(np.asarray(x, dtype=np.float64))


def share_within(parameters: Parameters, deviations: float) -> float | None:
    """Return the exact probability that a score is within `deviations` standard deviations of its mean, if known."""
    p = parameters
    variance = score_moments(p).variance
    if variance == 0:
        return 1.0
    if p.components == "rademacher" and not (p.mean_q or p.mean_k or p.correlation):
        return _signs_within(p.d_k, deviations)
    law = _law(p)
    return None if law is None or variance is None else law.within(deviations * math.sqrt(variance))


class _Mixture(NamedTuple):
    """A mixture of normal laws N(mean, deviation²) with weights that sum to 1."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    infinite_at_0: bool

    def density(self, x: FloatArray) -> FloatArray:
        z = np.subtract.outer(x, self.means)
        z /= self.deviations
        density = normal_pdf(z) @ (self.weights / self.deviations)
        return np.where(x == 0, np.inf, density) if self.infinite_at_0 else density

    def within(self, half_width: float) -> float:
        centre = float(self.weights @ self.means)
        upper = normal_cdf((centre + half_width - self.means) / self.deviations)
        return float(self.weights @ (upper - normal_cdf((centre - half_width - self.means) / self.deviations)))


@dataclass(frozen=True, eq=False)
class _Transform:
    """A law given by its characteristic function."""

    mean: float
    tail: float  # how far it reaches from its mean, to either side
    log_cf: Callable[[FloatArray], ComplexArray]  # ln E e^(itx) for t > 0, with x measured from the mean

    def density(self, x: FloatArray) -> FloatArray | None:
        about = x - self.mean
        summed = self._sum(float(np.abs(about).max(initial=0)))
        if summed is None:
            return None
        t, step, cf = summed
        turns = np.multiply.outer(about, t)
        return np.maximum((0.5 + np.cos(turns) @ cf.real + np.sin(turns) @ cf.imag) * step / math.pi, 0)

    def within(self, half_width: float) -> float | None:
        summed = self._sum(half_width)
        if summed is None:
            return None
        t, step, cf = summed
        return float(half_width / 2 + cf.real @ (np.sin(t * half_width) / t)) * 2 * step / math.pi

    def _sum(self, furthest: float) -> tuple[FloatArray, float, ComplexArray] | None:
        """Return points t > 0, their step, and the characteristic function there; None if it decays too slowly.

        The step makes the sum periodic in x, so the period must extend `tail` beyond the furthest x.
        """
        step = 2 * math.pi / (furthest + self.tail)
        last = step * 16
        while float(self.log_cf(np.array([last])).real[0]) > -_NEGLIGIBLE:
            last *= 1.25
            if last > step * _MOST_POINTS:
                return None
        t = step * np.arange(1, math.floor(last / step) + 1)
        return t, step, np.exp(self.log_cf(t))


@lru_cache(maxsize=4)
def _law(p: Parameters) -> _Mixture | _Transform | None:
    """Return the law of a score; None if it has no density or it is unknown."""
    if not score_moments(p).variance:
        return None
    if p.components == "normal":
        return _normal_law(p)
    if p.components == "rademacher" or p.mean_q or p.mean_k or p.correlation:
        return None
    scale = p.std_q * p.std_k
    if p.components == "uniform":
        return _Transform(0.0, _tail(p, 0.0), lambda t: p.d_k * np.log(_uniform_cf(scale * t)) + 0j)
    variances, weights = _mixing(p.components == "laplace", p.degrees_of_freedom)
    # A product of Laplace components decays like e^(−√(8|x|)), one of Student's t like |x|^(−ν−1).
    furthest = 150.0 if p.components == "laplace" else max(150.0, 1e13 ** (1 / (p.degrees_of_freedom + 1)))
    return _Transform(
        0.0,
        _tail(p, furthest),
        lambda t: p.d_k * np.log((1 / np.sqrt(1 + np.multiply.outer((scale * t) ** 2, variances))) @ weights) + 0j,
    )


def _normal_law(p: Parameters) -> _Mixture | _Transform:
    """Return the law of a score of normal components, at least one of which varies."""
    d, rho = p.d_k, p.correlation
    if p.std_q == 0 or p.std_k == 0:
        deviation = math.sqrt(d) * math.hypot(p.mean_q * p.std_k, p.mean_k * p.std_q)
        return _Mixture(np.ones(1), np.array([d * p.mean_q * p.mean_k]), np.array([deviation]), False)
    u, v, scale = p.mean_q / p.std_q, p.mean_k / p.std_k, p.std_q * p.std_k
    if abs(rho) < 1 and (v == rho * u or u == rho * v):
        # Given one vector of length r, in units of its deviation, the score is N(ρr², (1 − ρ²)r²).
        r, weights = norm_nodes(d, u if v == rho * u else v)
        return _Mixture(weights, scale * rho * r**2, scale * math.sqrt(1 - rho**2) * r, d == 1)

    def log_cf(t: FloatArray) -> ComplexArray:
        t = scale * t
        determinant = 1 - 2j * rho * t + (1 - rho**2) * t**2
        exponent = -(t**2) * (u**2 + v**2 + 2 * rho * u * v) / 2 - 1j * (1 - rho**2) * t**3 * u * v
        return d * (exponent / determinant - 0.5 * np.log(determinant) - 1j * rho * t)

    return _Transform(score_moments(p).mean, _tail(p, 40 * (1 + abs(rho))), log_cf)


def _tail(p: Parameters, furthest: float) -> float:
    """Return how far the score's law reaches from its mean, given how far one standardised product does."""
    return 14 * math.sqrt(score_moments(p).variance or 0.0) + furthest * p.std_q * p.std_k


def _uniform_cf(t: FloatArray) -> FloatArray:
    """Return E e^(itXY) for X and Y uniform with variance 1: the mean of sin(3ty)/(3ty) for y from 0 to 1; t > 0.

    Beyond the t for which the nodes are precise it is 1, so that the caller sees it does not vanish there.
    """
    nodes, weights = _legendre()
    angle = 3 * np.multiply.outer(t, (1 + nodes) / 2)
    return np.where(t < 130, np.sin(angle) / angle @ (weights / 2), 1.0)


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return Gauss–Legendre nodes and weights on −1 … 1."""
    return np.polynomial.legendre.leggauss(256)


@lru_cache(maxsize=16)
def _mixing(laplace: bool, degrees: int) -> tuple[FloatArray, FloatArray]:
    """Return the variances and weights of the normal laws that a product of two components is a mixture of.

    A Laplace component is normal with variance χ²_2/2, one of Student's t with variance (ν − 2)/χ²_ν; given both
    variances V and W, E e^(itXY) = (1 + t²VW)^(−1/2).
    """
    r, weights = norm_nodes(2 if laplace else degrees, 0.0)
    product = np.exp(2 * math.log(r[0]) + math.log(r[1] / r[0]) * np.arange(2 * len(r) - 1))
    variances = (product / 2) ** 2 if laplace else ((degrees - 2) / product) ** 2
    return variances, np.convolve(weights, weights)


def _signs_within(d: int, deviations: float) -> float:
    """Return P(|S| <= deviations·√d) for a sum S of d random signs, which takes every other value from −d to d."""
    more = (d + 1) // 2 + np.arange(min(d // 2, 10 * math.isqrt(d)) + 1)  # heads, at least half of all d
    ratios = np.concatenate([[1.0], np.cumprod((d - more[:-1]) / more[1:])])
    sums = 2 * more - d
    weights = np.where(sums == 0, ratios, 2 * ratios)
    return float(weights[sums <= math.isqrt(math.floor(deviations**2 * d))].sum() / weights.sum())
