"""Linear interpolation at a few points without NumPy, which may not be loaded and would take longer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


def interpolated(at: Iterable[float], x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Interpolate linearly between the points (x, y) at each `at`, like `numpy.interp`; x must not decrease."""
    first, last = x[0], x[-1]
    found: list[float] = []
    for each in at:
        if first <= each < last:
            after = bisect_right(x, each)
            x0, y0 = x[after - 1], y[after - 1]
            found.append(y0 + (y[after] - y0) * (each - x0) / (x[after] - x0))
        else:
            found.append(y[0] if each < first else y[-1])
    return found
