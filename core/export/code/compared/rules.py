"""The program of a comparison of scale rules: the same queries and keys under each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lab.results import MEASURED, RuleRow
from ....parameters import UNSCALED, Parameters
from ....scales import scale_rule
from ....statistics.catalogue import STATISTIC
from ....statistics.measurement import Column
from ..parts.attention import norm_of
from ..parts.rule import factor_code
from ..parts.setting import parts, remarks
from ..program import WIDEST, Dialect, NoCodeError, Piece, assembled, expected, filled, printing, shown
from ..report import printed_names


def rules_code(p: Parameters, rows: Sequence[RuleRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of rules in this order; raise NoCodeError if there is none."""
    valid = [row for row in rows if row.multiplier is not None]
    if not valid:
        raise NoCodeError("No code: no rule has a multiplier here.")
    sides = [replace(p, scale=row.rule, against=UNSCALED) for row in valid]
    columns = [Column(row.rule, row.multiplier or 0.0, row.measured, {}) for row in valid]
    names = printed_names([(sides, columns)], MEASURED, dialect)
    found = parts(sides, columns, names, dialect)
    labels = [scale_rule(row.rule).formula if row.rule != "custom" else "custom" for row in valid]
    wide = max(map(len, labels)) + 2
    several = any(factor_code(side) or norm_of(side) != norm_of(sides[0]) for side in sides)
    hows = [f"[{_arguments(call)}]" if several else _arguments(call) for call in found.calls]
    entries = [f'"{label}": {how}' for label, how in zip(labels, hows, strict=True)]
    loop = [
        "rules = {",
        *(f"    {line}" for line in filled(entries, WIDEST)),
        "}",
        "for name, how in rules.items():",
        f"    {printing('{name}', wide, 'measure(*how)' if several else 'measure(how)')}",
    ]
    titles = [STATISTIC[name].short_label for name in names]
    values = {
        label: [shown(column.measured[name].value) for name in names]
        for label, column in zip(labels, columns, strict=True)
    }
    pieces = [found.values, *found.functions, Piece(found.drawn), found.measure, Piece("\n".join(loop))]
    return assembled([command, *remarks(sides[:1])], [pieces], expected(titles, values), dialect)


def _arguments(call: str) -> str:
    """Return what a call of `measure` passes."""
    return call.removeprefix("measure(").removesuffix(")")
