"""Read a whole run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..blas import one_blas_thread
from ..errors import InputError
from ..message import message
from .limits import LIMIT
from .poll import START, added, poll
from .snapshot import Snapshot, snapshot
from .step import Step


def read_run(
    run: Path,
    limit: float = LIMIT,
    at: int | None = None,
    baseline: int | None = None,
    heard: Callable[[float | None, Sequence[str]], None] = lambda fraction, notes: None,
) -> Snapshot:
    """Return the newest step of a run, or step `at`, or the last one before it, beside another if `baseline` is one.

    `heard` is called with the finished fraction, None if it is unknown, and with notes, once a step is read. Raise
    InputError if there is no such step.
    """
    history: tuple[Step, ...] = ()
    cursor, more, waiting = START, True, ""
    beside: Step | None = None
    notes: list[str] = []
    with one_blas_thread():
        while more:
            news = poll(run, cursor, baseline)
            cursor, more, waiting = news.cursor, news.more, news.waiting
            history = added(history, news.steps)
            beside = next((step for step in news.steps if step.step == baseline), beside)
            notes += [*news.notes, *(note for step in news.steps for note in step.notes)]
            heard(news.fraction, notes if history else ())
            notes = [] if history else notes
    shown = snapshot(history, limit, at, beside)
    if shown is None:
        if notes:
            raise InputError("{run}: no step could be read; {note}", run=run, note=notes[0])
        raise InputError(waiting or message("{run}: no step could be read", run=run))
    least, last = shown.steps[0], shown.steps[-1]
    absent = at if at is not None and not least <= at <= last else baseline if beside is None else None
    if absent is not None:
        raise InputError(
            "{run} has no step {step}; its steps are {first} to {last}", run=run, step=absent, first=least, last=last
        )
    return shown
