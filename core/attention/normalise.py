"""Normalise queries and keys before they are multiplied (QK-norm).

A vector x of d components becomes:

- rms: x/√(mean x²), of root mean square 1
- layer_norm: the same for x − mean x
- l2: x/‖x‖, of length 1

Learned gains, if any, multiply the result; the caller applies them. Models add an ε of about 1e-6 (Qwen3's
rms_norm_eps) to the mean square, which matters only if that is as small.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..scales import Normalise


def normalised(vectors: FloatArray, how: Normalise) -> FloatArray:
    """Normalise each vector (…, d); one without direction becomes 0. "none" returns the vectors unchanged."""
    if how == "none":
        return vectors
    return _divided(*_parts(vectors, how))


def normalised_backward(upstream: FloatArray, vectors: FloatArray, how: Normalise) -> FloatArray:
    """Return ∂L/∂vectors (…, d) from the gradient of the normalised ones; 0 for vectors without direction."""
    if how == "none":
        return upstream
    centred, size = _parts(vectors, how)
    result = _divided(centred, size)
    along = np.vecdot(upstream, result)[..., np.newaxis]
    if how != "l2":
        along /= vectors.shape[-1]
    if how == "layer_norm":
        upstream = upstream - upstream.mean(axis=-1, keepdims=True)
    return _divided(upstream - result * along, size)


def _parts(vectors: FloatArray, how: Normalise) -> tuple[FloatArray, FloatArray]:
    """Return the dividend (…, d) and the divisor (…, 1), which is 0 for a vector without direction."""
    # The rounding errors that remain of equal components minus their mean are not a direction.
    negligible = 4 * np.finfo(vectors.dtype).eps * np.abs(vectors).max(axis=-1, keepdims=True)
    if how == "layer_norm":
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    squares = np.vecdot(vectors, vectors)[..., np.newaxis]
    size = np.sqrt(squares if how == "l2" else squares / vectors.shape[-1])
    size[size <= negligible] = 0
    return vectors, size


def _divided(vectors: FloatArray, size: FloatArray) -> FloatArray:
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)
