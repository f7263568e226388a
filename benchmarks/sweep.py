"""What a sweep over d_k costs, against its largest point and against recomputing every point from scratch.

Everything runs on one thread and one BLAS thread. What is compared runs in turn in every round; medians over rounds
of processor time are compared. The work is split into its parts, because the parts gain differently:

- scores: the matrix work alone, from components that are there already;
- with draws: making the components too, as a recompute from scratch must;
- whole: statistics with standard errors and histograms too;
- statistics: they alone, of scores that are there already. A point of a sweep needs them as a recompute does, so
  that no sweep of all of them is faster than the whole recomputes divided by this.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from attn_tui.core.arrays import FloatArray
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.grid import parse_grid
from attn_tui.core.lab.lane import Lane
from attn_tui.core.lab.scoring import empty_tally
from attn_tui.core.lab.sweep import regions, sweep
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import tally
from threadpoolctl import threadpool_info, threadpool_limits

LOG = "1:4096:log24"
EVERY = "1:512"
SIZES = (256, 512, 1024)  # queries and keys
BATCH = 4
AGREE = 1e-4


def main() -> None:
    """Print both tables."""
    threadpool_limits(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds that medians are taken over")
    rounds = parser.parse_args().rounds
    blas = ", ".join(f"{i['internal_api']} {i['version']} on {i['num_threads']} thread" for i in threadpool_info())
    print(f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}; {blas}")
    print(f"Milliseconds a draw; medians of {rounds} interleaved rounds\n")
    print_log_grid(rounds)
    print_every_width(rounds)


def print_log_grid(rounds: int) -> None:
    """A curve against its largest point, in matrix work."""
    d_ks = parse_grid(LOG)
    print(f"{LOG}, {len(d_ks)} points: matrix work, as a ratio to one float32 product at d_k {d_ks[-1]}\n")
    print(f"{'n':>5} {'product ms':>11} {'sweep ms':>9} {'ratio':>6} {'independent':>12}")
    for n in SIZES:
        scores = Scores(Parameters(d_k=d_ks[-1], n_keys=n, n_queries=n, batch=BATCH))
        largest, swept, apart = medians(
            rounds,
            functools.partial(scores.products, d_ks[-1:]),
            functools.partial(scores.sweep, d_ks),
            functools.partial(scores.products, d_ks),
        )
        ratios = f"{swept / largest:6.2f} {apart / largest:12.2f}"
        print(f"{n:5} {largest / BATCH:11.2f} {swept / BATCH:9.2f} {ratios}", flush=True)


def print_every_width(rounds: int) -> None:
    """Every d_k against as many recomputes, in parts of the work and in all of it."""
    d_ks = parse_grid(EVERY)
    p = Parameters(d_k=d_ks[-1], n_keys=256, n_queries=256, batch=BATCH)
    scores = Scores(p)
    compared: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "scores": (lambda: scores.products(d_ks), lambda: scores.sweep(d_ks)),
        "with draws": (lambda: from_scratch(p, d_ks), lambda: grow(lanes_of(Lane, p), d_ks)),
        "whole": (
            lambda: [run(replace(p, d_k=d_k), full=False) for d_k in d_ks],
            lambda: [*sweep(p, d_ks, executor=worker)],
        ),
    }
    print(f"\n{EVERY}, n 256: every d_k, against as many recomputes from scratch\n")
    print(f"{'work':>10} {'recomputes ms':>14} {'sweep ms':>9} {'times faster':>13}")
    with ThreadPoolExecutor(1) as worker:
        for name, both in compared.items():
            apart, swept = medians(rounds, *both)
            print(f"{name:>10} {apart / BATCH:14.0f} {swept / BATCH:9.0f} {apart / swept:13.1f}", flush=True)
    (alone,) = medians(rounds, lambda: statistics(p, d_ks))
    print(f"{'statistics':>10} {alone / BATCH:14.0f} {alone / BATCH:9.0f} {1:13.1f}")


class Scores:
    """The scores of some draws, from components that are made beforehand: by products of matrices and by a sweep."""

    def __init__(self, p: Parameters) -> None:
        self.p, self.out = p, np.empty((p.n_queries, p.n_keys), np.float32)
        query, key = made = Lane(p, slice(0, p.batch), slice(0, p.n_queries)).columns(p.d_k)

        class Prepared(Lane):
            def columns(self, end: int) -> list[FloatArray]:
                new = slice(self.width, end)
                return [query[self.draws, new, self.rows], key[self.draws, new]]

        self.lane = Prepared
        layouts = itertools.product(*[(np.ascontiguousarray(side.mT), side.mT) for side in made])
        # The fastest layout on this machine, of the widest product.
        self.q, self.k = min(layouts, key=lambda both: min(seconds(lambda: self._multiply(*both)) for _ in range(3)))
        self._check()

    def products(self, d_ks: Sequence[int]) -> None:
        """One product of matrices for each d_k and draw."""
        for d_k in d_ks:
            self._multiply(self.q[..., :d_k], self.k[..., :d_k])

    def sweep(self, d_ks: Sequence[int]) -> None:
        """The same scores, each d_k's from those before."""
        grow(lanes_of(self.lane, self.p), d_ks)

    def _multiply(self, q: FloatArray, k: FloatArray) -> None:
        for each_q, each_k in zip(q, k, strict=True):
            np.matmul(each_q, each_k.T, out=self.out)

    def _check(self) -> None:
        """Stop the benchmark unless both give the same scores."""
        lanes = lanes_of(self.lane, self.p)
        for d_k in (1, self.p.d_k // 3, self.p.d_k):
            self._multiply(self.q[..., :d_k], self.k[..., :d_k])
            for piece in itertools.chain.from_iterable(lane.at(d_k) for lane in lanes):
                if piece.draws.stop == self.p.batch:
                    far = np.abs(piece.scores[-1] - self.out[piece.rows]).max()
                    assert far <= AGREE * math.sqrt(d_k), f"scores differ at d_k {d_k}"


def lanes_of(lane: type[Lane], p: Parameters) -> list[Lane]:
    """All rows of all draws, cut as a sweep does."""
    return [lane(p, *slices) for region in regions(p, slice(0, p.batch)) for slices in region]


def grow(lanes: Sequence[Lane], d_ks: Sequence[int]) -> None:
    """The scores at every d_k."""
    for d_k in d_ks:
        for _ in itertools.chain.from_iterable(lane.at(d_k) for lane in lanes):
            pass


def from_scratch(p: Parameters, d_ks: Sequence[int]) -> None:
    """The scores at every d_k, from as many normals as each of them needs."""
    rng = np.random.Generator(np.random.SFC64(p.seed))
    out = np.empty((p.n_queries, p.n_keys), np.float32)
    for d_k in d_ks:
        for _ in range(p.batch):
            q = rng.standard_normal((d_k, p.n_queries), np.float32)
            k = rng.standard_normal((d_k, p.n_keys), np.float32)
            np.matmul(q.T, k, out=out)


def statistics(p: Parameters, d_ks: Sequence[int]) -> None:
    """The columns of every d_k, of scores of one size that come from nowhere."""
    drawn = np.random.default_rng(p.seed).standard_normal((p.batch, p.n_queries, p.n_keys), np.float32)
    scores = np.empty_like(drawn)
    for d_k in d_ks:
        kept = empty_tally(replace(p, d_k=d_k))
        np.multiply(drawn, np.float32(math.sqrt(d_k)), out=scores)
        tally.add(kept, slice(0, p.batch), slice(0, p.n_queries), scores)
        tally.columns(kept, p.batch, unbiased=True)


def medians(rounds: int, *work: Callable[[], object]) -> list[float]:
    """The median milliseconds of each, all of them in turn in every round."""
    for each in work:
        each()
    times = [[seconds(each) for each in work] for _ in range(rounds)]
    return (1000 * np.median(times, axis=0)).tolist()


def seconds(work: Callable[[], object]) -> float:
    """Processor time of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
