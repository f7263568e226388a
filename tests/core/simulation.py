"""Queries, keys and their softmax drawn in a few lines, which share nothing with the lab."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from attn_tui.core.parameters import Parameters

Array: TypeAlias = npt.NDArray[Any]


def components(p: Parameters, rng: np.random.Generator, *shape: int) -> Array:
    """Components with mean 0 and variance 1."""
    match p.components:
        case "normal":
            return rng.standard_normal(shape)
        case "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
        case "laplace":
            return rng.laplace(0, math.sqrt(0.5), shape)
        case "rademacher":
            return rng.choice([-1.0, 1.0], shape)
        case "student_t":
            v = p.degrees_of_freedom
            return rng.standard_t(v, shape) * math.sqrt((v - 2) / v)


def draw_vectors(p: Parameters, rng: np.random.Generator, draws: int, rows: int, keys: int) -> tuple[Array, Array]:
    """Queries (draws, rows, d_k) and keys (draws, keys, d_k) of independent draws."""
    shared, own = math.sqrt(abs(p.correlation)), math.sqrt(1 - abs(p.correlation))
    g = components(p, rng, draws, 1, p.d_k)
    q = shared * g + own * components(p, rng, draws, rows, p.d_k)
    k = math.copysign(shared, p.correlation) * g + own * components(p, rng, draws, keys, p.d_k)
    return p.mean_q + p.std_q * q, p.mean_k + p.std_k * k


def draw_scores(p: Parameters, seed: int, draws: int) -> Array:
    """One score of each of some independent draws."""
    q, k = draw_vectors(p, np.random.default_rng(seed), draws, 1, 1)
    return (q @ k.mT).reshape(-1)


def z_score(samples: Array, expected: float, least: float = 1e-12) -> float:
    """How many standard errors the mean of independent samples is from what was expected."""
    return float((samples.mean() - expected) / max(samples.std(ddof=1) / math.sqrt(len(samples)), least))
