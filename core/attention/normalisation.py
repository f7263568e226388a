"""Normalisation of queries and keys before their product, as the rules named QK-norm use it.

Each vector x of d components becomes
rms: x/√(mean x² + ε), of root mean square 1 (Qwen3, Gemma-3, Llama-4) ·
layer_norm: the same of x − mean x (Cohere, ViT-22B) ·
l2: x/max(‖x‖, ε), of length 1 (Swin-v2, nGPT; what cosine attention does).
Learned gains, if a model has any, multiply the result and are the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..errors import InputError

Normalisation: TypeAlias = Literal["none", "rms", "layer_norm", "l2"]

# rms: Qwen3's rms_norm_eps; layer_norm and l2: the defaults of PyTorch's layer_norm and normalize.
EPSILON: Mapping[str, float] = {"none": 0.0, "rms": 1e-6, "layer_norm": 1e-5, "l2": 1e-12}


def normalise(x: FloatArray, how: Normalisation, axis: int = -1) -> FloatArray:
    """Each vector along an axis of x normalised; a zero vector stays zero. "none" returns x itself."""
    if how == "none":
        return x
    centred, factor = _parts(x, how, axis)
    return centred * factor


def normalise_backward(upstream: FloatArray, x: FloatArray, how: Normalisation, axis: int = -1) -> FloatArray:
    """∂L/∂x from upstream, the ∂L/∂y of y = normalise(x, how); both have the shape of x."""
    if how == "none":
        return upstream
    centred, factor = _parts(x, how, axis)
    y = centred * factor
    along = (upstream * y).sum(axis=axis, keepdims=True)
    if how == "l2":  # a vector shorter than ε is divided by a constant
        along = np.where(factor < 1 / factor.dtype.type(EPSILON[how]), along, 0)
    else:
        along /= x.shape[axis]
    if how == "layer_norm":
        upstream = upstream - upstream.mean(axis=axis, keepdims=True)
    return factor * (upstream - y * along)


def _parts(x: FloatArray, how: Normalisation, axis: int) -> tuple[FloatArray, FloatArray]:
    """What is normalised, and the factor of each vector that normalises it."""
    if how not in EPSILON:
        raise InputError(f"normalisation {how!r} is not known; choose one of {', '.join(EPSILON)}")
    number = x.dtype.type
    if how == "layer_norm":
        x = x - x.mean(axis=axis, keepdims=True)
    if how == "l2":
        return x, 1 / np.maximum(np.sqrt((x * x).sum(axis=axis, keepdims=True)), number(EPSILON[how]))
    return x, 1 / np.sqrt((x * x).mean(axis=axis, keepdims=True) + number(EPSILON[how]))
