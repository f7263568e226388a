"""The functions of JAX, Flax and Keras that compute attention: where they are, what they are given, and as a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from .call import Call, call

Given = dict[str, Any]  # arguments and results by the names of jax.nn.dot_product_attention, and `logits`
_IGNORED = ("implementation", "return_residual")


@dataclass(frozen=True)
class Function:
    """A function that is replaced while a block is recorded.

    holder, attribute:  an object, and under which name it has the function
    name:               what messages call it
    given:              its bound arguments and result → what was computed; a ValueError says why this is not known
    """

    holder: Any
    attribute: str
    name: str
    given: Callable[[Mapping[str, Any], Any], Given]

    @property
    def original(self) -> Callable[..., Any]:
        """What the program would call."""
        return getattr(self.holder, self.attribute)


def functions(library: Any) -> list[Function]:
    """Return the functions of JAX and, if they are imported, of Flax and Keras, which call those of JAX."""
    functions = [Function(library.nn, "dot_product_attention", "jax.nn.dot_product_attention", _of_jax)]
    weights, keras = "dot_product_attention_weights", sys.modules.get("keras")
    for name in ("flax.linen.attention", "flax.nnx.nn.attention"):
        if hasattr(module := sys.modules.get(name), weights):
            functions.append(Function(module, weights, f"{name}.{weights}", _of_flax))
    for name in ("MultiHeadAttention", "GroupQueryAttention"):
        if hasattr(layer := getattr(getattr(keras, "layers", None), name, None), "_compute_attention"):
            functions.append(Function(layer, "_compute_attention", f"keras.layers.{name}", _of_keras))
    return functions


def _of_jax(given: Mapping[str, Any], out: Any) -> Given:
    return {**given, "out": out[0] if isinstance(out, tuple) else out}


def _of_flax(given: Mapping[str, Any], out: Any) -> Given:
    """Queries are divided by √d before the product; dropout and sown weights come after softmax."""
    if changed := [name for name in ("einsum", "einsum_dot_general") if given.get(name) is not None]:
        raise ValueError(f"{changed[0]} is not understood")
    roles = ("query", "key", "bias", "mask", "is_causal", "dtype")
    return {role: given.get(role) for role in roles}


def _of_keras(given: Mapping[str, Any], out: Any) -> Given:
    """Masks are of [batch, query, key], if they have no heads."""
    layer, query = given["self"], given["query"]
    if query.ndim != 4:
        raise ValueError(f"attention over {query.ndim - 3} axes is not understood")
    scale = getattr(layer, "_inverse_sqrt_key_dim", None) or layer._inverse_sqrt_head_dim
    mask = given.get("attention_mask")
    found = {"query": query, "key": given["key"], "scale": scale, "is_causal": given.get("use_causal_mask")}
    return {**found, "mask" if mask is None or mask.ndim == 4 else "mask_of_tokens": mask}


# What is an array, and the name of those that a capture has; their axes are batch, token, head, d_k or as in _SCORES.
ARRAYS = {
    "query": "q", "key": "k", "value": "v", "out": "o", "bias": "bias", "mask": "mask", "logits": "logits",
    "mask_of_tokens": "", "query_seq_lengths": "", "key_value_seq_lengths": "",
}  # fmt: skip
_SCORES = ("bias", "mask", "logits")  # batch, head, query, key
_OTHERS = ("scale", "is_causal", "local_window_size", "dtype")


def attention_call(name: str, given: Given) -> Call:
    """Return what was computed as a call of this name; raise ValueError for what a capture cannot say."""
    if unknown := {name for name in given if given[name] is not None} - {*ARRAYS, *_OTHERS, *_IGNORED}:
        raise ValueError(f"{', '.join(sorted(unknown))} is not understood")
    # Without batch, they have three axes; Flax has any number of axes of a batch.
    arrays: dict[str, Any] = {
        role: np.array(given[name], ndmin=4) for name, role in ARRAYS.items() if role and given.get(name) is not None
    }
    batch = arrays["q"].shape[:-3]
    for role, array in arrays.items():
        if len(batch) > 1:
            arrays[role] = np.broadcast_to(array, (*batch, *array.shape[-3:])).reshape(-1, *array.shape[-3:])
    if given.get("dtype") is not None:
        arrays |= {role: arrays[role].astype(given["dtype"]) for role in "qk"}
    queries, keys = arrays["q"].shape[1], arrays["k"].shape[1]
    visible: list[Any] = [arrays["mask"]] if "mask" in arrays else []
    if (mask := given.get("mask_of_tokens")) is not None:
        visible.append(np.expand_dims(np.asarray(mask), 1))
    if (tokens := given.get("query_seq_lengths")) is not None:
        visible.append(np.arange(queries)[:, np.newaxis] < np.expand_dims(tokens, (1, 2, 3)))
    if (tokens := given.get("key_value_seq_lengths")) is not None:
        visible.append(np.arange(keys) < np.expand_dims(tokens, (1, 2, 3)))
    if visible:
        arrays["mask"] = reduce(np.logical_and, visible)
    for role in arrays.keys() & {"bias", "mask"}:  # whose last axis is that of keys in a capture, also if it is 1
        arrays[role] = np.broadcast_to(arrays[role], (*arrays[role].shape[:3], keys))
    scale, logits = given.get("scale"), arrays.pop("logits", None)
    made = call(
        **arrays,
        name=name,
        axes="batch,token,head,d_k",
        scale=arrays["q"].shape[-1] ** -0.5 if scale is None else float(scale),
        causal="top-left" if given.get("is_causal") else False,
        lse=None if logits is None else _log_sum_exp(logits),
    )
    entry: dict[str, Any] = {**made.entry, "observed": True}  # what was done, which need not be what was meant
    if logits is not None:
        entry["scores"] = logits.dtype.name
    if (window := given.get("local_window_size")) is not None:
        before, after = (window, window) if isinstance(window, int) else map(int, window)
        if before < 0 or after < 0:
            raise ValueError(f"local_window_size {window} is negative")
        entry |= {"window": [before, after], "alignment": "top-left"}
    return replace(made, entry=entry)


def _log_sum_exp(logits: Any) -> Any:
    """Return the log-sum-exp of each row of what entered softmax."""
    largest = logits.max(axis=-1, keepdims=True).astype(np.float64)
    return largest[..., 0] + np.log(np.exp(logits - largest).sum(axis=-1))
