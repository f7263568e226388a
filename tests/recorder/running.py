"""Run programs under `attn-tui record`, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ATTN_TUI = (sys.executable, "-m", "attn_tui", "record")


@dataclass(frozen=True)
class Done:
    """What a process left behind."""

    code: int
    out: str
    err: str


def started(
    words: Sequence[str], folder: Path, first: Sequence[str] = ATTN_TUI, **variables: str
) -> subprocess.Popen[str]:
    """Start a command in this folder."""
    return subprocess.Popen(
        [*first, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        start_new_session=True,
        preexec_fn=_end_on_ctrl_c,
    )


def _end_on_ctrl_c() -> None:
    """Let SIGINT end the program, even if this process was started in the background and ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finished(process: subprocess.Popen[str]) -> Done:
    """Wait for a process."""
    try:
        out, err = process.communicate(timeout=600)
    except BaseException:
        process.kill()
        raise
    return Done(process.returncode, out, err)


def record(words: Sequence[str], folder: Path, **variables: str) -> Done:
    """Run `attn-tui record` with these words."""
    return finished(started(words, folder, **variables))


def plain(words: Sequence[str], folder: Path, **variables: str) -> Done:
    """Run a command without a recorder."""
    return finished(started(words, folder, (), **variables))


MODEL = """
import sys, torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, d=32, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        o = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(o.transpose(1, 2).reshape(b, n, d))
model = nn.Sequential(Block(), Block())
x = torch.randn(2, 20, 32)
"""
TRAIN = (
    MODEL
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
"""
)


def program(folder: Path, text: str, name: str = "program.py") -> str:
    """Write a program; return its name."""
    (folder / name).write_text(text)
    return name
