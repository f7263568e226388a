"""The statistics of a head from a few of its rows, for a first look at a large file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import RowStatistics, softmax, weight_statistics
from ...captures.capture import Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile, read_head
from ...captures.heads import LARGEST
from ...captures.rules import file_rule
from ...plain import plain
from ...statistics.measurement import Estimate
from ...statistics.summary import RowMoments, estimates, sums_of_rows, sums_of_scores
from .rows import Rows, logits, some_rows

ROWS = 8  # of each text that are looked at
LARGE = 1 << 16  # scores of a head from which a first look saves time


def is_large(layer: Layer) -> bool:
    """Return whether a first look at some rows of a head saves time."""
    return layer.batch * layer.queries * layer.keys > LARGE


def rough_statistics(capture: CaptureFile, layer: Layer, head: int, rows: int = ROWS) -> Mapping[str, Estimate]:
    """Return the statistics that every measurement has, of some rows at the file's scale.

    With all rows of at most four texts they are those of `measure_head`, without standard errors. Raise CaptureError
    if the head cannot be read.
    """
    data = read_head(capture, layer, head)
    part = some_rows(data, layer, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.where(part.visible, logits(part, file_rule(layer)), 0)
    if not np.isfinite(z).all() or np.abs(z).max(initial=0) > LARGEST:
        raise CaptureError(
            "{path}: layer {index}, head {head}: logits overflow float64",
            path=plain(capture.path),
            index=layer.index,
            head=head,
        )
    hidden = None if part.seen is None else ~part.seen
    p = softmax(z, hidden, data.sink)
    visible = part.counts.astype(np.float64)
    keys = layer.keys
    flat = weight_statistics(
        p.reshape(-1, keys), visible.reshape(-1), None if hidden is None else hidden.reshape(-1, keys)
    )
    of_rows = RowStatistics(*(getattr(flat, each.name)[np.newaxis] for each in fields(flat)))
    sums = {**sums_of_scores(_moments(z, part)), **sums_of_rows(of_rows, visible.reshape(1, -1))}
    found = dict(estimates(sums, 0.0, [1.0], unbiased=False)[0])
    shown = z[np.broadcast_to(part.visible, z.shape)]
    mean, deviation = found["logit_mean"].value, found["logit_std"].value
    if shown.size and mean is not None and deviation is not None:
        near = np.abs(shown - mean) <= 3 * deviation
        found["logit_min"], found["logit_max"] = _plain(shown.min()), _plain(shown.max())
        found["logit_within_3sd"] = _plain(np.count_nonzero(near) / shown.size)
    if data.sink is None:
        found["sink_weight"] = Estimate(None, None)
    return {name: Estimate(each.value, None) for name, each in found.items()}


def _plain(value: float | np.floating) -> Estimate:
    number = float(value)
    return Estimate(number if math.isfinite(number) else None, None)


def _moments(z: FloatArray, part: Rows) -> RowMoments:
    """Return the central moments of each row's visible logits, (1, texts · rows)."""
    count = np.maximum(part.counts, 1)
    mean = np.where(part.visible, z, 0).sum(axis=-1) / count
    away = np.where(part.visible, z - mean[..., np.newaxis], 0)
    squares = away * away
    each = (
        part.counts.astype(np.float64),
        mean,
        squares.sum(axis=-1) / count,
        np.vecdot(squares, away) / count,
        np.vecdot(squares, squares) / count,
    )
    return RowMoments(*(array.reshape(1, -1) for array in each))
