"""Queries and keys brought to one size before they are multiplied, as QK-norm does; no learned gains."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from .scales import Normalise


def normalised(vectors: FloatArray, how: Normalise) -> FloatArray:
    """Each vector (..., d) with root mean square 1 (rms), with mean 0 and variance 1 (layer_norm) or with length 1
    (l2); one that has no direction becomes 0.

    Models add about 1e-6 to the mean square, which tells only where it is as small; here nothing is added, so that
    the result does not depend on the vectors' size.
    """
    if how == "none":
        return vectors
    # What rounding leaves of equal components less their mean is not a direction.
    least = 4 * np.finfo(vectors.dtype).eps * np.abs(vectors).max(axis=-1, keepdims=True)
    if how == "layer_norm":
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    squares = np.vecdot(vectors, vectors)[..., np.newaxis]
    size = np.sqrt(squares if how == "l2" else squares / vectors.shape[-1])
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > least)
