"""The request of the Watch pane: to look at a run again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ....core.watching.limits import LIMIT
from ...compute.question import Question
from ...compute.request import BATCH_INTERVAL, Cache, Priority, Work

if TYPE_CHECKING:
    from ....core.program.text import Dialect
    from ....core.tables.table import Table
    from ....core.watching.poll import Cursor
    from ....core.watching.snapshot import Snapshot
    from ....core.watching.step import Step

Head: TypeAlias = tuple[int, int]  # layer, head


@dataclass(frozen=True)
class LookAtRun(Question["tuple[Snapshot, Head]"]):
    """Read what is new of a run. Answered by Looked, again and again while there is more to read."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    run: Path
    limit: float = LIMIT
    at: int | None = None  # the step to show; None: the newest
    baseline: int | None = None  # the step to compare with
    known: tuple[int, int | None, int | None] | None = None  # looks, step and baseline that the pane shows already

    def work(self, cache: Cache) -> Work:
        from ....core.watching.poll import added, poll
        from ....core.watching.snapshot import snapshot

        held = _held(cache, self.run, self.limit)
        more, last_sent = True, 0.0
        while more:
            news = poll(self.run, held.cursor, () if self.baseline is None else (self.baseline,), self.limit)
            held.cursor, more = news.cursor, news.more
            held.history = added(held.history, news.steps, news.since, self.limit)
            baseline = held.compared_with(self.baseline, news.since)
            notes = (*news.notes, *(note for step in news.steps for note in step.notes))
            held.changes += bool(news.steps)
            if notes or (news.waiting and not held.history):
                yield Looked(None, held.changes, notes, news.waiting)
            now = time.monotonic()
            is_due = not more or now - last_sent > 5 * BATCH_INTERVAL
            if is_due and self.known != (held.changes, self.at, self.baseline):
                last_sent = now
                yield Looked(snapshot(held.history, self.limit, self.at, baseline), held.changes)
            else:
                yield None

    @property
    def words(self) -> Sequence[str]:
        words = ["watch", str(self.run), "--once"]
        words += ["--max-logit", f"{self.limit:g}"] if self.limit != LIMIT else []
        words += ["--step", str(self.at)] if self.at is not None else []
        return [*words, *(["--baseline", str(self.baseline)] if self.baseline is not None else [])]

    @property
    def file_name(self) -> str:
        return "watch" if self.at is None else f"watch-step{self.at}"

    def table(self, answer: tuple[Snapshot, Head]) -> Table[Any]:
        from ....core.tables.runs import watch_table

        return watch_table(str(self.run), answer[0])

    def code(self, answer: tuple[Snapshot, Head], dialect: Dialect) -> str:
        from ....core.program.library import watched_code

        shown, (layer, head) = answer
        return watched_code(self.run, shown, layer, head, self.line())


@dataclass(eq=False)
class _Held:
    """What was read of a run, in the engine's process."""

    run: Path
    limit: float  # of the peaks in the history
    cursor: Cursor
    history: tuple[Step, ...] = ()
    changes: int = 0  # looks that found something
    baseline: Step | None = None  # the last one asked for, which the history may have dropped

    def compared_with(self, number: int | None, since: int | None) -> Step | None:
        """Return the step with this number; of a run that was started over, forget it from step `since` on."""
        held = self.baseline
        if held is None or held.step != number or (since is not None and held.step >= since):
            self.baseline = next((step for step in self.history if step.step == number), None)
        return self.baseline


def _held(cache: Cache, run: Path, limit: float) -> _Held:
    from ....core.watching.poll import START

    held: Any = cache.by_kind.get(LookAtRun)
    if not isinstance(held, _Held) or (held.run, held.limit) != (run, limit):
        held = cache.by_kind[LookAtRun] = _Held(run, limit, START)
    return held


@dataclass(frozen=True, eq=False)
class Looked:
    """What a look at the run found."""

    shown: Snapshot | None  # None: nothing changed
    changes: int
    notes: tuple[str, ...] = ()
    waiting: str = ""
