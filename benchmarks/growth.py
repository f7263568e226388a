"""Which noise seems to grow in `attn-tui watch`, and how soon growth is told.

Prints the looks at runs of 1,024 heads without growth that foretell some, and for a head that begins to grow among
noise, the numbers until it is told and until it passes the limit.
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise

import numpy as np
from attn_tui.core.arrays import FloatArray
from attn_tui.core.watching.offenders import slopes

HEADS, COUNTS, BEFORE = 1024, (8, 16, 32), 40
NOISE = {"independent": 0.0, "autocorrelated 0.5": 0.5, "autocorrelated 0.9": 0.9, "random walk": 1.0}
GROWTHS = ((1.4, 0.03), (1.4, 0.1), (2.0, 0.05), (1.1, 0.02))  # per 10 numbers, and the noise


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print(f"looks of {given.runs} that foretell growth of noise, at {COUNTS} numbers of {HEADS} heads")
    for name, likeness in NOISE.items():
        found = [sum(alarms(count, likeness, rng) for _ in range(given.runs)) for count in COUNTS]
        print(f"  {name:20}", *(f"{each:6}" for each in found))
    print("numbers of growth from 10 until it is told (median and most of 20 runs) and until it passes 100")
    for growth, size in GROWTHS:
        told = [delay(growth, size, rng) for _ in range(20)]
        passes = 10 * math.log(10) / math.log(growth)
        print(f"  x {growth} per 10, noise {size:4}: {np.median(told):6.0f} {max(told):6.0f} {passes:6.0f}")


def noise(count: int, heads: int, likeness: float, rng: np.random.Generator) -> FloatArray:
    """Return numbers without growth, [step, head], of which each resembles the one before."""
    found = rng.normal(size=(count, heads))
    found[0] /= math.sqrt(1 - min(likeness, 0.99) ** 2)
    for before, after in pairwise(found):
        after += likeness * before
    return found


def alarms(count: int, likeness: float, rng: np.random.Generator) -> bool:
    """Return whether a head of a run of noise seems to grow."""
    return bool((slopes(np.arange(float(count)), noise(count, HEADS, likeness, rng))[0] > 0).any())


def delay(growth: float, size: float, rng: np.random.Generator) -> float:
    """Return the numbers until a head that grows among noise is told; infinite if it is not."""
    most = 100
    logits = math.log(10) + size * noise(BEFORE + most, HEADS, 0.0, rng)
    logits[BEFORE:, 0] += np.arange(most) / 10 * math.log(growth)
    for end in range(BEFORE + 1, BEFORE + most):
        some = slice(max(end - COUNTS[-1], 0), end)
        slope, span = slopes(np.arange(some.start, float(end)), logits[some])
        if slope[0] > 0 and math.log(100) - logits[end - 1, 0] <= 10 * span[0] * slope[0]:
            return end - BEFORE
    return math.inf


if __name__ == "__main__":
    main()
