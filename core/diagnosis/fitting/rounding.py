"""The rounding of number formats: how far apart their numbers are, and what evidence may have been rounded to."""

from __future__ import annotations

import numpy as np

from ...arrays import FloatArray
from ...attention.formats import FORMATS, NumberFormat
from ..subject import Evidence, Subject

# The standard deviation of a relative rounding error, over half a unit in the last place: mantissas are spread evenly
# in the logarithm, so the mean of 1/m² over 1 ≤ m < 2 is 0.541, and √(0.541/3) = 0.42.
SPREAD = 0.42
SINGLE = 2.0**-24
_FORMATS = {**FORMATS, "tfloat32": NumberFormat("tfloat32", "TF32", 19, 10, -126, FORMATS["float32"].largest)}
# Kernels on 16-bit inputs may use an approximate exponential: with that of PyTorch's flash attention on CPUs,
# log-sum-exps are up to 6e-5 off, and 4e-5 in the root mean square of rows with few large weights.
_APPROXIMATE = 4e-5


def unit(format: str) -> float:
    """Return half a unit in the last place of 1."""
    known = _FORMATS.get(format)
    return 2.0 ** -(known.mantissa + 1) if known else SINGLE


def spacing(values: FloatArray, format: str) -> FloatArray:
    """Return the distance between neighbouring numbers of the format at these values."""
    known = _FORMATS.get(format, FORMATS["float32"])
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponents - 1, known.min_exponent) - known.mantissa)


def smallest(format: str) -> float:
    """Return the smallest positive number of the format."""
    known = FORMATS[format] if format in FORMATS else FORMATS["float32"]
    return 2.0 ** (known.min_exponent - known.mantissa)


def is_short(format: str) -> bool:
    """Return whether the format has fewer bits than float32."""
    return unit(format) > SINGLE


def scores_format(subject: Subject, evidence: Evidence) -> str:
    """Return the format that logits may have been rounded to: the file's, else that of 16-bit weights and outputs."""
    if subject.facts.scores is not None:
        return subject.facts.scores
    if evidence.kind != "lse" and is_short(evidence.format) and is_short(subject.format):
        return evidence.format
    return "float32"


def approximation(subject: Subject) -> float:
    """Return the error of log-sum-exps that a kernel's approximate exponential makes."""
    return _APPROXIMATE if is_short(subject.format) else 0.0
