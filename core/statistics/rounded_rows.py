"""Rows of attention whose weights were rounded to a number format: their statistics, without those that are NaN."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.precision import weight_lost
from ..attention.softmax import RowStatistics, Softmax, weight_statistics
from .counting import Chosen


class RoundedRows(NamedTuple):
    """Some rows, NaN rows with weights 0 and as if they saw nothing."""

    weights: FloatArray  # (rows, n)
    visible: FloatArray  # (rows,) keys that the row sees; 0 for a NaN row
    failed: BoolArray  # (rows,) whether the row is NaN
    lost: FloatArray  # (rows,) weight
    missing: FloatArray  # (rows,) 1 − Σp̂: the sink's share and what is lost
    statistics: RowStatistics
    hidden: BoolArray | None  # (rows, n)

    def seen_weights(self, rows: Chosen) -> FloatArray:
        """Return the weights of the visible keys of some rows, without NaN rows, in one dimension."""
        seen = np.broadcast_to(self.visible[rows, np.newaxis] > 0, self.weights[rows].shape)
        return self.weights[rows][seen if self.hidden is None else seen & ~self.hidden[rows]]

    def sums(self, shape: tuple[int, int]) -> dict[str, FloatArray]:
        """Return the sums (draws,) of lost weight and NaN rows; what is lost is not the sink's, but missing in Σp̂."""
        lost, failed = (each.reshape(shape).sum(axis=1, dtype=np.float64) for each in (self.lost, self.failed))
        return {"lost": lost, "nan": failed, "sink": -lost}


def rounded_rows(block: Softmax, hidden: BoolArray | None) -> RoundedRows:
    """Return the rows of a block of weights (draws, rows, n); `hidden` has its shape and marks masked keys."""
    weights = block.weights.reshape(-1, block.weights.shape[-1])
    rounded = Softmax(weights, block.sink.ravel(), block.lse.ravel())
    hidden = None if hidden is None else hidden.reshape(weights.shape)
    failed = np.isnan(weights[:, 0])
    if failed.any():
        weights = np.where(failed[:, np.newaxis], 0, weights)
    sees = weights.shape[1] - (0 if hidden is None else np.count_nonzero(hidden, axis=1))
    visible = np.where(failed, 0, sees).astype(np.float64)
    return RoundedRows(
        weights=weights,
        visible=visible,
        failed=failed,
        lost=np.where(visible > 0, weight_lost(rounded), 0),
        missing=1 - weights.sum(axis=1, dtype=np.float64),
        statistics=weight_statistics(weights, visible, hidden),
        hidden=hidden,
    )


def clear_infinite(scores: FloatArray, rounded: Softmax, hidden: BoolArray | None) -> BoolArray | None:
    """Replace infinite and NaN scores (…, n) by 0; return which scores are left out, None if none are.

    Those are hidden, infinite, or of a NaN row.
    """
    left_out = ~np.isfinite(scores)
    if not left_out.any():  # then no row is NaN
        return hidden
    scores[left_out] = 0
    left_out |= np.isnan(rounded.weights[..., :1])
    return left_out if hidden is None else left_out | hidden
