"""Number formats in programs: how numbers are rounded to them, and how tensors are stored."""

from __future__ import annotations

from ....attention.formats import number_format
from ....parameters import ROUNDED, Parameters
from ..program import Dialect, Piece

_NUMPY = {"float16": "np.float16", "bfloat16": "ml_dtypes.bfloat16", "float8_e4m3fn": "ml_dtypes.float8_e4m3fn",
          "float8_e5m2": "ml_dtypes.float8_e5m2"}  # fmt: skip


def is_rounded(p: Parameters) -> bool:
    """Return whether numbers are rounded to a format of less than 32 bits."""
    return p.precision in ROUNDED


def is_eager(p: Parameters) -> bool:
    """Return whether scores, logits and weights are rounded, and not only what is multiplied."""
    return is_rounded(p) and p.arithmetic == "eager"


def rounding_functions(p: Parameters, dialect: Dialect) -> Piece:
    """Return the functions that round numbers and store tensors, if the format needs them."""
    if not is_rounded(p):
        return Piece("", defines=True)
    if dialect == "python":
        cast, back = f".astype({_NUMPY[p.precision]})", ".astype(np.float32)"
        largest = "np.abs(x).max((-2, -1), keepdims=True)"
    else:
        cast, back = f".to(torch.{p.precision})", ".float()"
        largest = "x.abs().amax((-2, -1), keepdim=True)"
    text = f"def rounded(x):\n    return x{cast}{back}"
    form = number_format(p.precision)
    if form.scaled:
        text += (
            f"\n\n\ndef stored(x):  # with a scale that takes the largest element of a tensor to {form.largest:g}\n"
            f"    size = {largest} / {form.largest:g}\n"
            "    return rounded(x / size) * size"
        )
    return Piece(text, defines=True)


def store_function(p: Parameters) -> str:
    """Return the name of the function that stores a tensor."""
    return "stored" if number_format(p.precision).scaled else "rounded"
