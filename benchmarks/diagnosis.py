"""The cost of inspecting, diagnosing and replaying captured heads, compared with the least they can cost.

Processor time of all threads; the computations run in turn in every round, and medians of ratios within a round are
printed. The floor is plain NumPy. If PyTorch is installed, the same statistics in straightforward PyTorch are
measured too; without it, their cost is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from attn_tui.core.arrays import FloatArray
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.rows import ROWS, rough_statistics
from attn_tui.core.diagnosis.reading import read_subject
from attn_tui.core.diagnosis.replay import replay
from attn_tui.core.diagnosis.verdict import diagnose

threadpoolctl = import_module("threadpoolctl")  # without type stubs

TOKENS, D_K, HEADS = 512, 128, 16
LONG, LONG_D_K = 32_768, 64


def main() -> None:
    """Print the table."""
    threadpoolctl.threadpool_limits(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds (default: %(default)s)")
    parser.add_argument("--long", action="store_true", help="also measure the memory of a head of 32,768 tokens")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture = written(Path(folder) / "heads.npz")
        layer = capture.layers[0]
        rule = file_rule(layer)

        def each(work: Callable[[int], object]) -> Callable[[], None]:
            def all_heads() -> None:
                for head in range(HEADS):
                    work(head)

            return all_heads

        arrays = [np.load(capture.path)[f"layers.0.attn.{side}"][0].astype(np.float32) for side in "qk"]
        wide = [side.astype(np.float64) for side in arrays]
        works: dict[str, Callable[[], object]] = {
            "floor of inspect: a product and an exp": each(lambda h: floor(arrays[0][h], arrays[1][h], 1)),
            "inspect": each(lambda h: measure_head(capture, layer, h, [rule])),
            f"first look, {ROWS} rows": each(lambda h: rough_statistics(capture, layer, h)),
            "diagnose a healthy head": each(lambda h: diagnose(read_subject(capture, layer, h, None, None))),
            "floor of replay: a product and 29 exps": each(lambda h: floor(wide[0][h], wide[1][h], 29)),
            "replay every rule": each(lambda h: replay(capture, layer, h, rows=TOKENS)),
            "replay every rule, 64 rows": each(lambda h: replay(capture, layer, h)),
        }
        if find_spec("torch") is not None:
            works["inspect in PyTorch"] = torch_statistics(arrays)
        found = medians(given.rounds, works)
        print(f"{HEADS} causal heads, {TOKENS} × {TOKENS}, d_k {D_K}, float16; processor time, ms a head\n")
        for name, seconds in found.items():
            print(f"{name:>40} {1000 * seconds / HEADS:8.2f}")
        print()
        for name, over, most in (
            ("inspect", "inspect in PyTorch", 0.5),
            ("inspect", "floor of inspect: a product and an exp", 3.5),
            ("replay every rule", "floor of replay: a product and 29 exps", 2.5),
        ):
            if over in found:
                print(f"{found[name] / found[over]:6.2f} × {over}: {name}  (target {most:g})")
        rough = 1024 * found[f"first look, {ROWS} rows"] / HEADS
        print(f"{rough:6.2f} s for the first map of 1,024 heads, which is drawn as they arrive  (target 1)")
        print(f"{1024 * found['replay every rule, 64 rows'] / HEADS:6.2f} s for replaying 64 rows of 1,024 heads")
    if given.long:
        print_long()


def written(
    path: Path, tokens: int = TOKENS, d_k: int = D_K, heads: int = HEADS, evidence: bool = True
) -> CaptureFile:
    """Write a causal layer in float16, with log-sum-exps, and open it."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((1, heads, tokens, d_k), np.float32).astype(np.float16) for _ in range(2))
    named: dict[str, Any] = {"layers.0.attn.q": q, "layers.0.attn.k": k}
    if evidence:
        z = q.astype(np.float64) @ k.astype(np.float64).mT * d_k**-0.5
        z[..., np.triu(np.ones((tokens, tokens), np.bool_), 1)] = -np.inf
        top = z.max(axis=-1, keepdims=True)
        named["layers.0.attn.lse"] = (top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True)))[..., 0].astype("f4")
    np.savez(path, **named, schema="attn-tui/qk-2", layers=json.dumps([{"scale": d_k**-0.5, "causal": True}]))
    return open_capture(path)


def floor(q: FloatArray, k: FloatArray, exps: int) -> None:
    """Multiply q and k, and exponentiate the scores a number of times, in their number format."""
    scores = q @ k.T
    scores *= scores.dtype.type(D_K**-0.5)
    out = np.empty_like(scores)
    for _ in range(exps):
        np.exp(scores, out=out)


def torch_statistics(arrays: Sequence[FloatArray]) -> Callable[[], object]:
    """Return the statistics of `inspect` in straightforward PyTorch, on one thread."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    queries, keys = (torch.from_numpy(each) for each in arrays)
    mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    counts = mask.sum(-1)

    def statistics(q: Any, k: Any) -> list[float]:
        z = (q @ k.T) * D_K**-0.5
        seen = z[mask]
        away = seen - seen.mean()
        variance = (away**2).mean()
        row_mean = z.masked_fill(~mask, 0).sum(-1) / counts
        in_row = (((z - row_mean[:, None]) ** 2) * mask).sum(-1) / counts
        p = torch.softmax(z.masked_fill(~mask, -math.inf), -1)
        entropy = -torch.special.xlogy(p, p).sum(-1)
        squares, cubes, top = (p**2).sum(-1), (p**3).sum(-1), p.max(-1).values
        norm = (squares - 2 * cubes + squares**2).clamp(min=0)
        torch.histc(seen, 1024)
        torch.histc(torch.log10(p[mask].clamp(min=1e-12)), 240)
        found = (
            seen.mean(), variance, (away**4).mean() / variance**2 - 3, seen.min(), seen.max(),
            (away.abs() <= 3 * variance.sqrt()).float().mean(), in_row.mean(), row_mean.var(),
            (in_row.sqrt() / (2 * counts.clamp(min=2).log()).sqrt()).mean(), entropy.mean(), entropy.exp().mean(),
            (entropy / counts.clamp(min=2).log()).mean(), top.mean(), (top > 0.95).float().mean(), squares.mean(),
            p[:, 0].mean(), norm.mean(), norm.sqrt().mean(), (norm.sqrt() < 0.01).float().mean(),
        )  # fmt: skip
        return [each.item() for each in found]

    return lambda: [statistics(q, k) for q, k in zip(queries, keys, strict=True)]


def medians(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median processor time of each computation; they run in turn in every round."""
    for work in works.values():
        work()
    times: list[list[float]] = []
    for _ in range(rounds):
        times.append([])
        for work in works.values():
            start = time.process_time()
            work()
            times[-1].append(time.process_time() - start)
    return dict(zip(works, np.median(times, axis=0).tolist(), strict=True))


def print_long() -> None:
    """Print the memory and the time of one long head."""
    with tempfile.TemporaryDirectory() as folder:
        capture = written(Path(folder) / "long.npz", LONG, LONG_D_K, 1, evidence=False)
        layer = capture.layers[0]
        tracemalloc.start()
        start = time.process_time()
        measure_head(capture, layer, 0, [file_rule(layer)])
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{peak / 2**20:6.0f} MiB at most, {seconds:.0f} s: a causal head of {LONG} tokens  (target 300 MiB)")


if __name__ == "__main__":
    main()
