"""Queries and keys brought to one size before they are multiplied, as QK-norm does.

Each vector x of d components becomes, with ε = 0 unless told,
rms: x/√(mean x² + ε), of root mean square 1 · layer_norm: the same of x − mean x · l2: x/max(‖x‖, ε), of length 1.
Learned gains, if a model has any, multiply the result and are the caller's.

Models take an ε of about 1e-6 (Qwen3's rms_norm_eps), which tells only where the mean square is as small; without it
the result does not depend on the vectors' size.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from .scales import Normalise


def normalised(vectors: FloatArray, how: Normalise, epsilon: float = 0.0) -> FloatArray:
    """Each vector (…, d) normalised; one that has no direction becomes 0. "none" returns the vectors themselves."""
    if how == "none":
        return vectors
    return _divided(*_parts(vectors, how, epsilon))


def normalised_backward(
    upstream: FloatArray, vectors: FloatArray, how: Normalise, epsilon: float = 0.0
) -> FloatArray:
    """∂L/∂vectors (…, d) from upstream, ∂L/∂ of what `normalised` makes of them; 0 where there is no direction."""
    if how == "none":
        return upstream
    centred, size = _parts(vectors, how, epsilon)
    result = _divided(centred, size)
    along = np.vecdot(upstream, result)[..., np.newaxis]
    if how == "l2":
        along *= size > epsilon  # a shorter vector is divided by a constant
    else:
        along /= vectors.shape[-1]
    if how == "layer_norm":
        upstream = upstream - upstream.mean(axis=-1, keepdims=True)
    return _divided(upstream - result * along, size)


def _parts(vectors: FloatArray, how: Normalise, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """What is divided (…, d), and by what (…, 1): 0 for a vector without direction."""
    # What rounding leaves of equal components less their mean is not a direction.
    least = 4 * np.finfo(vectors.dtype).eps * np.abs(vectors).max(axis=-1, keepdims=True)
    if how == "layer_norm":
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    squares = np.vecdot(vectors, vectors)[..., np.newaxis]
    size = np.maximum(np.sqrt(squares), epsilon) if how == "l2" else np.sqrt(squares / vectors.shape[-1] + epsilon)
    size[size <= least] = 0
    return vectors, size


def _divided(vectors: FloatArray, size: FloatArray) -> FloatArray:
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)
