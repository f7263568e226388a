"""The numbers of the formats, from the library that declares them."""

from typing import Any

import ml_dtypes
import numpy as np
from attn_tui.core.attention.formats import FORMATS


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def all_numbers(name: str) -> Any:
    """Every finite number of a format, in order, and whether its last bit is 0."""
    bits = np.arange(1 << FORMATS[name].bits).astype(f"uint{FORMATS[name].bits}")
    with np.errstate(invalid="ignore"):
        numbers = bits.view(dtype_of(name)).astype(np.float64)
    kept = np.isfinite(numbers) & ~((numbers == 0) & np.signbit(numbers))
    order = np.argsort(numbers[kept])
    return numbers[kept][order], (bits[kept][order] & 1) == 0
