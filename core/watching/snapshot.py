"""What is shown of a run at one of its steps, as plain values; this module's users need not load NumPy."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..message import Plain
from .limits import MAX_LOGIT, RECENT, HeadTrend

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from .step import WatchStep


TRENDS = 2048  # heads with a trend, the first of the list
_POINTS = 48  # of a trend at most

Values: TypeAlias = Mapping[str, tuple[tuple[float, ...], ...]]  # by statistic: a number a head, for each layer


@dataclass(frozen=True)
class RunSnapshot:
    """One step of a run, and how it came there."""

    step: int
    time: float | None
    layers: tuple[Plain, ...]
    heads: tuple[int, ...]  # of each layer
    values: Values
    says_scale: str  # whether the scale is inside the logits
    scale: float | None
    scaled: bool | None
    ranked: tuple[HeadTrend, ...]  # all heads that had a logit, worst first; beside a baseline, by change
    trends: Mapping[tuple[int, int], Sequence[float]]  # the largest |logit| over steps, of the first heads
    others_over: int | None  # the first step at which a head was over the limit that this step does not have
    limit: float
    steps: tuple[int, ...]  # all steps that are kept
    file: str | None  # that the heads are in
    baseline: int | None = None  # the step compared with
    baseline_file: str | None = None
    changes: Values | None = None  # since the baseline; None without one, or if its heads are others

    @property
    def over(self) -> int:
        """The heads over the limit at this step."""
        return sum(head.over for head in self.ranked)

    @property
    def came_back(self) -> int:
        """The heads that were over the limit at an earlier step, and are not at this one."""
        return sum(head.came_back for head in self.ranked)

    @property
    def passed(self) -> bool:
        """Whether any head was over the limit at this step or an earlier one."""
        return self.others_over is not None or any(head.first_over is not None for head in self.ranked)

    @property
    def per(self) -> int:
        """The steps over which growth is shown: 1, 10, 100 or 1,000, at most as many as it was fitted to."""
        recent = [step for step in self.steps if step <= self.step][-RECENT:]
        span = recent[-1] - recent[0] if recent else 0
        return next((steps for steps in (1000, 100, 10) if steps <= span), 1)

    def change(self, layer: int, head: int) -> float | None:
        """Return the change of a head's largest |logit| since the baseline, if it is known."""
        found = (self.changes or {}).get(MAX_LOGIT)
        return None if found is None or math.isnan(found[layer][head]) else found[layer][head]


def snapshot(
    history: Sequence[WatchStep], limit: float, at: int | None = None, baseline: WatchStep | None = None
) -> RunSnapshot | None:
    """Return what is shown of the newest step, or of the last one up to step `at`; None without steps.

    Beside a baseline, heads are ranked by the change of their largest |logit| since then.
    """
    from .offenders import offenders
    from .peaks import heads_of, peaks_of
    from .step import says_scale

    until = history if at is None else [step for step in history if step.step <= at] or history[:1]
    if not until:
        return None
    last, peaks = until[-1], peaks_of(until, limit)
    ranked = offenders(until, limit, peaks)
    others = [peak.first_over.min() for heads, peak in peaks.items() if heads != heads_of(last)]
    others_over = min(others, default=math.inf)
    changes = None if baseline is None else _changes(last, baseline)
    shown = RunSnapshot(
        step=last.step,
        time=last.time,
        layers=last.layers,
        heads=last.heads,
        values=_rows(_values(last), last.heads),
        says_scale=says_scale(last),
        scale=last.scale,
        scaled=last.scaled,
        ranked=(),
        trends={},
        others_over=None if math.isinf(others_over) else int(others_over),
        limit=limit,
        steps=tuple(step.step for step in history),
        file=last.file,
        baseline=None if baseline is None else baseline.step,
        baseline_file=None if baseline is None else baseline.file,
        changes=None if changes is None else _rows(changes, last.heads),
    )
    if changes is not None:
        ranked.sort(key=lambda head: -_or_least(shown.change(head.layer, head.head)))
    return replace(shown, ranked=tuple(ranked), trends=_trends(until, ranked[:TRENDS]))


def _trends(steps: Sequence[WatchStep], heads: Sequence[HeadTrend]) -> dict[tuple[int, int], array[float]]:
    """Return the largest |logit| of heads over up to _POINTS runs of steps; NaN where heads are others.

    The first and the last of them are the first and the last step. Arrays of single precision take a quarter of the
    time that lists take on their way to another process.
    """
    import numpy as np

    from .peaks import heads_of
    from .step import logits

    mine = heads_of(steps[-1])
    unknown = np.full((len(mine[1]), max(mine[1])), math.nan)

    def largest(some: Sequence[WatchStep]) -> FloatArray:
        kept = (logits(step) for step in some if heads_of(step) == mine)
        dropped = (step.dropped[mine].largest for step in some if mine in step.dropped)
        return np.fmax.reduce([unknown, *(table for table in kept if table is not None), *dropped])

    with np.errstate(over="ignore"):
        tables = np.array([largest(steps[first:end]) for first, end in trend_runs(len(steps))], np.float32)
    return {(head.layer, head.head): array("f", tables[:, head.layer, head.head].tobytes()) for head in heads}


def trend_runs(count: int) -> list[tuple[int, int]]:
    """Return the runs of `count` steps, first and end, that the points of a trend stand for."""
    if count <= _POINTS:
        return [(number, number + 1) for number in range(count)]
    between = _POINTS - 2
    ends = [0, *(1 + number * (count - 2) // between for number in range(between + 1)), count]
    return [*pairwise(ends)]


def _values(step: WatchStep) -> dict[str, FloatArray]:
    """Return the statistics of a step, [layer, head], with logits instead of scores."""
    from .step import logits

    found = logits(step)
    return dict(step.values) | ({} if found is None else {MAX_LOGIT: found})


def _changes(step: WatchStep, baseline: WatchStep) -> dict[str, FloatArray] | None:
    """Return the statistics that both steps have, less those of the baseline; None if their heads are not the same.

    A number that is not finite in both steps has no change, NaN.
    """
    import numpy as np

    if (step.layers, step.heads) != (baseline.layers, baseline.heads):
        return None
    now, before = _values(step), _values(baseline)
    with np.errstate(invalid="ignore"):
        return {name: now[name] - before[name] for name in now if name in before}


def _rows(tables: Mapping[str, FloatArray], heads: Sequence[int]) -> Values:
    return {
        name: tuple(tuple(map(float, row[:count])) for row, count in zip(table, heads, strict=True))
        for name, table in tables.items()
    }


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def sample_run() -> Path:
    """Return the path of a finished run, which the Watch pane shows until another one is opened."""
    return Path(__file__).with_name("sample-run.jsonl")


def run_path(text: str | PathLike[str]) -> Path:
    """Return the path of a run; `example:exploding` is that of the sample."""
    return sample_run() if text == "example:exploding" else Path(text)
