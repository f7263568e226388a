"""Mechanisms: how a query and a key become a score.

dot_product q·k · additive vᵀ tanh(W₁q + W₂k + b) · cosine q·k/(‖q‖‖k‖) · bilinear qᵀWk (Luong et al. 2015, arXiv
1508.04025, "general"). Scale, soft-cap and mask are applied to scores later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..parameters import MechanismName
from .additive import AdditiveWeights, additive_scores, product
from .normalise import normalised


@dataclass(frozen=True, eq=False)
class BilinearWeights:
    """The learned weights of bilinear attention."""

    w: FloatArray  # (d_q, d_k)


Weights: TypeAlias = AdditiveWeights | BilinearWeights | None  # None: the mechanism has none


def draw_weights(
    mechanism: MechanismName,
    d_k: int,
    rng: np.random.Generator,
    gain: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
) -> Weights:
    """Draw weights as initialised before training; additive attention has d_k hidden units.

    Entries of a matrix are normal with variance 1/(number of inputs), which for a square matrix is Glorot and
    Bengio's: inputs with mean 0 and variance 1 have outputs with mean 0 and variance 1. The gain multiplies the score
    of either mechanism. With queries and keys of such components, gain 1 means

    - bilinear: Wᵀq is as long as q on average, so a score has variance d_k like the dot product's, and the same
      scale rules apply;
    - additive: v ~ N(0, 1/d_k), so a score has variance E tanh²(N(0, 2)) ≈ 0.52 at every width, of which 0.28 lies
      within a row: v contains a factor 1/√d_k. Gain √d_k makes v ~ N(0, 1), whose scores grow like an unscaled dot
      product's. The bias is 0;
    - dot_product and cosine have no weights for a gain to act on.

    Weights are nested: with an equal rng, those at one d_k are, up to their factor, a corner of those at a larger
    one, so curves over d_k are smooth.
    """
    if mechanism == "bilinear":
        return BilinearWeights(_corner(rng, d_k, gain / math.sqrt(d_k), dtype))
    if mechanism == "additive":
        for_q, for_k, for_v = rng.spawn(3)
        w_q, w_k = (_corner(each, d_k, 1 / math.sqrt(d_k), dtype) for each in (for_q, for_k))
        v = for_v.standard_normal(d_k) * (gain / math.sqrt(d_k))
        return AdditiveWeights(w_q, w_k, np.zeros(d_k, dtype), v.astype(dtype))
    return None


def score_bound(mechanism: MechanismName, weights: Weights = None) -> float:
    """Return the upper bound of |score| for any queries and keys; infinity if there is none.

    Additive: ‖v‖₁, on average gain·√(2d_k/π) for weights from `draw_weights`; not 1, although each tanh lies in [−1,
    1].
    """
    if isinstance(weights, AdditiveWeights):
        return float(np.abs(weights.v).sum(dtype=np.float64))
    return 1.0 if mechanism == "cosine" else math.inf


def scores(
    q: FloatArray, k: FloatArray, mechanism: MechanismName = "dot_product", weights: Weights = None
) -> FloatArray:
    """Return the scores (…, m, n) of queries q (…, m, d) and keys k (…, n, d); `weights` are the mechanism's."""
    if isinstance(weights, AdditiveWeights):
        return additive_scores(q, k, weights)
    if isinstance(weights, BilinearWeights):
        return product(q, weights.w) @ k.mT
    if mechanism == "cosine":
        return normalised(q, "l2") @ normalised(k, "l2").mT
    return q @ k.mT


def _corner(rng: np.random.Generator, size: int, factor: float, dtype: npt.DTypeLike) -> FloatArray:
    """Return a square of normal entries times a factor; with an equal rng, a larger one contains it in its corner."""
    square = np.empty((size, size), dtype)
    for i in range(size):  # shell i consists of the entries of column i above the diagonal, then of row i up to it
        shell = rng.standard_normal(2 * i + 1) * factor
        square[:i, i], square[i, : i + 1] = shell[:i], shell[i:]
    return square
