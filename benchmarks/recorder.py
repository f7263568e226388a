"""The time of a step with the recorder over that of the same step without it. Needs PyTorch."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import torch
except ModuleNotFoundError:
    print("recorder: not measured, because PyTorch is not installed (make test-torch installs it into .venv-torch)")
    sys.exit(0)

import attn_tui

F: Any = torch.nn.functional
REPEATS = 7


class Block(torch.nn.Module):
    """One layer of attention, fused or written out."""

    def __init__(self, width: int, eager: bool) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width))
        self.num_heads, self.eager = width // 64, eager

    def forward(self, x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.eager:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            o = torch.softmax((q @ k.transpose(-1, -2) / 8).masked_fill(hidden, -torch.inf), -1) @ v
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure(width: int, layers: int, tokens: int, eager: bool) -> tuple[float, float, float]:
    """Return medians in seconds: of steps without the recorder, recorded steps, and steps between these."""
    model: Any = torch.nn.Sequential(*(Block(width, eager) for _ in range(layers)))
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=1e-9)
    x = torch.randn(2, tokens, width)

    def step() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    plain, captured, idle = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            plain.append(seconds(step))
            with attn_tui.record(model, Path(folder) / "run", every=1000):
                captured.append(seconds(step))
                idle.append(seconds(step))
    return statistics.median(plain), statistics.median(captured), statistics.median(idle)


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)
    print("a training step                    plain    recorded     between recorded steps")
    for width, layers, tokens in ((512, 8, 512), (64, 2, 32)):
        for eager in (False, True):
            plain, captured, idle = measure(width, layers, tokens, eager)
            name = f"{'eager' if eager else 'sdpa'}, {width} wide, {layers} layers, {tokens} tokens"
            print(f"{name:33}{plain * 1e3:7.1f} ms  x {captured / plain:5.2f}      x {idle / plain:4.2f}")


if __name__ == "__main__":
    main()
