"""The question of the Lab: the statistics of random attention under A and B, with their theory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..parameters import Parameters
from ..statistics.catalogue import EVERY, OF_FIRST_VIEW
from ..statistics.measurement import HISTOGRAMS
from ..work.part import Part, Steps
from .question import Question, parameter_options
from .request import Priority

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..statistics.measurement import Measurement
    from ..tables.table import Table
    from ..theory.prediction import Theory

PARTIAL_INTERVAL = 0.5  # seconds between results of the draws measured so far


@dataclass(frozen=True, eq=False)
class Report:
    """A measurement, possibly of the first draws only, with its theory."""

    parameters: Parameters
    measurement: Measurement[Parameters]
    theory: Theory
    full: bool = True


def measure(p: Parameters, full: bool) -> Steps[Report]:
    """Measure parameters: all statistics, or those of the Lab's first view. The last report is of all draws."""
    from ..lab.experiment import stream
    from ..lab.scoring import last_draws
    from ..theory.predict import theory_of

    last, answered, draws = time.monotonic(), 0, last_draws(p)
    names, histograms = (EVERY, HISTOGRAMS) if full else (OF_FIRST_VIEW, HISTOGRAMS[:2])
    for step in stream(p, draws, names, histograms=histograms):
        due = int(step.draws) > answered and time.monotonic() - last > PARTIAL_INTERVAL
        measurement = step.measurement() if due or step.fraction == 1 else None
        if measurement is None:
            yield step.fraction, ()
        else:
            last, answered = time.monotonic(), measurement.draws
            yield step.fraction, (Report(p, measurement, theory_of(measurement), full),)


@dataclass(frozen=True)
class Measure(Question[Report]):
    """Measure these parameters: all statistics, or unless it is `full` what the Lab's first view shows."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    parameters: Parameters
    full: bool = True

    def parts(self) -> Sequence[Part[Report]]:
        return [Part(measure, (self.parameters, self.full), 1.0)]

    @property
    def words(self) -> Sequence[str]:
        return ["report", *parameter_options(self.parameters)]

    @property
    def file_name(self) -> str:
        return f"lab-d{self.parameters.d_k}"

    def table(self, answer: Report) -> Table[Any]:
        from ..tables.lab import report_table

        return report_table(answer.measurement, answer.theory.prediction)

    def code(self, answer: Report, dialect: Dialect) -> str:
        from ..program.lab import report_code

        return report_code(answer.measurement, dialect, self.line())
