"""The cost of one keystroke in the Lab, compared with the least possible work and with plain NumPy.

Several computations run in turn in every round, on one BLAS thread; medians over rounds are compared. Times are
processor times.

- recompute: `experiment.run` with warm draws, from components to standard errors, including gradients and losses of
  the number format; then without these two; and of the Lab's first view only, which is what a key there costs;
- floor: one float32 matrix product and, for each of the two multipliers, one float32 exp of n² entries;
- eager: the same statistics in plain whole-array NumPy.
"""

from __future__ import annotations

import argparse
import itertools
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import numpy as np
from attn_tui.core.arrays import FloatArray
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.lab.scoring import LOSS, kept_draws, loss_of
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import ALWAYS, DEAD, OF_FIRST_VIEW, ONE_HOT
from attn_tui.core.statistics.measurement import HISTOGRAMS
from attn_tui.core.statistics.summary import skewness_factors
from attn_tui.core.statistics.tally import Shape
from attn_tui.core.work.worker import keep_memory

threadpoolctl = import_module("threadpoolctl")  # without type stubs

# (queries and keys, d_k), and the most that a recompute, and one without gradients, may cost over the floor
SIZES = {(256, 64): (4.5, 2.2), (512, 64): (3.5, 2.0), (512, 512): (2.2, 1.4), (1024, 512): (2.2, 1.4)}
BATCH = 16  # the Lab's default, with which a run takes more than 10 ms at every size
AGREE = 1e-3

Statistics = dict[str, tuple[float, float]]  # name -> value and standard error


def main() -> None:
    """Print the table."""
    threadpoolctl.threadpool_limits(1)
    keep_memory()  # as the engine's process does
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="number of rounds (default: %(default)s)")
    rounds = parser.parse_args().rounds
    blas = ", ".join(
        f"{i['internal_api']} {i['version']} on {i['num_threads']} thread" for i in threadpoolctl.threadpool_info()
    )
    print(f"NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}; {blas}")
    print(f"Milliseconds per draw, two multipliers; batch {BATCH}; medians of {rounds} interleaved rounds")
    print("Ratios are to the floor: one float32 matrix product and one float32 exp of n² for each multiplier\n")
    head = f"{'n':>5} {'d':>5} {'floor ms':>9} {'recompute ms':>13} {'ratio':>6} {'without':>8} {'1st view':>9}"
    print(f"{head} {'eager ratio':>12}  targets")
    for (n, d), (most, most_without) in SIZES.items():
        least, ours, without, first, plain = measure(Parameters(d_k=d, n_keys=n, n_queries=n, batch=BATCH), rounds)
        ratios = f"{ours / least:6.2f} {without / least:8.2f} {first / least:9.2f} {plain / least:12.1f}"
        met = "met" if ours / least <= most and without / least <= most_without else "NOT MET"
        print(f"{n:5} {d:5} {least:9.3f} {ours:13.3f} {ratios}  ≤ {most:g} · {most_without:g} {met}", flush=True)


def measure(p: Parameters, rounds: int) -> list[float]:
    """Return milliseconds per draw: floor, recompute, without gradients, of the first view, eager."""
    draws = Draws()
    measurement = run(p, draws)
    multipliers = [column.multiplier for column in measurement.columns]
    batch = slice(0, p.batch)
    q = np.ascontiguousarray(draws.of("query", batch, p.d_k).mT)
    k = np.ascontiguousarray(draws.of("key", batch, p.d_k).mT)
    v, g = (side.mT for side in kept_draws(loss_of(p), LOSS, draws.loss, batch))
    for column, plain in zip(measurement.columns, eager_columns(q, k, v, g, multipliers), strict=True):
        assert_same(column.measured, plain)

    def recompute() -> None:
        run(p, draws)

    def without() -> None:
        run(p, draws, full=False)

    def first_view() -> None:
        *_, last = stream(p, draws, OF_FIRST_VIEW, histograms=HISTOGRAMS[:2])
        last.measurement()

    def eager() -> None:
        eager_columns(q, k, v, g, multipliers)

    work = (floor_of(q[0], k[0], p.batch), recompute, without, first_view, eager)
    times = [[_warm_seconds(each) for each in work] for _ in range(rounds)]
    result: list[float] = (1000 * np.median(times, axis=0) / p.batch).tolist()
    return result


def floor_of(q: FloatArray, k: FloatArray, draws: int) -> Callable[[], None]:
    """Return the least work of any recompute, in the memory layout that is fastest on this machine."""
    logits = q @ k.T / np.float32(math.sqrt(q.shape[1]))
    logits -= logits.max()  # no denormal results of exp, which are slower
    product, weights = np.empty_like(logits), np.empty_like(logits)

    def multiply(sides: tuple[FloatArray, FloatArray]) -> None:
        for _ in range(draws):
            np.matmul(sides[0], sides[1].T, out=product)

    layouts = itertools.product((q, np.asfortranarray(q)), (k, np.asfortranarray(k)))
    fastest = min(layouts, key=lambda sides: min(_seconds(lambda: multiply(sides)) for _ in range(5)))

    def floor() -> None:
        multiply(fastest)
        for _ in range(2 * draws):
            np.exp(logits, out=weights)

    return floor


def eager_columns(
    q: FloatArray, k: FloatArray, v: FloatArray, g: FloatArray, multipliers: Sequence[float]
) -> list[Statistics]:
    """Compute the statistics and histograms of each multiplier; arrays are (draws, n, width), and g is ∂L/∂O."""
    scores, received = q @ k.mT, g @ v.mT
    return [_eager_column(np.float32(c) * scores, received, np.float32(c) * k) for c in multipliers]


def _eager_column(z: FloatArray, received: FloatArray, k: FloatArray) -> Statistics:
    """Return the statistics of logits (draws, n, n); `received` is ∂L/∂p, and k is multiplied by the scale."""
    n = z.shape[-1]
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    log_p = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
    entropy = -(p * log_p).sum(axis=-1)
    largest = p.max(axis=-1)
    p2, p3 = (p**2).sum(axis=-1), (p * p * p).sum(axis=-1)
    jacobian2 = np.maximum(p2 - 2 * p3 + p2**2, 0)
    jacobian = np.sqrt(jacobian2)
    d_z = p * (received - (p * received).sum(axis=-1, keepdims=True))
    norms = np.linalg.norm(d_z @ k, axis=-1)
    np.histogram(np.log10(np.maximum(norms, np.finfo(p.dtype).tiny)), bins=480, range=(-8, 4))
    band = 3 * z.std()
    x1, x2 = z.mean(axis=(1, 2), dtype=np.float64), (z**2).mean(axis=(1, 2), dtype=np.float64)
    x3, x4 = (z * z * z).mean(axis=(1, 2), dtype=np.float64), (z**2 * z**2).mean(axis=(1, 2), dtype=np.float64)
    within = z.var(axis=-1).mean(axis=1, dtype=np.float64)
    np.histogram(z, bins=1024)
    np.histogram(log_p / math.log(10), bins=240, range=(-12, 0))
    np.histogram(entropy, bins=200, range=(0, math.log(n)))
    np.histogram(jacobian, bins=200, range=(0, 0.5))
    of_rows = {
        "entropy": entropy,
        "entropy_fraction": entropy / math.log(n),
        "effective_keys": np.exp(entropy),
        "max_weight": largest,
        "one_hot_rows": largest > ONE_HOT,
        "sum_squared_weights": p2,
        "first_key_weight": p[:, :, 0],
        "first_key_over_uniform": n * p[:, :, 0],
        "jacobian_norm": jacobian,
        "jacobian_norm_squared": jacobian2,
        "dead_rows": jacobian < DEAD,
        "weight_times_complement": (1 - p2) / n,
        "grad_q_mean": norms[:, Shape(*z.shape).differentiated],  # of the gradients of all rows
        "saturation": z.std(axis=-1) / math.sqrt(2 * math.log(n)),
        "logit_within_3sd": (np.abs(z) <= band).mean(axis=-1),
    }
    return {
        "logit_mean": _jackknife(_mean, x1),
        "logit_variance": _jackknife(_variance, x1, x2, skewed=True),
        "logit_std": _jackknife(_std, x1, x2, skewed=True),
        "logit_excess_kurtosis": _jackknife(_excess_kurtosis, x1, x2, x3, x4, skewed=True),
        "logit_variance_within_row": _jackknife(_mean, within),
        "row_mean_share": _jackknife(_row_mean_share, x1, x2, within, skewed=True),
        "logit_min": (float(z.min()), math.nan),
        "logit_max": (float(z.max()), math.nan),
        **{name: _jackknife(_mean, rows.mean(axis=1, dtype=np.float64)) for name, rows in of_rows.items()},
    }


def _mean(x: FloatArray) -> FloatArray:
    return x


def _variance(x1: FloatArray, x2: FloatArray) -> FloatArray:
    return x2 - x1**2


def _std(x1: FloatArray, x2: FloatArray) -> FloatArray:
    return np.sqrt(_variance(x1, x2))


def _row_mean_share(x1: FloatArray, x2: FloatArray, within: FloatArray) -> FloatArray:
    return 1 - within / _variance(x1, x2)


def _excess_kurtosis(x1: FloatArray, x2: FloatArray, x3: FloatArray, x4: FloatArray) -> FloatArray:
    return (x4 - 4 * x1 * x3 + 6 * x1**2 * x2 - 3 * x1**4) / _variance(x1, x2) ** 2 - 3


def _jackknife(
    function: Callable[..., FloatArray], *of_draws: FloatArray, skewed: bool = False
) -> tuple[float, float]:
    """Return the value and jackknife standard error of a function of means over draws, widened if it is skewed."""
    draws = len(of_draws[0])
    without = function(*[(x.sum() - x) / (draws - 1) for x in of_draws])
    value = draws * function(*[x.mean() for x in of_draws]) - (draws - 1) * without.mean()
    factor = skewness_factors(without) if skewed else 1.0
    return float(value), float(factor * np.sqrt((draws - 1) * without.var()))


def assert_same(measured: Mapping[str, tuple[float | None, float | None]], plain: Statistics) -> None:
    """Raise AssertionError unless both have the same values and standard errors."""
    for name, pair in plain.items():
        for ours, theirs in zip(measured[name], pair, strict=True):
            same = math.isnan(theirs) if ours is None else abs(ours - theirs) <= AGREE * max(1, abs(theirs))
            assert same, f"{name}: {ours} from the recompute, {theirs} from the eager version"
    assert plain.keys() >= {statistic.name for statistic in ALWAYS}, "statistics are missing"


def _warm_seconds(work: Callable[[], None]) -> float:
    """Return the time of a second run, whose caches are filled."""
    work()
    return _seconds(work)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
