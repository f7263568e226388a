"""The request of the Train pane: to run a race."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.training.settings import RACE_FIELDS, RATES, Race, option_of
from ....core.training.snapshot import snapshot
from ...compute.question import Question
from ...compute.request import BATCH_INTERVAL, Cache, Work

if TYPE_CHECKING:
    from ....core.program.text import Dialect
    from ....core.tables.runs import Ended
    from ....core.tables.table import Table


@dataclass(frozen=True)
class RunRace(Question["Sequence[Ended]"]):
    """Train under all rules of a race. Answered by a Snapshot, again and again while the curves grow."""

    race: Race
    d_ks: tuple[int, ...] = ()  # of further races, as a command runs them

    def work(self, cache: Cache) -> Work:
        from ....core.training.race import run

        last_sent = 0.0
        for curves in run(self.race):
            now = time.monotonic()
            if curves.used is not None or (curves.done and now - last_sent > 2 * BATCH_INTERVAL):
                yield snapshot(curves)
                last_sent = time.monotonic()
            else:
                yield None

    @property
    def words(self) -> Sequence[str]:
        race = self.race
        words = ["train", "--d-k", ",".join(map(str, (race.d_k, *self.d_ks))), "--rules", ",".join(race.rules)]
        usual = Race(optimiser=race.optimiser, rate=RATES[race.optimiser])
        for field in RACE_FIELDS[1:]:
            value = getattr(race, field.name)
            if value != getattr(usual, field.name) or (field.name == "optimiser" and value != Race.optimiser):
                words += [option_of(field), field.format(value)]
        return words

    @property
    def file_name(self) -> str:
        return f"train-d{self.race.d_k}"

    def table(self, answer: Sequence[Ended]) -> Table[Any]:
        from ....core.tables.runs import training_table

        return training_table(answer)

    def code(self, answer: Sequence[Ended], dialect: Dialect) -> str:
        from ....core.program.training import training_code

        return training_code(answer, dialect, self.line())
