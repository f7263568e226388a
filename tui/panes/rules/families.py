"""The rows of the table of scale rules: in catalogue order they stand by family, under its title."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ....core.lab.results import RULES, Order
from ....core.scales import ScaleName, scale_rule
from ...views.fields.choices import FAMILIES, family_of

HEAD = 2  # lines over the rows
_LEAST, _MOST = 5, 9  # lines of a rule's description
_LOW = 20  # lines of a pane below which the description has fewer
_TITLED = 12  # lines of a table from which families have titles


class Row(NamedTuple):
    """A line of the table: a rule, or the title of a family, or a blank line above one."""

    rule: ScaleName = ""
    title: str = ""


def by_family(names: Iterable[ScaleName], reverse: bool = False) -> list[ScaleName]:
    """Return rules by family, each in catalogue order, with formulas last; or all in reverse."""
    return sorted(names, key=_place, reverse=reverse)


def _place(name: ScaleName) -> tuple[int, int]:
    family = FAMILIES.index(family_of(scale_rule(name)))
    return family, RULES.index(name) if name in RULES else len(RULES)


def rows_of(names: Sequence[ScaleName], order: Order, room: int) -> list[Row]:
    """Return the lines of these rules: if they are sorted by rule, families have titles, and gaps if all fits."""
    if order.column != "rule" or room < _TITLED:
        return [Row(name) for name in names]
    titled: list[Row] = []
    for place, family in groupby(names, key=lambda name: _place(name)[0]):
        titled += [Row(), Row(title=FAMILIES[place]), *map(Row, family)]
    return titled[1:] if len(titled) - 1 <= room else [row for row in titled if row != Row()]


def words_height(names: Sequence[ScaleName], order: Order, height: int, border: int) -> int:
    """Return the lines for the description of a rule, below the table of a pane of this height."""
    few = _LEAST if height >= _LOW else min(max(height - 9, 0), 3)
    room = height - HEAD - border
    return min(max(room - len(rows_of(names, order, room - _MOST)), few), _MOST)
