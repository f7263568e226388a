"""Time and memory of a step with the recorder, over those of the same step without it. Needs PyTorch.

Time is that of the processor, all threads together, so that other programs on the machine do not count.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
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
IDLE, ROOM = 1.04, 256  # targets: of an idle step, and MiB beside the copies of what is recorded
LONG = 8192  # tokens whose scores of all heads would take 4 GiB


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
    """Return the processor time that a call takes."""
    began = time.process_time()
    call()
    return time.process_time() - began


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


def peak(record: bool) -> tuple[int, int]:
    """Return the most memory that a process takes for a layer of a long text, and what is recorded, in MiB."""
    model: Any = Block(512, eager=False)
    x = torch.randn(1, LONG, 512)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "a.safetensors"
        if record:
            with attn_tui.record(model, path, values=True):
                model(x)
        else:
            model(x)
        size = path.stat().st_size if record else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, size >> 20


def memory() -> None:
    """Print the memory that recording takes beside copies of what it records, over its target."""
    found: list[list[int]] = []
    for word in ("plain", "recorded"):  # in processes of their own: the most memory of a process never falls
        done = subprocess.run([sys.executable, __file__, word], capture_output=True, text=True, check=True)
        found.append([*map(int, done.stdout.split())])
    (plain, _), (recorded, size) = found
    beside = recorded - plain - size
    print(f"\na layer of {LONG} tokens, sdpa     {plain} MiB, recorded {recorded} MiB with {size} MiB of copies")
    print(f"memory beside the copies         {beside} MiB: x {beside / ROOM:.2f} of the target")


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        print(*peak(sys.argv[1] == "recorded"))
        return
    print("a training step                    plain    recorded     between recorded steps")
    for width, layers, tokens in ((256, 4, 256), (64, 2, 32)):
        for eager in (False, True):
            plain, captured, idle = measure(width, layers, tokens, eager)
            name = f"{'eager' if eager else 'sdpa'}, {width} wide, {layers} layers, {tokens} tokens"
            print(f"{name:33}{plain * 1e3:7.1f} ms  x {captured / plain:5.2f}      x {idle / plain:4.2f}")
    print(f"targets: between recorded steps x {IDLE}, memory beside the copies {ROOM} MiB")
    memory()


if __name__ == "__main__":
    main()
