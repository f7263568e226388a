"""The law of a score q·k: its density, and its share within three standard deviations.

Normal components whose score is normal given one vector's length mix normal laws over that length (the
variance-gamma law, where all means are 0). Other laws come from characteristic functions, of which a score's is
that of one product to the power d_k, by the trapezoidal rule; the rule needs the power to vanish, which at small d_k
it does not. Where neither serves there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..arrays import FloatArray
from ..parameters import Parameters
from .quadrature import ComplexArray, normal_cdf, normal_pdf
from .query_norm import norm_nodes
from .score_moments import score_moments

_MOST_POINTS = 2048  # of a characteristic function; where it decays too slowly for these, there is no value
_NEGLIGIBLE = 26  # −ln of what is left of it where the sum ends


def score_density(parameters: Parameters, x: FloatArray) -> FloatArray | None:
    """The exact density of the unscaled score at x, shape (points,); None where it has none or none is known here.

    At d_k = 1 it is infinite at 0. A multiplier c turns it into density(x/c)/c.
    """
    law = _law(parameters)
    return None if law is None else law.density(np.asarray(x, dtype=np.float64))


def share_within(parameters: Parameters, deviations: float) -> float | None:
    """The exact probability that a score is within so many standard deviations of its mean; None where unknown."""
    p = parameters
    variance = score_moments(p).variance
    if variance == 0:
        return 1.0
    if p.components == "rademacher" and not (p.mean_q or p.mean_k or p.correlation):
        return _signs_within(p.d_k, deviations)
    law = _law(p)
    return None if law is None or variance is None else law.within(deviations * math.sqrt(variance))


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Normal laws N(mean, deviation²) with weights that sum to 1."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    infinite_at_0: bool

    def density(self, x: FloatArray) -> FloatArray:
        density = normal_pdf((x[:, None] - self.means) / self.deviations) @ (self.weights / self.deviations)
        return np.where(x == 0, np.inf, density) if self.infinite_at_0 else density

    def within(self, half_width: float) -> float:
        centre = float(self.weights @ self.means)
        upper = normal_cdf((centre + half_width - self.means) / self.deviations)
        return float(self.weights @ (upper - normal_cdf((centre - half_width - self.means) / self.deviations)))


@dataclass(frozen=True, eq=False)
class _Transform:
    """A law about its mean by ln E e^(itx), which is known for t > 0; tail: how far it reaches to either side."""

    mean: float
    tail: float
    log_cf: Callable[[FloatArray], ComplexArray]

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
        """Points t > 0, their step, and the characteristic function there; None where it decays too slowly.

        The step makes the sum periodic in x: what lies `tail` beyond the furthest x must not come back.
        """
        step = 2 * math.pi / (furthest + self.tail)
        last = step * 16
        while float(self.log_cf(np.array([last])).real[0]) > -_NEGLIGIBLE:
            last *= 1.25
            if last > step * _MOST_POINTS:
                return None
        t = step * np.arange(1, math.floor(last / step) + 1)
        return t, step, np.exp(self.log_cf(t))


def _law(p: Parameters) -> _Mixture | _Transform | None:
    """The law of a score, where it has a density that is known here."""
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
    # A product of Laplace components dies like e^(−√(8|x|)), one of Student's t like |x|^(−ν−1).
    furthest = 150.0 if p.components == "laplace" else max(150.0, 1e13 ** (1 / (p.degrees_of_freedom + 1)))
    return _Transform(
        0.0,
        _tail(p, furthest),
        lambda t: p.d_k * np.log((1 / np.sqrt(1 + np.multiply.outer((scale * t) ** 2, variances))) @ weights) + 0j,
    )


def _normal_law(p: Parameters) -> _Mixture | _Transform:
    """The law of a score of normal components, at least one of which varies."""
    d, rho = p.d_k, p.correlation
    if p.std_q == 0 or p.std_k == 0:
        deviation = math.sqrt(d) * math.hypot(p.mean_q * p.std_k, p.mean_k * p.std_q)
        return _Mixture(np.ones(1), np.array([d * p.mean_q * p.mean_k]), np.array([deviation]), False)
    u, v, scale = p.mean_q / p.std_q, p.mean_k / p.std_k, p.std_q * p.std_k
    if abs(rho) < 1 and (v == rho * u or u == rho * v):
        # Given the one vector, in units of its deviation, the score is N(ρr², (1 − ρ²)r²).
        r, weights = norm_nodes(d, u if v == rho * u else v)
        return _Mixture(weights, scale * rho * r**2, scale * math.sqrt(1 - rho**2) * r, d == 1)

    def log_cf(t: FloatArray) -> ComplexArray:
        t = scale * t
        determinant = 1 - 2j * rho * t + (1 - rho**2) * t**2
        exponent = -(t**2) * (u**2 + v**2 + 2 * rho * u * v) / 2 - 1j * (1 - rho**2) * t**3 * u * v
        return d * (exponent / determinant - 0.5 * np.log(determinant) - 1j * rho * t)

    return _Transform(score_moments(p).mean, _tail(p, 40 * (1 + abs(rho))), log_cf)


def _tail(p: Parameters, furthest: float) -> float:
    """How far the score's law reaches from its mean, from how far one standardised product does."""
    return 14 * math.sqrt(score_moments(p).variance or 0.0) + furthest * p.std_q * p.std_k


def _uniform_cf(t: FloatArray) -> FloatArray:
    """E e^(itXY) for X and Y uniform with variance 1: the mean of sin(3ty)/(3ty) for y from 0 to 1; t > 0.

    Beyond the t that the nodes are enough for it is left at 1, so that what needs it is known not to have vanished.
    """
    nodes, weights = _legendre()
    angle = 3 * np.multiply.outer(t, (1 + nodes) / 2)
    return np.where(t < 130, np.sin(angle) / angle @ (weights / 2), 1.0)


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on −1 … 1."""
    return np.polynomial.legendre.leggauss(256)


@lru_cache(maxsize=16)
def _mixing(laplace: bool, degrees: int) -> tuple[FloatArray, FloatArray]:
    """Variances, with weights, of the normal laws that a product of two components mixes.

    A Laplace component is normal with variance χ²_2/2, one of Student's t with variance (ν − 2)/χ²_ν; given both
    variances V and W, E e^(itXY) = (1 + t²VW)^(−1/2).
    """
    r, weights = norm_nodes(2 if laplace else degrees, 0.0)
    product = np.exp(2 * math.log(r[0]) + math.log(r[1] / r[0]) * np.arange(2 * len(r) - 1))
    variances = (product / 2) ** 2 if laplace else ((degrees - 2) / product) ** 2
    return variances, np.convolve(weights, weights)


def _signs_within(d: int, deviations: float) -> float:
    """P(|S| <= deviations·√d) for a sum S of d random signs, which jumps by 2 from −d to d."""
    more = (d + 1) // 2 + np.arange(min(d // 2, 10 * math.isqrt(d)) + 1)  # heads, at least half of all d
    ratios = np.concatenate([[1.0], np.cumprod((d - more[:-1]) / more[1:])])
    sums = 2 * more - d
    weights = np.where(sums == 0, ratios, 2 * ratios)
    return float(weights[sums <= math.isqrt(math.floor(deviations**2 * d))].sum() / weights.sum())
