"""Heads whose evidence is made with an injected fault, in a number format: what a diagnosis has to name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.diagnosis.subject import Evidence, Kind, StatedFacts, Subject
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

Array: TypeAlias = npt.NDArray[Any]
Format = Literal["float32", "float16", "bfloat16"]
KINDS: tuple[Kind, ...] = ("weights", "lse", "o")
FORMATS: tuple[Format, ...] = ("float32", "float16", "bfloat16")

_DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def rounded(values: Array, number_format: str) -> Array:
    """Values in float64 after rounding to a format."""
    return np.asarray(values, np.float32).astype(_DTYPES[number_format]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a text; `causal` says which mask it is used with."""

    name: str
    q: Array
    k: Array
    v: Array
    causal: bool
    layer: int = 3
    heads: int = 12
    d_model: int = 768


def real_head(layer: int, head: int) -> Head:
    """A head of the sample, all-MiniLM-L6-v2."""
    tensors: dict[str, Array] = load_file(sample_path())
    q, k, v = (tensors[f"layers.{layer}.attn.{side}"][0, head].astype(np.float64) for side in "qkv")
    return Head(f"minilm {layer}/{head}", q, k, v, False, layer, 12, 384)


def random_head(d_k: int, tokens: int, causal: bool, spread: float = 1.5, seed: int = 0) -> Head:
    """A head as trained ones are: aligned queries and keys, few directions that matter, a first key that attracts."""
    rng = np.random.default_rng(seed)
    common, basis = rng.normal(size=(tokens, d_k)), rng.normal(size=(4, d_k))
    q = rng.normal(size=(tokens, d_k)) + 0.3 * common + 0.5 * rng.normal(size=(tokens, 4)) @ basis + 0.4
    k = rng.normal(size=(tokens, d_k)) + 0.3 * common + 0.5 * rng.normal(size=(tokens, 4)) @ basis
    k[0] += 0.8
    size = math.sqrt(spread * math.sqrt(d_k) / float(np.std(q @ k.T)))
    return Head(f"random {d_k}", q * size, k * size, rng.normal(size=(tokens, d_k)), causal)


@dataclass(eq=False)
class Case:
    """What the file says (`facts`, `seen`, …) and what was really done; a fault changes one of the two."""

    q: Array
    k: Array
    v: Array
    facts: StatedFacts
    seen: Array
    positions: Array
    multiplier: float
    used_q: Array
    used_k: Array
    used_v: Array
    used_seen: Array
    bias: Array | None = None
    used_bias: Array | None = None
    softcap: float | None = None
    sink: float | None = None
    row_factors: Array | None = None
    axis: int = -1
    lse_factor: float = 1.0
    dropout: float = 0.0
    present: Array | None = None
    tiled: tuple[Array, Array] | None = None
    shift: int = 0
    extra_scores: Callable[[Array, Array], Array] | None = None
    eager: bool = field(default=True)

    @property
    def largest(self) -> float:
        """The largest logit with the expected multiplier."""
        return float(np.abs(np.where(self.seen, self.q @ self.k.T, 0)).max()) * (self.facts.scale or 1.0)

    def say(self, **facts: Any) -> None:
        """Change what the file says."""
        self.facts = replace(self.facts, **facts)


def case_of(head: Head, number_format: str) -> Case:
    """A healthy head, scaled by 1/√d_k."""
    q, k, v = (rounded(side, number_format) for side in (head.q, head.k, head.v))
    tokens, d_k = q.shape
    positions = np.arange(tokens, dtype=np.intp)
    seen = positions <= positions[:, np.newaxis] if head.causal else np.ones((tokens, tokens), np.bool_)
    facts = StatedFacts(
        d_k, scale=d_k**-0.5, layer=head.layer, head=5, heads=head.heads, kv_heads=head.heads,
        d_model=head.d_model, n_heads=head.heads,
    )  # fmt: skip
    return Case(q, k, v, facts, seen, positions, d_k**-0.5, q, k, v, seen)


def subject_of(case: Case, number_format: str, kind: Kind) -> Subject:
    """Compute the evidence: in float32, or eagerly in a format with fewer bits, which rounds every step."""
    short = case.eager and number_format != "float32" and kind != "lse"
    steps = number_format if short else "float32"
    scores = case.used_q @ case.used_k.T if case.extra_scores is None else case.extra_scores(case.used_q, case.used_k)
    if case.row_factors is not None:
        scores = scores * case.row_factors[:, np.newaxis]
    z = rounded(rounded(scores, steps) * case.multiplier, steps)
    if case.softcap is not None:
        z = rounded(case.softcap * np.tanh(z / case.softcap), steps)
    if case.used_bias is not None:
        z = z + case.used_bias
    p, lse = _softmax(z, case.used_seen, case.sink, case.axis)
    if case.dropout:
        p = p * (np.random.default_rng(0).random(p.shape) >= case.dropout) / (1 - case.dropout)
    weights = rounded(p, number_format)
    values = {"weights": weights, "lse": rounded(lse * case.lse_factor, "float32")}
    values["o"] = rounded(weights @ case.used_v, number_format)
    evidence = Evidence(
        kind, values[kind][np.newaxis], "float32" if kind == "lse" else number_format,
        case.v[np.newaxis] if kind == "o" else None, number_format,
    )  # fmt: skip

    def one(array: Array | None) -> Array | None:
        return None if array is None else array[np.newaxis]

    tiled = case.tiled and (case.tiled[0][np.newaxis], case.tiled[1][np.newaxis])
    return Subject(
        case.q[np.newaxis], case.k[np.newaxis], number_format, replace(case.facts, scores=steps), (evidence,),
        case.positions, one(case.seen), one(case.present), one(case.bias), shift=case.shift,
        tiled=tiled and (lambda: tiled),
    )  # fmt: skip


def _softmax(z: Array, seen: Array, sink: float | None, axis: int) -> tuple[Array, Array]:
    z = np.where(seen, z, -np.inf)
    top: Array = z.max(axis=axis, keepdims=True)
    top = np.where(np.isneginf(top), 0, top) if sink is None else np.maximum(top, sink)
    e = np.exp(z - top)
    total: Array = e.sum(axis=axis, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    with np.errstate(divide="ignore"):
        lse = np.squeeze(np.log(total) + top, axis)
    return e / np.where(total > 0, total, 1), lse


def turned(vectors: Array, sign: int = 1, theta: float = 1e4) -> Array:
    """Vectors with a rotary embedding, halves as in Llama."""
    half = vectors.shape[1] // 2
    frequencies: Array = np.exp(np.linspace(0, -math.log(theta), half, endpoint=False))
    angles: Array = np.outer(np.arange(len(vectors)) * sign, frequencies)
    a, b = vectors[:, :half], vectors[:, half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], 1)


def normed(vectors: Array) -> Array:
    """Vectors of root mean square 1."""
    return vectors / np.sqrt(np.mean(vectors * vectors, axis=-1, keepdims=True))
