"""The question of the Train pane: what the scale does to learning, in races of rules."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..field import differing, words_of
from ..training.settings import RACE_FIELDS, RATES, Race
from ..training.snapshot import RaceSnapshot, snapshot
from ..work.part import Part, Steps
from .question import Question

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.table import Table

_INTERVAL = 0.1  # seconds between results of a race that runs
_STEP = 1e-6  # seconds of a step, for each component of a rule's seed; an estimate


def run_race(race: Race) -> Steps[RaceSnapshot]:
    """Train under all rules of a race; snapshots come while the curves grow, the last one has all of them."""
    from ..training.race import run

    last = 0.0
    for curves in run(race):
        due = curves.used is not None or (curves.done and time.monotonic() - last > _INTERVAL)
        yield curves.done / race.steps, (snapshot(curves),) if due else ()
        last = time.monotonic() if due else last


@dataclass(frozen=True)
class RunRace(Question[Sequence[RaceSnapshot]]):
    """Train under all rules of a race, and at other widths; in the app, a RaceSnapshot grows."""

    race: Race
    d_ks: tuple[int, ...] = ()  # of further races, as a command runs them

    @property
    def races(self) -> Iterator[Race]:
        """All races."""
        return (replace(self.race, d_k=d_k) for d_k in (self.race.d_k, *self.d_ks))

    def parts(self) -> Iterator[Part[RaceSnapshot]]:
        return (
            Part(run_race, (race,), _STEP * race.steps * race.seeds * race.d_k * len(race.rules))
            for race in self.races
        )

    def result(self, results: Sequence[RaceSnapshot]) -> Sequence[RaceSnapshot]:
        return [race for race in results if race.used is not None]

    @property
    def words(self) -> Sequence[str]:
        race = self.race
        words = ["train", "--d-k", ",".join(map(str, (race.d_k, *self.d_ks))), "--rules", ",".join(race.rules)]
        fields = RACE_FIELDS[1:]
        return [*words, *words_of(fields, differing(fields, race, Race(rate=RATES[race.optimiser])))]

    @property
    def file_name(self) -> str:
        return f"train-d{self.race.d_k}"

    def table(self, answer: Sequence[RaceSnapshot]) -> Table[Any]:
        from ..tables.runs import training_table

        return training_table(answer)

    def code(self, answer: Sequence[RaceSnapshot], dialect: Dialect) -> str:
        from ..program.training import training_code

        return training_code(answer, dialect, self.line())
