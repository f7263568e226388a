"""What the app alone asks: measurements ahead of a key, and exact values along curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ...core.errors import ParameterError
from ...core.parameters import Parameters
from ...core.questions.lab import Measure
from ...core.questions.request import Cache, Priority, Request, Work

if TYPE_CHECKING:
    from ...core.theory.prediction import PredictedColumn

Place: TypeAlias = tuple[int, int]  # d_k and the number of keys


@dataclass(frozen=True)
class Prefetch(Measure):
    """Measure parameters that are likely to be requested next; the engine caches the answer."""

    PRIORITY: ClassVar[Priority] = Priority.PREFETCH


@dataclass(frozen=True)
class Predict(Request):
    """Predict both columns at each d_k and number of keys. Answered by ExactCells for each number of keys."""

    parameters: Parameters  # their values of what is swept are ignored
    d_ks: tuple[int, ...]
    n_keys: tuple[int, ...]

    def work(self, cache: Cache) -> Work:
        from ...core.theory.predict import predict

        for n in self.n_keys:
            found: dict[Place, Sequence[PredictedColumn]] = {}
            for d_k in self.d_ks:
                try:
                    found[d_k, n] = predict(replace(self.parameters, d_k=d_k, n_keys=n)).columns
                except ParameterError:  # no multiplier there
                    found[d_k, n] = ()
                yield None
            yield ExactCells(found)


@dataclass(frozen=True, eq=False)
class ExactCells:
    """The exact values of both columns at some places; none where a rule has no multiplier."""

    cells: Mapping[Place, Sequence[PredictedColumn]]


@dataclass(frozen=True)
class PredictEntropy(Predict):
    """Predict what the curves of entropy in the Lab show."""
