"""The cost of captures as large as those of real models, compared with the least they can cost.

Processor time of one thread. The floor reads the same bytes, multiplies the rows that are looked at once in float32,
and exponentiates their scores. Each row is measured in turn with its floor; medians of ratios are printed. Small
sizes by default, for which much is overhead; --whole takes the sizes that people have, for which the targets are.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from attn_tui.core.captures.heads import file_rule, measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.verdict import diagnose_head
from attn_tui.core.statistics.measurement import HISTOGRAMS
from attn_tui.core.work.worker import keep_memory
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

threadpoolctl = import_module("threadpoolctl")  # without type stubs

LOOKED_AT = 1 << 19  # scores of a head that a diagnosis looks at
ROUNDS = 3


class Size(NamedTuple):
    """A capture, and what is done with its heads."""

    work: str
    heads: int
    kv_heads: int
    queries: int
    keys: int
    d_k: int
    dtype: str
    most: float  # times the floor
    ratio: float = 1.0  # of the multiplier that made the log-sum-exp, to the one that is declared


SMALL = (
    Size("inspect", 8, 8, 512, 512, 64, "float16", 3),
    Size("diagnose", 8, 8, 512, 512, 64, "float16", 5),
    Size("diagnose", 4, 4, 512, 512, 64, "float16", 15, ratio=2.0),
    Size("inspect", 2, 2, 1024, 1024, 64, "float32", 4),
    Size("diagnose", 8, 2, 1, 8192, 128, "float16", 3),
    Size("inspect in full", 1, 1, 2048, 2048, 128, "float16", 4),
)
WHOLE = (
    Size("inspect", 144, 144, 1024, 1024, 64, "float16", 3),
    Size("diagnose", 144, 144, 1024, 1024, 64, "float16", 5),
    Size("diagnose", 12, 12, 1024, 1024, 64, "float16", 15, ratio=2.0),
    Size("inspect", 4, 4, 4096, 4096, 64, "float32", 4),
    Size("diagnose", 32, 8, 1, 32_768, 128, "float16", 3),
    Size("inspect in full", 1, 1, 16_384, 16_384, 128, "float16", 4),
)


def main() -> None:
    """Print the table."""
    threadpoolctl.threadpool_limits(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true", help="the sizes that people have")
    keep_memory()  # as the commands do
    whole = parser.parse_args().whole
    for size in WHOLE if whole else SMALL:
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder) / "heads.safetensors", size)
            times = [(took(done, path, size), took(floor, path, size)) for _ in range(ROUNDS)]
        own, ratio = np.median(times, axis=0)[0], np.median([mine / least for mine, least in times])
        shape = f"{size.heads} heads × {size.queries:,} × {size.keys:,}, d_k {size.d_k}, {size.dtype}"
        what = size.work if size.ratio == 1 else f"{size.work}, × {size.ratio:g}"
        target = f"  (target {size.most:g})" if whole else ""
        print(f"{ratio:6.2f} × floor, {own:7.3f} s: {what}, {shape}{target}", flush=True)


def took(work: Callable[[Path, Size], object], path: Path, size: Size) -> float:
    """Return the processor time of some work on a file."""
    start = time.process_time()
    work(path, size)
    return time.process_time() - start


def written(path: Path, size: Size) -> Path:
    """Write a layer with values, outputs and log-sum-exps; causal, if it has as many queries as keys."""
    rng = np.random.default_rng(0)
    group, causal = size.heads // size.kv_heads, size.queries == size.keys
    q = rng.standard_normal((1, size.heads, size.queries, size.d_k), np.float32).astype(size.dtype)
    k, v = (rng.standard_normal((1, size.kv_heads, size.keys, size.d_k), np.float32).astype(size.dtype) for _ in "kv")
    o = np.empty_like(q)
    lse = np.empty(q.shape[:3], np.float32)
    for head in range(size.heads):
        z = q[0, head].astype(np.float32) @ k[0, head // group].astype(np.float32).T
        z *= size.ratio * size.d_k**-0.5
        if causal:
            z[np.triu(np.ones(z.shape, np.bool_), 1)] = -np.inf
        top = z.max(axis=-1, keepdims=True)
        p = np.exp(z - top)
        total = p.sum(axis=-1, keepdims=True)
        lse[0, head] = (top + np.log(total))[:, 0]
        o[0, head] = (p / total) @ v[0, head // group].astype(np.float32)
    layer = {"index": 0, "scale": size.d_k**-0.5, "causal": causal}
    tensors: dict[str, Any] = {f"layers.0.attn.{name}": each for name, each in zip(
        ("q", "k", "v", "o", "lse"), (q, k, v, o, lse), strict=True)}  # fmt: skip
    save_file(tensors, path, {"schema": "attn-tui/qk-2", "layers": json.dumps([layer])})
    return path


def done(path: Path, size: Size) -> None:
    """Do the work on all heads."""
    capture = open_capture(path)
    [layer] = capture.layers
    rules = [named_rule("none", layer), file_rule(layer)] if size.work == "inspect in full" else [file_rule(layer)]
    for head in range(size.heads):
        if size.work == "diagnose":
            diagnose_head(capture, layer, head, None, None)
        else:
            measure_head(capture, layer, head, rules, HISTOGRAMS if len(rules) > 1 else ())


def floor(path: Path, size: Size) -> None:
    """Read the tensors that are needed, multiply the rows that are looked at, and exponentiate their scores."""
    names = ("q", "k", "v", "o", "lse") if size.work == "diagnose" else ("q", "k")
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
        tensors: dict[str, Any] = {}
        for name in names:
            entry = header[f"layers.0.attn.{name}"]
            first, last = entry["data_offsets"]
            stream.seek(8 + length + first)
            dtype = {"F16": "float16", "F32": "float32"}[entry["dtype"]]
            tensors[name] = np.frombuffer(stream.read(last - first), dtype).reshape(entry["shape"]).astype(np.float32)
    causal, group = size.queries == size.keys, size.heads // size.kv_heads
    rows = max(16, LOOKED_AT // size.keys) if size.work == "diagnose" else size.queries
    step = -(-size.queries // rows)
    for head in range(size.heads):
        q, k = tensors["q"][0, head, (size.queries - 1) % step :: step], tensors["k"][0, head // group]
        for at in range(0, len(q), 256):
            scores = q[at : at + 256] @ k[: (at + 256) * step if causal else size.keys].T
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)


if __name__ == "__main__":
    main()
