"""Mechanisms: how a query and a key become a score.

dot_product q·k · additive vᵀ tanh(W₁q + W₂k + b) · cosine q·k/(‖q‖‖k‖) · bilinear qᵀWk (Luong et al. 2015, arXiv
1508.04025, "general"). Scale, soft-cap and mask are applied to scores later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..errors import InputError
from .additive import AdditiveWeights, additive_scores, product
from .normalise import normalised

Mechanism: TypeAlias = Literal["dot_product", "additive", "cosine", "bilinear"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)


@dataclass(frozen=True, eq=False)
class BilinearWeights:
    """The learned weights of bilinear attention, or the gradient with respect to them."""

    w: FloatArray  # (d_q, d_k)


Weights: TypeAlias = AdditiveWeights | BilinearWeights | None  # None: the mechanism has none


def draw_weights(
    mechanism: Mechanism,
    d_k: int,
    rng: np.random.Generator,
    gain: float = 1.0,
    hidden_units: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> Weights:
    """Draw weights as initialised before training, with d_k hidden units by default.

    Entries of a matrix are normal with variance 1/(number of inputs), which for a square matrix is Glorot and
    Bengio's: inputs with mean 0 and variance 1 have outputs with mean 0 and variance 1. The gain multiplies the score
    of either mechanism. With queries and keys of such components, gain 1 means

    - bilinear: Wᵀq is as long as q on average, so a score has variance d_k like the dot product's, and the same
      scale rules apply;
    - additive: v ~ N(0, 1/h), so a score has variance E tanh²(N(0, 2)) ≈ 0.52 at every width, of which 0.28 lies
      within a row: v contains a factor 1/√h. Gain √h makes v ~ N(0, 1), whose scores grow like an unscaled dot
      product's. The bias is 0;
    - dot_product and cosine have no weights for a gain to act on.

    Weights are nested: with an equal rng, those at one d_k are, up to their factor, a corner of those at a larger
    one, so curves over d_k are smooth.
    """
    _check_mechanism(mechanism)
    if mechanism == "bilinear":
        return BilinearWeights(_corner(rng, d_k, d_k, gain / math.sqrt(d_k), dtype))
    if mechanism == "additive":
        h = hidden_units or d_k
        for_q, for_k, for_v = rng.spawn(3)
        w_q, w_k = (_corner(each, d_k, h, 1 / math.sqrt(d_k), dtype) for each in (for_q, for_k))
        v = for_v.standard_normal(h) * (gain / math.sqrt(h))
        return AdditiveWeights(w_q, w_k, np.zeros(h, dtype), v.astype(dtype))
    return None


def score_bound(mechanism: Mechanism, weights: Weights = None) -> float:
    """Return the upper bound of |score| for any queries and keys; infinity if there is none.

    Additive: ‖v‖₁, on average gain·√(2h/π) for weights from `draw_weights`; not 1, although each tanh lies in [−1,
    1].
    """
    if isinstance(weights, AdditiveWeights):
        return float(np.abs(weights.v).sum(dtype=np.float64))
    return 1.0 if mechanism == "cosine" else math.inf


def scores(q: FloatArray, k: FloatArray, mechanism: Mechanism = "dot_product", weights: Weights = None) -> FloatArray:
    """Return the scores (…, m, n) of queries q (…, m, d) and keys k (…, n, d).

    In grouped-query attention heads share keys: q (…, heads, m, d) and k (…, kv_heads, n, d), where query head h uses
    key head h // (heads / kv_heads). Raise InputError if sizes do not match.
    """
    folded = fold_heads(q, k)
    check_sizes(folded, k, mechanism, weights)
    if isinstance(weights, AdditiveWeights):
        found = additive_scores(folded, k, weights)
    elif isinstance(weights, BilinearWeights):
        found = product(folded, weights.w) @ k.mT
    elif mechanism == "cosine":
        found = normalised(folded, "l2") @ normalised(k, "l2").mT
    else:
        found = folded @ k.mT
    return found.reshape(*q.shape[:-1], k.shape[-2])


def fold_heads(x: FloatArray, like: FloatArray) -> FloatArray:
    """Fold x (…, heads, m, d) to (…, kv_heads, heads/kv_heads·m, d), matching keys or values (…, kv_heads, n, d).

    Query heads that share a key head are adjacent, so in grouped-query attention they become more rows of one head.
    Return x itself if all leading axes agree; raise InputError if kv_heads does not divide heads.
    """
    if min(x.ndim, like.ndim) < 2:
        raise InputError(
            "queries and keys must have at least two axes, vectors and components, not {q_shape} and {k_shape}",
            q_shape=x.shape,
            k_shape=like.shape,
        )
    if x.shape[:-2] == like.shape[:-2]:
        return x
    if x.ndim < 3 or x.ndim != like.ndim or x.shape[:-3] != like.shape[:-3]:
        raise InputError(
            "queries {q_shape} and keys {k_shape} may differ in heads, the third axis from the end, but "
            "not in the axes before it",
            q_shape=x.shape,
            k_shape=like.shape,
        )
    heads, kv_heads = x.shape[-3], like.shape[-3]
    if not kv_heads or heads % kv_heads:
        raise InputError(
            "{heads} query heads cannot share {kv_heads} key heads; must be a multiple of {kv_heads}",
            heads=heads,
            kv_heads=kv_heads,
        )
    return x.reshape(*like.shape[:-2], heads // kv_heads * x.shape[-2], x.shape[-1])


def check_sizes(q: FloatArray, k: FloatArray, mechanism: Mechanism, weights: Weights) -> None:
    """Raise InputError unless the mechanism has its weights and all widths match."""
    _check_mechanism(mechanism)
    wanted = {"additive": AdditiveWeights, "bilinear": BilinearWeights}.get(mechanism, type(None))
    if type(weights) is not wanted:
        kinds = [kind.__name__.replace("NoneType", "no weights") for kind in (wanted, type(weights))]
        raise InputError(
            "{mechanism} attention needs {needed}, not {given}", mechanism=mechanism, needed=kinds[0], given=kinds[1]
        )
    widths = (q.shape[-1], k.shape[-1])
    if isinstance(weights, AdditiveWeights):
        accepted = (len(weights.w_q), len(weights.w_k))
    elif isinstance(weights, BilinearWeights):
        accepted = weights.w.shape
    else:
        accepted = (widths[0], widths[0])
    if widths != accepted:
        raise InputError(
            "queries are {q_width} wide and keys {k_width}; {mechanism} attention needs {q_needed} and "
            "{k_needed} here",
            q_width=widths[0],
            k_width=widths[1],
            mechanism=mechanism,
            q_needed=accepted[0],
            k_needed=accepted[1],
        )


def _check_mechanism(mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        raise InputError(
            "mechanism: must be one of {mechanisms}, not {mechanism!r}",
            mechanisms=", ".join(MECHANISMS),
            mechanism=mechanism,
        )


def _corner(rng: np.random.Generator, rows: int, columns: int, factor: float, dtype: npt.DTypeLike) -> FloatArray:
    """Return a matrix of normal entries times a factor; with an equal rng, a larger one contains it in its corner."""
    size = max(rows, columns)
    square = np.empty((size, size), dtype)
    for i in range(size):  # shell i consists of the entries of column i above the diagonal, then of row i up to it
        shell = rng.standard_normal(2 * i + 1) * factor
        square[:i, i], square[i, : i + 1] = shell[:i], shell[i:]
    return square[:rows, :columns]
