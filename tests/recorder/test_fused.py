"""Fused kernels and flex_attention are recorded with what their arguments say."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pytorch import torch
from written import B, H, M, N, assert_explained, causal_of, recorded, vectors

F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")

FUSED: dict[str, tuple[int, Mapping[str, Any]]] = {
    "plain": (H, {}),
    "scale": (H, {"scale": 0.7}),
    "bool mask": (H, {"attn_mask": causal_of(N, M, 3)}),
    "additive mask": (H, {"attn_mask": torch.linspace(-1, 1, N * M).reshape(N, M)}),
    "bias by head": (H, {"attn_mask": torch.linspace(-1, 1, H * M).reshape(1, H, 1, M).expand(B, H, N, M)}),
    "grouped": (2, {"enable_gqa": True}),
    "dropout": (H, {"dropout_p": 0.0}),
}


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("inference", [False, True])
def test_scaled_dot_product_attention(kind: str, inference: bool, tmp_path: Path) -> None:
    kv_heads, options = FUSED[kind]

    def function(q: Any, k: Any, v: Any) -> Any:
        with torch.inference_mode(inference):
            return F.scaled_dot_product_attention(q, k, v, **options)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(kv_heads))
    assert layer["scale"] == options.get("scale", 0.25)
    assert layer["kv_heads"] == kv_heads
    assert ("layers.0.attn.bias" in held) == (kind in ("additive mask", "bias by head"))
    assert_explained(layer, held)


@pytest.mark.parametrize("backend", ["MATH", "FLASH_ATTENTION"])
def test_backends_of_scaled_dot_product_attention(backend: str, tmp_path: Path) -> None:
    attention: Any = importlib.import_module("torch.nn.attention")

    def function(q: Any, k: Any, v: Any) -> Any:
        with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(m=N))
    factors = layer.get("prescaled", [1, 1])
    assert layer["scale"] * factors[0] * factors[1] == pytest.approx(0.25)
    assert_explained(layer, held)


def biased(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s + (j - i) * 0.1 * (h + 1)


def capped(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return 3.0 * torch.tanh(s / 3.0)


def bent(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s.abs() - 0.1 * i


def not_later(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


@pytest.mark.parametrize("score_mod", [None, biased, capped, bent])
def test_flex_attention(score_mod: Any, tmp_path: Path) -> None:
    flex: Any = pytest.importorskip("torch.nn.attention.flex_attention")
    block = flex.create_block_mask(not_later, None, None, 32, 32, device="cpu")

    def function(q: Any, k: Any, v: Any) -> Any:
        with torch.compiler.set_stance("force_eager"):
            return flex.flex_attention(q, k, v, score_mod=score_mod, block_mask=block)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(n=32, m=32))
    assert layer["causal"] is True
    assert layer["scale"] == 0.25
    assert layer.get("softcap") == (3.0 if score_mod is capped else None)
    assert_explained(layer, held, 5e-6)
