"""The errors of a number format on a sample of rows: overflow, and misplaced weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..attention.normalise import normalised
from ..attention.precision import Rounded, losses, low_precision_scores
from ..attention.scores import Weights, scores
from ..parameters import Parameters
from ..scales import SCALE_RULES, Normalise
from ..statistics.measurement import Estimate
from .sampling import Draws
from .scoring import kept_draws, sampled_rows, sides, sink_of, vectors_of

# The sample: at most ENTRIES scores, in whole rows spread evenly over each of at most DRAWS draws.
ENTRIES = 1 << 15
DRAWS = 8
_NAMES = ("score_overflow", "naive_exp_overflow", "weight_error")


@dataclass(frozen=True, eq=False)
class Numerics:
    """The errors of the sampled rows of each draw."""

    means: FloatArray  # (columns, statistics, draws) over the rows

    def estimates(self, column: int, draws: int) -> Mapping[str, Estimate]:
        """Return the statistics of one column from the first `draws` draws."""
        seen = self.means[column, :, :draws]
        count = seen.shape[1]
        stderr = seen.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(seen), math.nan)
        pairs = zip(_NAMES, seen.mean(axis=1).tolist(), stderr.tolist(), strict=True)
        return {name: Estimate(value, error if math.isfinite(error) else None) for name, value, error in pairs}


def numerics(p: Parameters, draws: Draws, weights: Weights, rules: Sequence[tuple[str, float]]) -> Numerics:
    """Compare each column, a rule and its multiplier, in the chosen format with the same in float64.

    `draws` must hold all components.
    """
    count = min(p.batch, DRAWS)
    chosen, unseen = sampled_rows(p, ENTRIES // count)
    q, *others = kept_draws(p, sides(p), draws, slice(0, count))
    q, k = vectors_of(p, [q[:, :, chosen], *others])
    visible = p.n_keys if unseen is None else np.count_nonzero(~unseen, axis=-1)
    found = np.empty((len(rules), len(_NAMES), count))
    made: dict[Normalise, tuple[FloatArray, Rounded]] = {}  # unscaled scores in float64 and in the format
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
