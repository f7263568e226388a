"""Axes: from a value to its place and back, round ticks and their labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from .glyphs import Glyphs
from .numbers import power, signed

_FAR = 0.7  # an axis begins at 0 unless all its values lie in its upper third


class Axis(NamedTuple):
    """From low to high in equal steps or, with a base of 2 or 10, in equal factors."""

    low: float
    high: float
    base: int = 0

    def place(self, value: float) -> float | None:
        """0 at the low end, 1 at the high one, and on beyond them; None for what a logarithm does not have."""
        if not self.base:
            return (value - self.low) / (self.high - self.low)
        return self._factors(value) / self._factors(self.high) if value > 0 else None

    def value(self, place: float) -> float:
        """What stands at a place."""
        if not self.base:
            return self.low + place * (self.high - self.low)
        return math.exp(math.log(self.low) + place * self._factors(self.high))

    def _factors(self, value: float) -> float:
        return math.log(value) - math.log(self.low)

    def ticks(self, most: int) -> list[float]:
        """Round values, evenly spread: as many as there can be up to this number, and one at least."""
        return next(values for values in self._ever_fewer() if 0 < len(values) <= max(most, 1))

    def _ever_fewer(self) -> Iterator[list[float]]:
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
    """An axis with round ends over these values; with a base, they are above 0."""
    low, high = min(values), max(values)
    if base:
        low, high = _round_factor(low, base, math.floor), _round_factor(high, base, math.ceil)
        return Axis(low, max(high, low * base), base)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    if 0 < low < _FAR * high:
        low = 0.0
    elif _FAR * low < high < 0:
        high = 0.0
    return Axis(*nice_range(low, high))


def nice_range(low: float, high: float) -> tuple[float, float]:
    """The range widened to round numbers, so that an axis stands still while its data moves a little."""
    size = max(high - low, abs(high) * 1e-6, 1e-12)
    step = 10.0 ** math.floor(math.log10(size / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if size / (step * factor) <= 8)
    return math.floor(low / step) * step, math.ceil(high / step) * step


def tick_labels(ticks: Sequence[float], axis: Axis, glyphs: Glyphs) -> list[str]:
    """The values of ticks: as many digits as tell neighbours apart, powers of ten where those are too many."""
    largest = max(map(abs, ticks))
    # Ticks of equal factors, and a single one, are round numbers by themselves; others are multiples of their step.
    alone = bool(axis.base) or len(ticks) < 2
    step = 0.0 if alone else ticks[1] - ticks[0]
    tiny = min(map(abs, ticks)) < 1e-3 if alone else step < 1e-3 and largest < 0.01
    if largest >= 1e5 or (tiny and largest):
        return [_scientific(value, step, glyphs) for value in ticks]
    return [signed(f"{value:.{_decimals(step or value)}f}", glyphs) for value in ticks]


def _decimals(value: float) -> int:
    """How many digits after the point a round number needs."""
    return next((many for many in range(12) if abs(round(value, many) - value) <= 1e-6 * abs(value)), 12)


def _scientific(value: float, step: float, glyphs: Glyphs) -> str:
    """`10⁻⁶`, `2·10⁵`, `-5e-7`; numbers from 1 to 10 as they are. With a step, in the digits that it has."""
    exponent = math.floor(math.log10(abs(value)) + 1e-9) if value else 0
    digits = exponent - math.floor(math.log10(step) + 1e-9) + 2 if step else 3
    factor = f"{value / 10.0**exponent:.{max(digits, 3)}g}"
    if glyphs.ascii:
        return f"{factor}e{exponent}" if exponent else factor
    if not exponent:
        return factor.replace("-", "−")
    head = {"1": "", "-1": "−"}.get(factor, factor.replace("-", "−") + "·")
    return head + power(exponent, glyphs)


def _round_factor(value: float, base: int, whole: Callable[[float], int]) -> float:
    """The next power of the base below or above; of ten, or 2 or 5 of them."""
    power = float(base) ** _exponent(value, base, math.floor)
    factors = [power * factor for factor in ((1, 2, 5, 10) if base == 10 else (1, base))]
    if whole is math.floor:
        return max(factor for factor in factors if factor <= value * (1 + 1e-9))
    return min(factor for factor in factors if factor >= value * (1 - 1e-9))


def _exponent(value: float, base: int, whole: Callable[[float], int]) -> int:
    """The logarithm of a value as a whole number; what is one but for rounding stays it."""
    exponent = math.log(value, base)
    return round(exponent) if abs(exponent - round(exponent)) < 1e-9 else whole(exponent)
