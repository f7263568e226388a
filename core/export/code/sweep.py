"""The program of a sweep: the same over many d_k, numbers of keys and values of a second axis."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ...parameters import FIELD, Parameters, Value
from ...statistics.catalogue import STATISTIC
from ...statistics.measurement import Column
from .program import WIDEST, Dialect, NoCodeError, Piece, assembled, expected, shown
from .report import Group, groups_of, printed_names
from .setting import parts, remarks

if TYPE_CHECKING:
    from ..sweep import SweepResult

_OTHERWISE = ("logit_std", "entropy", "max_weight")  # printed if no program prints what the table shows


@dataclass(frozen=True, eq=False)
class _Loop:
    """Points that one loop runs over: they differ in d_k and the number of keys alone."""

    prefix: str  # the value of the second axis, and A or B if these have loops of their own
    sides: Sequence[Parameters]  # at the largest point
    columns: Mapping[tuple[int, int], Sequence[Column]]  # by d_k and number of keys


def sweep_code(sweep: SweepResult, dialect: Dialect) -> str:
    """Return the program that prints the statistics of a sweep; raise NoCodeError if there is none."""
    if sweep.target is not None:
        raise NoCodeError("No code: with --stderr, every point has draws of its own number; leave it out.")
    loops = [*_loops(sweep)]
    groups: list[Group] = [
        (loop.sides, [column for columns in loop.columns.values() for column in columns]) for loop in loops
    ]
    names = printed_names(groups, sweep.shown, dialect)
    if not names and not sweep.statistics:
        names = printed_names(groups, _OTHERWISE, dialect)
    if not names:
        raise NoCodeError(f"No code: no short program prints {', '.join(sweep.shown)}.")
    swept = {"d_k", *(["n"] if sweep.n_keys else [])}
    blocks: list[list[Piece]] = []
    rows: dict[str, list[str]] = {}
    for loop, (sides, columns) in zip(loops, groups, strict=True):
        found = parts(sides, columns, names, dialect, swept)
        wide = max(len(_label(loop.prefix, *place, bool(sweep.n_keys))) for place in loop.columns) + 2
        for place, own in loop.columns.items():
            values = [shown(column.measured[name].value) for name in names for column in own]
            rows[_label(loop.prefix, *place, bool(sweep.n_keys))] = values
        text = _loop(loop, found.drawn, found.calls, wide, bool(sweep.n_keys))
        blocks.append([found.values, *found.functions, found.measure, Piece(text)])
    several = len(loops[0].sides) > 1
    ends = " A", " B"
    titles = [STATISTIC[name].short_label + end for name in names for end in (ends if several else ("",))]
    missing = [STATISTIC[name].label for name in sweep.shown if name not in names]
    left_out = [f"Not printed: {', '.join(missing)}."] if missing else []
    largest = [side for loop in loops for side in loop.sides]
    return assembled([sweep.command, *remarks(largest), *left_out], blocks, expected(titles, rows), dialect)


def _loops(sweep: SweepResult) -> Iterator[_Loop]:
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
            yield _Loop(word + own, sides, columns)


def _label(prefix: str, d_k: int, n: int, with_keys: bool) -> str:
    return f"{prefix}d_k {d_k}, n {n}" if with_keys else f"{prefix}d_k {d_k}"


def _loop(loop: _Loop, drawn: str, calls: Sequence[str], wide: int, with_keys: bool) -> str:
    """Return the loop over d_k and, if they are swept, the numbers of keys."""
    d_ks, keys = (list(dict.fromkeys(place[axis] for place in loop.columns)) for axis in (0, 1))
    heads = [f"for d_k in {_values(d_ks)}:", *([f"for n in {_values(keys)}:"] if with_keys else [])]
    made = ", ".join(calls)
    label = _label(loop.prefix, 0, 0, with_keys).replace("d_k 0", "d_k {d_k}").replace("n 0", "n {n}")
    if len(calls) > 1:
        assigned = f"a, b = {made}"
        lines = assigned.split("\n") if len(assigned) < WIDEST else [f"a = {calls[0]}", f"b = {calls[1]}"]
        numbers = '*(f"{x[name]:9.4g}" for name in a for x in (a, b))'
    else:
        lines = [f"found = {made}"]
        numbers = '*(f"{value:9.4g}" for value in found.values())'
    body = [*drawn.split("\n"), *lines, f'row = f"{label}"', f'print(f"{{row:{wide}}}", {numbers})']
    texts = ["    " * depth + head for depth, head in enumerate(heads)]
    return "\n".join([*texts, *("    " * len(heads) + line for line in body)])


def _values(values: Sequence[int]) -> str:
    """Return the values of an axis: a range if they are evenly spaced."""
    if len(values) > 2:
        step = values[1] - values[0]
        if all(later - value == step for value, later in pairwise(values)):
            return f"range({values[0]}, {values[-1] + 1}{f', {step}' if step > 1 else ''})"
    text = ", ".join(map(str, values)) + ("," if len(values) == 1 else "")
    return "(" + textwrap.fill(text, WIDEST - 16, subsequent_indent="    ") + ")"
