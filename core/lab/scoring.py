"""What scores are made of: components of queries and keys, and what a loss sends back to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.row_gradients import LogitGradients, query_gradient_norms
from ..attention.scales import SCALE_RULES, Setting, multiplier
from ..attention.scores import Weights, draw_weights
from ..parameters import Parameters
from ..statistics import tally
from ..statistics.histogram import Axis
from .components import score_mean, score_reach, score_std
from .sampling import CHUNK, WEIGHTS, Draws, Side, chunks, components

# Bytes of components that are kept for the next key; a larger question makes them anew, draw by draw.
KEPT = 256 << 20
# Columns by which the scores of such a question grow at a time.
STRIDE = 8 * CHUNK
# Standard deviations that the histogram of logits reaches to either side.
_AXIS = 8
LOSS: tuple[Side, ...] = ("value", "upstream")


def columns_of(p: Parameters) -> tuple[str, ...]:
    """The rules of the columns, unless others are asked for: unscaled, and the chosen one."""
    return ("none", p.scale)


def is_straight(p: Parameters, names: Sequence[str] = ()) -> bool:
    """Whether the logits under all of these rules are multiples of one dot product, whose law is known beforehand.

    Without names it is about the usual columns.
    """
    return (
        p.mechanism == "dot_product"
        and p.softcap == 0
        and p.precision in ("float32", "float64")
        and all(SCALE_RULES[name].normalise == "none" for name in names or columns_of(p))
    )


def rules_of(p: Parameters, names: Sequence[str] = ()) -> list[tuple[str, float]]:
    """The columns as pairs of a rule's name and its multiplier; ParameterError where a rule has none."""
    return [(name, multiplier(name, Setting.of(p))) for name in names or columns_of(p)]


def empty_tally(p: Parameters, names: Sequence[str] = ()) -> tally.Tally:
    """What the scores of a straight question are added to; ParameterError as in `rules_of`."""
    rules, reach = rules_of(p, names), _AXIS * score_reach(p) or 1.0
    shape = tally.Shape(p.batch, p.n_queries, p.n_keys)
    return tally.Tally(shape, rules, score_mean(p), 3 * score_std(p), Axis(-reach, reach, 1024), sink_of(p))


def sink_of(p: Parameters) -> float | None:
    """The logit of no key, if there is one."""
    return p.sink_logit if p.sink == "logit" else None


def weights_of(p: Parameters) -> Weights:
    """What the mechanism has learned: drawn once, the same for all draws of queries and keys."""
    rng = np.random.default_rng(np.random.SeedSequence(p.seed, spawn_key=(WEIGHTS,)))
    return draw_weights(p.mechanism, p.d_k, rng, p.gain, dtype=dtype_of(p))


def dtype_of(p: Parameters) -> npt.DTypeLike:
    """What scores are computed in; components are drawn in float32."""
    return np.float64 if p.precision == "float64" else np.float32


def sides(p: Parameters) -> tuple[Side, ...]:
    """What scores are drawn from."""
    return ("query", "key", "shared") if p.correlation else ("query", "key")


def loss_of(p: Parameters) -> Parameters:
    """The parameters under which values and upstream gradients are drawn: their width is d_v."""
    return replace(p, d_k=p.d_v)


def fits(p: Parameters) -> bool:
    """Whether all components, those of the loss too, are kept for the next key."""
    return 4 * p.batch * (chunks(p.d_k) + chunks(p.d_v)) * CHUNK * (p.n_queries + p.n_keys) <= KEPT


def grow(p: Parameters, draws: Draws, gradients: bool) -> Iterator[float]:
    """Make what is missing of all components, those of the loss too; yields the part of it that is done."""
    most = 0.9 if gradients else 1.0
    for fraction in draws.grow(p, sides(p)):
        yield most * fraction
    for fraction in draws.loss.grow(loss_of(p), LOSS) if gradients else ():
        yield most + (1 - most) * fraction


def one_draw(p: Parameters, which: tuple[Side, ...], draw: int) -> list[FloatArray]:
    """Components of one draw, made anew; for each side (1, d_k, vectors)."""
    made = [np.concatenate([components(p, side, draw, chunk) for chunk in range(chunks(p.d_k))]) for side in which]
    return [each[np.newaxis, : p.d_k].astype(dtype_of(p), copy=False) for each in made]


def kept_draws(p: Parameters, which: tuple[Side, ...], draws: Draws, group: slice) -> list[FloatArray]:
    """Components of some draws that `draws` has made; for each side (draws, d_k, vectors)."""
    return [draws.of(side, group, p.d_k).astype(dtype_of(p), copy=False) for side in which]


@dataclass(frozen=True, eq=False)
class Factors:
    """What scores are made of, so that they come out less their mean: s − E s = qᵀk + of_query + of_key.

    of_query is the same for a whole row, so that softmax does not see it; it is never added to the scores.
    """

    q: FloatArray  # (draws, d, queries)
    k: FloatArray  # (draws, d, keys)
    of_query: FloatArray | None  # (draws, queries, 1)
    of_key: FloatArray | None  # (draws, 1, keys)


def factors_of(p: Parameters, raw: list[FloatArray]) -> Factors:
    """From standardised components (draws, d, vectors) of queries, keys and, with a correlation, the shared part.

    Means are multiplied out, q = μ_q + σ_q z and k alike, because a large mean would cost the scores their digits.
    """
    q, k = _correlated(p, raw)
    spread, d = p.std_q * p.std_k, q.shape[1]
    of_query = of_key = None
    if p.mean_k:
        of_query = (p.mean_k * p.std_q * q.sum(axis=1, dtype=np.float64))[:, :, np.newaxis]
    if p.mean_q or p.correlation:
        sums = p.mean_q * p.std_k * k.sum(axis=1, keepdims=True, dtype=np.float64) - d * p.correlation * spread
        of_key = sums.astype(k.dtype)
    return Factors(q if spread == 1 else q * q.dtype.type(spread), k, of_query, of_key)


def vectors_of(p: Parameters, raw: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Queries (draws, m, d) and keys (draws, n, d) themselves, from components as `factors_of` takes them."""
    q, k = _correlated(p, raw)
    q, k = _placed(q, p.mean_q, p.std_q), _placed(k, p.mean_k, p.std_k)
    return q.mT, k.mT


def _placed(side: FloatArray, mean: float, std: float) -> FloatArray:
    """Standardised components with this mean and deviation."""
    number = side.dtype.type
    return side if (mean, std) == (0, 1) else number(mean) + number(std) * side


def _correlated(p: Parameters, raw: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Standardised queries and keys (draws, d, vectors), with their part of the shared direction if there is one."""
    q, k = raw[0], raw[1]
    if not p.correlation:
        return q, k
    number = q.dtype.type
    own, common = number((1 - abs(p.correlation)) ** 0.5), number(abs(p.correlation) ** 0.5) * raw[2]
    return own * q + common, own * k + (common if p.correlation > 0 else -common)


def hidden(p: Parameters, rows: slice) -> BoolArray | None:
    """The keys that some rows may not see; (rows, keys), or None if they see all."""
    if p.mask == "none":
        return None
    first, last = int(rows.start), int(rows.stop)
    return np.arange(p.n_keys) > np.arange(first, last)[:, np.newaxis]


def sampled_rows(p: Parameters, entries: int) -> tuple[npt.NDArray[np.intp], BoolArray | None]:
    """Queries spread evenly over a draw, with `entries` scores at most or one row; and which keys they may not see.

    The latter is (rows, keys), or None if they see all.
    """
    rows = max(min(entries // p.n_keys, p.n_queries), 1)
    chosen = np.linspace(0, p.n_queries - 1, rows).round().astype(np.intp)
    unseen = hidden(p, slice(0, p.n_queries))
    return chosen, None if unseen is None else unseen[chosen]


def gradient_norms(found: LogitGradients, c: float, keys: FloatArray) -> FloatArray:
    """‖∂L/∂q‖ (rows,) of c times dot products with keys (draws, n, d), few columns at a time where rows are many."""
    step = max(tally.BLOCK // len(found.factor), 1)
    if step >= keys.shape[-1]:
        return query_gradient_norms(found, c, keys)
    strides = range(0, keys.shape[-1], step)
    parts = [query_gradient_norms(found, c, keys[..., first : first + step]) for first in strides]
    return np.sqrt(np.square(parts).sum(axis=0))
