"""The list of what the scale may be meant to be, with how many heads of the file each fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....core.diagnosis.expectation import Expectation, expectation, expectations
from ....core.diagnosis.groups import HeadVerdict
from ....core.diagnosis.results import amount
from ....core.errors import InputError, ParameterError
from ....core.message import joined, message
from ....core.scales import SCALE_RULES
from ...views.fields.choices import Choice, formula_rows
from ..lists import choose_one
from ..pane import Host

_HELP = message("Every head is judged by it, here and in the command that y copies.")


def choose_expectation(
    host: Host, heads: Sequence[HeadVerdict], current: str | None, take: Callable[[str | None], object]
) -> None:
    """Show the list; `take` is called with a rule, a number or a formula, or None for what the file says.

    Letters type a formula, such as 1/sqrt(d).
    """
    known = expectations(heads, [each.verdict.expected.multiplier if current is None else None for each in heads])
    rows = [_row(each, len(heads)) for each in known] or [Choice("", message("as the file says"), help=_HELP)]
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


def _row(each: Expectation, count: int) -> Choice:
    rule = SCALE_RULES.get(each.rule) if each.rule is not None else None
    name = message("as the file says") if each.rule is None else rule.label if rule is not None else each.rule
    fits = message("{fits} of {count} heads", fits=each.fits, count=count)
    used = [] if each.multiplier is None else [amount(each.multiplier)]
    return Choice(each.rule or "", name, joined([*used, fits], "   "), _HELP)
