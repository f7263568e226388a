"""Time and memory of a step with the recorder, over those of the same step without it. Needs PyTorch.

Time is that of the processor, all threads together, so that other programs on the machine do not count.
"""

from __future__ import annotations

import importlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

try:
    import torch
except ModuleNotFoundError:
    print("recorder: not measured, because PyTorch is not installed (make test-torch installs it into .venv-torch)")
    sys.exit(0)

import attn_tui

F: Any = torch.nn.functional
flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
REPEATS = 7
IDLE, ROOM = 1.04, 256  # targets: of an idle step, and MiB beside the copies of what is recorded
LONG = 8192  # tokens whose scores of all heads would take 4 GiB


def causal(score: Any, _batch: Any, _head: Any, query: Any, key: Any) -> Any:
    """Hide later keys, for FlexAttention."""
    return torch.where(query >= key, score, -torch.inf)


class Block(torch.nn.Module):
    """One layer of attention: `sdpa`, `flex`, or `eager`, written out."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width))
        self.num_heads, self.kind = width // 64, kind

    def forward(self, x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.kind == "eager":
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            o = torch.softmax((q @ k.transpose(-1, -2) / 8).masked_fill(hidden, -torch.inf), -1) @ v
        elif self.kind == "flex":
            o = flex.flex_attention(q, k, v, score_mod=causal)
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time that a call takes."""
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(width: int, layers: int, tokens: int, kind: str) -> tuple[float, float, float]:
    """Return medians in seconds: of steps without the recorder, recorded steps, and steps between these."""
    model: Any = torch.nn.Sequential(*(Block(width, kind) for _ in range(layers)))
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


def peak(kind: str) -> tuple[int, int]:
    """Return the most memory that a process takes for a layer of a long text, and what is recorded of it, in MiB."""
    model: Any = Block(512, kind.removeprefix("plain "))
    x = torch.randn(1, LONG, 512)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "a.safetensors"
        with nullcontext() if "plain" in kind else attn_tui.record(model, path, values=True):
            model(x)
        size = path.stat().st_size if path.exists() else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, size >> 20


def memory() -> None:
    """Print the memory that recording takes beside copies of what it records, over its target.

    The program without the recorder takes that of SDPA: compiled, FlexAttention needs no more, and here it would.
    """
    found: dict[str, tuple[int, int]] = {}
    for kind in ("plain sdpa", "sdpa", "flex"):  # in processes of their own: the most memory of a process never falls
        done = subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, check=True)
        most, size = map(int, done.stdout.split())
        found[kind] = most, size
    plain, _ = found.pop("plain sdpa")
    print(f"\na layer of {LONG} tokens            {plain} MiB without the recorder")
    for kind, (most, size) in found.items():
        beside = most - plain - size
        print(f"{kind:4} recorded                    {most} MiB with {size} MiB of copies: {beside} MiB beside them, "
              f"x {beside / ROOM:.2f} of the target")  # fmt: skip


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        print(*peak(sys.argv[1]))
        return
    print("a training step                    plain    recorded     between recorded steps")
    for width, layers, tokens in ((256, 4, 256), (64, 2, 32)):
        for kind in ("sdpa", "eager"):
            plain, captured, idle = measure(width, layers, tokens, kind)
            name = f"{kind}, {width} wide, {layers} layers, {tokens} tokens"
            print(f"{name:33}{plain * 1e3:7.1f} ms  x {captured / plain:5.2f}      x {idle / plain:4.2f}")
    print(f"targets: between recorded steps x {IDLE}, memory beside the copies {ROOM} MiB")
    memory()


if __name__ == "__main__":
    main()
