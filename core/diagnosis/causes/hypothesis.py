"""One hypothesis about what was done to a head: an edit of the model of what its file says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

import numpy as np

from ...arrays import FloatArray
from ...message import message
from ..fitting.model import LogitModel
from ..results import StageName
from ..subject import Kind, Subject

Edit: TypeAlias = "Callable[[Subject, LogitModel], LogitModel]"
Scores: TypeAlias = "Callable[[Subject], FloatArray]"


@dataclass(frozen=True)
class Hypothesis:
    """One thing that may have been done, or several. Fits start at the multiplier times `inner`, and others."""

    words: str
    edit: Edit
    cause: str = ""
    stage: StageName = "qk"  # at which it acts
    also: tuple[str, ...] = ()
    inner: tuple[float, ...] = (1.0,)
    outer: tuple[tuple[float, ...], ...] = ((),)  # starts that are tried
    softcaps: tuple[float, ...] = ()  # the same, if it is free
    sinks: tuple[float, ...] = ()
    kinds: tuple[Kind, ...] = ("weights", "lse", "o")  # evidence that can tell
    whole: bool = False  # whether all rows are needed
    parts: tuple[Hypothesis, ...] = ()  # of several
    told: Callable[[FloatArray], str] | None = None  # the words with the numbers that were fitted, if it has any

    @property
    def each(self) -> tuple[Hypothesis, ...]:
        """The single things that were done."""
        return self.parts or (self,)

    @property
    def extra(self) -> int:
        """Free coefficients beyond the multiplier."""
        return len(self.inner) - 1 + len(self.outer[0]) + bool(self.softcaps) + bool(self.sinks)

    def build(self, subject: Subject) -> LogitModel:
        """Return the model of a head for which this was done."""
        return self.edit(subject, as_stored(subject))

    def starts(self, multiplier: float) -> Iterator[FloatArray]:
        """Yield coefficients to start from."""
        for outer in self.outer:
            for bends in product(*(starts for starts in (self.softcaps, self.sinks) if starts)):
                yield np.array([*(multiplier * factor for factor in self.inner), *outer, *bends])


def both(first: Hypothesis, second: Hypothesis) -> Hypothesis:
    """Return the hypothesis that one thing was done and then another, which does not change what the first did."""

    def edit(subject: Subject, model: LogitModel) -> LogitModel:
        return second.edit(subject, first.edit(subject, model))

    return Hypothesis(
        message("{first}; {second}", first=first.words, second=second.words),
        edit,
        first.cause,
        first.stage,
        inner=max(first.inner, second.inner, key=len),
        outer=tuple(one + other for one, other in product(first.outer, second.outer)),
        softcaps=first.softcaps + second.softcaps,
        sinks=first.sinks + second.sinks,
        whole=first.whole or second.whole,
        parts=(*first.each, *second.each),
    )


def rescored(scores: Scores) -> Edit:
    """Return the edit that takes other scores [texts, rows, keys] of q and k."""
    return lambda subject, model: replace(model, inner=(in_rows(subject, scores(subject)),))


def as_stored(subject: Subject) -> LogitModel:
    """Return the model of what the file says, with a free multiplier."""
    return LogitModel(
        (in_rows(subject, subject.scores),),
        bias=subject.bias,
        seen=subject.seen,
        softcap=subject.facts.softcap,
        sink=subject.facts.sink,
    )


def in_rows(subject: Subject, scores: FloatArray) -> FloatArray:
    """Return scores [texts, rows, keys] times what the file says of rows."""
    return scores if subject.row_scales is None else scores * subject.row_scales[..., np.newaxis]
