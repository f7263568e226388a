"""The cost of engines: one sweep in this thread, in threads, in processes and on a Dask cluster.

    sweep --d-k 2:2048:log16 --n-keys 1024 --n-queries 1024

Engines run in turn in every round, opened before the clock starts; a first sweep warms each. Medians over rounds of
wall time, and of the processor time of this process and its workers. All must give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from attn_tui.core.grid import parse_grid
from attn_tui.core.parameters import Parameters
from attn_tui.core.tables.lab import SweepResult, sweep_table
from attn_tui.core.tables.table import written
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.engines import run
from attn_tui.core.work.part import Part, PartExecutor, Steps
from attn_tui.core.work.sweeps import Fold, parts, sweep_plan

GRID = "2:2048:log16"
P = Parameters(n_keys=1024, n_queries=1024)
EMPTY = 500  # parts that do nothing


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default: %(default)s)")
    parser.add_argument("--engines", default="serial,threads:2,processes:2,dask", help="(default: %(default)s)")
    given = parser.parse_args()
    plan = sweep_plan(P, parse_grid(GRID), histograms=())
    pieces = [*parts(plan)]
    sizes, seconds = [len(pickle.dumps(part)) for part in pieces], sum(part.seconds for part in pieces)
    print(f"{len(pieces)} parts, estimated {seconds:.2f} s, at most {max(sizes)} bytes each\n")
    with ExitStack() as stack:
        engines = {name: stack.enter_context(open_engine(name)) for name in given.engines.split(",")}
        workers = children()
        walls: dict[str, list[float]] = {name: [] for name in engines}
        cpus: dict[str, list[float]] = {name: [] for name in engines}
        digests: set[str] = set()
        for number in range(given.rounds + 1):
            for name, engine in engines.items():
                wall, cpu = time.perf_counter(), processor(workers)
                digests.add(digest(engine))
                if number:
                    walls[name].append(time.perf_counter() - wall)
                    cpus[name].append(processor(workers) - cpu)
        assert len(digests) == 1, "engines differ"
        print(f"{'engine':>12} {'wall s':>7} {'CPU s':>6} {'times faster':>13} {'CPU':>5} {'empty parts/s':>14}")
        first = next(iter(engines))
        for name, engine in engines.items():
            wall, cpu = median(walls[name]), median(cpus[name])
            rate = empty_rate(engine)
            ratios = median(walls[first]) / wall, cpu / median(cpus[first])
            print(f"{name:>12} {wall:7.2f} {cpu:6.2f} {ratios[0]:13.2f} {ratios[1]:5.2f} {rate:14.0f}")


def digest(engine: PartExecutor) -> str:
    """Return a digest of the JSON of the sweep."""
    plan = sweep_plan(P, parse_grid(GRID), histograms=())
    found = Fold(plan).add(result for done in run(parts(plan), engine) for result in done.results)
    return hashlib.sha256(written(sweep_table(SweepResult(P, plan.d_ks, found), ""), "json").encode()).hexdigest()


def nothing(number: int) -> Steps[int]:
    """Do nothing."""
    yield 1.0, (number,)


def empty_rate(engine: PartExecutor) -> float:
    """Return how many parts that do nothing are done in a second."""
    start = time.perf_counter()
    count = sum(done.complete for done in run([Part(nothing, (number,)) for number in range(EMPTY)], engine))
    return count / (time.perf_counter() - start)


def children() -> Sequence[int]:
    """Return the processes that this one has started, and theirs."""
    found, new = set[int](), {os.getpid()}
    while new:
        found |= new
        new = {child for parent in new for child in _children_of(parent)} - found
    return sorted(found)


def _children_of(process: int) -> list[int]:
    tasks = f"/proc/{process}/task"
    texts = [Path(tasks, task, "children").read_text() for task in os.listdir(tasks)]
    return [int(word) for text in texts for word in text.split()]


def processor(processes: Sequence[int]) -> float:
    """Return the processor time of these processes, in seconds."""
    total = 0
    for process in processes:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
