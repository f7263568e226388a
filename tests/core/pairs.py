"""Pairs of captures that differ in one known way: files with q, k, v and what attention made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.reader import open_capture
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

Array: TypeAlias = npt.NDArray[Any]
DTYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
HEADS, TOKENS, D_K = 4, 40, 16


@dataclass(eq=False)
class Layer:
    """What a layer stores, says and did; arrays are [1, heads, tokens, …]."""

    q: Array
    k: Array
    v: Array
    used_k: Array | None = None  # what attention multiplied with, if not the stored keys: [1, heads, …]
    scale: float = D_K**-0.5
    said_scale: float | None = None
    softcap: float | None = None
    said_softcap: float | None = None
    seen: Array | None = None
    said_mask: Array | None = None
    causal: str = "no"
    bias: Array | None = None
    said_bias: Array | None = None
    sink: float | None = None
    said_sink: float | None = None
    scores: str | None = None  # the number format that scores were rounded to before and after the scale
    said_scores: str | None = None
    kept: Array | None = None  # what weights were multiplied by after softmax
    whole: float = 1.0  # what outputs and weights were multiplied by
    said_inside: float | None = None  # the factor in the stored q, as a recorder says it


@dataclass(eq=False)
class Recipe:
    """A capture to write."""

    layers: list[Layer]
    format: str = "float32"
    k_format: str | None = None  # of keys and values, if it is another one
    evidence: tuple[str, ...] = ("lse", "weights", "o")
    spoiled: tuple[int, str] | None = None  # a layer and a kind of evidence that is NaN in a row of head 1
    returned: list[Layer] | None = None  # what weights and outputs come from, if not from the layers
    lse_factor: float = 1.0  # what log-sum-exps were multiplied by,
    lse_more: float = 0.0  # and what was then added
    tokens: list[str] = field(default_factory=lambda: [str(i) for i in range(TOKENS)])


def recipe(format: str = "float32", layers: int = 2, seed: int = 0, spread: float = 1.5) -> Recipe:
    """A healthy capture; heads are as different as those of a model."""
    rng = np.random.default_rng(seed)
    found: list[Layer] = []
    for _ in range(layers):
        q, k, v = (spread * rng.normal(size=(1, HEADS, TOKENS, D_K)) for _ in "qkv")
        found.append(Layer(rounded(q + 0.5 * k, format), rounded(k, format), rounded(v, format)))
    return Recipe(found, format)


def rounded(values: Array, format: str) -> Array:
    """Values in float64 after rounding to a format."""
    return np.asarray(values).astype(DTYPES[format]).astype(np.float64)


def changed(original: Recipe, change: Callable[[Layer], None], layer: int = 1) -> Recipe:
    """A copy of which one layer is changed."""
    layers = [replace(each) for each in original.layers]
    change(layers[layer])
    return replace(original, layers=layers)


def rotated(original: Recipe, rng: np.random.Generator) -> Recipe:
    """The same heads in another basis of q and k, and of v, which the values of a format hold only roughly."""
    layers: list[Layer] = []
    for each in original.layers:
        turn, other = (np.linalg.qr(rng.normal(size=(D_K, D_K)))[0] for _ in range(2))
        q, k, v = (rounded(side, original.format) for side in (each.q @ turn, each.k @ turn, each.v @ other))
        layers.append(replace(each, q=q, k=k, v=v))
    return replace(original, layers=layers)


def causal(tokens: int = TOKENS, keys: int | None = None, shift: int = 0) -> Array:
    return np.tri(tokens, keys or tokens, shift, dtype=np.bool_)[np.newaxis, np.newaxis]


def written(made: Recipe, path: Path) -> CaptureFile:
    """Write a capture and open it."""
    tensors: dict[str, Array] = {}
    layers: list[dict[str, Any]] = []
    for index, each in enumerate(made.layers):
        name = f"layers.{index}.attn"
        lse, weights, o = attention(each)
        if made.returned is not None:
            _, weights, o = attention(made.returned[index])
        lse = made.lse_factor * lse + made.lse_more
        if made.spoiled is not None and made.spoiled[0] == index:
            {"lse": lse, "weights": weights, "o": o}[made.spoiled[1]][0, 1, 3] = np.nan
        short = {"q": each.q, "k": each.k}
        if "o" in made.evidence:
            short |= {"v": each.v, "o": o}
        if "weights" in made.evidence:
            short["weights"] = weights
        tensors |= {
            f"{name}.{key}": np.ascontiguousarray(
                value.astype(DTYPES[(made.k_format if key in ("k", "v") else None) or made.format])
            )
            for key, value in short.items()
        }
        if "lse" in made.evidence:
            tensors[f"{name}.lse"] = lse.astype(np.float32)
        if each.said_bias is not None:
            tensors[f"{name}.bias"] = each.said_bias.astype(np.float32)
        if each.said_mask is not None:
            tensors[f"{name}.mask"] = np.ascontiguousarray(each.said_mask)
        if each.said_sink is not None:
            tensors[f"{name}.sinks"] = np.full(each.q.shape[1], each.said_sink, np.float32)
        layers.append(_said(index, each))
    metadata = {"schema": "attn-tui/qk-2", "layers": json.dumps(layers), "tokens": json.dumps([made.tokens])}
    save_file(tensors, path, metadata)
    return open_capture(path)


def _said(index: int, each: Layer) -> dict[str, Any]:
    said: dict[str, Any] = {"name": f"layers.{index}.attn", "index": index}
    said |= {"scale": each.scale if each.said_scale is None else each.said_scale}
    said["causal"] = each.causal != "no"
    if each.causal != "no":
        said["alignment"] = each.causal
    if each.said_softcap is not None:
        said["softcap"] = each.said_softcap
    if each.said_inside is not None:
        said |= {"prescaled": [each.said_inside, 1.0], "observed": True}
    if each.said_scores is not None:
        said["scores"] = each.said_scores
    return said


def attention(each: Layer) -> tuple[Array, Array, Array]:
    """The log-sum-exps, the weights and the outputs."""
    scores = each.q @ (each.k if each.used_k is None else each.used_k).mT
    z = each.scale * scores
    if each.scores is not None:
        z = rounded(each.scale * rounded(scores, each.scores), each.scores)
    if each.softcap is not None:
        z = each.softcap * np.tanh(z / each.softcap)
    if each.bias is not None:
        z = z + each.bias
    if each.seen is not None:
        z = np.where(each.seen, z, -np.inf)
    top = z.max(axis=-1, keepdims=True)
    total = np.exp(z - top).sum(axis=-1, keepdims=True)
    if each.sink is not None:
        total = total + np.exp(each.sink - top)
    weights = np.exp(z - top) / total
    if each.kept is not None:
        weights = weights * each.kept
    weights = weights * each.whole
    return (top + np.log(total))[..., 0], weights, weights @ each.v
