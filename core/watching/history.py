"""The steps of a run, in order, of bounded number: recent ones all, older ones thinned out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from .step import Step

KEPT = 1024  # steps at most


def added(history: tuple[Step, ...], steps: Iterable[Step], since: int | None = None) -> tuple[Step, ...]:
    """Return the history with these steps in their places; one that comes again replaces the earlier one.

    If the run was started over, the steps of the history from step `since` on are dropped first. Beyond KEPT steps,
    every second one of the older half is dropped, again and again; first and last stay.
    """
    found = [step for step in history if since is None or step.step < since]
    for step in steps:
        place = bisect_left(found, step.step, key=_number)
        if place < len(found) and found[place].step == step.step:
            found[place] = step
        else:
            found.insert(place, step)
        if len(found) > KEPT:
            half = len(found) // 2
            found[:half] = found[:half:2]
    return tuple(found)


def _number(step: Step) -> int:
    return step.step
