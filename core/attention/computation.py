"""Computation: the one description of how the attention weights of a head follow from its queries and keys.

In this order, each step rounded as `precision` says:

    vectors   q and k exchanged, normalised, times a factor each
    scores    q·k, or what the mechanism makes of them
    logits    cap·tanh(multiplier·score/cap) + biases
    weights   softmax over the keys that a query sees, and the sink

`Computation()` is softmax(q·kᵀ). It is for evaluating and for printing: all of its numbers are known. A model whose
multiplier, soft-cap or sink are free, to be fitted to evidence, is a LogitModel of `diagnosis/fitting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..parameters import ArithmeticName, FormatName, MechanismName
from ..scales import Normalise
from .formats import number_format
from .normalise import normalised
from .precision import Losses, losses_of, round_to, rounded_softmax, stored
from .scores import BilinearWeights, Weights, scores
from .softmax import Softmax, softcapped
from .visibility import Bias, Rows, Slope, Visibility, part_of

# Multipliers [draws or 1, rows or 1] of some rows, from the numbers of keys that they see, [draws or 1, rows].
OfRows: TypeAlias = "Callable[[npt.NDArray[np.intp], slice, Rows], FloatArray]"

_ALL = slice(None)


class Terms(NamedTuple):
    """The arrays of a computation for some queries and keys; each broadcasts to their scores."""

    hidden: BoolArray | None = None
    multiplier: FloatArray | float = 1.0
    biases: tuple[FloatArray, ...] = ()
    edge: slice = _ALL  # the keys outside which none is hidden


class Attention(NamedTuple):
    """What a computation makes of queries and keys."""

    scores: FloatArray  # (…, m, n)
    logits: FloatArray  # (…, m, n), hidden ones included
    softmax: Softmax


@dataclass(frozen=True, eq=False)
class Computation:
    """How attention weights follow from q [draws, queries, d] and k [draws, keys, d]."""

    swapped: bool = False  # whether q and k changed places
    tiled: bool = False  # whether query head h reads key head h mod kv_heads, instead of h // (heads / kv_heads)
    norms: tuple[Normalise, Normalise] = ("none", "none")  # of q and of k
    gain: float = 1.0  # of normalised vectors
    factor: float = 1.0  # of q and of k, which are rounded again: a rule that does not multiply their score
    mechanism: MechanismName = "dot_product"
    learned: Weights = None  # the mechanism's weights
    multiplier: float | FloatArray | OfRows = (
        1.0  # of scores of q and k as given; an array is [draws or 1, queries or 1]
    )
    softcap: float | None = None
    biases: tuple[Bias | Slope, ...] = ()  # added after the soft-cap
    visibility: Visibility | None = None  # None: every query sees every key
    sink: float | None = None  # the logit of no key
    axis: Literal[-1, -2] = -1  # softmax runs over keys, or over queries
    precision: FormatName = "float64"
    arithmetic: ArithmeticName = "fused"

    def key_head(self, head: int, heads: int, kv_heads: int) -> int:
        """Return the key head that a query head reads."""
        return head % kv_heads if self.tiled else head // (heads // kv_heads)

    def vectors(self, q: FloatArray, k: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the vectors that are multiplied, as stored in the format; in float8 their scale depends on all rows.

        In a rounded format, cosine attention multiplies the stored normalised vectors, and bilinear attention k with
        the stored product qW.
        """
        if self.swapped:
            q, k = k, q
        q, k = (self._normalised(*x) for x in zip((q, k), self.norms, strict=True))
        if self._rounds and self.mechanism == "cosine":
            q, k = normalised(q, "l2"), normalised(k, "l2")
        q, k = stored(q, self.precision), stored(k, self.precision)
        if self.factor != 1:
            q, k = (stored(x * x.dtype.type(self.factor), self.precision) for x in (q, k))
        if self._rounds and isinstance(self.learned, BilinearWeights):
            q = stored(q @ self.learned.w, self.precision)
        return q, k

    def scores(self, q: FloatArray, k: FloatArray) -> FloatArray:
        """Return the scores (…, m, n) of some of the `vectors`; additive attention's hidden units stay in float32."""
        done = self._rounds and (self.mechanism == "cosine" or isinstance(self.learned, BilinearWeights))
        with np.errstate(over="ignore", invalid="ignore"):
            return self._rounded(q @ k.mT if done else scores(q, k, self.mechanism, self.learned))

    def terms(self, shape: tuple[int, ...], draws: slice = _ALL, rows: Rows = _ALL, keys: slice = _ALL) -> Terms:
        """Return the arrays for some queries and keys, whose scores have this shape (draws, rows, keys)."""
        hidden, seen, edge = None, np.full(shape[:-1], shape[-1], np.intp), _ALL
        if self.visibility is not None:
            edge = self.visibility.edge(rows, keys)
            hidden = np.broadcast_to(self.visibility.hidden(draws, rows, keys), shape)
            seen = seen - np.count_nonzero(hidden, axis=-1) if callable(self.multiplier) else seen
        biases = tuple(self._bias(bias, draws, rows)[..., keys] for bias in self.biases)
        return Terms(hidden, self.multipliers(seen, draws, rows), biases, edge)

    def multipliers(self, seen: npt.NDArray[np.intp], draws: slice = _ALL, rows: Rows = _ALL) -> FloatArray | float:
        """Return the multiplier, or those of rows, [draws or 1, rows or 1, 1], that see these numbers of keys."""
        by = self.multiplier
        if isinstance(by, int | float):
            return by
        return (by(seen, draws, rows) if callable(by) else part_of(by, draws, rows))[..., np.newaxis]

    def logits(self, scores: FloatArray, terms: Terms | None = None, out: FloatArray | None = None) -> FloatArray:
        """Return the logits of scores, hidden ones included. `out`, used if nothing is rounded, may be the scores."""
        terms = self.terms(scores.shape) if terms is None else terms
        rounded = self._rounded if self._rounds_each else None
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.multiply(scores, np.asarray(terms.multiplier, scores.dtype), out=out)
            z = z if rounded is None else rounded(z)
            if self.softcap is not None:
                z = softcapped(z, self.softcap, z, rounded)
            for bias in terms.biases:
                z = self._rounded(np.add(z, bias.astype(z.dtype, copy=False), out=z))
        return z

    def weights(self, logits: FloatArray, hidden: BoolArray | None = None) -> Softmax:
        """Return the weights of logits; along queries, the sums and sinks are those of keys."""
        if self.axis == -1:
            return rounded_softmax(logits, self.precision, self.arithmetic, hidden, self.sink)
        turned = None if hidden is None else hidden.mT
        softmaxed = rounded_softmax(logits.mT, self.precision, self.arithmetic, turned, self.sink)
        return softmaxed._replace(weights=softmaxed.weights.mT)

    def evaluate(self, q: FloatArray, k: FloatArray) -> Attention:
        """Return the attention of q and k, all steps."""
        scores = self.scores(*self.vectors(q, k))
        terms = self.terms(scores.shape)
        logits = self.logits(scores, terms)
        return Attention(scores, logits, self.weights(logits, terms.hidden))

    def losses(self, exact: FloatArray, low: FloatArray, terms: Terms | None = None) -> Losses:
        """Return the errors of rows, from scores of the vectors in float64 and those in the format."""
        terms = self.terms(low.shape) if terms is None else terms
        reference = replace(self, precision="float64").logits(exact.astype(np.float64), terms)
        logits = self.logits(low, terms)
        weights = self.weights(logits, terms.hidden)
        return losses_of(reference, low, logits, weights, self.precision, terms.hidden, self.sink)

    @property
    def _rounds(self) -> bool:
        """Whether the format has fewer bits than its accumulator."""
        return number_format(self.precision).rounded

    @property
    def _rounds_each(self) -> bool:
        """Whether the result of each operation before softmax is rounded."""
        return self._rounds and self.arithmetic == "eager"

    def _rounded(self, x: FloatArray) -> FloatArray:
        return round_to(x, self.precision).values if self._rounds_each else x

    def _normalised(self, vectors: FloatArray, how: Normalise) -> FloatArray:
        found = normalised(vectors, how)
        return found if how == "none" or self.gain == 1 else found * found.dtype.type(self.gain)

    def _bias(self, bias: Bias | Slope, draws: slice, rows: Rows) -> FloatArray:
        """Return a bias as stored: not in float8, and fused kernels take the slope of ALiBi in float32."""
        found = bias.of(draws, rows)
        kept = number_format(self.precision).scaled or (isinstance(bias, Slope) and self.arithmetic == "fused")
        return found if kept or not self._rounds else round_to(found, self.precision).values
