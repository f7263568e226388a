"""Round numbers: bounds in words, and powers of two."""

from __future__ import annotations

import math
from typing import Literal


def format_bound(bound: float) -> str:
    """Write a bound: whole numbers in full, others in %g."""
    return f"{bound:.0f}" if bound == int(bound) else f"{bound:g}"


def next_power_of_two(number: float, direction: Literal[-1, 1]) -> float:
    """Return the nearest power of two strictly above or below a number; above 0 it is 1, and below 0."""
    if number <= 0:
        return 1.0 if direction > 0 else 0.0
    if direction > 0:
        return 2.0 ** (math.floor(math.log2(number)) + 1)
    return 2.0 ** (math.ceil(math.log2(number)) - 1)
