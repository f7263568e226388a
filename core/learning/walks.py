"""Scores as sums that grow product by product: random walks, and walks with a slope where q and k are aligned.

Does not need NumPy: a picture has a few hundred products, and the process that paints draws them itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

Walk: TypeAlias = tuple[float, ...]  # the sum of the first 0, 1, … d_k products

# The items of which the picture shows walks, with the correlation of q and k in those of the second kind.
CORRELATIONS: Mapping[str, float] = {"score": 0.0, "laws": 0.5, "grow-like-d": 1.0}
D_K, WALKS, ALIGNED = 64, 12, 6  # components, and how many walks of unrelated and of aligned vectors a picture has
_SEED = 3  # a draw in which walks neither all end above 0 nor cross the standard deviation early


@lru_cache(maxsize=8)
def draw_walks(count: int, correlation: float = 0.0, d_k: int = D_K, seed: int = _SEED) -> tuple[Walk, ...]:
    """Return the partial sums of q·k for pairs of standard normal vectors whose matching components correlate.

    The sum of t products has mean correlation·t and variance (1 + correlation²)·t.
    """
    rng, rest = random.Random(seed), math.sqrt(1 - correlation**2)

    def product() -> float:
        q = rng.gauss(0, 1)
        return q * (correlation * q + rest * rng.gauss(0, 1))

    return tuple((0.0, *accumulate(product() for _ in range(d_k))) for _ in range(count))
