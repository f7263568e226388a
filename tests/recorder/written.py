"""Modules that are one function of queries, keys and values, and their recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
from pytorch import torch
from replay import load, replay

B, H, N, M, D = 2, 4, 12, 20, 16


def vectors(kv_heads: int = H, n: int = N, m: int = M) -> tuple[Any, Any, Any]:
    g = torch.Generator().manual_seed(3)
    shapes = ((B, H, n, D), (B, kv_heads, m, D), (B, kv_heads, m, D))
    q, k, v = (torch.randn(*shape, generator=g) for shape in shapes)
    return q, k, v


class Written(torch.nn.Module):
    """A module whose forward pass is this function of queries, keys and values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.num_heads = H
        self.function = function

    def forward(self, *tensors: Any) -> Any:
        return self.function(*tensors)


def recorded(path: Path, function: Callable[..., Any], *tensors: Any, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Return the function's result, and the only layer of its recording with the file's tensors and metadata."""
    module = Written(function)
    with torch.no_grad():
        expected = module(*tensors)
        with attn_tui.record(module, path / "a.safetensors", values=True, **options) as recorder:
            found = module(*tensors)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert recorder.complete, recorder.summary
    held, metadata = load(path / "a.safetensors")
    assert len(metadata["layers"]) == 1
    return found, metadata["layers"][0], held, metadata


def assert_explained(layer: dict[str, Any], held: dict[str, Any], tolerance: float = 2e-6) -> None:
    """The file's log-sum-exp and outputs follow from its queries, keys, values and metadata."""
    prefix = f"layers.{layer['index']}.attn"
    lse, o = replay(layer, held)
    assert torch.allclose(lse.float(), held[f"{prefix}.lse"], atol=tolerance, rtol=tolerance)
    assert o is not None
    assert torch.allclose(o.float(), held[f"{prefix}.o"].float(), atol=tolerance, rtol=tolerance)
    assert "NOT" not in layer["notes"]


def causal_of(n: int, m: int, offset: int) -> torch.Tensor:
    """Which keys each query sees, if query i sees keys up to i + offset."""
    return torch.ones(n, m, dtype=torch.bool).tril(offset)
