"""The request of the Watch pane: to look at a run again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.questions.request import BATCH_INTERVAL, Cache, Work
from ....core.questions.watch import WatchRun

if TYPE_CHECKING:
    from ....core.watching.poll import Cursor
    from ....core.watching.snapshot import RunSnapshot
    from ....core.watching.step import WatchStep


@dataclass(frozen=True)
class LookAtRun(WatchRun):
    """Read what is new of a run. Answered by RunNews, again and again while there is more to read."""

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
                yield RunNews(None, held.changes, notes, news.waiting)
            now = time.monotonic()
            is_due = not more or now - last_sent > 5 * BATCH_INTERVAL
            if is_due and self.known != (held.changes, self.at, self.baseline):
                last_sent = now
                yield RunNews(snapshot(held.history, self.limit, self.at, baseline), held.changes)
            else:
                yield None


@dataclass(eq=False)
class _Held:
    """What was read of a run, in the engine's process."""

    run: Path
    limit: float  # of the peaks in the history
    cursor: Cursor
    history: tuple[WatchStep, ...] = ()
    changes: int = 0  # looks that found something
    baseline: WatchStep | None = None  # the last one asked for, which the history may have dropped

    def compared_with(self, number: int | None, since: int | None) -> WatchStep | None:
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
class RunNews:
    """What a look at the run found."""

    shown: RunSnapshot | None  # None: nothing changed
    changes: int
    notes: tuple[str, ...] = ()
    waiting: str = ""
