"""Save the attention of a Keras model on TensorFlow: what each MultiHeadAttention was given, and what it returned."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import attn_tui
import keras
import numpy as np


@contextmanager
def saved(path: str) -> Iterator[None]:
    """Save the calls of keras.layers.MultiHeadAttention in a block in which models are called, not predicted."""
    layer = keras.layers.MultiHeadAttention
    original = layer._compute_attention
    calls = []

    def compute(*args: Any, **named: Any) -> Any:
        out, scores = original(*args, **named)
        given = signature(original).bind(*args, **named).arguments
        q, k, v, o = (np.asarray(each) for each in (given["query"], given["key"], given["value"], out))
        said = {"scale": given["self"]._inverse_sqrt_key_dim, "name": given["self"].path}
        if (mask := given.get("attention_mask")) is not None:
            said["mask"] = np.asarray(mask)[:, np.newaxis] if len(mask.shape) == 3 else np.asarray(mask)
        elif given.get("use_causal_mask"):
            said["causal"] = "top-left"
        calls.append(attn_tui.call(q, k, v, o, axes="batch,token,head,d_k", observed=True, **said))
        return out, scores

    layer._compute_attention = compute
    try:
        yield
    finally:
        layer._compute_attention = original
    attn_tui.save(path, calls)


def model() -> Any:
    """Return two layers of causal attention over twelve tokens."""
    x = inputs = keras.Input((12, 64))
    for _ in range(2):
        x = x + keras.layers.MultiHeadAttention(4, 16)(x, x, use_causal_mask=True)
    return keras.Model(inputs, x)


if __name__ == "__main__":
    network = model()
    with saved("keras.safetensors"):
        network(np.random.default_rng(0).normal(size=(2, 12, 64)))
    print(repr(attn_tui.diagnose("keras.safetensors", expect="1/sqrt(d)")))
