"""The program of a comparison of mechanisms: each over the same d_k, under the rule that it is used with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lab.mechanisms import MEASURED
from ....lab.results import MechanismRow
from ....parameters import UNSCALED, Parameters, choice_word
from ....scales import scale_rule
from ....statistics.catalogue import STATISTIC
from ....statistics.measurement import Column
from ..program import Dialect, NoCodeError, assembled, expected
from ..report import printed_names
from ..rounding import is_eager
from ..setting import remarks
from .loops import Loop, looped

_LEFT_OUT = "Not printed: the largest score drawn, and the bound of scores."
_FAR = 30_000  # scores below it are far from the largest number of float16


def mechanisms_code(p: Parameters, rows: Sequence[MechanismRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of mechanisms; raise NoCodeError if there is none."""
    if is_eager(p) and any((row.largest or _FAR) >= _FAR for row in rows):
        raise NoCodeError("No code: scores may overflow, and the comparison does not count such rows.")
    by_mechanism: dict[tuple[str, str, bool], list[MechanismRow]] = {}
    for row in rows:
        by_mechanism.setdefault((row.mechanism, row.rule, row.with_sink), []).append(row)
    loops = [_loop(p, same) for same in by_mechanism.values()]
    groups = [(loop.sides, [column for columns in loop.columns.values() for column in columns]) for loop in loops]
    names = printed_names(groups, MEASURED, dialect)
    blocks, lines = looped(loops, names, dialect)
    titles = [STATISTIC[name].short_label for name in names]
    sides = [side for loop in loops for side in loop.sides]
    return assembled([command, *remarks(sides), _LEFT_OUT], blocks, expected(titles, lines), dialect)


def _loop(p: Parameters, rows: Sequence[MechanismRow]) -> Loop:
    """Return the loop of one mechanism over d_k."""
    row = rows[-1]
    side = replace(
        p,
        d_k=max(each.d_k for each in rows),
        mechanism=row.mechanism,
        scale=row.rule,
        against=UNSCALED,
        sink="logit" if row.with_sink else p.sink,
        softcap=0.0,
    )
    words = f"{choice_word(row.mechanism)}{' with sink' * row.with_sink}, {scale_rule(row.rule).label}, "
    columns = {(each.d_k, p.n_keys): [Column(each.rule, each.multiplier, each.measured, {})] for each in rows}
    return Loop(words, [side], columns)
