"""Mechanisms: how a query and a key become a score.

dot_product q·k · additive vᵀ tanh(W₁q + W₂k + b) · cosine q·k/(‖q‖‖k‖) · bilinear qᵀWk (Luong et al. 2015,
arXiv 1508.04025, "general"). Scores are what comes before scale, soft-cap and mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..errors import InputError
from .additive import AdditiveWeights, additive_scores
from .normalise import normalised

Mechanism: TypeAlias = Literal["dot_product", "additive", "cosine", "bilinear"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)


@dataclass(frozen=True, eq=False)
class BilinearWeights:
    """What bilinear attention has learned, or the gradient with respect to it."""

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
    """Random weights as before training, with d_k hidden units unless told.

    Entries of a matrix are normal with variance 1/(its inputs), which for a square one is Glorot and Bengio's: what
    it makes of components with mean 0 and variance 1 has mean 0 and variance 1 again. The gain multiplies the score
    whatever the mechanism. With queries and keys of such components, gain 1 means

    - bilinear: Wᵀq is as long as q on average, so a score has variance d_k, as the dot product's, and the same rules
      scale it;
    - additive: v ~ N(0, 1/h), so a score has variance E tanh²(N(0, 2)) ≈ 0.52 at every width, of which 0.28 lies
      within a row: v holds a 1/√d_k. Gain √h makes v ~ N(0, 1), whose scores grow like an unscaled dot product's.
      The bias is 0;
    - dot_product and cosine have no weights that a gain could act on.

    Weights are nested: those at one d_k are, but for their factor, a corner of those at a larger one from an equal
    rng, so that curves over d_k are smooth.
    """
    _check_mechanism(mechanism)
    if mechanism == "bilinear":
        return BilinearWeights(_corner(rng, d_k, d_k, gain / math.sqrt(d_k)).astype(dtype))
    if mechanism == "additive":
        h = hidden_units or d_k
        for_q, for_k, for_v = rng.spawn(3)
        w_q, w_k = (_corner(each, d_k, h, 1 / math.sqrt(d_k)).astype(dtype) for each in (for_q, for_k))
        v = for_v.standard_normal(h) * (gain / math.sqrt(h))
        return AdditiveWeights(w_q, w_k, np.zeros(h, dtype), v.astype(dtype))
    return None


def score_bound(mechanism: Mechanism, weights: Weights = None) -> float:
    """What the size of a score never exceeds, whatever the queries and keys; infinity where nothing holds it.

    Additive: ‖v‖₁, on average gain·√(2h/π) for weights from `draw_weights`; not 1, though each tanh lies in [−1, 1].
    """
    if isinstance(weights, AdditiveWeights):
        return float(np.abs(weights.v).sum(dtype=np.float64))
    return 1.0 if mechanism == "cosine" else math.inf


def scores(q: FloatArray, k: FloatArray, mechanism: Mechanism = "dot_product", weights: Weights = None) -> FloatArray:
    """Scores (…, m, n) of queries q (…, m, d) and keys k (…, n, d).

    Heads may share keys, grouped-query: q (…, heads, m, d) and k (…, kv_heads, n, d), where query head h reads key
    head h // (heads / kv_heads). Raises InputError for sizes that do not fit.
    """
    folded = fold_heads(q, k)
    check_sizes(folded, k, mechanism, weights)
    if isinstance(weights, AdditiveWeights):
        found = additive_scores(folded, k, weights)
    elif isinstance(weights, BilinearWeights):
        found = folded @ weights.w @ k.mT
    elif mechanism == "cosine":
        found = normalised(folded, "l2") @ normalised(k, "l2").mT
    else:
        found = folded @ k.mT
    return found.reshape(*q.shape[:-1], k.shape[-2])


def fold_heads(x: FloatArray, like: FloatArray) -> FloatArray:
    """x (…, heads, m, d) as (…, kv_heads, heads/kv_heads·m, d), for keys or values `like` (…, kv_heads, n, d).

    The query heads that read one key head stand next to each other: to grouped-query attention they are more rows
    of one head. x itself where all leading axes agree; InputError where heads do not divide.
    """
    if min(x.ndim, like.ndim) < 2:
        raise InputError(
            f"queries and keys have two axes at least, vectors and components; not {x.shape}, {like.shape}"
        )
    if x.shape[:-2] == like.shape[:-2]:
        return x
    if x.ndim < 3 or x.ndim != like.ndim or x.shape[:-3] != like.shape[:-3]:
        raise InputError(
            f"queries {x.shape} and keys {like.shape} may differ in heads, the third axis from the end, and in no "
            "axis before it"
        )
    heads, kv_heads = x.shape[-3], like.shape[-3]
    if not kv_heads or heads % kv_heads:
        raise InputError(f"{heads} query heads cannot share {kv_heads} key heads; a multiple of {kv_heads} can")
    return x.reshape(*like.shape[:-2], heads // kv_heads * x.shape[-2], x.shape[-1])


def check_sizes(q: FloatArray, k: FloatArray, mechanism: Mechanism, weights: Weights) -> None:
    """Raise InputError unless the mechanism has its weights and the widths of all fit."""
    _check_mechanism(mechanism)
    wanted = {"additive": AdditiveWeights, "bilinear": BilinearWeights}.get(mechanism, type(None))
    if type(weights) is not wanted:
        kinds = [kind.__name__.replace("NoneType", "no weights") for kind in (wanted, type(weights))]
        raise InputError(f"{mechanism} attention takes {kinds[0]}, not {kinds[1]}")
    widths = (q.shape[-1], k.shape[-1])
    if isinstance(weights, AdditiveWeights):
        accepted = (len(weights.w_q), len(weights.w_k))
    elif isinstance(weights, BilinearWeights):
        accepted = weights.w.shape
    else:
        accepted = (widths[0], widths[0])
    if widths != accepted:
        raise InputError(
            f"queries are {widths[0]} wide and keys {widths[1]}; {mechanism} attention takes {accepted[0]} and "
            f"{accepted[1]} here"
        )


def _check_mechanism(mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism {mechanism!r} is not known; choose one of {', '.join(MECHANISMS)}")


def _corner(rng: np.random.Generator, rows: int, columns: int, factor: float) -> FloatArray:
    """A matrix of normal entries times a factor; a larger one from an equal rng has it in its corner."""
    size = max(rows, columns)
    square = np.empty((size, size))
    entries = rng.standard_normal(size * size) * factor
    for i in range(size):  # the i-th shell of a square is the last part of its column i, then of its row i
        shell = entries[i * i : (i + 1) * (i + 1)]
        square[:i, i], square[i, : i + 1] = shell[:i], shell[i:]
    return square[:rows, :columns]
