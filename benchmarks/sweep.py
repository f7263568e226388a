"""The cost of a sweep over d_k, compared with its largest point and with recomputing every point from scratch.

Everything runs on one thread and one BLAS thread. The computations run in turn in every round; medians of processor
time over rounds are compared, separately for parts of the work that gain differently:

- scores: the matrix work alone, of given components;
- with draws: also drawing the components, as a recompute from scratch must;
- whole: also statistics with standard errors and histograms;
- statistics: the statistics alone, of given scores. Every point needs them, which limits the gain of a whole sweep.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module

import numpy as np
from attn_tui.core.arrays import FloatArray
from attn_tui.core.grid import parse_grid
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.growing_scores import GrowingScores
from attn_tui.core.lab.scoring import columns_of, empty_tally
from attn_tui.core.lab.sweep import cuts
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import reading, tally
from attn_tui.core.work import engines
from attn_tui.core.work.sweeps import parts, sweep_plan

threadpoolctl = import_module("threadpoolctl")  # without type stubs

LOG = "1:4096:log24"
EVERY = "1:512"
SIZES = (256, 512, 1024)  # queries and keys
BATCH = 4
AGREE = 1e-4
MOST = 1.25  # the most that a sweep may cost over its largest product


def main() -> None:
    """Print both tables."""
    threadpoolctl.threadpool_limits(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds (default: %(default)s)")
    rounds = parser.parse_args().rounds
    blas = ", ".join(
        f"{i['internal_api']} {i['version']} on {i['num_threads']} thread" for i in threadpoolctl.threadpool_info()
    )
    print(f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}; {blas}")
    print(f"Milliseconds per draw; medians of {rounds} interleaved rounds\n")
    print_log_grid(rounds)
    print_every_width(rounds)


def print_log_grid(rounds: int) -> None:
    """Compare the matrix work of a curve with that of its largest point."""
    d_ks = parse_grid(LOG)
    print(f"{LOG}, {len(d_ks)} points: matrix work, as a ratio to one float32 product at d_k {d_ks[-1]}\n")
    print(f"{'n':>5} {'product ms':>11} {'sweep ms':>9} {'ratio':>6} {'independent':>12}  target")
    for n in SIZES:
        scores = Scores(Parameters(d_k=d_ks[-1], n_keys=n, n_queries=n, batch=BATCH))
        largest, swept, apart = medians(
            rounds,
            functools.partial(scores.products, d_ks[-1:]),
            functools.partial(scores.sweep, d_ks),
            functools.partial(scores.products, d_ks),
        )
        ratios = f"{swept / largest:6.2f} {apart / largest:12.2f}"
        verdict = f"≤ {MOST:g} {'met' if swept / largest <= MOST else 'NOT MET'}"
        print(f"{n:5} {largest / BATCH:11.2f} {swept / BATCH:9.2f} {ratios}  {verdict}", flush=True)


def print_every_width(rounds: int) -> None:
    """Compare a sweep over every d_k with as many recomputes, for parts of the work and the whole."""
    d_ks = parse_grid(EVERY)
    p = Parameters(d_k=d_ks[-1], n_keys=256, n_queries=256, batch=BATCH)
    scores = Scores(p)
    compared: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "scores": (lambda: scores.products(d_ks), lambda: scores.sweep(d_ks)),
        "with draws": (lambda: from_scratch(p, d_ks), lambda: grow(parts_of(GrowingScores, p), d_ks)),
        "whole": (
            lambda: [run(replace(p, d_k=d_k), full=False) for d_k in d_ks],
            lambda: [*engines.run(parts(sweep_plan(p, d_ks)))],
        ),
    }
    print(f"\n{EVERY}, n 256: every d_k, compared with as many recomputes from scratch\n")
    print(f"{'work':>10} {'recomputes ms':>14} {'sweep ms':>9} {'times faster':>13}")
    for name, both in compared.items():
        apart, swept = medians(rounds, *both)
        print(f"{name:>10} {apart / BATCH:14.0f} {swept / BATCH:9.0f} {apart / swept:13.1f}", flush=True)

    (alone,) = medians(rounds, lambda: statistics(p, d_ks))
    print(f"{'statistics':>10} {alone / BATCH:14.0f} {alone / BATCH:9.0f} {1:13.1f}")


class Scores:
    """The scores of some draws of given components: by matrix products and by a sweep."""

    def __init__(self, p: Parameters) -> None:
        self.p, self.out = p, np.empty((p.n_queries, p.n_keys), np.float32)
        query, key = made = GrowingScores(p, slice(0, p.batch), slice(0, p.n_queries)).columns(p.d_k)

        class Prepared(GrowingScores):
            def columns(self, end: int) -> list[FloatArray]:
                new = slice(self.width, end)
                return [query[self.draws, new, self.rows], key[self.draws, new]]

        self.part = Prepared
        layouts = itertools.product(*[(np.ascontiguousarray(side.mT), side.mT) for side in made])
        # The fastest layout on this machine, of the widest product.
        self.q, self.k = min(layouts, key=lambda both: min(seconds(lambda: self._multiply(*both)) for _ in range(3)))
        self._check()

    def products(self, d_ks: Sequence[int]) -> None:
        """Compute a matrix product for each d_k and draw."""
        for d_k in d_ks:
            self._multiply(self.q[..., :d_k], self.k[..., :d_k])

    def sweep(self, d_ks: Sequence[int]) -> None:
        """Compute the same scores, each from those at the d_k before."""
        grow(parts_of(self.part, self.p), d_ks)

    def _multiply(self, q: FloatArray, k: FloatArray) -> None:
        for each_q, each_k in zip(q, k, strict=True):
            np.matmul(each_q, each_k.T, out=self.out)

    def _check(self) -> None:
        """Raise AssertionError unless both give the same scores."""
        parts = parts_of(self.part, self.p)
        for d_k in (1, self.p.d_k // 3, self.p.d_k):
            self._multiply(self.q[..., :d_k], self.k[..., :d_k])
            for piece in itertools.chain.from_iterable(part.at(d_k) for part in parts):
                if piece.draws.stop == self.p.batch:
                    far = np.abs(piece.scores[-1] - self.out[piece.rows]).max()
                    assert far <= AGREE * math.sqrt(d_k), f"scores differ at d_k {d_k}"


def parts_of(part: type[GrowingScores], p: Parameters) -> list[GrowingScores]:
    """Return the growing scores of all rows and draws, divided as in a sweep."""
    return [part(p, *slices) for slices in cuts(p, slice(0, p.batch))]


def grow(parts: Sequence[GrowingScores], d_ks: Sequence[int]) -> None:
    """Compute the scores at every d_k."""
    for d_k in d_ks:
        for _ in itertools.chain.from_iterable(part.at(d_k) for part in parts):
            pass


def from_scratch(p: Parameters, d_ks: Sequence[int]) -> None:
    """Compute the scores at every d_k from new normals."""
    rng = np.random.Generator(np.random.SFC64(p.seed))
    out = np.empty((p.n_queries, p.n_keys), np.float32)
    for d_k in d_ks:
        for _ in range(p.batch):
            q = rng.standard_normal((d_k, p.n_queries), np.float32)
            k = rng.standard_normal((d_k, p.n_keys), np.float32)
            np.matmul(q.T, k, out=out)


def statistics(p: Parameters, d_ks: Sequence[int]) -> None:
    """Compute the columns at every d_k, of scores drawn directly."""
    drawn = np.random.default_rng(p.seed).standard_normal((p.batch, p.n_queries, p.n_keys), np.float32)
    scores = np.empty_like(drawn)
    for d_k in d_ks:
        counts = empty_tally(replace(p, d_k=d_k), columns_of(replace(p, d_k=d_k)))
        np.multiply(drawn, np.float32(math.sqrt(d_k)), out=scores)
        tally.add(counts, slice(0, p.batch), slice(0, p.n_queries), scores)
        reading.columns(counts, p.batch, unbiased=True)


def medians(rounds: int, *work: Callable[[], object]) -> list[float]:
    """Return the median milliseconds of each computation; they run in turn in every round."""
    for each in work:
        each()
    times = [[seconds(each) for each in work] for _ in range(rounds)]
    return (1000 * np.median(times, axis=0)).tolist()


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
