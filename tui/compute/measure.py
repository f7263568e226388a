"""The measurement with its theory that the Lab shows, and the Sweep at its cursor; and the Lab's exact curve."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ...core.errors import ParameterError
from ...core.parameters import Parameters
from ...core.statistics.catalogue import EVERY, OF_FIRST_VIEW
from ...core.statistics.measurement import HISTOGRAMS
from .question import Question, parameter_options
from .request import PROGRESS_INTERVAL, Cache, Priority, Progress, Request, Work

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ...core.statistics.measurement import Measurement, RowWeights
    from ...core.tables.table import Table
    from ...core.theory.prediction import PredictedColumn, Theory

Place: TypeAlias = tuple[int, int]  # d_k and the number of keys
PARTIAL_INTERVAL = 0.5  # seconds between answers from the draws measured so far


@dataclass(frozen=True)
class Measure(Question["Answer"]):
    """Measure these parameters. Answered by Answer; long measurements also by Progress and by partial Answers.

    Unless it is `full`, an answer has what the Lab's first view shows: the statistics OF_FIRST_VIEW, and the
    histograms of logits and weights.
    """

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    parameters: Parameters
    full: bool = True

    def work(self, cache: Cache) -> Generator[object, None, Answer]:
        from ...core.lab.experiment import row_weights, stream
        from ...core.theory.predict import theory_of

        last_progress = last_answer = time.monotonic()
        answered = 0  # draws
        draws = cache.draws(self.parameters)
        statistics = EVERY if self.full else OF_FIRST_VIEW
        histograms = HISTOGRAMS if self.full else HISTOGRAMS[:2]
        for step in stream(self.parameters, draws, statistics, histograms=histograms):
            now = time.monotonic()
            partial = int(step.draws) > answered and now - last_answer > PARTIAL_INTERVAL
            measurement = step.measurement() if partial or step.fraction == 1 else None
            if measurement is not None:
                last_answer, answered = now, measurement.draws
                row = row_weights(self.parameters, draws)
                answer = Answer(self.parameters, measurement, theory_of(measurement), row, self.full)
                if step.fraction == 1:
                    return answer
                yield answer
            elif now - last_progress > PROGRESS_INTERVAL:
                last_progress = now
                yield Progress(step.fraction)
            else:
                yield None
        raise AssertionError("a run ends with a complete step")

    @property
    def words(self) -> Sequence[str]:
        return ["report", *parameter_options(self.parameters)]

    @property
    def file_name(self) -> str:
        return f"lab-d{self.parameters.d_k}"

    def table(self, answer: Answer) -> Table[Any]:
        from ...core.tables.lab import report_table

        return report_table(answer.measurement, answer.theory.prediction)

    def code(self, answer: Answer, dialect: Dialect) -> str:
        from ...core.program.lab import report_code

        return report_code(answer.measurement, dialect, self.line())


@dataclass(frozen=True)
class Prefetch(Measure):
    """Measure parameters that are likely to be requested next; the engine caches the answer."""

    PRIORITY: ClassVar[Priority] = Priority.PREFETCH


@dataclass(frozen=True, eq=False)
class Answer:
    """A measurement, possibly of the first draws only, with its theory."""

    parameters: Parameters
    measurement: Measurement[Parameters]
    theory: Theory
    row: tuple[RowWeights, ...] = ()  # of one query, under A and B; empty if the components are not kept
    full: bool = True


@dataclass(frozen=True)
class Predict(Request):
    """Predict both columns at each d_k and number of keys. Answered by Exact for each number of keys."""

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
            yield Exact(found)


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact values of both columns at some places; none where a rule has no multiplier."""

    cells: Mapping[Place, Sequence[PredictedColumn]]


@dataclass(frozen=True)
class PredictEntropy(Predict):
    """Predict what the curves of entropy in the Lab show."""
