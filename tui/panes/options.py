"""The list of what a pane can show: a statistic, and the scale rules and other choices of B and A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...core.message import message
from ...core.parameters import FIELD
from ...core.statistics.catalogue import Statistic
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice, choices_of, choices_of_a, formula_rows, statistic_choices
from .pane import Host

_SIDES = ("B", "A")
_FILE = Choice("file", "file", help=message("The scale in the file, or 1/√d_k if it has none."), source="the file")

_CAPS = (
    Choice(
        "softcap=file", message("soft-cap of the file"), help=message("The soft-cap in the file."), source="the file"
    ),
    Choice("softcap=0", message("no soft-cap"), help=message("Logits without the file's soft-cap."), source="you"),
)


def choose_option(
    host: Host,
    statistics: Sequence[Statistic],
    statistic: Statistic,
    now: Sequence[str],
    take: Callable[[str, str], object],
    of_head: Sequence[Choice],
    which: str = "",
) -> None:
    """Show the list, with the statistic and what A and B are `now`; a formula may stand for a rule.

    With `which`, only the rows whose values start so. `take` is called with what is chosen, `statistic`, `A` or `B`,
    and its value.
    """
    present = f"statistic {statistic.name}", *now
    rows = [row for row in options(statistics, of_head) if row.value.startswith(which)]
    current = next(value for value in present if value.startswith(which))

    def chosen(values: Sequence[str]) -> None:
        what, _, value = values[0].partition(" ")
        take(what, value)

    def formulas(text: str) -> list[Choice]:
        found = [_of_side(row, side) for side in _SIDES for row in formula_rows(text)]
        return [row for row in found if row.value.startswith(which)]

    beyond = None if which == "statistic" else formulas
    found = ChoiceList.at(message("what to show"), rows, current, beyond, live=True)
    host.choose(replace(found, also=present), chosen)


def options(statistics: Sequence[Statistic], of_head: Sequence[Choice]) -> list[Choice]:
    """Return the rows. Their values are `statistic entropy`, `B sqrt_d_k` and `A none`."""
    shown = [
        replace(row, value=f"statistic {row.value}", family="statistic", words=("statistic", *row.words))
        for row in statistic_choices(statistics)
    ]
    return [*shown, *(_of_side(row, side) for side in _SIDES for row in of_head)]


def head_rows(capped: bool) -> list[Choice]:
    """Return the rows of what A and B of a captured head may be; `capped`: the file has a soft-cap."""
    rules = [row for row in choices_of(FIELD["scale"]) if row.value != "custom"]
    others = [row for row in choices_of_a() if row.value.startswith(("precision=", "arithmetic="))]
    return [_FILE, *rules, *others, *(_CAPS if capped else ())]


def _of_side(row: Choice, side: str) -> Choice:
    name, equals, _ = row.value.partition("=")
    label = FIELD[name].label if equals else "scale"
    family = (
        message("{label} of A, the left column", label=label)
        if side == "A"
        else message("{label} of B, the right column", label=label)
    )
    return replace(row, value=f"{side} {row.value}", name=f"{side}: {row.name}", family=family)
