"""The list of what a pane can show: a statistic, and the scale rules and other choices of B and A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...core.message import message
from ...core.parameters import FIELD
from ...core.statistics.catalogue import Statistic
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice, against_choices, choices_of, choices_of_a, formula_rows, statistic_choices
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
    of_head: Sequence[Choice] = (),
) -> None:
    """Show the list, with the statistic and what A and B are `now`; a formula may stand for a rule.

    `take` is called with what is chosen, `statistic`, `A` or `B`, and its value. Those of A and B are `of_head` if
    they are of a captured head.
    """
    found = options(statistics, statistic, now, of_head)

    def chosen(values: Sequence[str]) -> None:
        what, _, value = values[0].partition(" ")
        take(what, value)

    host.choose(found, chosen)


def options(
    statistics: Sequence[Statistic], statistic: Statistic, now: Sequence[str], of_head: Sequence[Choice] = ()
) -> ChoiceList:
    """Return the list. The values are `statistic entropy`, `B sqrt_d_k` and `A none`."""
    shown = [
        replace(row, value=f"statistic {row.value}", family="statistic", words=("statistic", *row.words))
        for row in statistic_choices(statistics)
    ]
    of_b, of_a = of_head or choices_of(FIELD["scale"]), of_head or [*against_choices(), *choices_of_a()]
    both = [_of_side(row, side) for side, rows in zip(_SIDES, (of_b, of_a), strict=True) for row in rows]
    found = ChoiceList.at(
        message("what the pane shows"), (*shown, *both), message("statistic {name}", name=statistic.name), _formulas
    )
    return replace(found, also=tuple(now))


def head_rows(capped: bool) -> list[Choice]:
    """Return the rows of what A and B of a captured head may be; `capped`: the file has a soft-cap."""
    rules = [row for row in choices_of(FIELD["scale"]) if row.value != "custom"]
    others = [row for row in choices_of_a() if row.value.startswith(("precision=", "arithmetic="))]
    return [_FILE, *rules, *others, *(_CAPS if capped else ())]


def _formulas(text: str) -> list[Choice]:
    return [_of_side(row, side) for side in _SIDES for row in formula_rows(text)]


def _of_side(row: Choice, side: str) -> Choice:
    name, equals, _ = row.value.partition("=")
    label = FIELD[name].label if equals else "scale"
    family = (
        message("{label} of A, the left column", label=label)
        if side == "A"
        else message("{label} of B, the right column", label=label)
    )
    return replace(row, value=f"{side} {row.value}", name=f"{side}: {row.name}", family=family)
