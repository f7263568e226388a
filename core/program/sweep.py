"""The programs of sweeps and maps, and comparisons of rules and of mechanisms: the same over many settings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from ..lab.mechanisms import MEASURED as OF_MECHANISMS
from ..lab.results import MEASURED, MechanismRow, RuleRow
from ..parameters import FIELD, ROUNDED, UNSCALED, Parameters, Value, choice_word
from ..scales import scale_rule
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Column
from .lab import groups_of, parts, printed_names, remarks
from .text import WIDEST, CodePiece, Dialect, NoCodeError, assembled, expected, filled, printing, shown

if TYPE_CHECKING:
    from ..tables.lab import SweepResult

_OTHERWISE = ("logit_std", "entropy", "max_weight")  # printed if no program prints what the table shows
_FAR = 30_000  # scores below it are far from the largest number of float16


@dataclass(frozen=True, eq=False)
class _Loop:
    """Points that one loop runs over: they differ in d_k and the number of keys alone."""

    prefix: str  # the value of the second axis, and A or B if these have loops of their own
    sides: Sequence[Parameters]  # at the largest point
    columns: Mapping[tuple[int, int], Sequence[Column]]  # by d_k and number of keys

    @property
    def every(self) -> list[Column]:
        """All columns."""
        return [column for columns in self.columns.values() for column in columns]

    def label(self, d_k: object, n: object) -> str:
        """Return the label of a point; `n` is None if numbers of keys are not swept."""
        return f"{self.prefix}d_k {d_k}" + ("" if n is None else f", n {n}")


def sweep_code(sweep: SweepResult, dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a sweep; raise NoCodeError if there is none."""
    if sweep.target is not None:
        raise NoCodeError("No code: with --stderr, each point has its own number of draws; leave it out.")
    loops = [*_loops(sweep)]
    groups = [(loop.sides, loop.every) for loop in loops]
    names = printed_names(groups, sweep.shown)
    if not names and not sweep.statistics:
        names = printed_names(groups, _OTHERWISE)
    if not names:
        raise NoCodeError("No code: no short program prints {names}.", names=", ".join(sweep.shown))
    missing = [STATISTIC[name].label for name in sweep.shown if name not in names]
    left_out = [f"Not printed: {', '.join(missing)}."] if missing else []
    return _looped(loops, names, dialect, command, left_out, bool(sweep.n_keys))


def mechanisms_code(p: Parameters, rows: Sequence[MechanismRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of mechanisms; raise NoCodeError if there is none."""
    eager = p.precision in ROUNDED and p.arithmetic == "eager"
    if eager and any((row.largest or _FAR) >= _FAR for row in rows):
        raise NoCodeError("No code: scores may overflow, and the comparison does not count such rows.")
    by_mechanism: dict[tuple[str, str, bool], list[MechanismRow]] = {}
    for row in rows:
        by_mechanism.setdefault((row.mechanism, row.rule, row.with_sink), []).append(row)
    loops: list[_Loop] = []
    for (_, rule, with_sink), same in by_mechanism.items():
        asked = replace(p, d_k=max(row.d_k for row in same), mechanism=same[0].mechanism, scale=rule, softcap=0.0)
        side = replace(asked, against=UNSCALED, sink="logit" if with_sink else p.sink)
        words = f"{choice_word(same[0].mechanism)}{' with sink' * with_sink}, {scale_rule(rule).label}, "
        columns = {(row.d_k, p.n_keys): [Column(rule, row.multiplier, row.measured, {})] for row in same}
        loops.append(_Loop(words, [side], columns))
    names = printed_names([(loop.sides, loop.every) for loop in loops], OF_MECHANISMS)
    left_out = ["Not printed: the largest score drawn, and the bound of scores."]
    return _looped(loops, names, dialect, command, left_out)


def _looped(
    loops: Sequence[_Loop],
    names: Sequence[str],
    dialect: Dialect,
    command: str,
    left_out: Sequence[str],
    with_keys: bool = False,
) -> str:
    """Return the program with these loops."""
    blocks: list[list[CodePiece]] = []
    rows: dict[str, list[str]] = {}
    for loop in loops:
        found = parts(loop.sides, loop.every, names, ("d_k", "n") if with_keys else ("d_k",))
        ends = (", A", ", B") if len(loop.sides) > 1 else ("",)
        labels: list[str] = []
        for (d_k, n), columns in loop.columns.items():
            for end, column in zip(ends, columns, strict=True):
                labels.append(loop.label(d_k, n if with_keys else None) + end)
                rows[labels[-1]] = [shown(column.measured[name].value) for name in names]
        label, wide = loop.label("{d_k}", "{n}" if with_keys else None), max(map(len, labels)) + 2
        prints = [printing(label + end, wide, call) for end, call in zip(ends, found.calls, strict=True)]
        axes = [f"for {name} in {_values(loop, at)}:" for at, name in enumerate(("d_k", "n")[: 1 + with_keys])]
        lines = ["    " * depth + axis for depth, axis in enumerate(axes)]
        lines += ["    " * len(axes) + line for line in (*found.drawn.split("\n"), *prints)]
        blocks.append([found.values, *found.functions, found.measure, CodePiece("\n".join(lines))])
    titles = [STATISTIC[name].short_label for name in names]
    said = remarks([side for loop in loops for side in loop.sides])
    return assembled([command, *said, *left_out], blocks, expected(titles, rows), dialect)


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
        for at, (sides, _) in enumerate(groups[-1]):
            prefix = "" if len(groups[-1]) == 1 else f"{'AB'[at]}, "
            columns = {place: group[at][1] for place, group in zip(order, groups, strict=True)}
            yield _Loop(word + prefix, sides, columns)


def _values(loop: _Loop, axis: int) -> str:
    """Return the values of an axis: a range if they are evenly spaced."""
    values = sorted({place[axis] for place in loop.columns})
    steps = {later - value for value, later in pairwise(values)}
    if len(values) > 2 and len(steps) == 1:
        [step] = steps
        return f"range({values[0]}, {values[-1] + 1}{f', {step}' if step > 1 else ''})"
    text = ", ".join(map(str, values)) + ("," if len(values) == 1 else "")
    return "(" + textwrap.fill(text, WIDEST - 16, subsequent_indent="    ") + ")"


def rules_code(p: Parameters, rows: Sequence[RuleRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of rules in this order; raise NoCodeError if there is none."""
    valid = [row for row in rows if row.multiplier is not None]
    if not valid:
        raise NoCodeError("No code: no rule has a multiplier here.")
    sides = [replace(p, scale=row.rule, against=UNSCALED) for row in valid]
    columns = [Column(row.rule, row.multiplier or 0.0, row.measured, {}) for row in valid]
    names = printed_names([(sides, columns)], MEASURED)
    found = parts(sides, columns, names)
    labels = [scale_rule(row.rule).formula for row in valid]
    entries = [f'"{label}": lambda: {call}' for label, call in zip(labels, found.calls, strict=True)]
    loop = [
        "rules = {",
        *(f"    {line}" for line in filled(entries, WIDEST)),
        "}",
        "for name, measured in rules.items():",
        f"    {printing('{name}', max(map(len, labels)) + 2, 'measured()')}",
    ]
    titles = [STATISTIC[name].short_label for name in names]
    values = {
        label: [shown(column.measured[name].value) for name in names]
        for label, column in zip(labels, columns, strict=True)
    }
    pieces = [found.values, *found.functions, CodePiece(found.drawn), found.measure, CodePiece("\n".join(loop))]
    return assembled([command, *remarks(sides[:1])], [pieces], expected(titles, values), dialect)
