"""The lists of what the Capture pane can show, and of what the scale may be meant to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....core.diagnosis.expectation import Expectation, expectation, expectations
from ....core.diagnosis.groups import HeadVerdict
from ....core.diagnosis.results import amount
from ....core.errors import InputError, ParameterError
from ....core.message import joined, message
from ....core.parameters import FIELD
from ....core.scales import SCALE_RULES
from ....core.statistics.catalogue import Statistic
from ...views.fields.choice_list import ChoiceList
from ...views.fields.choices import Choice, choices_of, choices_of_a, formula_rows, statistic_choices
from ..lists import choose_one
from ..pane import Host

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
        choices = [_of_side(row, side) for side in _SIDES for row in formula_rows(text)]
        return [row for row in choices if row.value.startswith(which)]

    beyond = None if which == "statistic" else formulas
    choices = ChoiceList.at(message("what to show"), rows, current, beyond, live=True)
    host.choose(replace(choices, also=present), chosen)


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


_HELP = message("Every head is judged by it, here and in the command that y copies.")


def choose_expectation(
    host: Host, heads: Sequence[HeadVerdict], current: str | None, take: Callable[[str | None], object]
) -> None:
    """Show the list; `take` is called with a rule, a number or a formula, or None for what the file says.

    Letters type a formula, such as 1/sqrt(d).
    """
    known = expectations(heads, [head.verdict.expected.multiplier if current is None else None for head in heads])
    rows = [_row(expected, len(heads)) for expected in known] or [Choice("", message("as the file says"), help=_HELP)]
    if current is not None and current not in [row.value for row in rows]:
        rows.append(_row(expectation(current, heads), len(heads)) if heads else Choice(current, current))

    def typed(text: str) -> list[Choice]:
        found = formula_rows(text)
        try:
            return [_row(expectation(text.strip(), heads), len(heads)) for _ in found] if heads else found
        except (InputError, ParameterError):
            return found

    choose_one(
        host, message("should be"), rows, current or "", lambda value: take(value or None), beyond=typed, live=False
    )


def _row(expected: Expectation, count: int) -> Choice:
    rule = SCALE_RULES.get(expected.rule) if expected.rule is not None else None
    name = message("as the file says") if expected.rule is None else rule.label if rule is not None else expected.rule
    fits = message("{fits} of {count} heads", fits=expected.fits, count=count)
    used = [] if expected.multiplier is None else [amount(expected.multiplier)]
    return Choice(expected.rule or "", name, joined([*used, fits], "   "), _HELP)
