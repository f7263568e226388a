"""The law of a score of normalised queries and keys (QK-norm): a length times the cosine of their angle.

A normalised vector has a fixed length, √d_k for rms and layer_norm and 1 for l2, and layer_norm keeps to the d_k − 1
dimensions whose components have mean 0. If a key's components are symmetric, the cosine T has mean 0 and variance 1/D
in D dimensions for every query: by symmetry, the components of its direction are uncorrelated, and their squares sum
to 1. If they are normal too, its direction is uniform, and T has a density ∝ (1 − t²)^((D − 3)/2), of excess kurtosis
−6/(D + 2), whatever the query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..parameters import Parameters, ScaleName
from ..scales import scale_rule
from .score_moments import ScoreMoments


@dataclass(frozen=True)
class NormalisedLaw:
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
