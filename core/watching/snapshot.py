"""What is shown of a run at one of its steps, as plain values; this module's users need not load NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .limits import Offender

if TYPE_CHECKING:
    from .step import Step

TRENDS = 256  # heads with a trend, the worst
_POINTS = 64  # of a trend at most


@dataclass(frozen=True)
class Snapshot:
    """One step of a run, and how it came there."""

    step: int
    time: float | None
    layers: tuple[str, ...]
    heads: tuple[int, ...]  # of each layer
    values: Mapping[str, tuple[tuple[float, ...], ...]]  # by statistic: a number for each head of each layer
    says_scale: str  # whether the scale is inside the logits
    scale: float | None
    scaled: bool | None
    ranked: tuple[Offender, ...]  # all heads with a logit, worst first
    trends: Mapping[tuple[int, int], tuple[float, ...]]  # the largest |logit| over steps, of the worst heads
    limit: float
    steps: tuple[int, ...]  # all steps that are kept
    file: str | None  # that the heads are in
    notes: tuple[str, ...]

    @property
    def over(self) -> int:
        """The heads over the limit."""
        return sum(each.over for each in self.ranked)


def snapshot(history: Sequence[Step], limit: float, at: int | None = None) -> Snapshot | None:
    """Return what is shown of the newest step, or of the last one up to step `at`; None without steps."""
    from .offenders import offenders
    from .step import MAX_LOGIT, logits, says_scale

    until = history if at is None else [step for step in history if step.step <= at] or history[:1]
    if not until:
        return None
    last, ranked = until[-1], offenders(until, limit)
    values = dict(last.values)
    if (found := logits(last)) is not None:
        values[MAX_LOGIT] = found
    spread = [until[number * (len(until) - 1) // (_POINTS - 1)] for number in range(_POINTS)]
    tables = [logits(step) for step in (until if len(until) <= _POINTS else spread)]
    same = [table for table in tables if table is not None and found is not None and table.shape == found.shape]
    return Snapshot(
        last.step,
        last.time,
        last.layers,
        last.heads,
        {
            name: tuple(tuple(map(float, row[:count])) for row, count in zip(table, last.heads, strict=True))
            for name, table in values.items()
        },
        says_scale(last),
        last.scale,
        last.scaled,
        tuple(ranked),
        {
            (each.layer, each.head): tuple(float(table[each.layer, each.head]) for table in same)
            for each in ranked[:TRENDS]
        },
        limit,
        tuple(step.step for step in history),
        last.file,
        last.notes,
    )
