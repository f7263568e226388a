"""Axes: the mapping between values and positions, round ticks, and their labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..glyphs import Glyphs
from ..numbers import power, signed

_NEAR_ZERO = 0.7  # an axis starts at 0 if its smallest value is below this share of its largest


class Axis(NamedTuple):
    """An axis from `low` to `high`: linear, or logarithmic if `base` is 2 or 10."""

    low: float
    high: float
    base: int = 0

    def place(self, value: float) -> float | None:
        """Return the position of a value: 0 at `low`, 1 at `high`; None if it has no logarithm but needs one."""
        if not self.base:
            return (value - self.low) / (self.high - self.low)
        return self._log_ratio(value) / self._log_ratio(self.high) if value > 0 else None

    def value(self, place: float) -> float:
        """Return the value at a position."""
        if not self.base:
            return self.low + place * (self.high - self.low)
        return math.exp(math.log(self.low) + place * self._log_ratio(self.high))

    def _log_ratio(self, value: float) -> float:
        return math.log(value) - math.log(self.low)

    def ticks(self, most: int) -> list[float]:
        """Return round, evenly spaced values: as many as possible up to `most`, at least one."""
        return next(values for values in self._candidates() if 0 < len(values) <= max(most, 1))

    def _candidates(self) -> Iterator[list[float]]:
        """Yield lists of ticks, each with no more than the one before."""
        if self.base:
            exponents = range(
                _exponent(self.low, self.base, math.floor), _exponent(self.high, self.base, math.ceil) + 1
            )
            if self.base == 10:
                yield self._inside(10.0**exponent * factor for exponent in exponents for factor in (1, 2, 5))
            for stride in range(1, len(exponents)):
                yield self._inside(float(self.base) ** n for n in exponents if n % stride == 0)
        else:
            finest = math.floor(math.log10((self.high - self.low) / 100))
            for exponent, factor in itertools.product(range(finest, finest + 4), (1, 2, 5)):
                step = factor * 10.0**exponent
                first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
                yield [number * step for number in range(first, last + 1)]
        yield [self.low]

    def _inside(self, values: Iterable[float]) -> list[float]:
        return [value for value in values if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def axis_over(values: Sequence[float], base: int = 0) -> Axis:
    """Return an axis with round ends that covers these values; with a `base`, they must be positive."""
    low, high = min(values), max(values)
    if base:
        low, high = _round_number(low, base, math.floor), _round_number(high, base, math.ceil)
        return Axis(low, max(high, low * base), base)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    if 0 < low < _NEAR_ZERO * high:
        low = 0.0
    elif _NEAR_ZERO * low < high < 0:
        high = 0.0
    return Axis(*nice_range(low, high))


def nice_range(low: float, high: float) -> tuple[float, float]:
    """Return the range widened to round numbers, so that small changes of the data do not move the axis."""
    size = max(high - low, abs(high) * 1e-6, 1e-12)
    step = 10.0 ** math.floor(math.log10(size / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if size / (step * factor) <= 8)
    return math.floor(low / step) * step, math.ceil(high / step) * step


def tick_labels(ticks: Sequence[float], axis: Axis, glyphs: Glyphs) -> list[str]:
    """Return the labels of ticks: enough digits to tell neighbours apart, or powers of ten."""
    largest = max(map(abs, ticks))
    # Ticks on a logarithmic axis, and a single tick, are round numbers; others are multiples of their step.
    round_numbers = bool(axis.base) or len(ticks) < 2
    step = 0.0 if round_numbers else ticks[1] - ticks[0]
    tiny = min(map(abs, ticks)) < 1e-3 if round_numbers else step < 1e-3 and largest < 0.01
    if largest >= 1e5 or (tiny and largest):
        return [_scientific(value, glyphs) for value in ticks]
    return [signed(f"{value:.{_decimals(step or value)}f}", glyphs) for value in ticks]


def _decimals(value: float) -> int:
    """Return how many decimals a round number needs."""
    return next((digits for digits in range(12) if abs(round(value, digits) - value) <= 1e-6 * abs(value)), 12)


def _scientific(value: float, glyphs: Glyphs) -> str:
    """Return `10⁻⁶`, `2·10⁵` or `-5e-7`; numbers from 1 to 10 have no exponent. Twelve digits are exact for ticks."""
    exponent = math.floor(math.log10(abs(value)) + 1e-9) if value else 0
    factor = f"{value / 10.0**exponent:.12g}"
    if glyphs.ascii:
        return f"{factor}e{exponent}" if exponent else factor
    if not exponent:
        return factor.replace("-", "−")
    head = {"1": "", "-1": "−"}.get(factor, factor.replace("-", "−") + "·")
    return head + power(exponent, glyphs)


def _round_number(value: float, base: int, rounding: Callable[[float], int]) -> float:
    """Return the nearest power of the base below or above; for base 10, also 2 or 5 times a power."""
    power = float(base) ** _exponent(value, base, math.floor)
    candidates = [power * factor for factor in ((1, 2, 5, 10) if base == 10 else (1, base))]
    if rounding is math.floor:
        return max(number for number in candidates if number <= value * (1 + 1e-9))
    return min(number for number in candidates if number >= value * (1 - 1e-9))


def _exponent(value: float, base: int, rounding: Callable[[float], int]) -> int:
    """Return the logarithm of a value, rounded; an integer within rounding error stays that integer."""
    exponent = math.log(value, base)
    return round(exponent) if abs(exponent - round(exponent)) < 1e-9 else rounding(exponent)
