"""Runs of a stack of attention layers, each fed by the one before, with faults in some of them."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from pairs import D_K, HEADS, TOKENS, Array, Layer, Recipe, attention

WIDTH = HEADS * D_K
ROOT = D_K**-0.5
Faults: TypeAlias = Mapping[int, Mapping[str, Any]]


def stack(faults: Faults, *evidence: str, layers: int = 4) -> Recipe:
    """A recorded run. A fault sets what a layer does; its `inside` is what q is multiplied by before it is stored."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(TOKENS, WIDTH))
    found: list[Layer] = []
    for index in range(layers):
        sides = [1.3 * x @ rng.normal(size=(WIDTH, WIDTH)) / math.sqrt(WIDTH) for _ in "qkv"]
        fault = dict(faults.get(index, {}))
        inside = fault.pop("inside", 1.0)
        q, k, v = (_heads(side).astype(np.float32).astype(np.float64) for side in sides)
        layer = Layer(q * inside, k, v, said_inside=inside, **fault)
        found.append(layer)
        x = x + attention(layer)[2][0].swapaxes(0, 1).reshape(TOKENS, WIDTH)
        x = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True))
    return Recipe(found, evidence=evidence or ("lse", "weights", "o"))


def _heads(side: Array) -> Array:
    return side.reshape(1, TOKENS, HEADS, D_K).swapaxes(1, 2)
