"""The list of what the Capture pane can show: a statistic on the map, and the scale rules of A and B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....core.parameters import FIELD
from ....core.statistics.catalogue import Statistic
from ...views.fields.choice_list import ChoiceList
from ...views.fields.choices import Choice, choices_of, statistic_choices
from ...views.fields.formula_row import formula_rows

_SIDES = ("B", "A")
_FILE = Choice("file", "file", help="The scale in the file, or 1/√d_k if it has none.", source="the file")


def options(statistics: Sequence[Statistic], statistic: Statistic, against: str, rule: str) -> ChoiceList:
    """Return the list, with the statistic and the rules of A and B that are shown now.

    The values are `map entropy`, `B sqrt_d_k` and `A none`; a formula may stand for a rule.
    """
    shown = [
        replace(row, value=f"map {row.value}", family="statistic of the map", words=("map", *row.words))
        for row in statistic_choices(statistics)
    ]
    rules = [_FILE, *(row for row in choices_of(FIELD["scale"]) if row.value != "custom")]
    both = [_of_side(row, side) for side in _SIDES for row in rules]
    current = f"map {statistic.name}"
    found = ChoiceList.at("what the pane shows", (*shown, *both), current, _formulas)
    return replace(found, also=(f"A {against}", f"B {rule}"))


def _formulas(text: str) -> list[Choice]:
    return [_of_side(row, side) for side in _SIDES for row in formula_rows(text)]


def _of_side(row: Choice, side: str) -> Choice:
    family = f"scale of {side}, the {'left' if side == 'A' else 'right'} column"
    return replace(row, value=f"{side} {row.value}", name=f"{side}: {row.name}", family=family)
