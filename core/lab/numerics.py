"""The errors of a number format on a sample of rows: overflow, and misplaced weight.

In rounded formats, what weight is lost and which rows are NaN is measured on all rows, with their other statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..attention.computation import Computation
from ..attention.formats import number_format
from ..attention.precision import stored_weights
from ..attention.scores import Weights
from ..attention.visibility import Rows
from ..parameters import ROUNDED, Parameters
from ..statistics.measurement import Estimate
from .sampling import Draws
from .scoring import Preparation, RuleColumn, computation, kept_draws, preparation, sampled_rows, sides, vectors_of

# The sample: at most ENTRIES scores, in whole rows spread evenly over each of at most DRAWS draws.
ENTRIES = 1 << 15
DRAWS = 8
_NAMES = ("score_overflow", "naive_exp_overflow", "weight_error", "weight_lost", "nan_rows")
_NAMES_ROUNDED = _NAMES[:3]


class Numerics(NamedTuple):
    """The errors of the sampled rows of each draw."""

    names: Sequence[str]  # of the statistics
    means: FloatArray  # (columns, statistics, draws) over the rows; NaN if all of them are NaN rows

    def estimates(self, column: int, draws: int) -> Mapping[str, Estimate]:
        """Return the statistics of one column from the first `draws` draws."""
        seen = self.means[column, :, :draws]
        count = np.count_nonzero(~np.isnan(seen), axis=1)
        with np.errstate(invalid="ignore"):
            mean = np.nansum(seen, axis=1) / count
            squares = np.nansum(np.square(seen - mean[:, np.newaxis]), axis=1)
            stderr = np.sqrt(squares / (count - 1) / count)
        pairs = zip(mean.tolist(), stderr.tolist(), strict=True)
        known = [[None if math.isnan(number) else number for number in pair] for pair in pairs]
        return {name: Estimate(*pair) for name, pair in zip(self.names, known, strict=True)}


def numerics(p: Parameters, draws: Draws, weights: Weights, columns: Sequence[RuleColumn]) -> Numerics:
    """Compare each column in the chosen format with the same in float64.

    `draws` must hold all components.
    """
    count = min(p.batch, DRAWS)
    chosen, unseen = sampled_rows(p, ENTRIES // count)
    names = _NAMES_ROUNDED if p.precision in ROUNDED else _NAMES
    low_weights = stored_weights(weights, p.precision)
    q, *others = kept_draws(p, sides(p), draws, slice(0, count))
    few: Rows = slice(None)
    if not number_format(p.precision).scaled:
        q = q[:, :, chosen]
    else:  # a scale depends on all queries
        few = chosen
    q, k = vectors_of(p, [q, *others])
    visible = p.n_keys if unseen is None else np.count_nonzero(~unseen, axis=-1)
    found = np.empty((len(columns), len(names), count))
    made: dict[Preparation, tuple[FloatArray, FloatArray]] = {}  # scores in float64 and in the format
    for number, column in enumerate(columns):
        low = computation(p, column, low_weights)
        how = preparation(low)
        if how not in made:
            exact = replace(low, precision="float64", learned=weights)
            made[how] = _scores(exact, q, k, few), _scores(low, q, k, few)
        terms = low.terms(made[how][1].shape, rows=chosen)
        lost = low.losses(*made[how], terms)
        failed = np.isnan(lost.weight_error)
        rows = np.where(failed.all(axis=1), np.nan, np.count_nonzero(~failed, axis=1))
        each = {
            "score_overflow": (lost.score_overflow / visible).mean(axis=1),
            "naive_exp_overflow": (lost.exp_overflow / visible).mean(axis=1),
            "weight_error": np.nansum(lost.weight_error, axis=1) / rows,
            "weight_lost": np.nansum(lost.weight_lost, axis=1) / rows,
            "nan_rows": failed.mean(axis=1),
        }
        found[number] = [each[name] for name in names]
    return Numerics(names, found)


def _scores(c: Computation, q: FloatArray, k: FloatArray, rows: Rows) -> FloatArray:
    """Return the scores of some queries; in float8 a scale depends on all of them."""
    q, k = c.vectors(q, k)
    return c.scores(q[:, rows], k)
