"""What a number format does to attention weights, on a sample of rows: overflow, and weight that goes elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..attention.normalise import normalised
from ..attention.precision import Rounded, losses, low_precision_scores
from ..attention.scales import SCALE_RULES, Normalise
from ..attention.scores import Weights, scores
from ..parameters import Parameters
from ..statistics.measurement import Estimate
from .sampling import Draws
from .scoring import kept_draws, sampled_rows, sides, sink_of, vectors_of

# The sample: entries of scores at most, whole rows spread evenly over a draw, of so many draws.
ENTRIES = 1 << 15
DRAWS = 8
_NAMES = ("score_overflow", "naive_exp_overflow", "weight_error")


@dataclass(frozen=True, eq=False)
class Numerics:
    """Shares of the sampled rows of each draw; (columns, statistics, draws)."""

    shares: FloatArray

    def estimates(self, column: int, draws: int) -> Mapping[str, Estimate]:
        """Of the first so many draws."""
        seen = self.shares[column, :, :draws]
        many = seen.shape[1]
        stderr = seen.std(axis=1, ddof=1) / math.sqrt(many) if many > 1 else np.full(len(seen), math.nan)
        pairs = zip(_NAMES, seen.mean(axis=1).tolist(), stderr.tolist(), strict=True)
        return {name: Estimate(value, error if math.isfinite(error) else None) for name, value, error in pairs}


def numerics(p: Parameters, draws: Draws, weights: Weights, rules: Sequence[tuple[str, float]]) -> Numerics:
    """Columns, each a rule and its multiplier, in the format asked for, against float64.

    All components must have been made.
    """
    many = min(p.batch, DRAWS)
    chosen, unseen = sampled_rows(p, ENTRIES // many)
    q, *others = kept_draws(p, sides(p), draws, slice(0, many))
    q, k = vectors_of(p, [q[:, :, chosen], *others])
    visible = p.n_keys if unseen is None else np.count_nonzero(~unseen, axis=-1)
    found = np.empty((len(rules), len(_NAMES), many))
    made: dict[Normalise, tuple[FloatArray, Rounded]] = {}  # scores in float64 and in the format, before the scale
    for number, (name, c) in enumerate(rules):
        how = SCALE_RULES[name].normalise
        if how not in made:
            queries, keys = (normalised(side, how) for side in (q, k))
            exact = scores(queries.astype(np.float64), keys.astype(np.float64), p.mechanism, weights)
            made[how] = exact, low_precision_scores(queries, keys, p.precision, p.mechanism, weights)
        lost = losses(*made[how], p.precision, c, p.softcap or None, unseen, sink_of(p))
        found[number, 0] = (lost.score_overflow / visible).mean(axis=1)
        found[number, 1] = (lost.exp_overflow / visible).mean(axis=1)
        found[number, 2] = lost.weight_error.mean(axis=1)
    return Numerics(found)
