"""Laws of a component of q and k, each standardised to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..parameters import ComponentLaw, Parameters


@dataclass(frozen=True)
class Law:
    """A symmetric law with mean 0 and variance 1; both functions take the degrees of freedom of Student's t."""

    sample: Callable[[np.random.Generator, tuple[int, ...], int], FloatArray]  # -> float32 of that shape
    fourth_moment: Callable[[int], float]


def _normal(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.standard_normal(shape, dtype=np.float32)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return (rng.random(shape, dtype=np.float32) - np.float32(0.5)) * np.float32(math.sqrt(12))


def _laplace(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.laplace(scale=math.sqrt(0.5), size=shape).astype(np.float32)


def _rademacher(rng: np.random.Generator, shape: tuple[int, ...], _: int) -> FloatArray:
    return rng.integers(0, 2, shape, dtype=np.int8).astype(np.float32) * 2 - 1


def _student_t(rng: np.random.Generator, shape: tuple[int, ...], degrees: int) -> FloatArray:
    return (rng.standard_t(degrees, shape) * math.sqrt((degrees - 2) / degrees)).astype(np.float32)


def _student_t_fourth(degrees: int) -> float:
    return 3 * (degrees - 2) / (degrees - 4) if degrees > 4 else math.inf


LAWS: dict[ComponentLaw, Law] = {
    "normal": Law(_normal, lambda _: 3.0),
    "uniform": Law(_uniform, lambda _: 1.8),
    "laplace": Law(_laplace, lambda _: 6.0),
    "rademacher": Law(_rademacher, lambda _: 1.0),
    "student_t": Law(_student_t, _student_t_fourth),
}


def score_mean(p: Parameters) -> float:
    """The mean of a score q·k."""
    return p.d_k * (p.mean_q * p.mean_k + p.correlation * p.std_q * p.std_k)


def score_std(p: Parameters) -> float:
    """The standard deviation of a score q·k; NaN where it does not exist.

    Per component, with the shared part √|ρ| of both: σ_q²σ_k²(1 + ρ²(m₄ − 2)) + μ_q²σ_k² + μ_k²σ_q² + 2ρσ_qσ_kμ_qμ_k.
    """
    rho, spread = p.correlation, p.std_q * p.std_k
    shared = rho**2 * (LAWS[p.components].fourth_moment(p.degrees_of_freedom) - 2) if rho and spread else 0.0
    if math.isinf(shared):
        return math.nan
    variance = spread**2 * (1 + shared) + (p.mean_q * p.std_k) ** 2 + (p.mean_k * p.std_q) ** 2
    return math.sqrt(p.d_k * max(variance + 2 * rho * spread * p.mean_q * p.mean_k, 0.0))


def score_reach(p: Parameters) -> float:
    """A width that most scores lie within a few of: their standard deviation, or that of normal components."""
    std = score_std(p)
    return score_std(p.with_value("components", "normal")) if math.isnan(std) else std
