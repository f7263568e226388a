"""The program of a sweep: the same over many d_k, numbers of keys and values of a second axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ....parameters import FIELD, Parameters, Value
from ....statistics.catalogue import STATISTIC
from ....statistics.measurement import Column
from ..parts.setting import remarks
from ..program import Dialect, NoCodeError, assembled, expected
from ..report import Group, groups_of, printed_names
from .loops import Loop, looped

if TYPE_CHECKING:
    from ....tables.lab import SweepResult

_OTHERWISE = ("logit_std", "entropy", "max_weight")  # printed if no program prints what the table shows


def sweep_code(sweep: SweepResult, dialect: Dialect) -> str:
    """Return the program that prints the statistics of a sweep; raise NoCodeError if there is none."""
    if sweep.target is not None:
        raise NoCodeError("No code: with --stderr, each point has its own number of draws; leave it out.")
    loops = [*loops_of(sweep)]
    groups: list[Group] = [
        (loop.sides, [column for columns in loop.columns.values() for column in columns]) for loop in loops
    ]
    names = printed_names(groups, sweep.shown, dialect)
    if not names and not sweep.statistics:
        names = printed_names(groups, _OTHERWISE, dialect)
    if not names:
        raise NoCodeError("No code: no short program prints {names}.", names=", ".join(sweep.shown))
    blocks, rows = looped(loops, names, dialect, bool(sweep.n_keys))
    titles = [STATISTIC[name].short_label for name in names]
    missing = [STATISTIC[name].label for name in sweep.shown if name not in names]
    left_out = [f"Not printed: {', '.join(missing)}."] if missing else []
    largest = [side for loop in loops for side in loop.sides]
    return assembled([sweep.command, *remarks(largest), *left_out], blocks, expected(titles, rows), dialect)


def loops_of(sweep: SweepResult) -> Iterator[Loop]:
    """Yield the loops, in the order in which they print."""
    vary = sweep.vary
    by_value: dict[Value | None, dict[tuple[int, int], tuple[Parameters, Sequence[Column]]]] = {}
    for point, _ in sweep.points:
        p = point.parameters
        value = getattr(p, vary[0]) if vary else None
        by_value.setdefault(value, {})[p.d_k, p.n_keys] = p, point.measurement.columns
    for value, points in by_value.items():
        word = "" if vary is None else f"{FIELD[vary[0]].label} {FIELD[vary[0]].format(value or 0)}, "
        order = sorted(points)
        groups = [groups_of(*points[place]) for place in order]
        for number, (sides, _) in enumerate(groups[-1]):
            own = "" if len(groups[-1]) == 1 else f"{'AB'[number]}, "
            columns = {place: group[number][1] for place, group in zip(order, groups, strict=True)}
            yield Loop(word + own, sides, columns)
