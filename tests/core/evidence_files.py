"""Captures whose metadata say one computation and whose evidence comes from another, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from capture_files import Array, save

TOKENS, WIDTH = 14, 8


def attended(
    folder: Path,
    kind: str,
    done: Mapping[str, Any],
    said: Mapping[str, Any] | None = None,
    dtype: Any = np.float32,
    beside: Mapping[str, Array] | None = None,
    kv_heads: int = 4,
) -> Path:
    """Write a capture whose metadata say one computation and whose evidence comes from another."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((2, heads, TOKENS, WIDTH)).astype(np.float32) for heads in (4, kv_heads, kv_heads))
    said = {"scale": WIDTH**-0.5} | dict(said or {})
    of = np.arange(4) % kv_heads if done.get("tiled") else np.arange(4) // (4 // kv_heads)
    k_used, v_used = k[:, of].astype(np.float64), v[:, of].astype(np.float64)
    s = k_used @ q.astype(np.float64).mT if done.get("swapped") else q.astype(np.float64) @ k_used.mT
    z = done.get("scale", WIDTH**-0.5) * s * done.get("rows", 1.0)
    if done.get("softcap"):
        z = done["softcap"] * np.tanh(z / done["softcap"])
    z = z - done.get("slope", 0.0) * abs(np.arange(TOKENS) - np.arange(TOKENS)[:, None])
    ahead = done.get("ahead", TOKENS)
    z = np.where(np.arange(TOKENS) > np.arange(TOKENS)[:, None] + ahead, -np.inf, z)
    z = np.where(np.arange(TOKENS) < np.arange(TOKENS)[:, None] - done.get("before", TOKENS), -np.inf, z)
    z = np.where(np.arange(TOKENS) < done.get("length", TOKENS), z, -np.inf)
    axis = -2 if done.get("over_queries") else -1
    sink = done.get("sink", -np.inf)
    e, rest = np.exp(z), np.exp(sink)
    total = e.sum(axis, keepdims=True) + rest
    weights = e / total
    found = {"weights": weights, "lse": np.log(total)[..., 0] * done.get("lse", 1.0), "o": weights @ v_used}
    tensors: dict[str, Array] = {"q": q, "k": k, kind: found[kind].astype(dtype if kind != "lse" else np.float32)}
    tensors |= {"v": v} if kind == "o" else {}
    layer = {"name": "0", "index": 0, "causal": "ahead" in done, **said}
    return save(
        folder / "x.safetensors",
        {f"layers.0.attn.{name}": array for name, array in (tensors | dict(beside or {})).items()},
        schema="attn-tui/qk-2",
        layers=[layer],
    )
