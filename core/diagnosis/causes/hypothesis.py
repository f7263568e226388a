"""One hypothesis about what was done to a head, and the model of what its file says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ..fitting.model import Model
from ..subject import Kind, Subject


@dataclass(frozen=True)
class Hypothesis:
    """One thing that may have been done. The coefficients start at the multiplier times `inner`, then `others`."""

    cause: str
    words: str
    build: Callable[[Subject], Model]
    also: tuple[str, ...] = ()
    inner: tuple[float, ...] = (1.0,)
    others: tuple[tuple[float, ...], ...] = ((),)  # starts that are tried
    kinds: tuple[Kind, ...] = ("weights", "lse", "o")  # evidence that can tell
    whole: bool = False  # whether all rows are needed

    @property
    def extra(self) -> int:
        """Free coefficients beyond the multiplier."""
        return len(self.inner) - 1 + len(self.others[0])


def as_stored(subject: Subject) -> Model:
    """Return the model of what the file says, with a free multiplier."""
    return Model(
        (in_rows(subject, subject.scores),),
        bias=subject.bias,
        seen=subject.seen,
        softcap=subject.facts.softcap,
        sink=subject.facts.sink,
    )


def in_rows(subject: Subject, scores: FloatArray) -> FloatArray:
    """Return scores [texts, rows, keys] times what the file says of rows."""
    return scores if subject.row_scales is None else scores * subject.row_scales[..., np.newaxis]
