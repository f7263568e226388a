"""The lists that panes choose from. The modules with their rows are loaded when a list is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...core.message import message
from ...core.parameters import FIELD, FIELDS, Parameters, changes
from ...core.setting_text import text_of, with_rule
from ...core.statistics.catalogue import Statistic
from .pane import Host

T = TypeVar("T")

if TYPE_CHECKING:
    from ..views.fields.choice_list import Beyond
    from ..views.fields.choices import Choice
    from ..widgets.field_list import FieldList


def choose_one(
    host: Host,
    title: str,
    choices: Sequence[Choice],
    current: str,
    take: Callable[[str], object],
    beyond: Beyond | None = None,
    live: bool = True,
) -> None:
    """Show a list; `take` is called with the value of the chosen row, and of a live list with each at the cursor."""
    from ..views.fields.choice_list import ChoiceList

    host.choose(ChoiceList.at(title, choices, current, beyond, live=live), lambda values: take(values[0]))


def choose_of(host: Host, title: str, labels: Sequence[tuple[T, str]], now: T, take: Callable[[T], object]) -> None:
    """Show a live list of values with their labels; `take` is called with one of them."""
    from ..views.fields.choices import Choice

    values = [value for value, _ in labels]
    rows = [Choice(str(place), label) for place, (_, label) in enumerate(labels)]
    choose_one(host, title, rows, str(values.index(now)), lambda place: take(values[int(place)]))


def choose_in(host: Host, fields: FieldList, show: Callable[[], object]) -> None:
    """Show the list of the field with the cursor; `show` is called after a value was chosen."""
    from ..views.fields.choices import choices_of

    field = fields.field

    def take(value: str) -> None:
        fields.go_to(field.name)
        fields.value = value
        show()

    choose_one(host, field.label, choices_of(field), str(fields.value), take)


def choose_value(host: Host, name: str, take: Callable[[str], object]) -> None:
    """Show the list of a parameter's values; `take` is called with the chosen one. A scale may be a formula."""
    from ..views.fields.choices import choices_of

    field, current = FIELD[name], str(getattr(host.parameters, name))
    if field.kind == "setting":
        choose_against(host, take)
    else:
        choose_one(host, field.label, choices_of(field), current, take, _formulas(host) if field.beyond else None)


def choose_against(host: Host, take: Callable[[str], object]) -> None:
    """Show the list of what A can be: scale rules, then number formats, laws and other choices that differ from B's.

    `take` is called with the text of A, the rest of which is kept.
    """
    from ..views.fields.choices import against_choices, choices_of_a

    p = host.parameters
    current = str(changes(p.against).get("scale", p.scale))
    choices = (*against_choices(), *choices_of_a())
    title = message("A, the left column")
    choose_one(host, title, choices, current, lambda value: take(against_with(p, value)), _formulas(host))


def against_with(p: Parameters, value: str) -> str:
    """Return the text of A after a rule or `name=value` was chosen for it; the value of B ends a difference."""
    changed = changes(p.against)
    name, equals, text = value.partition("=")
    if not equals:
        return text_of(with_rule(changed, value), FIELDS)
    rest = {key: each for key, each in changed.items() if key != name}
    differs = {} if text == getattr(p, name) else {name: text}
    return text_of(rest | differs, FIELDS) or p.scale


def choose_rules(
    host: Host,
    marked: Sequence[str],
    take: Callable[[Sequence[str]], object],
    title: str = message("scale rules to show beside A and B"),
) -> None:
    """Show the list of scale rules, of which several can be chosen; `take` is called with them."""
    from ..views.fields.choice_list import ChoiceList
    from ..views.fields.choices import choices_of

    choices, current = choices_of(FIELD["scale"]), host.parameters.scale
    host.choose(ChoiceList.at(title, choices, current, _formulas(host), tuple(marked)), take)


def _formulas(host: Host) -> Beyond:
    from ..views.fields.choices import formula_rows

    return lambda text: formula_rows(text, host.parameters)


def choose_statistic(
    host: Host, statistics: Sequence[Statistic], now: Statistic, take: Callable[[str], object]
) -> None:
    """Show the list of statistics; `take` is called with the name of one."""
    from ..views.fields.choices import statistic_choices

    choose_one(host, message("statistic"), statistic_choices(statistics), now.name, take)
