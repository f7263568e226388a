"""FORMATS: the one declaration of each number format that attention can be computed in."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from ..errors import InputError, not_one_of


class NumberFormat(NamedTuple):
    """One floating-point format."""

    name: str  # in NumPy and ml_dtypes
    word: str  # as shown
    bits: int
    mantissa: int  # stored bits: the next number above 1 is 1 + 2^-mantissa
    min_exponent: int  # of the smallest normal number; the spacing is constant below 2^min_exponent
    largest: float  # finite number
    saturates: bool = False  # whether larger numbers are clamped to `largest` instead of becoming ∞

    @property
    def rounded(self) -> bool:
        """Whether it has fewer bits than the accumulator, so that numbers are rounded to it."""
        return self.bits < 32

    @property
    def scaled(self) -> bool:
        """Whether a tensor is stored in it with a scale that takes its largest element to `largest`."""
        return self.bits == 8

    @property
    def headroom(self) -> int:
        """The power of two that a fused kernel multiplies e^(x − max) by before rounding it to the format.

        FlashAttention-3 takes 2^8 for E4M3, "to use more of the FP8 range (instead of just [0, 1]) to reduce
        underflow" (Dao-AILab/flash-attention, hopper/softmax.h, Max_offset); 2^15 is the same for E5M2.
        """
        return math.floor(math.log2(self.largest)) if self.scaled else 0

    @property
    def exp_limit(self) -> float:
        """The logit above which its exponential, with nothing subtracted, overflows."""
        return math.log(self.largest)

    @property
    def accumulator(self) -> Literal["float32", "float64"]:
        """The dtype of sums and of softmax."""
        return "float64" if self.name == "float64" else "float32"


_FORMATS = (
    NumberFormat("float64", "float64", 64, 52, -1022, 1.7976931348623157e308),
    NumberFormat("float32", "float32", 32, 23, -126, 3.4028234663852886e38),
    NumberFormat("float16", "float16", 16, 10, -14, 65_504.0),
    NumberFormat("bfloat16", "bfloat16", 16, 7, -126, 3.3895313892515355e38),
    NumberFormat("float8_e4m3fn", "float8 E4M3", 8, 3, -6, 448.0, saturates=True),
    NumberFormat("float8_e5m2", "float8 E5M2", 8, 2, -14, 57_344.0, saturates=True),
)

FORMATS: dict[str, NumberFormat] = {form.name: form for form in _FORMATS}


def number_format(name: str) -> NumberFormat:
    """Return a format by name; raise InputError if it is unknown."""
    if name not in FORMATS:
        raise InputError("number format: {reason}", reason=not_one_of(name, FORMATS))
    return FORMATS[name]
