"""Make the captures that `attn-tui examples` opens: a tiny transformer in NumPy, right and with three faults.

Run `python examples/make_captures.py [FOLDER]`; by default the files of the package are made again. Weights
are random; keys resemble queries in some heads, so that equal words find each other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np

FOLDER = Path(__file__).parents[1] / "core" / "captures" / "examples"
TEXT = "the cat sat on the mat because the mat was warm and the dog slept on the floor because it was cool"
TOKENS = TEXT.split()
LAYERS, HEADS, WIDTH = 2, 4, 16
D_MODEL = HEADS * WIDTH
ALIKE = (0.0, 0.3, 0.6, 0.9)  # of each head, how much keys resemble queries
FAULTS = ("right", "scale-twice", "d-model", "mask-added")


def attention(q: Any, k: Any, v: Any, multiplier: float, added: bool) -> tuple[Any, Any]:
    """Return outputs and log-sum-exps of causal attention; a mask that is added as 1 and 0 hides nothing."""
    mask = np.tri(q.shape[-2])
    logits = multiplier * (q @ k.mT)
    logits = logits + mask if added else np.where(mask > 0, logits, -np.inf)
    lse = np.log(np.exp(logits).sum(-1))
    return np.exp(logits - lse[..., np.newaxis]) @ v, lse


def captured(fault: str) -> list[attn_tui.Call]:
    """Run the transformer on TOKENS and return the calls of attention; all say what was intended."""
    rng = np.random.default_rng(0)
    embedding = {word: rng.normal(size=D_MODEL) for word in dict.fromkeys(TOKENS)}
    x = np.stack([embedding[word] for word in TOKENS]) + 0.3 * rng.normal(size=(len(TOKENS), D_MODEL))
    calls: list[attn_tui.Call] = []
    for layer in range(LAYERS):
        of_q, noise, of_v = rng.normal(size=(3, HEADS, D_MODEL, WIDTH)) / D_MODEL**0.5
        alike = np.array(ALIKE)[:, np.newaxis, np.newaxis]
        of_k = alike * of_q + (1 - alike**2) ** 0.5 * noise
        normed = x / np.sqrt((x**2).mean(-1, keepdims=True))
        q, k, v = ((1.6 * normed @ each).astype(np.float32) for each in (of_q, of_k, of_v))
        scale = WIDTH**-0.5
        if fault == "d-model":
            scale = D_MODEL**-0.5
        elif fault == "scale-twice" and layer == 1:
            scale = 1 / WIDTH
        o, lse = attention(*(each.astype(np.float64) for each in (q, k, v)), scale, fault == "mask-added")
        x = x + o.swapaxes(0, 1).reshape(len(TOKENS), D_MODEL)
        said: dict[str, Any] = {"scale": WIDTH**-0.5, "causal": True, "name": f"layers.{layer}.attn"}
        arrays = (each.astype(np.float32)[np.newaxis] for each in (q, k, v, o))
        calls.append(attn_tui.call(*arrays, lse=lse[np.newaxis], **said))
    return calls


def main(folder: Path = FOLDER) -> None:
    for fault in FAULTS:
        attn_tui.save(folder / f"{fault}.safetensors", captured(fault), tokens=TOKENS, overwrite=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
