"""The list of what a pane can show: a statistic, and the scale rules of B and A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...core.message import message
from ...core.parameters import FIELD
from ...core.statistics.catalogue import Statistic
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice, against_choices, choices_of, choices_of_a, statistic_choices
from ..views.fields.formula_row import formula_rows
from .pane import Host

_SIDES = ("B", "A")
_FILE = Choice("file", "file", help=message("The scale in the file, or 1/√d_k if it has none."), source="the file")


def choose_option(
    host: Host,
    statistics: Sequence[Statistic],
    statistic: Statistic,
    rules: tuple[str, str],
    take: Callable[[str, str], object],
    of_file: bool = False,
) -> None:
    """Show the list, with the statistic and the rules of A and B that are shown now; a formula may stand for a rule.

    `take` is called with what is chosen, `statistic`, `A` or `B`, and its name. With `of_file`, the rules are those
    of a captured head.
    """
    found = options(statistics, statistic, rules, of_file)

    def chosen(values: Sequence[str]) -> None:
        what, _, value = values[0].partition(" ")
        take(what, value)

    host.choose(found, chosen)


def options(
    statistics: Sequence[Statistic], statistic: Statistic, rules: tuple[str, str], of_file: bool
) -> ChoiceList:
    """Return the list. The values are `statistic entropy`, `B sqrt_d_k` and `A none`."""
    shown = [
        replace(row, value=f"statistic {row.value}", family="statistic", words=("statistic", *row.words))
        for row in statistic_choices(statistics)
    ]
    of_b = list(choices_of(FIELD["scale"]))
    of_a = [*against_choices(), *choices_of_a()]
    if of_file:
        of_b = of_a = [_FILE, *(row for row in of_b if row.value != "custom")]
    both = [_of_side(row, side) for side, rows in zip(_SIDES, (of_b, of_a), strict=True) for row in rows]
    found = ChoiceList.at(
        message("what the pane shows"), (*shown, *both), message("statistic {name}", name=statistic.name), _formulas
    )
    return replace(found, also=(f"A {rules[0]}", f"B {rules[1]}"))


def _formulas(text: str) -> list[Choice]:
    return [_of_side(row, side) for side in _SIDES for row in formula_rows(text)]


def _of_side(row: Choice, side: str) -> Choice:
    family = message("scale of A, the left column") if side == "A" else message("scale of B, the right column")
    return replace(row, value=f"{side} {row.value}", name=f"{side}: {row.name}", family=family)
