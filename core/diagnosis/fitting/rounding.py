"""The rounding of number formats: how far apart their numbers are, and what evidence may have been rounded to."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Arithmetic:
    """How logits may have been computed from q and k as stored."""

    scores: str  # the number format of scores and logits
    sides: str | None = None  # the format that q and k were rounded to once more, after a factor; None: not again


def arithmetics(subject: Subject, evidence: Evidence) -> tuple[Arithmetic, ...]:
    """Return the arithmetics that what the file says allows, the finest first.

    Weights and outputs of 16 bits mostly come from logits of 16 bits, while kernels return the log-sum-exp of logits
    in float32. q of 16 bits may have been multiplied and rounded again before it met k, and float32 may be TF32.
    """
    said, evidence_format = subject.facts.scores, evidence.format
    short, stored = is_short(subject.format), is_short(evidence_format)
    if said is not None:
        scores = [said]
    elif short:
        scores = [subject.format] if stored and evidence.kind != "lse" else ["float32", subject.format]
    else:
        scores = ["float32"]
    found = [Arithmetic(each) for each in scores]
    if short:
        found.append(Arithmetic(scores[-1], subject.format))
    elif said is None and stored:
        found.append(Arithmetic(evidence_format, evidence_format))
    elif scores[-1] == "float32":
        found.append(Arithmetic("float32", "tfloat32"))
    if said is None and short and subject.format != "bfloat16":
        found.append(Arithmetic("bfloat16"))
    return tuple(found)


def approximation(subject: Subject) -> float:
    """Return the error of log-sum-exps that a kernel's approximate exponential makes."""
    return _APPROXIMATE if is_short(subject.format) else 0.0
