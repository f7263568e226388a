"""How the norms of gradients are distributed over rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray


class NormStatistics(NamedTuple):
    """The distribution of row norms; each array has the norms' shape without the last axis."""

    median: FloatArray
    mean: FloatArray
    rms: FloatArray
    top1_share: FloatArray  # NaN where all norms are 0


def norm_statistics(norms: FloatArray) -> NormStatistics:
    """Return median, mean, root mean square and concentration of gradient norms (…, rows).

    `top1_share` is the share of Σ‖·‖² in the largest one per cent of rows, their number rounded up: one row of up to
    100, two of 101. All are NaN if there are no rows.
    """
    rows = norms.shape[-1]
    if not rows:
        return NormStatistics(*np.full((4, *norms.shape[:-1]), np.nan))
    top = -(-rows // 100)
    squares = np.square(norms, dtype=np.float64)
    total = squares.sum(axis=-1)
    rising = np.sort(norms, axis=-1)  # NaN last
    largest = np.square(rising[..., rows - top :], dtype=np.float64).sum(axis=-1)
    middle = rising[..., (rows - 1) // 2 : rows // 2 + 1].mean(axis=-1)
    return NormStatistics(
        median=np.where(np.isnan(rising[..., -1]), np.nan, middle),
        mean=norms.mean(axis=-1, dtype=np.float64),
        rms=np.sqrt(total / rows),
        top1_share=np.where(total > 0, largest / np.where(total > 0, total, 1), np.nan),
    )
