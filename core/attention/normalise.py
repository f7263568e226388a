"""Normalise queries and keys before they are multiplied (QK-norm).

A vector x of d components becomes, with ε = 0 by default:

- rms: x/√(mean x² + ε), of root mean square 1
- layer_norm: the same for x − mean x
- l2: x/max(‖x‖, ε), of length 1

Learned gains, if any, multiply the result; the caller applies them. Models use an ε of about 1e-6 (Qwen3's
rms_norm_eps), which matters only if the mean square is that small; with ε = 0 the result does not depend on the
vectors' length.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..scales import Normalise


def normalised(vectors: FloatArray, how: Normalise, epsilon: float = 0.0) -> FloatArray:
    """Normalise each vector (…, d); one without direction becomes 0. "none" returns the vectors unchanged."""
    if how == "none":
        return vectors
    return _divided(*_parts(vectors, how, epsilon))


def normalised_backward(
    upstream: FloatArray, vectors: FloatArray, how: Normalise, epsilon: float = 0.0
) -> FloatArray:
    """Return ∂L/∂vectors (…, d) from the gradient of the normalised ones; 0 for vectors without direction."""
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
    """Return the dividend (…, d) and the divisor (…, 1), which is 0 for a vector without direction."""
    # The rounding errors that remain of equal components minus their mean are not a direction.
    least = 4 * np.finfo(vectors.dtype).eps * np.abs(vectors).max(axis=-1, keepdims=True)
    if how == "layer_norm":
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    squares = np.vecdot(vectors, vectors)[..., np.newaxis]
    size = np.maximum(np.sqrt(squares), epsilon) if how == "l2" else np.sqrt(squares / vectors.shape[-1] + epsilon)
    size[size <= least] = 0
    return vectors, size


def _divided(vectors: FloatArray, size: FloatArray) -> FloatArray:
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)
