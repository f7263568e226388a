"""The request of the Train pane: to run a race."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ....core.training.settings import Race
from ....core.training.snapshot import Snapshot
from ...compute.request import BATCH_INTERVAL, Cache, Request, Work


@dataclass(frozen=True)
class RunRace(Request):
    """Train under all rules of a race. Answered by Raced, again and again while the curves grow."""

    race: Race

    def work(self, cache: Cache) -> Work:
        from ....core.training.race import run
        from ....core.training.snapshot import snapshot

        last_sent = 0.0
        for curves in run(self.race):
            now = time.monotonic()
            if curves.used is not None or (curves.done and now - last_sent > 2 * BATCH_INTERVAL):
                yield Raced(snapshot(curves))
                last_sent = time.monotonic()
            else:
                yield None


@dataclass(frozen=True, eq=False)
class Raced:
    """A race so far."""

    snapshot: Snapshot
